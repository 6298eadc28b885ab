//! A thread's state after HSA functions that librocov hooks equals that without librocov, also if
//! librocov cannot create a thread.

use std::path::PathBuf;

use crate::programs::{COUNT, WORK_ITEMS, object, on_hsa};
use crate::support::artifacts::{built, names};
use crate::support::command::{limited, run};
use crate::support::gpu::Stack;
use crate::support::profile::{functions, raw_profiles};

/// The hooked functions.
const FUNCTIONS: [&str; 6] = [
    "hsa_init",
    "hsa_executable_freeze",
    "hsa_queue_create",
    "hsa_executable_destroy",
    "hsa_queue_destroy",
    "hsa_shut_down",
];

fn program(name: &str) -> PathBuf {
    on_hsa(name)
        .arguments(["-frounding-math", "-lhsa-runtime64", "-lpthread", "-lm"])
        .output(name)
}

/// Runs the program with librocov in `variable`, and returns its output.
fn said(variable: Option<&str>) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let mut preloaded = built("librocov_modelgpu.so").into_os_string();
    let mut command = limited(program("state"));
    command
        .arg(object("count.hip", Stack::Debian12))
        .env("ROCOV_MODELGPU", "gfx90a")
        .env("LLVM_PROFILE_FILE", data.join("%p.profraw"));
    match variable {
        Some("LD_PRELOAD") => {
            preloaded.push(":");
            preloaded.push(built("librocov.so"));
        }
        Some(variable) => {
            command.env(variable, built("librocov.so"));
        }
        None => {}
    }
    let ended = run(command.env("LD_PRELOAD", preloaded))
        .success()
        .silently();
    let profiles = raw_profiles(&data);
    assert_eq!(profiles.is_empty(), variable.is_none(), "{ended}");
    for profile in profiles {
        assert_eq!(functions(&profile)[COUNT].calls, 2 * WORK_ITEMS);
    }
    ended.stdout
}

#[test]
fn hooked_functions_leave_what_they_leave_without_librocov() {
    let without = said(None);
    for function in FUNCTIONS {
        let is_its = |line: &str| line.starts_with(&format!("{function}("));
        assert!(without.lines().any(is_its), "{function}: {without}");
    }
    // Interposed, and in ROCr's table.
    for variable in ["LD_PRELOAD", "HSA_TOOLS_LIB"] {
        assert_eq!(said(Some(variable)), without, "{variable}");
    }
}

/// A sandbox may forbid new threads. A user who enabled snapshots and requests gets one message,
/// and nothing else changes.
#[test]
fn without_threads_there_are_no_snapshots_and_no_answers() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [data, sockets] = ["data", "sockets"].map(|name| directory.path().join(name));
    let mut command = Stack::Debian12.launcher("gfx90a", &data);
    command
        .arg(program("threadless"))
        .arg(object("count.hip", Stack::Debian12))
        .env("ROCOV_CONTROL", &sockets)
        .env("ROCOV_SNAPSHOT_EVERY", "1s")
        .env("ROCOV_SNAPSHOT_SIGNAL", "USR2");
    let ended = run(&mut command).success();
    assert_eq!(
        ended.stderr,
        "rocov: cannot start a thread: Operation not permitted (os error 1); rocov does not take snapshots or answer requests; raise the limit on threads (ulimit -u)\n"
    );
    assert_eq!(names(&sockets), <[String; 0]>::default());
    let profiles = raw_profiles(&data);
    assert_eq!(profiles.len(), 1, "{ended}");
    assert_eq!(functions(&profiles[0])[COUNT].calls, WORK_ITEMS);
}
