//! Threads that load, launch, drain and unload at the same time: nothing is lost, and neither the
//! sanitizers nor Valgrind find anything in librocov.

use crate::programs::{launches_in, object, source};
use crate::support::artifacts::{built, files_with_extension, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::compile::Compilation;
use crate::support::gpu::Stack;
use crate::support::profile::{functions, merge, raw_profiles};
use std::path::{Path, PathBuf};
use std::process::Command;

const HELPERS: &str = "tools/modelgpu/kfd/tests/programs";
/// Threads that load, in the program.
const LOADING: u64 = 4;

/// The program, with librocov from `directory` linked in.
fn program(directory: &Path, flags: &[&str]) -> PathBuf {
    let mut search = std::ffi::OsString::from("-Wl,-rpath,");
    search.push(directory);
    Compilation::by("clang-22")
        .arguments(["-O1", "-g", "-Wall", "-Wextra", "-I"])
        .arguments([repository(HELPERS)])
        .arguments(flags)
        .source(source("threads.c"))
        .reads(files_with_extension(HELPERS, "h"))
        .arguments(["-L".into(), directory.as_os_str().to_owned(), search])
        .arguments(["-lrocov", "-lhsa-runtime64", "-lpthread"])
        .output("threads")
}

/// Runs `command`, which is the program or starts it, with so many rounds on two modelled GPUs, and finds
/// every launch counted: in files of its own, and in pools.
fn counts(command: &dyn Fn() -> Command, rounds: u64, check: &mut dyn FnMut(Ended)) {
    let stack = Stack::Debian12;
    let object = object("count.hip", stack);
    for pattern in ["%p.profraw", "%m.profraw"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = command();
        command
            .arg(&object)
            .arg(rounds.to_string())
            .env("ROCOV_MODELGPU", "gfx90ax2")
            // A process has little address space under Valgrind.
            .env("ROCOV_MODELGPU_VRAM_MIB", "64")
            .env("LD_PRELOAD", built("librocov_modelgpu.so"))
            .env("LLVM_PROFILE_FILE", data.join(pattern));
        let ended = run(&mut command).success();
        assert_eq!(ended.stdout, "finished, failures: 0\n", "{ended}");
        check(ended);
        let profiles = raw_profiles(&data);
        let merged = directory.path().join("merged.profdata");
        merge(&profiles, &merged);
        let counted = launches_in(&functions(&merged)[crate::programs::COUNT]);
        assert_eq!(counted, LOADING * rounds, "{profiles:?}");
    }
}

fn beside() -> PathBuf {
    let library = built("librocov.so");
    library.parent().expect("a file is in a directory").into()
}

#[test]
fn address_sanitizer_finds_nothing() {
    let program = program(&beside(), &["-fsanitize=address,undefined"]);
    counts(&|| limited(&program), 10, &mut |ended| {
        ended.silently();
    });
    println!("figure: leaks 0");
}

#[test]
fn valgrind_finds_nothing() {
    let program = program(&beside(), &[]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let valgrind = || {
        let mut valgrind = limited("valgrind");
        valgrind
            // Leaks are for the address sanitizer: Valgrind looks for pointers in all of the GPUs' memory.
            .args(["--quiet", "--leak-check=no", "--num-callers=40"])
            .arg(format!("--log-file={}", log.display()))
            .arg(&program);
        valgrind
    };
    counts(&valgrind, 2, &mut |_| {
        let found = std::fs::read_to_string(&log).expect("Valgrind writes its log");
        let mut ours = reports(&found);
        ours.retain(|report| report.contains("librocov.so"));
        assert!(ours.is_empty(), "{}", ours.join("\n\n"));
    });
}

/// Valgrind's reports, which have an empty line between them. Each line starts with `==PID== `.
fn reports(log: &str) -> Vec<String> {
    let text = |line: &str| line.splitn(3, "==").nth(2).unwrap_or_default().to_owned();
    let lines: Vec<_> = log.lines().map(text).collect();
    let reports = lines.split(|line| line.trim().is_empty());
    reports.map(|report| report.join("\n")).collect()
}

/// With the librocov that tools/races has built.
#[test]
#[ignore = "needs a librocov that is built with ThreadSanitizer: tools/races"]
fn thread_sanitizer_finds_no_race() {
    let library = std::env::var_os("ROCOV_RACES_LIBRARY").expect("tools/races sets it");
    let program = program(Path::new(&library), &["-fsanitize=thread"]);
    let mut races = 0;
    let command = || {
        let mut command = limited(&program);
        // Reports are counted here. What is not instrumented, ROCr and the model, is not looked into.
        command.env(
            "TSAN_OPTIONS",
            "exitcode=0 ignore_noninstrumented_modules=1",
        );
        command
    };
    counts(&command, 50, &mut |ended| {
        races += ended.stderr.matches("WARNING: ThreadSanitizer").count();
        assert_eq!(races, 0, "{ended}");
    });
    println!("figure: races {races}");
}
