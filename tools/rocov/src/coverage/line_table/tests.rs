//! llvm-symbolizer is the oracle: at each word of the code, the lines of a function and of all functions that were
//! inlined into it are those of the frames that it lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object, ObjectSection};
use rocov::format::blocks::Kind;
use rocov::format::blocks::trace::{WORD_BYTES, functions};
use rocov::format::codeobject::{CodeObject, name_ref};
use rocov::format::profraw::{FunctionCounts, Version};
use rocov::format::ptx::Module;
use rocov_tests::cli::release::Release;
use serde::Deserialize;
use tempfile::TempDir;

use super::trace::is_of_system;
use super::{LineUnits, Listed, WITHOUT_LINES, read_elf, read_ptx};
use crate::profdata::ProfileCounts;
use crate::system::command;

/// The sources: with inlined functions, templates, device functions that are called, and headers.
const SOURCES: [&str; 4] = [
    "calls.hip",
    "templates.hip",
    "indirect.hip",
    "mandelbrot.hip",
];

/// Functions, files and lines at one word.
type Frames = BTreeSet<(String, String, u32)>;

#[derive(Deserialize)]
struct Symbolized {
    #[serde(rename = "Symbol", default)]
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Frame {
    file_name: String,
    function_name: String,
    line: u32,
}

fn kernel(name: &str) -> PathBuf {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/kernels");
    // Reports have paths without `..`.
    fs::canonicalize(kernels.join(name)).unwrap()
}

fn compile(release: &Release, source: &str, options: &[&str], elf: &Path) {
    let mut clang = Command::new(release.program("clang++"));
    clang.args([
        "-x",
        "hip",
        "--offload-arch=gfx90a",
        "--offload-device-only",
    ]);
    clang.args([
        "-nogpuinc",
        "-nogpulib",
        "--no-gpu-bundle-output",
        "-std=c++17",
    ]);
    clang.args(options).arg(kernel(source)).arg("-o").arg(elf);
    clang.current_dir(elf.parent().unwrap());
    command::output(&mut clang).unwrap();
}

/// The frames that llvm-symbolizer has at these addresses, in their order.
fn symbolized(release: &Release, elf: &Path, addresses: &[u64]) -> Vec<Symbolized> {
    let mut symbolizer = Command::new(release.program("llvm-symbolizer"));
    symbolizer
        .args(["--output-style=JSON", "--inlines", "--no-demangle", "--obj"])
        .arg(elf);
    let mut symbolizer = symbolizer
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = symbolizer.stdin.take().unwrap();
    let asked: String = addresses
        .iter()
        .map(|address| format!("{address:#x}\n"))
        .collect();
    let writer = std::thread::spawn(move || input.write_all(asked.as_bytes()).unwrap());
    let output = symbolizer.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let lines = str::from_utf8(&output.stdout).unwrap().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The frames that the line table has at each word, by the record of the function and the word.
fn listed(listed: &Listed) -> HashMap<((u64, u64), u32), Frames> {
    let mut frames: HashMap<_, Frames> = HashMap::new();
    for function in &listed.functions {
        let description = &function.description;
        let table = description.line_table.as_ref().unwrap();
        for copy in &function.copies {
            let mut add = |line: u32, unit: u32| {
                let line = &table.lines[line as usize];
                let frame = (
                    description.name.to_string(),
                    description.path(line.file).to_string(),
                    line.line,
                );
                frames
                    .entry((copy.counters.key, unit))
                    .or_default()
                    .insert(frame);
            };
            for (line, LineUnits { units, .. }) in &copy.lines {
                units.clone().for_each(|unit| add(*line, unit));
            }
            for (line, extent) in &copy.calls {
                let units = extent.units.iter().cloned().flatten();
                units.for_each(|unit| add(*line, unit));
            }
        }
    }
    frames
}

/// Checks the line table of an ELF. Returns the number of frames, and of those that were inlined.
fn check(release: &Release, elf: &Path, has_names: bool) -> (usize, usize) {
    let contents = fs::read(elf).unwrap();
    let table = read_elf(&contents, elf).unwrap();
    assert!(table.warnings.is_empty(), "{:?}", table.warnings);
    let mut found = listed(&table);
    let object = CodeObject::parse(&contents[..]).unwrap();
    let mut addresses = Vec::new();
    let mut words = Vec::new();
    for function in functions(&object).unwrap() {
        let key = (
            name_ref(Kind::Trace.record_name(function.name).as_bytes()),
            Kind::Trace.hash(function.code),
        );
        for word in 0..function.code.len() as u64 / WORD_BYTES {
            addresses.push(function.address + word * WORD_BYTES);
            words.push((key, u32::try_from(word).unwrap()));
        }
    }
    let (mut all, mut inlined) = (0, 0);
    for (word, symbolized) in words.iter().zip(symbolized(release, elf, &addresses)) {
        let frames = symbolized
            .frames
            .iter()
            .filter(|frame| frame.line > 0 && !is_of_system(&frame.file_name));
        let name = |frame: &Frame| match has_names {
            true => frame.function_name.clone(),
            false => String::new(),
        };
        let frames = frames.map(|frame| (name(frame), frame.file_name.clone(), frame.line));
        let expected: Frames = frames.collect();
        let found = found.remove(word).unwrap_or_default().into_iter();
        let found: Frames = found
            .map(|(name, path, line)| (if has_names { name } else { String::new() }, path, line))
            .collect();
        assert_eq!(found, expected, "{}: word {}", elf.display(), word.1);
        all += expected.len();
        inlined += symbolized.frames.len() - 1;
    }
    (all, inlined)
}

#[test]
fn frames_are_those_of_llvm_symbolizer() {
    let Some(release) = Release::find(22, "line tables") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let elf = directory.path().join("device.elf");
    let (mut all, mut inlined) = (0, 0);
    for source in SOURCES {
        for (options, has_names) in [
            (&["-O0", "-g"][..], true),
            (&["-O2", "-g", "-gdwarf-4"], true),
            (&["-O3", "-g"], true),
            (&["-O2", "-gline-tables-only"], false),
        ] {
            compile(&release, source, options, &elf);
            let (frames, of_inlined) = check(&release, &elf, has_names);
            assert!(frames > 0, "{source} {options:?}");
            (all, inlined) = (all + frames, inlined + of_inlined);
        }
    }
    assert!(
        all > 5_000 && inlined > 500,
        "{all} frames, {inlined} inlined"
    );
}

#[test]
fn compressed_debug_information_is_unpacked() {
    let Some(release) = Release::find(22, "compressed line tables") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let elf = directory.path().join("device.elf");
    compile(&release, "calls.hip", &["-O2", "-g"], &elf);
    let plain = check(&release, &elf, true);
    for way in ["zlib", "zstd"] {
        let packed = directory.path().join(way);
        let mut objcopy = Command::new(release.program("llvm-objcopy"));
        objcopy
            .arg(format!("--compress-debug-sections={way}"))
            .arg(&elf)
            .arg(&packed);
        command::output(&mut objcopy).unwrap();
        assert!(fs::metadata(&packed).unwrap().len() < fs::metadata(&elf).unwrap().len());
        assert_eq!(check(&release, &packed, true), plain, "{way}");
    }
}

/// The files with this extension in a directory.
fn with_extension(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

#[test]
fn debug_information_that_was_split_off_is_read_from_its_files() {
    let Some(release) = Release::find(22, "line tables that were split off") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let elf = directory.path().join("device.elf");
    let mut whole = (0, 0);
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        compile(&release, "calls.hip", &["-O2", "-g", version], &elf);
        whole = check(&release, &elf, true);
        assert!(whole.1 > 0, "{whole:?}");
        compile(
            &release,
            "calls.hip",
            &["-O2", "-g", version, "-gsplit-dwarf"],
            &elf,
        );
        assert_eq!(check(&release, &elf, true), whole, "{version}");
    }

    // Next to the ELF, if it is not where the compiler wrote it.
    compile(&release, "calls.hip", &["-O2", "-g", "-gsplit-dwarf"], &elf);
    let elsewhere = TempDir::new().unwrap();
    let moved = elsewhere.path().join("moved.elf");
    let [file] = &with_extension(directory.path(), "dwo")[..] else {
        panic!("one file");
    };
    let beside = elsewhere.path().join(file.file_name().unwrap());
    fs::copy(&elf, &moved).unwrap();
    fs::rename(file, &beside).unwrap();
    let frames = |elf: &Path| -> usize {
        let table = read_elf(&fs::read(elf).unwrap(), elf).unwrap();
        assert!(table.warnings.is_empty(), "{:?}", table.warnings);
        listed(&table).values().map(BTreeSet::len).sum()
    };
    assert_eq!(frames(&moved), whole.0);

    // A package.
    fs::rename(&beside, file).unwrap();
    let mut dwp = Command::new(release.program("llvm-dwp"));
    dwp.arg(file).arg("-o").arg(elf.with_extension("elf.dwp"));
    command::output(&mut dwp).unwrap();
    let text = fs::read(file).unwrap();
    fs::remove_file(file).unwrap();
    assert_eq!(frames(&elf), whole.0);

    // A package of another build, or a damaged one, is not used. The unit's own file is used instead, or a warning
    // names the reason.
    let package = elf.with_extension("elf.dwp");
    let whole_package = fs::read(&package).unwrap();
    compile(&release, "calls.hip", &["-O1", "-g", "-gsplit-dwarf"], &elf);
    let optimized_less = read_elf(&fs::read(&elf).unwrap(), &elf).unwrap();
    assert!(optimized_less.warnings.is_empty());
    fs::remove_file(file).unwrap();
    for (contents, reason) in [
        (&whole_package[..], "it lacks this file"),
        (&whole_package[..whole_package.len() / 2], ""),
        (b"text", ""),
    ] {
        fs::write(&package, contents).unwrap();
        let table = read_elf(&fs::read(&elf).unwrap(), &elf).unwrap();
        let named = format!("(os error 2); the package next to the ELF: {reason}");
        assert!(
            table.warnings[0].what().contains(&named),
            "{:?}",
            table.warnings
        );
    }
    fs::remove_file(&package).unwrap();
    compile(&release, "calls.hip", &["-O2", "-g", "-gsplit-dwarf"], &elf);
    fs::remove_file(file).unwrap();

    // The reasons why it is not read. Lines stay.
    for (contents, reason) in [
        (None, "No such file or directory"),
        (Some(&text[..text.len() / 2]), ""),
        (Some(&b"text"[..]), ""),
    ] {
        if let Some(contents) = contents {
            fs::write(file, contents).unwrap();
        }
        let table = read_elf(&fs::read(&elf).unwrap(), &elf).unwrap();
        let [warning] = &table.warnings[..] else {
            panic!("{:?}", table.warnings);
        };
        let named = format!("was split off to {}: {reason}", file.display());
        assert!(warning.what().contains(&named), "{warning}");
        assert!(!listed(&table).is_empty());
    }
    compile(&release, "calls.hip", &["-O1", "-g", "-gsplit-dwarf"], &elf);
    let other = fs::read(file).unwrap();
    compile(&release, "calls.hip", &["-O2", "-g", "-gsplit-dwarf"], &elf);
    fs::write(file, other).unwrap();
    let table = read_elf(&fs::read(&elf).unwrap(), &elf).unwrap();
    assert!(
        table.warnings[0].what().contains("of another build"),
        "{:?}",
        table.warnings
    );
}

/// The line of each word by the rows that llvm-dwarfdump prints of the line tables.
fn dumped(release: &Release, elf: &Path) -> BTreeMap<u64, u32> {
    let mut dwarfdump = Command::new(release.program("llvm-dwarfdump"));
    let output = command::output(dwarfdump.arg("--debug-line").arg(elf)).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = BTreeMap::new();
    let mut before = None;
    for row in text.lines() {
        let mut cells = row.split_whitespace();
        let address = cells.next().and_then(|cell| cell.strip_prefix("0x"));
        let address = address.and_then(|rest| u64::from_str_radix(rest, 16).ok());
        let line = cells.next().and_then(|cell| cell.parse().ok());
        let (Some(address), Some(line)) = (address, line) else {
            continue;
        };
        if let Some((start, line)) = before {
            let words = (start..address).step_by(4);
            lines.extend(words.filter(|_| line > 0).map(|word| (word, line)));
        }
        before = (!row.contains("end_sequence")).then_some((address, line));
    }
    lines
}

/// llvm-symbolizer finds no line without a unit, so llvm-dwarfdump is the oracle.
#[test]
fn line_tables_without_units_are_read() {
    let Some(release) = Release::find(22, "line directives only") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let elf = directory.path().join("device.elf");
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let options = ["-O2", version, "-gline-directives-only"];
        compile(&release, "calls.hip", &options, &elf);
        let contents = fs::read(&elf).unwrap();
        let table = read_elf(&contents, &elf).unwrap();
        assert!(table.warnings.is_empty(), "{:?}", table.warnings);
        let found = listed(&table);
        let expected = dumped(&release, &elf);
        let object = CodeObject::parse(&contents[..]).unwrap();
        let mut compared = 0;
        for function in functions(&object).unwrap() {
            let name = Kind::Trace.record_name(function.name);
            let key = (name_ref(name.as_bytes()), Kind::Trace.hash(function.code));
            for word in 0..function.code.len() as u64 / WORD_BYTES {
                let frames = found.get(&(key, u32::try_from(word).unwrap()));
                let lines = frames.into_iter().flatten().map(|(_, _, line)| *line);
                let address = function.address + word * WORD_BYTES;
                let expected = expected.get(&address).copied();
                assert_eq!(
                    lines.collect::<Vec<_>>(),
                    Vec::from_iter(expected),
                    "{version}: word {word} of {}",
                    function.name
                );
                compared += usize::from(expected.is_some());
            }
        }
        assert!(compared > 50, "{compared}");
        let paths = table.functions.iter();
        let mut paths = paths.map(|path| path.description.main_path().to_string());
        assert!(paths.any(|path| path.ends_with("testdata/kernels/calls.hip")));
    }
}

#[test]
fn assembly_has_lines() {
    const ASSEMBLY: &str = "
	.text
	.globl kernel
	.type kernel,@function
kernel:
	s_nop 1
	s_mov_b64 s[0:1], 0x12345
	s_endpgm
.Lend:
	.size kernel, .Lend-kernel
";
    let Some(release) = Release::find(22, "lines of assembly") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let [source, object, elf] =
        ["kernel.s", "kernel.o", "kernel.elf"].map(|name| directory.path().join(name));
    fs::write(&source, ASSEMBLY).unwrap();
    let mut clang = Command::new(release.program("clang"));
    clang.args(["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-g", "-c"]);
    clang.arg(&source).arg("-o").arg(&object);
    command::output(&mut clang).unwrap();
    let mut link = Command::new(release.program("ld.lld"));
    link.arg("-shared").arg(&object).arg("-o").arg(&elf);
    command::output(&mut link).unwrap();
    // Three instructions, one of them of two words.
    assert_eq!(check(&release, &elf, false), (4, 0));
}

#[test]
fn functions_without_lines_are_known_by_name() {
    let Some(release) = Release::find(22, "code without lines") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let elf = directory.path().join("device.elf");
    compile(&release, "calls.hip", &["-O0"], &elf);
    let contents = fs::read(&elf).unwrap();
    let table = read_elf(&contents, &elf).unwrap();
    let object = CodeObject::parse(&contents[..]).unwrap();
    let expected: BTreeSet<_> = functions(&object)
        .unwrap()
        .iter()
        .map(|function| function.name)
        .collect();
    let names = table
        .functions
        .iter()
        .map(|function| &*function.description.name);
    assert_eq!(names.collect::<BTreeSet<_>>(), expected);
    for function in &table.functions {
        let lines = &function.description.line_table.as_ref().unwrap().lines;
        assert!(lines.is_empty());
        assert!(function.description.main_path().starts_with(WITHOUT_LINES));
    }
    let texts: BTreeMap<_, _> = table.texts;
    assert_eq!(texts.len(), 1);
}

/// The files with damage at random places.
const DAMAGED: usize = 2000;

#[test]
fn a_damaged_line_table_is_a_warning() {
    let Some(release) = Release::find(22, "damaged line tables") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let elf = directory.path().join("device.elf");
    compile(&release, "calls.hip", &["-O2", "-g"], &elf);
    let contents = fs::read(&elf).unwrap();
    let section = |name: &str| {
        let file = object::File::parse(&*contents).unwrap();
        let section = file.section_by_name(name).unwrap();
        let (start, size) = section.file_range().unwrap();
        usize::try_from(start).unwrap()..usize::try_from(start + size).unwrap()
    };
    let start = section(".debug_line").start;
    // The version of the line table, after its length.
    let mut damaged = contents.clone();
    damaged[start + 4..start + 6].fill(0xff);
    let table = read_elf(&damaged, &elf).unwrap();
    let [warning] = &table.warnings[..] else {
        panic!("{:?}", table.warnings);
    };
    assert!(
        warning.what().contains("its line table is damaged"),
        "{warning}"
    );
    assert!(!table.functions.is_empty());
    // No damage makes the reader panic.
    for name in [".debug_line", ".debug_info", ".debug_abbrev"] {
        for at in section(name) {
            let mut damaged = contents.clone();
            damaged[at] ^= 0xff;
            let _ = read_elf(&damaged, &elf);
        }
    }
    // Nor does damage at several places of all its parts.
    let file = object::File::parse(&*contents).unwrap();
    let names = file
        .sections()
        .map(|section| section.name().unwrap().to_owned());
    let parts: Vec<_> = names.filter(|name| name.starts_with(".debug_")).collect();
    let places: Vec<usize> = parts.iter().flat_map(|name| section(name)).collect();
    let mut random = fastrand::Rng::with_seed(21);
    for _ in 0..DAMAGED {
        let mut damaged = contents.clone();
        for _ in 0..random.usize(1..=16) {
            let at = places[random.usize(..places.len())];
            damaged[at] = match random.u8(..4) {
                0 => 0xff,
                1 => 0,
                2 => random.u8(..),
                // Another byte of these parts, which is likely to have a meaning here.
                _ => contents[places[random.usize(..places.len())]],
            };
        }
        let _ = read_elf(&damaged, &elf);
    }
}

/// A kernel of three blocks: line 3, then lines 4 and 5 in a branch, where line 9 of another function is inlined at line
/// 5, and line 7 at the end. A second function has no lines.
const PTX: &str = r#"
.version 8.5
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 kernel_param_0)
{
.reg .pred %p<2>;
.reg .b32 %r<4>;
.loc 1 3 1
mov.u32 %r1, %tid.x;
setp.gt.u32 %p1, %r1, 7;
@%p1 bra $L__BB0_2;
.loc 1 4 1
mov.u32 %r2, 1;
.loc 1 9 1, function_name $L__info_string0, inlined_at 1 5 1
add.u32 %r3, %r2, 1;
$L__BB0_2:
.loc 1 7 1
ret;
}
.visible .entry plain()
{
ret;
}
.file 1 "/src/kernel.cu"
.section .debug_str
{
$L__info_string0:
.b8 95,90,53,105,110,110,101,114,105,0
}
"#;

