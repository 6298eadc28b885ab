//! A program that never uses a GPU does not notice rocov: no HSA library loads, no file is written,
//! and output and exit status do not change.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::support::artifacts::names;
use crate::support::command::{Ended, no_use, rocov_run, run};

const GPU_LIBRARIES: [&str; 4] = ["libhsa", "libamdhip", "libdrm", "libamd_comgr"];

/// Runs a command under `rocov run`, with and without a model. `check` gets the line that `rocov run` prints. Expects no
/// written files.
fn under_rocov(command: &[&str], check: impl Fn(Ended, &str)) {
    for gpu in [None, Some("model")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let mut rocov = rocov_run(gpu, &data);
        let ended = run(rocov.args(command).current_dir(directory.path()));
        check(ended, &format!("rocov: {}\n", no_use(gpu)));
        assert_eq!(
            names(directory.path()),
            [""; 0],
            "files after {command:?} on {gpu:?}"
        );
    }
}

/// Expects only that line.
#[track_caller]
fn only(line: &str, ended: Ended) -> Ended {
    assert_eq!(ended.stderr, line, "{ended}");
    ended
}

#[test]
fn no_hsa_library_is_loaded() {
    under_rocov(&["cat", "/proc/self/maps"], |ended, line| {
        let maps = only(line, ended.success()).stdout;
        assert!(
            maps.contains("librocov.so"),
            "librocov is not preloaded: {maps}"
        );
        for library in GPU_LIBRARIES {
            assert!(!maps.contains(library), "{library} is loaded: {maps}");
        }
    });
}

#[test]
fn the_loader_is_not_even_asked_for_one() {
    // A failed search for a library would leave no trace in the maps.
    let command = ["env", "LD_DEBUG=libs", "python3", "-c", "print('unharmed')"];
    under_rocov(&command, |ended, _| {
        let ended = ended.success().says(&["librocov.so"]);
        assert_eq!(ended.stdout, "unharmed\n");
        for library in GPU_LIBRARIES {
            assert!(
                !ended.stderr.contains(library),
                "{library} was looked for: {ended}"
            );
        }
    });
}

#[test]
fn output_and_status_are_the_programs_own() {
    let script = "echo out; echo err >&2; exit 42";
    under_rocov(&["sh", "-c", script], |ended, line| {
        let ended = ended.with_status(42);
        assert_eq!(
            (ended.stdout.as_str(), ended.stderr.as_str()),
            ("out\n", &*format!("err\n{line}"))
        );
    });
    under_rocov(&["true"], |ended, line| {
        only(line, ended.success());
    });
}

#[test]
fn a_killed_program_has_the_status_that_a_shell_gives_it() {
    for (signal, number) in [("TERM", 15), ("KILL", 9), ("ABRT", 6)] {
        let script = format!("kill -{signal} $$");
        let shell = run(Command::new("sh").args(["-c", &format!("sh -c '{script}'; exit $?")]));
        assert_eq!(shell.status.code(), Some(128 + number));
        under_rocov(&["sh", "-c", &script], |ended, line| {
            assert_eq!(ended.status.signal(), None, "{ended}");
            only(line, ended.with_status(128 + number));
        });
    }
}
