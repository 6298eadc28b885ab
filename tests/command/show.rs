//! `rocov show`: what files are, told apart from what they are not.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rocov::format::profraw::{SavedSection, SavedSections};
use rocov::format::registry::model::{
    AgentRecord, CodeFileRecord, CodeObjectRecord, DeviceCodeRecord, Document, LoadRecord,
    NeverLoadedRecord, ProcessRecord,
};
use rocov_tests::cli::device::{INSTRUMENTED, compile, compile_bundle, embed};
use rocov_tests::cli::{profile, rocov, run, stderr, stdout};

fn show(files: &[&Path]) -> Output {
    rocov().arg("show").args(files).output().unwrap()
}

/// A raw profile that clang's own runtime writes.
fn host_profile(directory: &std::path::Path) -> std::path::PathBuf {
    let (program, profile) = (directory.join("program"), directory.join("host.profraw"));
    let source = directory.join("program.c");
    fs::write(
        &source,
        "int main(int c, char **v) { return c > 1 ? v[1][0] : 0; }",
    )
    .unwrap();
    run(std::process::Command::new("clang-22")
        .args(["-fprofile-instr-generate", "-o"])
        .arg(&program)
        .arg(&source));
    run(std::process::Command::new(&program).env("LLVM_PROFILE_FILE", &profile));
    profile
}

#[test]
fn a_raw_profile_is_taken_apart() {
    let directory = tempfile::tempdir().unwrap();
    let profile = host_profile(directory.path());
    let shown = stdout(&run(rocov().arg("show").arg(&profile)));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], format!("{}:", profile.display()));
    assert_eq!(lines[1], "  raw profile, version 10");
    assert!(
        lines[2].starts_with("  data ") && lines[2].ends_with(", 1 records"),
        "{shown}"
    );
    assert!(lines[3].ends_with(", 2 counters"), "{shown}");
    assert!(
        lines[5].starts_with("  uniform counters") && lines[5].contains(" 0 bytes"),
        "{shown}"
    );
}

#[test]
fn saved_sections_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.sections");
    let section = |name: &str, len: usize| SavedSection {
        name: name.into(),
        address: 0x7f00_0000_2000,
        bytes: vec![1; len],
    };
    let saved = SavedSections {
        word: 1 << 56 | 12,
        load_delta: 0x7f00_0000_0000,
        sections: vec![section("data", 72), section("names", 5)],
    };
    fs::write(&file, saved.encode()).unwrap();
    let shown = stdout(&run(rocov().arg("show").arg(&file)));
    let expected = format!(
        "{}:\n  sections saved from a device, raw version 12 with variant bits 0x1000000, load delta \
         0x7f0000000000\n  data                      72 bytes at 0x7f0000002000\n  names            \
         \x20         5 bytes at 0x7f0000002000\n",
        file.display()
    );
    assert_eq!(shown, expected);
}

#[test]
fn other_files_are_named_and_the_rest_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let profile = host_profile(directory.path());
    let bytes = fs::read(&profile).unwrap();
    let cut = directory.path().join("cut.profraw");
    fs::write(&cut, &bytes[..140]).unwrap();
    let other = directory.path().join("other");
    fs::write(
        &other,
        "\u{1}neither one nor the other, and longer than a header",
    )
    .unwrap();
    let missing = directory.path().join("missing");
    let output = show(&[&cut, &other, &missing, &profile]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    let cut_short = format!("rocov: {}: raw profile is cut short: ", cut.display());
    assert!(lines[0].starts_with(&cut_short), "{said}");
    let none = format!(
        "rocov: {}: not a 64-bit little-endian ELF: ",
        other.display()
    );
    assert!(lines[1].starts_with(&none), "{said}");
    let cannot = format!("rocov: {} does not exist: ", missing.display());
    assert!(lines[2].starts_with(&cannot), "{said}");
    let shown = stdout(&output);
    let promised =
        "  raw profile, version 10\n  by its header 1 records\n  by its header 2 counters\n";
    assert!(shown.contains(promised), "{shown}");
    assert!(shown.contains(&format!(
        "{}:\n  raw profile, version 10\n  data ",
        profile.display()
    )));
}

#[test]
fn a_profile_of_a_later_version_is_told_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let profile = host_profile(directory.path());
    let mut bytes = fs::read(&profile).unwrap();
    bytes[8] = 99;
    fs::write(&profile, bytes).unwrap();
    let output = show(&[&profile]);
    assert!(stdout(&output).ends_with("  raw profile, version 99\n"));
    assert!(stderr(&output).contains("version 99, expected 8 to 11"));
}

