//! Code that was never launched counts as not run: in another file of the program, in an open or
//! closed library, and in a program that launches nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, rocov_run, run};
use crate::support::compile::{Compilation, device_header};
use crate::support::data::Data;
use crate::support::gpu::Stack;
use crate::support::profile::{functions, profdata};
use crate::support::program::{Program, TARGET, rocov_flags};
use crate::support::zstd;

/// Each source with its number of lines with code and of lines that ran.
const ADD: [(&str, u64, u64); 1] = [("main.hip", 3, 0)];
const SCALE: [(&str, u64, u64); 1] = [("scale.hip", 5, 0)];
const HALVE: [(&str, u64, u64); 1] = [("library.hip", 1, 0)];
const ADDED: [(&str, u64, u64); 1] = [("main.hip", 3, 3)];
const SCALED: [(&str, u64, u64); 1] = [("scale.hip", 5, 5)];

fn program(stack: Stack) -> Program {
    let sources = ["main.hip", "scale.hip"].map(|name| format!("never_launched/{name}"));
    let sources = [&*sources[0], &*sources[1]];
    Program::build(stack, &sources, &[], &["-ldl"])
}

/// The library, compiled with these flags and the stack's own.
fn library(stack: Stack, flags: &[&str]) -> PathBuf {
    library_from("library.hip", stack, flags)
}

/// A library of a source, compiled with these flags and the stack's own.
fn library_from(source: &str, stack: Stack, flags: &[&str]) -> PathBuf {
    Compilation::on(stack)
        .arguments(stack.flags())
        .arguments(["-O1", "-fPIC", "-shared"])
        .arguments([format!("--offload-arch={TARGET}")])
        .arguments(flags)
        .source(repository("testdata/programs/never_launched").join(source))
        .reads([
            device_header(),
            repository("testdata/programs/never_launched/kernels.h"),
        ])
        .output("never_launched.so")
}

fn instrumented(stack: Stack) -> PathBuf {
    library_of("library.hip", stack)
}

fn library_of(source: &str, stack: Stack) -> PathBuf {
    let flags = rocov_flags(stack, &[]);
    let flags: Vec<_> = flags.iter().map(|flag| flag.to_str().unwrap()).collect();
    library_from(source, stack, &flags)
}

/// A data directory, and the command that wrote to it.
struct Ran {
    directory: TempDir,
}

impl Ran {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { directory }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Runs the program with these steps, which must succeed. If it launches nothing, rocov must
    /// print its line.
    #[track_caller]
    fn and(self, program: &Program, steps: &[&str]) -> Self {
        let mut command = program.under_rocov(TARGET, &self.data());
        ends_well(&run(command.args(steps)));
        self
    }

    #[track_caller]
    fn report(&self, options: &[&str]) -> Ended {
        let mut report = limited(built("rocov"));
        report.arg("report").arg(self.data()).args(options);
        run(&mut report)
    }

    /// Expects a report on exactly these files: lines with code, and lines that ran.
    #[track_caller]
    fn reports(&self, expected: &[&[(&str, u64, u64)]]) {
        let json = self.report(&["--json", "--summary-only"]).success();
        assert_eq!(lines(&json.silently().stdout), sorted(expected));
    }
}

/// Expects success, and only the line about a run without launches, if it is due.
#[track_caller]
fn ends_well(ended: &Ended) {
    const NOTHING: &str = "rocov: no instrumented kernel was launched: this run adds only zeros to the report; check the \
         command and its arguments\n";
    let launches = ["add", "scale"].iter().any(|step| ended.ran_with(step));
    let expected = if launches { "" } else { NOTHING };
    assert!(
        ended.status.success() && ended.stderr == expected,
        "{ended}"
    );
}

/// The figures of each file in a report on one arch.
fn lines(json: &str) -> Vec<(String, u64, u64)> {
    let json: Value = serde_json::from_str(json).expect("JSON");
    let mut files: Vec<_> = json["data"][0]["files"]
        .as_array()
        .unwrap_or_else(|| panic!("{json:#}"))
        .iter()
        .map(|file| {
            let name = Path::new(file["filename"].as_str().unwrap()).file_name();
            let lines = &file["summary"]["lines"];
            let number = |name: &str| lines[name].as_u64().unwrap();
            let name = name.unwrap().to_string_lossy().into_owned();
            (name, number("count"), number("covered"))
        })
        .collect();
    files.sort();
    files
}

