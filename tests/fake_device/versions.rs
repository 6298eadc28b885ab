//! Raw versions and variants: the device's version word decides, and LLVM's readers agree.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::ReadCache;
use rocov::device::Device;
use rocov::device::elf_file::AtRest;
use rocov::drain::{Session, ZeroWriter};
use rocov::format::bounds_table::BoundsTable;
use rocov::format::codeobject::CodeObject;
use rocov::format::profraw::{Header, SavedSections};
use rocov::settings::Keeping;
use rocov::store::layout::DataLayout;
use tempfile::TempDir;

use crate::support::command::run;
use crate::support::compile::device_header;
use crate::support::fake_device::FakeDevice;
use crate::support::profile::functions;
use crate::{FIRST, output, profile_name};

/// The front end's own flags: the driver of clang up to 19 ignores the usual flags on the device.
pub(crate) const FRONT_END: [&str; 6] = [
    "-Xclang",
    "-fprofile-instrument=clang",
    "-Xclang",
    "-fcoverage-mapping",
    "-Xclang",
    "-fprofile-update=atomic",
];

/// A further flag for clang up to 18, which does not announce its instrumentation.
pub(crate) const OLD: &str = "-DROCOV_DEVICE_INSTRUMENTED";

/// A source without headers, so that any clang compiles it. Two counters.
const SOURCE: &str = "__attribute__((global)) void branch(int *p) { if (p[0]) p[1] = 2; }";

/// A device that has loaded [`SOURCE`] from this compiler.
pub(crate) fn compiled(compiler: &str, flags: &[&str]) -> FakeDevice {
    compiled_source(SOURCE, compiler, flags)
}