#[test]
fn damaged_sections_are_told_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.sections");
    fs::write(&file, "rocovsec").unwrap();
    let output = show(&[&file]);
    assert!(stdout(&output).ends_with(":\n  sections saved from a device\n"));
    assert!(stderr(&output).contains("the header should end at byte 40, but the file has 8"));
}

#[test]
fn a_code_object_has_facts_sections_and_kernels() {
    let directory = tempfile::tempdir().unwrap();
    let flags = [
        &INSTRUMENTED[..],
        &["-Xoffload-linker", "--build-id=0xc0ffee"],
    ]
    .concat();
    let elf = compile(directory.path(), "kernel.elf", "gfx90a:xnack-", &flags);
    let output = show(&[&elf]);
    assert_eq!(stderr(&output), "");
    let shown = stdout(&output);
    let size = fs::metadata(&elf).unwrap().len();
    for line in [
        format!("  code object, {size} bytes, clang 22"),
        "  target        gfx90a:xnack-".to_owned(),
        "  identity      c0ffee".to_owned(),
        "  build id      c0ffee".to_owned(),
        "  instrumented  yes".to_owned(),
    ] {
        assert!(
            shown.lines().any(|other| other == line),
            "no {line:?} in {shown}"
        );
    }
    // Sections as readelf sees them.
    let listed = stdout(&run(Command::new("llvm-readelf-22")
        .args(["-SW"])
        .arg(&elf)));
    let section = |name| {
        listed
            .lines()
            .find(|line| line.contains(&format!(" {name} ")))
            .unwrap()
    };
    for name in [".text", "__llvm_prf_cnts"] {
        let words: Vec<_> = section(name).split_whitespace().collect();
        let at = words.iter().position(|word| *word == name).unwrap();
        let number = |word| u64::from_str_radix(word, 16).unwrap();
        let (address, size) = (number(words[at + 2]), number(words[at + 4]));
        let line = format!("  section {name:<24} {size:>10} bytes at {address:#x}\n");
        assert!(shown.contains(&line), "no {line:?} in {shown}");
    }
    // The only kernel, and that it counts.
    let (_, table) = shown.split_once("kernel\n").unwrap();
    let columns: Vec<_> = table.split_whitespace().collect();
    let [vgprs, sgprs, _, "0", _, _, "yes", "kernel"] = columns[..] else {
        panic!("{shown}")
    };
    let notes = stdout(&run(Command::new("llvm-readelf-22")
        .arg("--notes")
        .arg(&elf)));
    for (key, number) in [("vgpr_count", vgprs), ("sgpr_count", sgprs)] {
        let line = notes
            .lines()
            .find(|line| line.contains(&format!(".{key}:")))
            .unwrap();
        assert_eq!(line.split_whitespace().last(), Some(number), "{key}");
    }

    let whole = fs::read(&elf).unwrap();
    fs::write(&elf, &whole[..whole.len() / 2]).unwrap();
    let output = show(&[&elf]);
    assert_eq!(output.status.code(), Some(1));
    let cut = format!("  code object, {} bytes", whole.len() / 2);
    assert!(stdout(&output).contains(&cut));
    assert!(
        stderr(&output).contains("not a code object: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn bundles_and_what_holds_them_are_taken_apart() {
    let directory = tempfile::tempdir().unwrap();
    let archs = ["gfx90a", "gfx942"];
    for (compression, packing) in [
        ("--no-offload-compress", "offload bundle of "),
        ("--offload-compress", "compressed bundle of "),
    ] {
        let flags = [&INSTRUMENTED[..], &[compression]].concat();
        let bundle = compile_bundle(directory.path(), &archs, &flags);
        let elf = compile(directory.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
        let (size, identity) = (fs::metadata(&elf).unwrap().len(), profile::identity(&elf));
        let program = embed(&bundle, directory.path());
        let output = show(&[&bundle, &program]);
        assert_eq!(stderr(&output), "");
        let shown = stdout(&output);
        assert_eq!(
            shown.matches(&format!("\n  {packing}")).count(),
            3,
            "{shown}"
        );
        assert_eq!(shown.matches(" in .hip_fatbin").count(), 2, "{shown}");
        let host = "\n    host-x86_64-unknown-linux-gnu-: nothing\n";
        assert_eq!(shown.matches(host).count(), 3, "{shown}");
        let image = format!(
            "\n    hipv4-amdgcn-amd-amdhsa--gfx90a: {size} bytes at 0x1000, code object {identity}, \
             1 kernel, instrumented\n"
        );
        assert!(shown.contains(&image), "no {image} in {shown}");
        let version = ", version 3, unpacks to ";
        assert_eq!(shown.contains(version), compression == "--offload-compress");
    }
}

#[test]
fn what_is_wrong_with_a_bundle_is_told_and_the_rest_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = compile_bundle(
        directory.path(),
        &["gfx90a", "gfx942"],
        &["--no-offload-compress"],
    );
    let mut bytes = fs::read(&bundle).unwrap();
    // The magic of the first ELF, and the end of the second one.
    bytes[4096] = b'x';
    bytes.truncate(bytes.len() - 1);
    fs::write(&bundle, bytes).unwrap();
    let output = show(&[&bundle]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("host-x86_64-unknown-linux-gnu-: nothing\n"));
    let said = stderr(&output);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].contains("the image hipv4-amdgcn-amd-amdhsa--gfx942"),
        "{said}"
    );
    assert!(lines[1].ends_with(
        "is [78, 45, 4c, 46, 02, 01, 01, 40], expected an ELF for AMDGPU or CUDA; build it again"
    ));
}