fn sorted(expected: &[&[(&str, u64, u64)]]) -> Vec<(String, u64, u64)> {
    let mut expected: Vec<_> = expected
        .iter()
        .copied()
        .flatten()
        .map(|(name, count, covered)| ((*name).to_owned(), *count, *covered))
        .collect();
    expected.sort();
    expected
}

#[test]
fn a_file_of_which_nothing_was_launched_is_reported_and_gates_name_its_kernels() {
    for stack in Stack::for_programs() {
        let program = program(stack);
        let ran = Ran::new().and(&program, &["add"]);
        ran.reports(&[&ADDED, &SCALE]);
        let options = ["--fail-under-lines", "50", "--fail-uncovered-kernels"];
        let gate = ran.report(&options).with_status(3);
        assert_eq!(gate.stderr.lines().count(), 2, "{gate}");
        gate.says(&[
            "gate: gfx90a: 37.50% of lines ran (5 of 8 did not run), less than 50%",
            "gate: gfx90a: kernel scale(float*, float) did not run",
        ]);
        // A later run adds its counts.
        ran.and(&program, &["scale"]).reports(&[&ADDED, &SCALED]);
    }
}

#[test]
fn no_zero_leaves_it_out() {
    let stack = Stack::usual();
    let ran = Ran::new();
    let mut command = limited(built("rocov"));
    command.args(["run", "--gpu", "model", "--no-zero", "-o"]);
    command.arg(ran.data()).arg("--").arg(program(stack).file);
    run(command.arg("add")).success().silently();
    ran.reports(&[&ADDED]);
}

#[test]
fn a_library_is_reported_whether_it_is_open_at_the_end_or_closed() {
    for stack in Stack::for_programs() {
        let program = program(stack);
        let library = instrumented(stack);
        for step in ["open", "close"] {
            let ran = Ran::new().and(&program, &["add", step, library.to_str().unwrap()]);
            ran.reports(&[&ADDED, &SCALE, &HALVE]);
        }
    }
}

/// rocov looks for code in files when the program has ended.
#[test]
fn a_library_that_was_removed_or_replaced_is_named() {
    let stack = Stack::usual();
    let program = program(stack);
    let library = instrumented(stack);
    for (script, what) in [
        ("\"$0\" add drop \"$1\"", "removed"),
        ("\"$0\" add close \"$1\" && rm \"$1\"", "removed"),
        ("\"$0\" add open \"$1\" && cp \"$0\" \"$1\"", "replaced"),
    ] {
        let ran = Ran::new();
        let copy = ran.directory.path().join("library.so");
        std::fs::copy(&library, &copy).expect("a copy");
        let mut command = program.under_rocov(TARGET, &ran.data());
        // The program is the last argument.
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let (file, others) = arguments.split_last().expect("the program");
        let mut shell = limited(built("rocov"));
        shell.args(
            &others[others
                .iter()
                .position(|argument| argument == "run")
                .expect("run")..],
        );
        shell.args(["sh", "-c", script]).arg(file).arg(&copy);
        command = shell;
        let ended = run(&mut command).success();
        let line = format!(
            "rocov: {}: the file was {what} after the program had loaded it, so reports will not show its code that \
            was never launched; run the program again, and keep the file until `rocov run` has ended\n",
            copy.display()
        );
        assert_eq!(ended.stderr, line, "{ended}");
        // A report looks again.
        let report = ran.report(&[]).success();
        assert_eq!(report.stderr, line, "{report}");
        let json = ran.report(&["--json", "--summary-only"]).success();
        assert_eq!(lines(&json.stdout), sorted(&[&ADDED, &SCALE]));
    }
}

