//! Process ids repeat: in containers, on other hosts, and in time. No process replaces a file of another, and every count
//! stays.

use std::path::Path;
use std::process::Command;

use rocov::store::layout::PROFRAW;

use crate::support::artifacts::{built, names};
use crate::support::command::{limited, run};
use crate::support::data::Data;
use crate::support::gpu::{Stack, data};
use crate::support::profile::{merge, raw_profiles};
use crate::support::program::{Program, TARGET, counts};
use crate::support::unpacked::not_run;

/// Calls of the kernel in one launch.
const CALLS: u64 = 256;

/// Runs of one directory.
const RUNS: u64 = 3;

fn guest() -> Program {
    Program::build(Stack::usual(), &["guest/guest.hip"], &[], &["-ldl"])
}

/// Starts a command in a namespace of process ids of its own, as in a container. `None` if the system does not let this
/// user have one.
fn in_namespace() -> Option<Command> {
    let words = ["--pid", "--fork", "--mount-proc", "--"];
    let tried = Command::new("unshare").args(words).arg("true").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        not_run("namespaces of process ids: unshare is missing, or this user may not have them");
        return None;
    }
    let mut command = limited("unshare");
    command.args(words);
    Some(command)
}

/// Expects the counts of this number of launches in a data directory, in files whose number is `files`.
#[track_caller]
fn has_launches(data: &Path, launches: u64, files: usize) {
    let profiles = raw_profiles(data);
    assert_eq!(profiles.len(), files, "{profiles:?}");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let merged = directory.path().join("merged.profdata");
    merge(&profiles, &merged);
    assert_eq!(counts(&merged, "counted"), (CALLS * launches, vec![]));
}

#[test]
fn containers_share_a_directory() {
    let program = guest();
    for label in [None, Some("a/b")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = data(directory.path());
        for _ in 0..RUNS {
            let Some(mut command) = in_namespace() else {
                return;
            };
            command
                .arg(built("rocov"))
                .args(["run", "--strict", "--gpu"]);
            command.arg(format!("model:{TARGET}")).arg("-o").arg(&data);
            command.args(label.map(|label| ["--label", label]).into_iter().flatten());
            command.arg("--").arg(&program.file).arg("run");
            run(&mut command).success().silently();
        }
        let folder = label.map_or(PROFRAW.into(), |label| format!("{PROFRAW}/labels/{label}"));
        has_launches(&data.join(folder), RUNS, RUNS as usize);
        let registries = names(&data.join("registry"));
        assert_eq!(registries.len(), RUNS as usize, "{registries:?}");
    }
}

/// The system gives a number to a later process.
#[test]
fn a_number_comes_again() {
    let program = guest();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = data(directory.path());
    let Some(mut command) = in_namespace() else {
        return;
    };
    let run_again = format!(
        "for i in 1 2 3; do\n\
         echo 300 > /proc/sys/kernel/ns_last_pid || exit 77\n\
         {} run --strict --gpu model:{TARGET} -o {} -- {} run || exit 1\n\
         done",
        built("rocov").display(),
        data.display(),
        program.file.display()
    );
    let ended = run(command.args(["sh", "-c", &run_again]));
    if ended.status.code() == Some(77) {
        println!("not run: process ids that come again: this user may not set ns_last_pid");
        return;
    }
    ended.success().silently();
    has_launches(&data.join(PROFRAW), RUNS, RUNS as usize);
    let data = Data::read(&data);
    let numbers: std::collections::BTreeSet<_> = data
        .registries
        .iter()
        .map(|registry| registry.processes[0].pid)
        .collect();
    assert_eq!(numbers.len(), 1, "one number: {numbers:?}");
}

/// A pattern with %p alone has a word of the process, too. One without %p names one file, which stays.
#[test]
fn no_pattern_replaces_a_file_of_another_process() {
    let program = guest();
    for (pattern, is_told) in [
        ("%p.profraw", false),
        ("all.profraw", true),
        ("%m.profraw", false),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = directory.path().join("cov");
        for number in 0..RUNS {
            let Some(mut command) = in_namespace() else {
                return;
            };
            command
                .arg(built("rocov"))
                .args(["run", "--strict", "--gpu"]);
            command.arg(format!("model:{TARGET}")).arg("--");
            command.arg(&program.file).arg("run");
            let ended = run(command.env("LLVM_PROFILE_FILE", place.join(pattern))).success();
            match is_told && number > 0 {
                false => _ = ended.silently(),
                true => {
                    let first = raw_profiles(&place)
                        .into_iter()
                        .min_by_key(|path| path.as_os_str().len())
                        .expect("a profile");
                    let line = format!(
                        "rocov: {} is the profile of another process, so rocov keeps it: the counts of this process \
                        are in ",
                        first.display()
                    );
                    assert!(ended.stderr.starts_with(&line), "{ended}");
                    assert_eq!(ended.stderr.lines().count(), 1, "{ended}");
                }
            }
        }
        let files = if pattern == "%m.profraw" {
            1
        } else {
            RUNS as usize
        };
        has_launches(&place, RUNS, files);
        let registries = Data::read(&place).registries;
        let processes: usize = registries
            .iter()
            .map(|registry| registry.processes.len())
            .sum();
        assert_eq!(processes, RUNS as usize, "{pattern}");
    }
}

/// Number 1 always runs here. In the container it is that of a process that was killed.
#[test]
fn a_kill_in_a_container_is_told() {
    let program = Program::build(Stack::usual(), &["endings/endings.hip"], &[], &["-ldl"]);
    if in_namespace().is_none() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = limited(built("rocov"));
    command
        .args(["run", "--strict", "--gpu"])
        .arg(format!("model:{TARGET}"));
    command.arg("-o").arg(data(directory.path())).arg("--");
    command.args([
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "--",
        "sh",
        "-c",
    ]);
    // The first process of a namespace takes no signals.
    let ended = run(command.arg(format!("{} abort; true", program.file.display())));
    ended
        .with_status(3)
        .says(&["before its counters were drained: they are lost"]);
}