pub(crate) fn compiled_source(text: &str, compiler: &str, flags: &[&str]) -> FakeDevice {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("branch.hip");
    let object = directory.path().join("branch.co");
    fs::write(&source, text).expect("a source file");
    let mut command = Command::new(compiler);
    command
        .args([
            "-x",
            "hip",
            "--cuda-device-only",
            "--no-gpu-bundle-output",
            "-O1",
        ])
        .args([
            "-nogpuinc",
            "-nogpulib",
            "--offload-arch=gfx90a",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args(flags)
        .arg("-include")
        .arg(device_header())
        .arg(&source)
        .arg("-o")
        .arg(&object);
    run(&mut command).success();
    let mut device = FakeDevice::new(1);
    device.load(FIRST, 0, &fs::read(&object).expect("what was compiled"));
    device
}

/// The only profile of `device`, in a temporary directory.
fn drained(device: &FakeDevice) -> (TempDir, PathBuf) {
    let (directory, name) = output();
    let outcome = Session::default().drain(device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    let [profile] = outcome.files.as_slice() else {
        panic!("{:?}", outcome.files)
    };
    (directory, profile.clone())
}

fn version_word(profile: &Path) -> u64 {
    Header::version_word(&fs::read(profile).expect("a profile")).expect("a raw profile")
}

fn show(tool: &str, profile: &Path) -> String {
    let mut command = Command::new(tool);
    command
        .args(["show", "--all-functions", "--counts"])
        .arg(profile);
    run(&mut command).success().silently().stdout
}

#[track_caller]
fn check(compiler: &str, flags: &[&str], version: u64, reader: &str) {
    let device = compiled(compiler, flags);
    device.count_all(FIRST, &[64, 60]);
    let (_directory, profile) = drained(&device);
    assert_eq!(version_word(&profile), version, "{compiler}");
    let shown = show(reader, &profile);
    assert!(shown.contains("_Z6branchPi:\n"), "{shown}");
    assert!(
        shown.contains("Function count: 64\n    Block counts: [60]\n"),
        "{shown}"
    );
    assert_eq!(instrumented(&device), ["_Z6branchPi"], "by {compiler}");
}

/// The kernels with counters, read from the code object.
fn instrumented(device: &FakeDevice) -> Vec<String> {
    let code_objects = device.code_objects(FIRST).expect("a load");
    let image = device.image(&code_objects[0]).expect("its ELF");
    let cache = ReadCache::new(image);
    let code_object = CodeObject::parse(&cache).expect("a code object");
    let mut kernels = code_object.kernels().expect("kernels");
    kernels.retain(|kernel| kernel.instrumented);
    kernels.into_iter().map(|kernel| kernel.name).collect()
}

#[test]
fn clang_15_writes_version_8() {
    let flags: Vec<&str> = FRONT_END.into_iter().chain([OLD]).collect();
    check("clang++-15", &flags, 8, "llvm-profdata-15");
}

#[test]
fn clang_19_and_22_write_version_10() {
    check("clang++-19", &FRONT_END, 10, "llvm-profdata-19");
    check("clang++-22", &FRONT_END, 10, "llvm-profdata-22");
}

/// Debian has no compiler and no reader of version 9 (LLVM 17 and 18), and a reader takes only its
/// own version. So the test compares a file of that version field by field with LLVM 18's
/// `InstrProfData.inc`. Its records differ from version 10's only in fields that are zero here, so
/// a change of the version word turns one into the other.
#[test]
fn version_9_has_the_header_of_llvm_18() {
    let device = compiled("clang++-22", &FRONT_END);
    device.count_all(FIRST, &[5, 4]);
    let (word, _) = device.find(FIRST, "__rocov_raw_version");
    device.poke(word, &9_u64.to_le_bytes());
    let (_directory, profile) = drained(&device);
    let file = fs::read(profile).unwrap();
    let words: Vec<u64> = file
        .chunks_exact(8)
        .map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()))
        .collect();
    let (names, names_len) = device.find(FIRST, "__llvm_prf_nm");
    let expected = [
        ("magic", 0xff6c_7072_6f66_7281),
        ("version", 9),
        ("size of binary ids", 0),
        ("records", 1),
        ("padding before counters", 0),
        ("counters", 2),
        ("padding after counters", 0),
        ("bitmap bytes", 0),
        ("padding after bitmap", 0),
        ("size of names", names_len),
        ("counters minus records", 64),
        ("bitmap minus records", 64 + 2 * 8),
        ("address of names", names - device.base(FIRST)),
        ("last kind of value", 1),
    ];
    for (index, (field, value)) in expected.into_iter().enumerate() {
        assert_eq!(words[index], value, "{field}");
    }
    let (record, rest) = words[expected.len()..].split_at(8);
    assert_eq!(record[2], 64, "the counters follow the record");
    assert_eq!(record[6] & 0xffff_ffff, 2, "counters of the record");
    assert_eq!(rest[..2], [5, 4]);
    assert_eq!(
        rest.len(),
        2 + (names_len as usize).div_ceil(8),
        "names, padded, end the file"
    );
}

#[test]
fn ir_level_instrumentation_keeps_its_variant_bit() {
    let device = compiled(
        "clang++-22",
        &["-fprofile-generate", "-fprofile-update=atomic"],
    );
    device.count_all(FIRST, &[60, 4]);
    let (_directory, profile) = drained(&device);
    assert_eq!(version_word(&profile), 1 << 56 | 10);
    assert!(show("llvm-profdata-22", &profile).contains("Instrumentation level: IR"));
    assert_eq!(functions(&profile)["_Z6branchPi"].blocks, [60, 4]);
}

/// No clang 23 is available, so clang 22 poses as one. Its records are not those of version 11, so
/// the test covers only the table.
#[test]
fn for_clang_23_the_device_header_has_the_table_of_version_11() {
    let pretend = [
        "-Wno-builtin-macro-redefined",
        "-U__clang_major__",
        "-D__clang_major__=23",
    ];
    let flags: Vec<&str> = FRONT_END.into_iter().chain(pretend).collect();
    let device = compiled("clang++-22", &flags);
    let (table, size) = device.find(FIRST, "__llvm_profile_sections");
    assert_eq!(size, 72);
    let (version, _) = device.find(FIRST, "__rocov_raw_version");
    assert_eq!(device.peek(version, 8), 11_u64.to_le_bytes());
    let table = BoundsTable::decode(&device.peek(table, 72)).unwrap();
    assert_eq!(table.version, version);
    let (start, len) = device.section(FIRST, "__llvm_prf_data");
    assert_eq!(table.bounds.data, (start, start + len));
    assert_eq!(table.bounds.uniform, (0, 0), "clang 22 has no such section");
}

/// Without instrumentation the header adds nothing.
#[test]
fn the_device_header_does_nothing_without_instrumentation() {
    let device = compiled("clang++-22", &[]);
    let outcome = Session::default().drain(&device, &output().1);
    assert_eq!((outcome.pairs, outcome.found), (1, 0));
    let mut symbols = device.symbols(FIRST);
    assert!(!symbols.any(|name| name.contains("rocov") || name.contains("llvm")));
}

/// A compiler without the device header gives neither a table nor a version word. The ELF's section
/// headers and the clang in .comment suffice.
#[test]
fn without_a_table_the_section_headers_lead_to_the_counters() {
    for (compiler, version) in [("clang++-15", 8), ("clang++-19", 10), ("clang++-22", 10)] {
        let flags: Vec<&str> = FRONT_END.into_iter().chain([OLD]).collect();
        let mut device = compiled(compiler, &flags);
        device.hide_symbols(FIRST);
        device.count_all(FIRST, &[3, 2]);
        let (_directory, profile) = drained(&device);
        assert_eq!(version_word(&profile), version, "{compiler}");
    }
}

/// ROCm 7 emits a table for each translation unit, under its CUID.
#[test]
fn tables_of_translation_units_are_found() {
    let mut device = compiled("clang++-22", &FRONT_END);
    device.rename_symbol(
        FIRST,
        "__llvm_profile_sections",
        "__llvm_profile_sections_8f3a",
    );
    device.count_all(FIRST, &[3, 2]);
    let (_directory, profile) = drained(&device);
    assert_eq!(version_word(&profile), 10);
    let shown = show("llvm-profdata-22", &profile);
    assert!(
        shown.contains("Function count: 3\n    Block counts: [2]\n"),
        "{shown}"
    );
}

#[test]
fn a_newer_version_is_saved_whole() {
    let device = compiled("clang++-22", &FRONT_END);
    device.count_all(FIRST, &[5, 4]);
    let (word, _) = device.find(FIRST, "__rocov_raw_version");
    device.poke(word, &(1_u64 << 56 | 12).to_le_bytes());
    let (_directory, name) = output();
    let outcome = Session::default().drain(&device, &name);
    let [file] = outcome.files.as_slice() else {
        panic!("{:?}", outcome.files)
    };
    let [loss] = outcome.losses.as_slice() else {
        panic!("{:?}", outcome.losses)
    };
    let expected = format!(
        "unknown raw profile version 12, expected 8 to 11; its sections are saved in {}; compile with clang 15 or \
        later, or use a newer rocov",
        file.display()
    );
    assert!(loss.to_string().ends_with(&expected), "{loss}");
    assert!(
        file.extension()
            .is_some_and(|extension| extension == "sections"),
        "{}",
        file.display()
    );

    let saved = SavedSections::decode(&fs::read(file).unwrap()).unwrap();
    assert_eq!(saved.word, 1 << 56 | 12);
    assert_eq!(saved.load_delta, device.base(FIRST));
    let section = |name: &str| {
        saved
            .sections
            .iter()
            .find(|section| section.name == name)
            .unwrap()
    };
    assert_eq!(
        section("counters").bytes,
        [5_u64.to_le_bytes(), 4_u64.to_le_bytes()].concat()
    );
    let (names, len) = device.find(FIRST, "__llvm_prf_nm");
    assert_eq!(section("names").address, names);
    assert_eq!(section("names").bytes, device.peek(names, len as usize));
    assert_eq!(section("data").bytes.len(), 64);
}

/// Saved sections cannot be summed. Each process has its own files, under names that no other process uses.
#[test]
fn saved_sections_replace_none_of_others() {
    for pattern in ["app-%m.profraw", "app.profraw"] {
        let directory = tempfile::tempdir().unwrap();
        let name = profile_name(directory.path(), pattern);
        let device = compiled("clang++-22", &FRONT_END);
        let (word, _) = device.find(FIRST, "__rocov_raw_version");
        device.poke(word, &(1_u64 << 56 | 12).to_le_bytes());
        let mut files = BTreeSet::new();
        for count in [1, 2] {
            device.count_all(FIRST, &[count, count]);
            let mut session = Session::default();
            let first = session.drain(&device, &name).files;
            assert_eq!(session.drain(&device, &name).files, first);
            files.extend(first);
        }
        let saved = files.iter().map(|file| {
            let saved = SavedSections::decode(&fs::read(file).unwrap()).unwrap();
            let counters = saved
                .sections
                .iter()
                .find(|section| section.name == "counters");
            counters.unwrap().bytes[0]
        });
        assert_eq!(
            saved.collect::<BTreeSet<_>>(),
            BTreeSet::from([1, 3]),
            "{pattern}: {files:?}"
        );
        let folders = crate::support::artifacts::names(directory.path());
        assert_eq!(
            folders,
            ["sections"],
            "what is no profile is not among them"
        );
        let saved = fs::read_dir(directory.path().join("sections"));
        assert_eq!(saved.unwrap().count(), 2);
    }
}

/// The ELF gives the state of a load before any kernel has run, in every variant.
#[test]
fn code_at_rest_has_counted_nothing() {
    let conditions = ["-Xclang", "-fcoverage-mcdc"];
    for more in [&[][..], &conditions] {
        let device = compiled("clang++-22", &[&FRONT_END[..], more].concat());
        let (loaded, profile) = drained(&device);
        let code_object = device.code_objects(FIRST).unwrap().remove(0);
        let mut elf = Vec::new();
        let mut image = device.image(&code_object).unwrap();
        image.read_to_end(&mut elf).unwrap();
        let agent = device.agents().unwrap().remove(0);
        let at_rest = AtRest::new(agent, "branch.co".into(), elf).unwrap();
        let directory = TempDir::new().unwrap();
        let layout = DataLayout::from_data(directory.path());
        let mut writer = ZeroWriter::new(layout, Keeping::default(), 0);
        let outcome = writer.write(&at_rest).outcome;
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        let named = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let base = |path: &Path| named(path).splitn(4, '.').nth(3).unwrap().to_owned();
        assert_eq!(base(&outcome.files[0]), "zero.profraw");
        let start = |path: &Path| named(path).replace(&base(path), "");
        assert_eq!(start(&outcome.files[0]), start(&profile));
        let text = |profile: &Path, directory: &TempDir| {
            let text = directory.path().join("text");
            run(Command::new("llvm-profdata-22")
                .args(["merge", "-text", "-o"])
                .args([&text, profile]))
            .success();
            fs::read_to_string(text).unwrap()
        };
        let expected = text(&profile, &loaded);
        assert!(expected.contains("branch"), "{expected}");
        assert_eq!(text(&outcome.files[0], &directory), expected, "{more:?}");
    }
}

#[test]
fn bitmaps_are_carried() {
    let source = "__attribute__((global)) void f(int *p) { if (p[0] && p[1]) p[1] = 2; }";
    let flags: Vec<&str> = FRONT_END
        .into_iter()
        .chain(["-Xclang", "-fcoverage-mcdc"])
        .collect();
    let device = compiled_source(source, "clang++-22", &flags);
    let (address, size) = device.section(FIRST, "__llvm_prf_bits");
    assert_eq!(size, 1, "two conditions have four outcomes, one bit each");
    device.poke(address, &[0b1011]);
    let (directory, profile) = drained(&device);
    let text = directory.path().join("text");
    let mut command = Command::new("llvm-profdata-22");
    command
        .args(["merge", "--text"])
        .arg(&profile)
        .arg("-o")
        .arg(&text);
    run(&mut command).success().silently();
    let text = fs::read_to_string(text).unwrap();
    assert!(
        text.contains("# Num Bitmap Bytes:\n$1\n# Bitmap Byte Values:\n0xb\n"),
        "{text}"
    );
}