#[test]
fn a_registry_is_compared_with_the_files_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let elf = compile(directory.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let identity = profile::identity(&elf);
    let load = |code_object: &str, agent: usize, profile: &str| LoadRecord {
        generation: 7,
        time: 1,
        agent,
        executable: 2,
        uri: "memory://1#offset=0x10&size=20".into(),
        base: 0x7f00_0000_0000,
        size: 8192,
        delta: 0,
        code_object: Some(code_object.into()),
        host: None,
        profile: Some(profile.into()),
        partial: None,
        kernels: Vec::new(),
        unload: None,
    };
    let document = |identity: &str, loads: Vec<LoadRecord>| Document {
        code_objects: vec![CodeObjectRecord {
            identity: identity.into(),
            target: "gfx90a".into(),
            size: 4000,
            clang: Some(22),
            instrumented: true,
            file: Some("kernel.elf".into()),
            kernels: Vec::new(),
            damage: (identity == "0f3c").then(|| "no AMDGPU metadata".into()),
        }],
        processes: vec![ProcessRecord {
            pid: 4711,
            host: "here".into(),
            start: 1,
            epoch: 1,
            command: vec!["./app".into(), "1".into()],
            hosts: Vec::new(),
            agents: vec![AgentRecord {
                index: 0,
                name: "gfx90a".into(),
                isa: None,
                uuid: None,
                node: None,
            }],
            loads,
            device_code: Some(DeviceCodeRecord {
                traced: false,
                profiles: "profraw".into(),
                files: vec![CodeFileRecord {
                    path: "/lib/libone.so".into(),
                    build: Some("0f3c".into()),
                    modified: None,
                }],
            }),
            never_loaded: vec![NeverLoadedRecord {
                file: "/lib/libtwo.so".into(),
                build: None,
                agent: 0,
                code_objects: vec!["aa".into(), "bb".into()],
            }],
            stops: vec!["kernel scale: a memory fault".into()],
            notes: vec!["it was killed by SIGTERM".into()],
        }],
        ..Document::default()
    };
    let file = directory.path().join("4711.kernels.json");
    let write = |document: Document| fs::write(&file, document.to_json()).unwrap();

    write(document(&identity, vec![load(&identity, 0, "kernel.elf")]));
    let output = show(&[&file]);
    assert_eq!(stderr(&output), "");
    let expected = format!(
        "{}:\n  registry, schema version 1: 1 code object, 1 process record\n  code object {identity} \
         for gfx90a: 4000 bytes, 0 kernels, instrumented, kernel.elf\n  process 4711 on here: ./app \
         1\n    GPU 0: gfx90a, of an unknown instruction set\n    file with device \
         code: /lib/libone.so, 0f3c\n    kernel scale: a memory fault\n    it was killed by SIGTERM\n    never loaded on GPU 0: 2 code objects in /lib/libtwo.so\n    load 7 on GPU 0: code object \
         {identity} at 0x7f0000000000, 8192 bytes, kernel.elf\n",
        file.display()
    );
    assert_eq!(stdout(&output), expected);

    write(document("0f3c", vec![load("aaaa", 1, "gone.profraw")]));
    let output = show(&[&file]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    let again = "run the program again, into an empty data directory";
    for (reason, next) in [
        (
            "code object 0f3c: no AMDGPU metadata".to_owned(),
            "build it again",
        ),
        (
            format!("kernel.elf is code object {identity}, expected 0f3c"),
            again,
        ),
        (
            "load 7 of process 4711 is of code object aaaa, which is not listed".to_owned(),
            again,
        ),
        (
            "load 7 of process 4711 is on GPU 1, which is not listed".to_owned(),
            again,
        ),
        (
            "gone.profraw, the profile of load 7 of process 4711, does not exist".to_owned(),
            again,
        ),
    ] {
        let line = format!("rocov: {}: {reason}; {next}\n", file.display());
        assert!(said.contains(&line), "no {line} in {said}");
    }
    assert_eq!(said.lines().count(), 5, "{said}");

    fs::write(&file, "{\"rocov_registry\": 2}").unwrap();
    assert!(stderr(&show(&[&file])).contains("registry of schema version 2, expected 1"));
    fs::write(&file, "{").unwrap();
    assert!(stderr(&show(&[&file])).contains("not a registry, or damaged: "));
}

#[test]
fn damaged_records_are_told_and_all_profiles_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let profile = host_profile(directory.path());
    let whole = fs::read(&profile).unwrap();
    let parsed = rocov::format::profraw::RawProfile::parse(&whole).unwrap();
    let data = parsed.sections.data.start;
    let counters = parsed.header.version().layout().record.num_counters;
    // As LLVM's malformed-num-counters-zero.test and malformed-ptr-to-counter-array.test damage them.
    for (place, word) in [(data + counters, 0_u32), (data + 16, 0xffff_ffff)] {
        let mut damaged = whole.clone();
        damaged[place..place + 4].copy_from_slice(&word.to_le_bytes());
        let file = directory.path().join("damaged.profraw");
        fs::write(&file, damaged).unwrap();
        let output = show(&[&file]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains("record 0"), "{output:?}");
        assert!(stdout(&output).contains(", 1 records"), "{output:?}");
    }
    let both = directory.path().join("both.profraw");
    fs::write(&both, [&whole[..], &whole].concat()).unwrap();
    let shown = stdout(&run(rocov().arg("show").arg(&both)));
    assert_eq!(
        shown.matches("raw profile, version 10").count(),
        2,
        "{shown}"
    );
    assert!(
        shown.contains(&format!("  at byte {}:\n", whole.len())),
        "{shown}"
    );
    // malformed-not-space-for-another-header.test
    fs::write(&both, [&whole[..], &whole[..16]].concat()).unwrap();
    let output = show(&[&both]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "the profile at byte {}: raw profile is cut short",
        whole.len()
    );
    assert!(stderr(&output).contains(&expected), "{output:?}");
}

