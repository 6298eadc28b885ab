//! Threads that load, launch, drain and unload at once: nothing is lost, and neither the sanitizers
//! nor Valgrind find anything in librocov.
#![allow(clippy::print_stdout, reason = "a test reports what it found")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{launches_in, object, on_hsa};
use crate::reports;
use crate::support::artifacts::built;
use crate::support::command::{Ended, limited, run};
use crate::support::gpu::Stack;
use crate::support::profile::{functions, merge, raw_profiles};

/// Loading threads of the program.
const LOADING: u64 = 4;

/// The program, with librocov from `directory` linked in.
fn program(directory: &Path, flags: &[&str]) -> PathBuf {
    // Searched before LD_LIBRARY_PATH, in which cargo puts the librocov next to the tests.
    let mut search = std::ffi::OsString::from("-Wl,--disable-new-dtags,-rpath,");
    search.push(directory);
    on_hsa("threads")
        .arguments(["-gdwarf-4"])
        .arguments(flags)
        .arguments(["-L".into(), directory.as_os_str().to_owned(), search])
        .arguments(["-lrocov", "-lhsa-runtime64", "-lpthread"])
        .output("threads")
}

/// Makes `command`, which is or starts the program, run this number of rounds on two modelled GPUs.
fn prepare(mut command: Command, rounds: u64, pattern: &Path) -> Command {
    command
        .arg(object("count.hip", Stack::Debian12))
        .arg(rounds.to_string())
        .env("ROCOV_MODELGPU", "gfx90ax2")
        // A process has little address space under Valgrind.
        .env("ROCOV_MODELGPU_VRAM_MIB", "64")
        .env("LD_PRELOAD", built("librocov_modelgpu.so"))
        .env("LLVM_PROFILE_FILE", pattern);
    command
}

/// Runs the program in this way and expects every launch in the counts: in files of its own, and in
/// pools.
fn counts(command: &dyn Fn() -> Command, rounds: u64, check: &mut dyn FnMut(Ended)) {
    for pattern in ["%p.profraw", "%m.profraw"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut command = prepare(command(), rounds, &data.join(pattern));
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

/// Runs the program with a planted error for a tool. Otherwise a clean report would mean nothing.
fn with_planted(what: &str, command: Command) -> Ended {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let pattern = directory.path().join("data/%p.profraw");
    // The planted error may put profiles into the program's directory, and their other files above
    // it.
    let here = directory.path().join("here");
    fs::create_dir(&here).expect("a directory can be made");
    run(prepare(command, 1, &pattern).arg(what).current_dir(here))
}

fn beside() -> PathBuf {
    let library = built("librocov.so");
    library.parent().expect("a file is in a directory").into()
}

/// The program with the address sanitizer, which ends it at a bad access.
fn with_address_sanitizer() -> Command {
    let flags = ["-fsanitize=address,undefined"];
    let mut command = limited(program(&beside(), &flags));
    // Stacks name the libraries instead of functions. This test counts leaks itself.
    command.env("ASAN_OPTIONS", "symbolize=0:exitcode=0");
    command
}

#[test]
fn address_sanitizer_finds_nothing() {
    let (mut lost, mut errors) = (0, 0);
    let mut said = String::new();
    counts(&with_address_sanitizer, 10, &mut |ended| {
        lost += reports::lost(&reports::leaks(&ended.stderr));
        errors += reports::errors(&ended.stderr);
        said += &ended.stderr;
    });
    println!("\nfigure: leaks {lost}\nfigure: bad_accesses {errors}");
    assert_eq!(said, "");
}

#[test]
fn address_sanitizer_finds_what_is_planted() {
    let ended = with_planted("leak", with_address_sanitizer()).success();
    let leaks = reports::leaks(&ended.stderr);
    assert_eq!(leaks.len(), 1, "{ended}");
    assert_eq!((leaks[0].bytes, leaks[0].allocations), (4321, 1), "{ended}");

    let ended = with_planted("access", with_address_sanitizer()).says(&["heap-use-after-free"]);
    assert_eq!(reports::errors(&ended.stderr), 1, "{ended}");
    let mut stack = ended.stderr.lines().filter(|line| line.contains(" #1 "));
    let caller = stack.next().unwrap_or_default();
    assert!(caller.contains("librocov.so+"), "{ended}");
}

/// Only librocov's variables point to its memory. If the sanitizer ignores these, all of it is
/// lost.
#[test]
fn leak_sanitizer_sees_what_librocov_allocates() {
    let mut command = with_address_sanitizer();
    command.env("LSAN_OPTIONS", "use_globals=0");
    let ended = with_planted("leak", command).success();
    let leaks = reports::leaks(&ended.stderr);
    let mut allocated = leaks.iter().filter_map(|leak| leak.stack.get(1));
    assert!(
        allocated.any(|frame| frame.contains("librocov.so+")),
        "{ended}"
    );
}

fn with_valgrind(log: &Path) -> Command {
    let mut valgrind = reports::valgrind(log);
    valgrind.arg(program(&reports::without_lines(), &[]));
    valgrind
}

#[test]
fn valgrind_finds_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let mut found = Vec::new();
    counts(&|| with_valgrind(&log), 2, &mut |_| {
        found.extend(reports::about_librocov(&log));
    });
    println!("\nfigure: bad_accesses {}", found.len());
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn valgrind_finds_what_is_planted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let ended = with_planted("access", with_valgrind(&log)).success();
    let found = reports::about_librocov(&log);
    let is_planted = |report: &String| report.contains("Invalid read") && report.contains("free'd");
    assert!(
        found.iter().any(is_planted),
        "{ended}\n{}",
        found.join("\n\n")
    );
}

/// The program with tools/dev/races's librocov, both with the thread sanitizer.
fn with_thread_sanitizer() -> Command {
    let library = std::env::var_os("ROCOV_RACES_LIBRARY").expect("tools/dev/races sets it");
    let mut command = limited(program(Path::new(&library), &["-fsanitize=thread"]));
    // This test counts reports itself. The sanitizer does not check code without instrumentation:
    // ROCr and the model.
    command.env(
        "TSAN_OPTIONS",
        "exitcode=0 ignore_noninstrumented_modules=1",
    );
    command
}

#[test]
#[ignore = "needs a librocov that is built with ThreadSanitizer: tools/dev/races"]
fn thread_sanitizer_finds_no_race() {
    let mut races = 0;
    let mut said = String::new();
    counts(&with_thread_sanitizer, 50, &mut |ended| {
        races += reports::races(&ended.stderr);
        said += &ended.stderr;
    });
    println!("\nfigure: races {races}");
    assert_eq!(races, 0, "{said}");
}

#[test]
#[ignore = "needs a librocov that is built with ThreadSanitizer: tools/dev/races"]
fn thread_sanitizer_finds_what_is_planted() {
    let ended = with_planted("race", with_thread_sanitizer()).success();
    let reports = ended.stderr.split("WARNING: ThreadSanitizer: ").skip(1);
    let is_planted =
        |report: &str| report.starts_with("data race") && report.contains("librocov.so+");
    assert!(reports.clone().any(is_planted), "{ended}");
}