/// A program with librocov, without `rocov run`: as if librocov were linked into it.
fn without_run(program: &Program, data: &Path, steps: &[&str]) -> Ended {
    let libraries = ["librocov_modelgpu.so", "librocov.so"]
        .map(built)
        .map(|library| library.display().to_string())
        .join(":");
    let mut command = limited("env");
    command
        .arg(format!("LD_PRELOAD={libraries}"))
        .arg(format!("ROCOV_MODELGPU={TARGET}"))
        .arg(format!("ROCOV_DATA={}", data.display()))
        .arg(format!(
            "LLVM_PROFILE_FILE={}",
            data.join("profraw/%p.profraw").display()
        ))
        .arg(&program.file)
        .args(steps);
    run(&mut command).success().silently()
}

/// All files below a directory, with their contents.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.insert(path.clone(), std::fs::read(path).expect("a file"));
            }
        }
    }
    found
}

/// Without `rocov run`, commands look for the code themselves, and write nothing to the data directory.
#[test]
fn without_rocov_run_the_commands_find_it() {
    let stack = Stack::usual();
    let program = program(stack);
    let library = instrumented(stack);
    let steps = ["add", "close", library.to_str().unwrap()];
    let ran = Ran::new();
    without_run(&program, &ran.data(), &steps);
    without_run(&program, &ran.data(), &["none"]);
    let before = files(&ran.data());
    ran.reports(&[&ADDED, &SCALE, &HALVE]);
    let report = ran.report(&["--verbose"]).success().silently();
    let heading = "gfx90a: 1 profile of 3 code objects, 2 never launched";
    assert!(report.stdout.starts_with(heading), "{report}");
    let origin = format!("  device ELF      {}: code object ", library.display());
    assert!(report.stdout.contains(&origin), "{report}");
    let gate = ran.report(&["--fail-uncovered-kernels"]).with_status(3);
    gate.says(&[
        "kernel scale(float*, float) did not run",
        "kernel halve(float*) did not run",
    ]);

    let mut kernels = limited(built("rocov"));
    kernels.args(["kernels", "--json"]).arg(ran.data());
    let kernels = run(&mut kernels).success().silently().stdout;
    let kernels: Value = serde_json::from_str(&kernels).expect("JSON");
    let kernels = kernels["kernels"].as_array().expect("kernels").iter();
    let mut counts: Vec<_> = kernels
        .map(|kernel| (kernel["display_name"].as_str(), kernel["count"].as_u64()))
        .collect();
    counts.sort();
    let expected = [
        (Some("add(float*, float)"), Some(64)),
        (Some("halve(float*)"), Some(0)),
        (Some("scale(float*, float)"), Some(0)),
    ];
    assert_eq!(counts, expected);

    let pooled = ran.directory.path().join("pooled");
    let mut merge = limited(built("rocov"));
    merge
        .arg("merge")
        .arg(ran.data())
        .arg("--pooled")
        .arg(&pooled);
    run(&mut merge).success();
    let merged = Data::read(&pooled);
    // The second process has launched nothing: the profile of zeros for `add` is next to its counts.
    assert_eq!((merged.profiles.len(), merged.elfs.len()), (4, 3));
    let processes = merged
        .registries
        .iter()
        .flat_map(|registry| &registry.processes);
    for process in processes {
        assert_eq!(process.device_code, None);
    }
    let mut report = limited(built("rocov"));
    report
        .args(["report", "--json", "--summary-only"])
        .arg(&pooled);
    let json = run(&mut report).success().silently().stdout;
    assert_eq!(lines(&json), sorted(&[&ADDED, &SCALE, &HALVE]));
    assert_eq!(
        files(&ran.data()),
        before,
        "the data directory was only read"
    );

    // The next run adds to it, and completes its own process.
    let ran = ran.and(&program, &["scale"]);
    ran.reports(&[&ADDED, &SCALED, &HALVE]);
}

