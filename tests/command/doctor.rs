//! `rocov doctor` on this machine, with tools and programs that the tests make: what each trap is
//! called, what to do about it, and the exit status.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::{Object, ObjectSegment, ObjectSymbol};
use rocov::format::bounds_table::OWN_VERSION_SYMBOL;
use rocov_tests::cli::device::{CLANG, INSTRUMENTED, compile, compile_bundle, embed};
use rocov_tests::cli::{data, empty_libraries, plugin, rocov, run, stderr, stdout};
use tempfile::TempDir;

/// The output of the doctor, and its exit status.
struct Said {
    status: Option<i32>,
    text: String,
}

/// `rocov doctor ARGUMENTS` with libraries to preload, as an installation has them.
fn doctor(arguments: &[&OsStr], environment: &[(&str, &OsStr)]) -> Said {
    let libraries = empty_libraries();
    let mut command = rocov();
    command.env("ROCOV_LIBRARY_DIR", libraries.path());
    command.envs(environment.iter().copied());
    said(&command.arg("doctor").args(arguments).output().unwrap())
}

fn said(output: &Output) -> Said {
    assert_eq!(stderr(output), "");
    Said {
        status: output.status.code(),
        text: stdout(output),
    }
}

impl Said {
    /// Expects a line in this state that has all of `words`, itself or in its remedy.
    #[track_caller]
    fn has(&self, state: &str, words: &[&str]) -> &Self {
        let lines: Vec<_> = self.text.lines().collect();
        let found = lines.iter().enumerate().any(|(number, line)| {
            let remedy = lines.get(number + 1).filter(|line| line.starts_with(' '));
            let all = format!("{line} {}", remedy.unwrap_or(&""));
            line.starts_with(state) && words.iter().all(|word| all.contains(word))
        });
        assert!(found, "no {state} with {words:?}:\n{}", self.text);
        self
    }

    #[track_caller]
    fn ends_with(&self, status: i32) -> &Self {
        assert_eq!(self.status, Some(status), "{}", self.text);
        self
    }
}

/// LLVM's tools as scripts: of this version, reading this raw version.
fn tools(llvm: u32, raw_version: u32) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mismatch = format!(
        "error: $2: raw profile version mismatch: Profile uses raw profile format version = 0; \
         expected version = {raw_version}"
    );
    for (name, line) in [
        ("llvm-profdata", format!("echo \"{mismatch}\" >&2; exit 1")),
        ("llvm-cov", format!("echo LLVM version {llvm}.0.0git")),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    directory
}

fn program(directory: &Path, flags: &[&str], c: &str) -> PathBuf {
    let source = directory.join("program.c");
    let program = directory.join("program");
    fs::write(&source, c).unwrap();
    let mut cc = Command::new("cc");
    run(cc.args(flags).arg(&source).arg("-o").arg(&program));
    program
}

/// The doctor finds all that the tests of this machine need, except a GPU.
#[test]
fn this_machine_has_all_but_a_gpu() {
    let said = doctor(&[], &[]);
    said.ends_with(0)
        .has("ok", &["librocov: /"])
        .has("ok", &["device header: /", "rocov_device.h"])
        .has("ok", &["HSA runtime: 1.", "/libhsa-runtime64.so.1"])
        .has("ok", &["HIP runtime: 5.", "/libamdhip64.so.5"])
        .has("ok", &["compiler: ", "clang version 22.", "clang++"])
        .has(
            "ok",
            &["LLVM tools: LLVM 22, raw version 10", "llvm-profdata"],
        )
        .has("ok", &["LLVM tools: LLVM 15, raw version 8"]);
    let next = "\nnext: `rocov selftest` checks with a kernel of known counts that counts are right on this machine\n";
    assert!(said.text.ends_with(next), "{}", said.text);
    if !Path::new("/dev/kfd").exists() {
        said.has("warning", &["GPU: no /dev/kfd", "--gpu model"]);
    }
}

#[test]
fn what_is_missing_is_named_with_a_remedy() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = rocov();
    let nowhere = Path::new("/nonexistent");
    command
        .args(["doctor", "--llvm-bin"])
        .arg(empty.path())
        .env("PATH", nowhere)
        .env("ROCM_PATH", nowhere)
        .env("ROCOV_LIBRARY_DIR", empty.path());
    said(&command.output().unwrap())
        .ends_with(1)
        .has("MISSING", &["librocov: not found", "cargo build"])
        .has(
            "MISSING",
            &["LLVM tools: no llvm-profdata", "leave out --llvm-bin"],
        );
}