#[test]
fn lines_of_ptx_have_the_threads_of_their_blocks() {
    let table = read_ptx(PTX.as_bytes(), "0f3c").unwrap();
    let module = Module::parse(PTX).unwrap();
    let counts = module.functions.iter().map(|function| {
        let name = Kind::Ptx.record_name(function.symbol);
        let counters = match function.symbol {
            "kernel" => vec![64, 48, 64],
            _ => vec![0],
        };
        assert_eq!(function.blocks.len(), counters.len());
        let counts = FunctionCounts {
            counters,
            ..FunctionCounts::default()
        };
        ((name_ref(name.as_bytes()), function.hash), counts)
    });
    let counts = ProfileCounts {
        version: Version::from_clang(22).unwrap(),
        functions: counts.collect(),
    };
    let records = table
        .functions
        .iter()
        .map(|function| function.record(&counts));
    let found: BTreeMap<_, _> = records
        .map(|record| {
            let lines = &record.function.line_table.as_ref().unwrap().lines;
            let lines = lines.iter().map(|line| line.line).zip(record.counts.lines);
            let path = record.function.main_path().to_string();
            let name = record.function.name.to_string();
            (name, (path, record.counts.calls, lines.collect::<Vec<_>>()))
        })
        .collect();
    let source = || "/src/kernel.cu".to_owned();
    let kernel = vec![(3, 64), (4, 48), (5, 48), (7, 64)];
    let expected = BTreeMap::from([
        ("kernel".to_owned(), (source(), 64, kernel)),
        ("_Z5inneri".to_owned(), (source(), 48, vec![(9, 48)])),
        (
            "plain".to_owned(),
            ("without-lines-0f3c".to_owned(), 0, Vec::new()),
        ),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn ptx_that_is_not_known_is_an_error_with_its_line() {
    let text = PTX.replace("bra $L__BB0_2", "bra $nowhere");
    let error = read_ptx(text.as_bytes(), "0f3c").unwrap_err().to_string();
    assert!(
        error.contains("line 12") && error.contains("$nowhere"),
        "{error}"
    );
}