/// All processes of a run are completed, and share the profiles with later runs.
#[test]
fn processes_share_the_profiles_of_zeros() {
    let program = program(Stack::usual());
    let ran = Ran::new();
    for number in 1..=2 {
        let mut command = rocov_run(Some(&format!("model:{TARGET}")), &ran.data());
        command.args(["sh", "-c", "\"$0\" none & \"$0\" add & \"$0\" scale & wait"]);
        run(command.arg(&program.file)).success().silently();
        let found = Data::read(&ran.data());
        // Two of zeros, and two of each run.
        assert_eq!(found.profiles.len(), 2 + 2 * number);
        assert_eq!(found.elfs.len(), 2);
        let processes = found
            .registries
            .iter()
            .flat_map(|registry| &registry.processes);
        let never = processes.map(|process| {
            assert_eq!(process.device_code, None);
            process
                .never_loaded
                .iter()
                .map(|file| file.code_objects.len())
                .sum::<usize>()
        });
        let mut never: Vec<_> = never.collect();
        never.sort_unstable();
        // Each that launches a kernel of one file lacks the other.
        let expected = [vec![1; 2 * number], vec![2; number]].concat();
        assert_eq!(never, expected);
    }
    ran.reports(&[&ADDED, &SCALED]);
}

/// A suite of many processes looks at a file once, also if several runs end at a time.
#[test]
fn device_code_is_found_in_the_cache() {
    let stack = Stack::usual();
    let program = program(stack);
    let cache = tempfile::tempdir().expect("a temporary directory");
    let entries = || files(cache.path());
    let ran = Ran::new();
    let step = |ran: &Ran, home: &Path| {
        let mut command = program.under_rocov(TARGET, &ran.data());
        ends_well(&run(command.env("XDG_CACHE_HOME", home).arg("none")));
        ran.reports(&[&ADD, &SCALE]);
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| step(&Ran::new(), cache.path()));
        }
    });
    let first = entries();
    let names: Vec<_> = first.keys().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(
        names[0].starts_with(cache.path().join("rocov/device-code")),
        "{names:?}"
    );
    // Another directory takes it from there, and a damaged entry is written again.
    step(&ran, cache.path());
    std::fs::write(names[0], "{").expect("a file can be written");
    step(&Ran::new(), cache.path());
    assert_eq!(entries(), first);
    // A home that is no directory.
    step(&Ran::new(), names[0]);

    let mut clean = limited(built("rocov"));
    clean
        .args(["clean", "--cache"])
        .env("XDG_CACHE_HOME", cache.path());
    let cleaned = run(&mut clean).success().silently();
    assert!(
        cleaned.stdout.contains("removed 1 cache entry"),
        "{cleaned}"
    );
    assert_eq!(
        std::fs::read_dir(cache.path())
            .expect("a directory")
            .count(),
        0
    );
}

/// A report on an object has its code even if the data directory does not.
#[test]
fn a_report_on_an_object_counts_all_of_it() {
    let stack = Stack::usual();
    let program = program(stack);
    let library = instrumented(stack);
    let ran = Ran::new();
    let mut command = limited(built("rocov"));
    command.args(["run", "--gpu", "model", "--no-zero", "-o"]);
    command.arg(ran.data()).arg("--").arg(&program.file);
    run(command.arg("add")).success().silently();
    ran.reports(&[&ADDED]);
    let objects = [&program.file, &library].map(|path| format!("--object={}", path.display()));
    let report = |objects: &[String]| {
        let options: Vec<_> = ["--json", "--summary-only"]
            .into_iter()
            .chain(objects.iter().map(String::as_str))
            .collect();
        lines(&ran.report(&options).success().silently().stdout)
    };
    assert_eq!(report(&objects[..1]), sorted(&[&ADDED, &SCALE]));
    assert_eq!(report(&objects), sorted(&[&ADDED, &SCALE, &HALVE]));
}