#[test]
fn no_tools_of_llvm_are_needed() {
    let place = tempfile::tempdir().unwrap();
    let elf = compile(place.path(), "gfx90a.elf", "gfx90a", &INSTRUMENTED);
    let nowhere = OsStr::new("/nonexistent");
    let found = [
        "gfx90a.elf: gfx90a ",
        "front-end instrumentation, raw version 10, LLVM's own counters, coverage mapping",
    ];
    // Tools in the directories of Debian's releases are found without a PATH.
    doctor(
        &[elf.as_os_str()],
        &[("PATH", nowhere), ("ROCM_PATH", nowhere)],
    )
    .ends_with(0)
    .has("ok", &found);
    let old = tools(16, 8);
    let option = OsStr::new("--llvm-bin");
    let said = doctor(&[option, old.path().as_os_str(), elf.as_os_str()], &[]);
    said.ends_with(0)
        .has("ok", &["LLVM tools: LLVM 16, raw version 8"])
        .has("ok", &found);
}

#[test]
fn a_raw_version_that_is_not_known_is_named() {
    let place = tempfile::tempdir().unwrap();
    let mut flags = rocov();
    flags.args(["flags", "--clang", CLANG, "--counters", "llvm"]);
    let flags = stdout(&run(&mut flags));
    let flags: Vec<_> = flags.split_whitespace().collect();
    let elf = compile(place.path(), "gfx90a.elf", "gfx90a", &flags);
    let mut bytes = fs::read(&elf).unwrap();
    let word = {
        let file = object::File::parse(&*bytes).unwrap();
        let mut symbols = file.dynamic_symbols();
        let symbol = symbols.find(|symbol| symbol.name() == Ok(OWN_VERSION_SYMBOL));
        let address = symbol.unwrap().address();
        let mut segments = file.segments();
        let segment = segments.find(|segment| {
            (segment.address()..segment.address() + segment.size()).contains(&address)
        });
        let segment = segment.unwrap();
        (segment.file_range().0 + address - segment.address()) as usize
    };
    bytes[word] = 99;
    fs::write(&elf, bytes).unwrap();
    doctor(&[elf.as_os_str()], &[]).ends_with(1).has(
        "MISSING",
        &[
            "raw version 99",
            "rocov reads raw versions 8 to 11",
            "clang",
        ],
    );
}

#[test]
fn the_counters_of_code_objects_and_compilers_are_named() {
    let place = tempfile::tempdir().unwrap();
    let elf = |counters: &str| {
        let mut flags = rocov();
        flags.args(["flags", "--clang", CLANG, "--counters", counters]);
        let flags = stdout(&run(&mut flags));
        let flags: Vec<_> = flags.split_whitespace().collect();
        compile(place.path(), counters, "gfx90a", &flags)
    };
    for (counters, words) in [
        ("fast", "fast counters"),
        ("llvm", "LLVM's own counters"),
        ("reached", "counters of reached code only"),
    ] {
        let elf = elf(counters);
        let found = format!("raw version 10, {words}, coverage mapping");
        doctor(&[elf.as_os_str()], &[])
            .ends_with(0)
            .has("ok", &[&format!("/{counters}: gfx90a "), &found]);
    }

    // No plugin is installed next to these libraries.
    let said = doctor(&[], &[]);
    said.has(
        "ok",
        &["compiler: ", "version 22.", "`rocov pass build --clang /"],
    );
    let libraries = empty_libraries();
    let folder = libraries.path().join("rocov");
    fs::create_dir(&folder).unwrap();
    let installed = folder.join("librocov_pass-22.so");
    fs::copy(plugin(22), &installed).unwrap();
    let libraries = [("ROCOV_LIBRARY_DIR", libraries.path().as_os_str())];
    let fast = format!("fast counters by {}", installed.display());
    let said = doctor(&[], &libraries);
    said.has("ok", &["compiler: ", "version 22.", &fast]);
    said.has(
        "ok",
        &["compiler: ", "version 19.", "`rocov pass build --clang /"],
    );
}

#[test]
fn the_instrumentation_of_code_objects_is_told() {
    let place = tempfile::tempdir().unwrap();
    let plain = compile(place.path(), "plain.elf", "gfx90a", &[]);
    doctor(&[plain.as_os_str()], &[])
        .ends_with(1)
        .has(
            "warning",
            &["plain.elf: gfx90a ", " (kernel): not instrumented"],
        )
        .has(
            "MISSING",
            &[
                "1 code object, none instrumented",
                "rocov flags",
                "rocov run --instrument",
            ],
        );
    let flags = ["-fprofile-generate", "-fprofile-update=atomic"];
    let ir = compile(place.path(), "ir.elf", "gfx90a", &flags);
    doctor(&[ir.as_os_str()], &[]).ends_with(0).has(
        "warning",
        &[
            "IR instrumentation, raw version 10, LLVM's own counters, no coverage",
            "--pgo",
        ],
    );
    for flags in [&flags[..1], &INSTRUMENTED[..2]] {
        let bare = compile(place.path(), "bare.elf", "gfx90a", flags);
        doctor(&[bare.as_os_str()], &[]).ends_with(0).has(
            "warning",
            &[
                " are not atomic: counts are too low",
                "-fprofile-update=atomic",
            ],
        );
    }
    let bundle = compile_bundle(place.path(), &["gfx90a", "gfx942"], &INSTRUMENTED);
    let library = embed(&bundle, place.path());
    doctor(&[library.as_os_str()], &[])
        .ends_with(0)
        .has(
            "ok",
            &[
                "program.so: gfx90a ",
                "kernel.hip: kernel)",
                "coverage mapping",
            ],
        )
        .has("ok", &["program.so: gfx942 ", "coverage mapping"]);
}