#[test]
fn files_of_other_machines_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("other.profraw");
    // The magic numbers of LLVM's raw-32-bits-le.test, raw-32-bits-be.test and raw-64-bits-be.test.
    for (magic, machine) in [
        (b"\x81Rforpl\xff", "32-bit little-endian"),
        (b"\xfflprofR\x81", "32-bit big-endian"),
        (b"\xfflprofr\x81", "64-bit big-endian"),
    ] {
        for rest in [0, 200] {
            fs::write(&file, [&magic[..], &vec![0; rest]].concat()).unwrap();
            let output = show(&[&file]);
            assert_eq!(output.status.code(), Some(1));
            let expected = format!("raw profile of a {machine} program: rocov reads");
            assert!(stderr(&output).contains(&expected), "{output:?}");
        }
    }
    let source = directory.path().join("empty.c");
    fs::write(&source, "").unwrap();
    for (target, machine) in [
        ("i386-linux-gnu", "a 32-bit ELF; name"),
        ("powerpc-linux-gnu", "a 32-bit big-endian ELF; name"),
        ("powerpc64-linux-gnu", "a big-endian ELF; name"),
    ] {
        let object = directory.path().join("empty.o");
        let mut clang = Command::new("clang-22");
        clang.args(["-target", target, "-c"]).arg(&source);
        run(clang.arg("-o").arg(&object));
        let said = stderr(&show(&[&object]));
        assert!(said.contains(machine), "{said}");
    }
}