/// A kpack archive with these code objects of host files, as rocm-kpack's document describes it.
fn kpack(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut data = (entries.len() as u32).to_le_bytes().to_vec();
    let mut list = serde_json::Map::new();
    for (ordinal, (id, bytes)) in entries.iter().enumerate() {
        let frame = zstd::frame(bytes);
        data.extend((frame.len() as u32).to_le_bytes());
        data.extend(frame);
        let entry = json!({"type": "hsaco", "ordinal": ordinal, "original_size": bytes.len()});
        list.insert((*id).to_owned(), json!({ TARGET: entry }));
    }
    let toc = json!({
        "format_version": 1, "group_name": "test", "gfx_arch_family": TARGET, "gfx_arches": [TARGET],
        "toc": list, "compression_scheme": "zstd-per-kernel", "zstd_offset": 64, "zstd_size": data.len(),
    });
    let mut file = b"KPAK\x01\0\0\0".to_vec();
    file.extend((64 + data.len() as u64).to_le_bytes());
    file.resize(64, 0);
    file.extend(data);
    file.extend(rmp_serde::to_vec(&toc).expect("MessagePack"));
    file
}

/// The code object of a library.
fn code_object_of(library: &Path, directory: &Path) -> Vec<u8> {
    let mut extract = limited(built("rocov"));
    extract.arg("extract").arg(library).arg("-o").arg(directory);
    let path = run(&mut extract).success().silently().stdout;
    std::fs::read(path.trim_end()).expect("one device ELF")
}

/// A library that names kpack archives has its code there, and that of other libraries is left alone. The runtime here
/// loads nothing from them, and the library still has its own copy.
#[test]
fn code_in_kpack_archives_is_found() {
    let stack = Stack::usual();
    let program = program(stack);
    let ran = Ran::new();
    let place = |name: &str| ran.directory.path().join(name);
    std::fs::create_dir(place("lib")).expect("a directory");
    std::fs::create_dir(place(".kpack")).expect("a directory");
    let reference = json!({
        "kpack_search_paths": ["../.kpack/test_@GFXARCH@.kpack"], "kernel_name": "lib/library.so",
    });
    let reference = rmp_serde::to_vec(&reference).expect("MessagePack");
    std::fs::write(place("reference"), reference).expect("a file can be written");
    let library = place("lib/library.so");
    let mut split = limited("objcopy");
    split.arg("--add-section");
    split.arg(format!(".rocm_kpack_ref={}", place("reference").display()));
    split.arg(instrumented(stack)).arg(&library);
    run(&mut split).success().silently();
    let archive = place(".kpack/test_gfx90a.kpack");
    let code = code_object_of(&instrumented(stack), ran.directory.path());
    let other = code_object_of(&library_of("scale.hip", stack), ran.directory.path());
    let entries = [("lib/other.so#0", other), ("lib/library.so#0", code)];
    std::fs::write(&archive, kpack(&entries)).expect("a file can be written");

    let ran = ran.and(&program, &["add", "open", library.to_str().unwrap()]);
    ran.reports(&[&ADDED, &SCALE, &HALVE]);
    // Data without that code, and a report with the library, or with the archive of both libraries.
    let bare = Ran::new();
    let mut command = limited(built("rocov"));
    command.args(["run", "--gpu", "model", "--no-zero", "-o"]);
    command.arg(bare.data()).arg("--").arg(&program.file);
    run(command.arg("add")).success().silently();
    let report = |object: &Path| {
        let objects = [&*program.file, object].map(|path| format!("--object={}", path.display()));
        let json = bare.report(&["--json", "--summary-only", &objects[0], &objects[1]]);
        lines(&json.success().silently().stdout)
    };
    assert_eq!(report(&library), sorted(&[&ADDED, &SCALE, &HALVE]));
    assert_eq!(report(&archive), sorted(&[&ADDED, &SCALE, &HALVE]));

    // Without the archive, a line names it.
    std::fs::remove_file(&archive).expect("a file can be removed");
    let ran = Ran::new();
    let mut command = program.under_rocov(TARGET, &ran.data());
    command.args(["add", "open", library.to_str().unwrap()]);
    run(&mut command).success().says(&[
        "its device code was split off into kpack archives, none of which was found; reports will not show its code \
        that was never launched; install ",
        "/lib/../.kpack/test_@GFXARCH@.kpack\n",
    ]);
}