#[test]
fn programs_that_cannot_be_drained_are_told() {
    let place = tempfile::tempdir().unwrap();
    let nothing = "int main(void) { return 0; }";
    let file = program(place.path(), &["-static"], nothing);
    doctor(&[file.as_os_str()], &[])
        .ends_with(1)
        .has("MISSING", &["no device code"])
        .has("MISSING", &["a static program", "rocov flags --link"]);
    let file = program(place.path(), &[], nothing);
    fs::set_permissions(&file, Permissions::from_mode(0o4755)).unwrap();
    doctor(&[file.as_os_str()], &[]).has("MISSING", &["setuid", "without these mode bits"]);
    let absent = place.path().join("absent");
    doctor(&[absent.as_os_str()], &[])
        .ends_with(1)
        .has("MISSING", &["absent does not exist"]);
    doctor(&[data("kernel.hip").as_os_str()], &[])
        .ends_with(1)
        .has("MISSING", &["kernel.hip: not a 64-bit"]);
}

/// HIP aborts when the host part of a program registers a record that the device part has not.
#[test]
fn records_that_hip_would_not_find_are_told() {
    let place = tempfile::tempdir().unwrap();
    let registers = |name: &str| {
        let c =
            format!("const char *volatile name = \"{name}\"; int main(void) {{ return !name; }}");
        program(place.path(), &[], &c)
    };
    let file = registers("__profd_missing");
    doctor(&[file.as_os_str()], &[]).has(
        "MISSING",
        &["registers __profd_missing with HIP", "-Xarch_host"],
    );
    let file = registers("profd");
    let said = doctor(&[file.as_os_str()], &[]);
    assert!(!said.text.contains("registers"), "{}", said.text);
}

#[test]
fn traps_of_the_environment_are_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("%p.profraw");
    doctor(&[], &[("LLVM_PROFILE_FILE", below.as_os_str())])
        .ends_with(1)
        .has("MISSING", &["is not a directory", "unset"]);
    let preloaded = OsStr::new("libtracer.so");
    // It is not there, which the loader says of every process: so the doctor's own is named only.
    let mut command = rocov();
    let libraries = empty_libraries();
    command
        .arg("doctor")
        .env("LD_PRELOAD", preloaded)
        .env("ROCOV_LIBRARY_DIR", libraries.path());
    let output = command.output().unwrap();
    let text = stdout(&output);
    assert!(text.contains("LD_PRELOAD=libtracer.so"), "{text}");
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn a_ccache_that_drops_flags_is_named() {
    for (version, state) in [("4.7.5", "ok"), ("4.11.2", "warning"), ("4.14.2", "ok")] {
        let directory = tempfile::tempdir().unwrap();
        let ccache = directory.path().join("ccache");
        fs::write(
            &ccache,
            format!("#!/bin/sh\necho ccache version {version}\n"),
        )
        .unwrap();
        fs::set_permissions(&ccache, Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", directory.path().display());
        let said = doctor(&[], &[("PATH", path.as_ref())]);
        said.has(state, &["ccache", version]);
    }
}

#[test]
fn json_has_the_same_findings() {
    let place = tempfile::tempdir().unwrap();
    let plain = compile(place.path(), "plain.elf", "gfx90a", &[]);
    let said = doctor(&[OsStr::new("--json"), plain.as_os_str()], &[]);
    let document: serde_json::Value = serde_json::from_str(&said.text).unwrap();
    assert_eq!(document["rocov_doctor"], 1);
    assert_eq!(document["complete"], false);
    let findings = document["findings"].as_array().unwrap();
    let missing: Vec<_> = findings
        .iter()
        .filter(|finding| finding["state"] == "missing")
        .collect();
    assert_eq!(missing.len(), 1, "{}", said.text);
    assert!(
        missing[0]["remedy"]
            .as_str()
            .unwrap()
            .contains("rocov flags")
    );
}