/// The test does not start HSA: rocov asks the driver for the GPUs.
#[test]
fn a_program_that_launches_nothing_is_reported() {
    for stack in Stack::for_programs() {
        let program = program(stack);
        for step in ["none", "devices"] {
            let ran = Ran::new().and(&program, &[step]);
            let Data {
                profiles,
                registries,
                ..
            } = Data::read(&ran.data());
            assert_eq!((profiles.len(), registries.len()), (2, 1));
            let processes = &registries[0].processes;
            assert!(processes[0].loads.is_empty());
            let never: Vec<_> = processes[0]
                .never_loaded
                .iter()
                .map(|file| (Path::new(&file.file), file.code_objects.len()))
                .collect();
            assert_eq!(never, [(program.file.as_path(), 2)]);
            ran.reports(&[&ADD, &SCALE]);
        }
    }
}

/// rocov reports only code for GPUs of the machine, and of two code objects the one that the
/// runtime would load.
#[test]
fn code_for_other_gpus_is_not_reported() {
    let stack = Stack::usual();
    let archs = ["--offload-arch=gfx90a", "--offload-arch=gfx942"];
    let sources = ["never_launched/main.hip", "never_launched/scale.hip"];
    let program = Program::build(stack, &sources, &[], &[&archs[..], &["-ldl"]].concat());
    for step in ["none", "add"] {
        let ran = Ran::new().and(&program, &[step]);
        for profile in Data::read(&ran.data()).profiles {
            let name = profile.file_name().unwrap().to_string_lossy();
            assert!(name.starts_with("gfx90a."), "{name}");
        }
    }
}

/// rocov ignores code without instrumentation and prints nothing about it.
#[test]
fn code_that_is_not_instrumented_is_passed_over_in_silence() {
    for stack in Stack::for_programs() {
        let library = library(stack, &[]);
        let library = library.to_str().unwrap();
        for step in ["open", "close"] {
            let ran = Ran::new().and(&program(stack), &["add", step, library]);
            ran.reports(&[&ADDED, &SCALE]);
        }
    }
}

/// A process without launches removes no counts of others, in any order, and shared files do not
/// change.
#[test]
fn zeros_never_displace_counts() {
    let program = program(Stack::usual());
    for pattern in ["%p.profraw", "%m.profraw", "one.profraw"] {
        let ran = Ran::new();
        let pattern = ran.data().join(pattern);
        for step in ["none", "add", "none", "add", "scale", "none"] {
            let mut command = program.with_pattern(TARGET, &pattern);
            let mut ended = run(command.arg(step));
            // The second process that launches this kernel takes another name.
            let is_taken = ended
                .stderr
                .contains("is the profile of another process, so rocov keeps it");
            if is_taken && !pattern.to_string_lossy().contains('%') {
                ended.stderr.clear();
            }
            ends_well(&ended);
        }
        let profiles = Data::read(&ran.data()).profiles;
        let names = profiles.iter().map(|profile| profile.to_string_lossy());
        assert_eq!(names.filter(|name| name.contains(".zero.")).count(), 2);
        ran.reports(&[&ADDED, &SCALED]);
    }
}

/// Labels belong to launched code: no test has this code, and there is no unlabelled test.
#[test]
fn code_that_was_never_launched_is_of_no_test() {
    let program = program(Stack::usual());
    let ran = Ran::new();
    for step in ["add", "none"] {
        let mut command = limited(built("rocov"));
        command.args(["run", "--gpu", "model", "--label", step, "-o"]);
        command.arg(ran.data()).arg("--").arg(&program.file);
        ends_well(&run(command.arg(step)));
    }
    ran.reports(&[&ADDED, &SCALE]);
    let table = ran.report(&["--per-test"]).success().stdout;
    let (_, tests) = table.split_once("by test:").expect("tests");
    let names = tests
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    assert_eq!(names.collect::<Vec<_>>(), ["Test", "add"], "{tests}");
}

/// A merge includes them too; a merge for clang's optimizer leaves them out.
#[test]
fn merges_keep_them_apart() {
    let ran = Ran::new().and(&program(Stack::usual()), &["add"]);
    let pooled = ran.directory.path().join("pooled");
    let merge = |what: &str, output: &Path| {
        let mut merge = limited(built("rocov"));
        merge.arg("merge").arg(ran.data()).arg(what).arg(output);
        run(&mut merge).success()
    };
    merge("--pooled", &pooled);
    let profiles = Data::read(&pooled).profiles;
    let names = profiles.iter().map(|profile| profile.to_string_lossy());
    let zeros = names.filter(|name| name.contains(".zero.")).count();
    assert_eq!((profiles.len(), zeros), (2, 1));
    let merged = merge("--pgo", &ran.directory.path().join("pgo"));
    merged.says(&["gfx90a: 1 profile of 1 code object"]);
}

/// The folder of profiles in a data directory has nothing else, so that LLVM's tool takes it as a whole.
#[test]
fn llvm_profdata_merges_the_folder_of_profiles() {
    let ran = Ran::new().and(&program(Stack::usual()), &["add"]);
    let merged = ran.directory.path().join("merged.profdata");
    let mut merge = limited(profdata());
    merge.arg("merge").arg(ran.data().join("profraw"));
    run(merge.arg("-o").arg(&merged)).success().silently();
    let functions = functions(&merged);
    let calls = |name: &str| {
        let found = functions
            .iter()
            .find(|(function, _)| function.contains(name));
        found.map(|(_, function)| function.calls)
    };
    assert_eq!(
        (calls("add").is_some_and(|calls| calls > 0), calls("scale")),
        (true, Some(0))
    );
}

/// Lines, with their counts, by the name of the source.
fn counted(lcov: &str) -> BTreeMap<String, BTreeMap<u32, u64>> {
    let mut found: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut source = String::new();
    for record in lcov.lines() {
        if let Some(path) = record.strip_prefix("SF:") {
            let name = Path::new(path).file_name().expect("a file");
            source = name.to_string_lossy().into_owned();
        } else if let Some((line, count)) = record
            .strip_prefix("DA:")
            .and_then(|rest| rest.split_once(','))
        {
            let (line, count) = (
                line.parse().expect("a line"),
                count.parse().expect("a count"),
            );
            found.entry(source.clone()).or_default().insert(line, count);
        }
    }
    found
}

/// Code without counters, too, if the run is traced: its lines are those that a run of all kernels has.
#[test]
fn a_traced_run_reports_code_without_counters() {
    const DEBUG: &str = "-gline-tables-only";
    let stack = Stack::usual();
    let sources = ["never_launched/main.hip", "never_launched/scale.hip"];
    let program = Program::with_flags(stack, &sources, &[], &[DEBUG, "-ldl"], &[]);
    let library = library(stack, &[DEBUG]);
    let traced = |steps: &[&str]| {
        let ran = Ran::new();
        let mut command = limited(built("rocov"));
        command.args(["run", "--trace", "--gpu", &format!("model:{TARGET}"), "-o"]);
        command.arg(ran.data()).arg("--").arg(&program.file);
        command.args(steps).arg("open").arg(&library);
        ends_well(&run(&mut command));
        ran
    };
    let lcov = |ran: &Ran| counted(&ran.report(&["--lcov"]).success().silently().stdout);
    let one = traced(&["add"]);
    let [none, some] = [lcov(&traced(&["none"])), lcov(&one)];
    let all = lcov(&traced(&["add", "scale"]));
    let names: Vec<_> = all.keys().map(String::as_str).collect();
    assert_eq!(names, ["library.hip", "main.hip", "scale.hip"]);
    for (source, lines) in &all {
        for (line, count) in lines {
            let (launched, added) = (source != "library.hip", source == "main.hip");
            assert_eq!(*count, 64 * u64::from(launched), "{source}:{line}");
            assert_eq!(some[source][line], 64 * u64::from(added), "{source}:{line}");
            assert_eq!(none[source][line], 0, "{source}:{line}");
        }
        let numbers = [lines.len(), some[source].len(), none[source].len()];
        assert_eq!(numbers, [lines.len(); 3], "{source}");
    }
    let gate = one.report(&["--fail-uncovered-kernels"]).with_status(3);
    assert!(!gate.stderr.contains("add("), "{gate}");
    gate.says(&[
        "kernel scale(float*, float) did not run",
        "kernel halve(float*) did not run",
    ]);
}
