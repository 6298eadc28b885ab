//! At the end of a program, rocov copies each code object once and writes each file next to it once,
//! on every stack and for every way in.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov::store::layout::is_registry;

use super::closed::library;
use super::opened::loader;
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::code_object;
use crate::support::data::Data;
use crate::support::gpu::{Stack, data};
use crate::support::program::{Program, TARGET};
use crate::support::spec::expand;

/// One way in: its name, the words of its command line, and its number of instrumented code
/// objects.
type Way = (&'static str, Vec<OsString>, usize);

fn ways(stack: Stack, directory: &Path) -> Vec<Way> {
    let linked = Program::build(stack, &["endings/endings.hip"], &[], &["-ldl"]).file;
    let libraries = ["tally_one", "tally_two"].map(|kernel| library(stack, kernel));
    let mut opened: Vec<OsString> = vec![loader().into(), "keep".into(), "local".into()];
    opened.extend(libraries.map(OsString::from));
    let spec = expand(&repository("testdata/kernels/collatz.spec"), directory);
    let version = stack.code_object_version();
    let module = code_object("collatz", TARGET, "-O1", version);
    let runner = stack
        .runner(TARGET, directory)
        .get_args()
        .last()
        .expect("the runner")
        .to_owned();
    let mut never_unloaded = vec![runner, "--keep-loaded".into()];
    never_unloaded.extend([module, spec, directory.to_owned()].map(OsString::from));
    vec![
        ("linked", vec![linked.into(), "return".into()], 1),
        ("opened", opened, 2),
        ("a module", never_unloaded, 1),
    ]
}

/// The number of renames to each file below `data`, from strace's log.
fn written(log: &Path, data: &Path) -> BTreeMap<PathBuf, usize> {
    let log = std::fs::read_to_string(log).expect("strace's log");
    let mut written = BTreeMap::new();
    for line in log.lines().filter(|line| line.ends_with(" = 0")) {
        // rename("FROM", "TO") and its variants.
        let Some(to) = line.split('"').nth(3).map(PathBuf::from) else {
            continue;
        };
        if to.starts_with(data) {
            *written.entry(to).or_default() += 1;
        }
    }
    written
}

#[test]
fn each_code_object_is_copied_once_and_each_file_written_once() {
    for stack in Stack::for_programs() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (number, (way, words, objects)) in ways(stack, directory.path()).into_iter().enumerate()
        {
            let what = format!("{way} on {stack:?}");
            let data = data(&directory.path().join(number.to_string()));
            let log = directory.path().join(format!("{number}.strace"));
            let launcher = stack.launcher(TARGET, &data);
            let mut command = under_strace(&launcher, &log);
            let ended = run(command.args(words).env("ROCOV_VERBOSE", "1"));
            let copied = ended
                .stderr
                .matches("rocov: Copied device sections")
                .count();
            assert_eq!(copied, objects, "{what}: {ended}");
            let found = Data::read(&data);
            assert_eq!(found.profiles.len(), objects, "{what}: {ended}");
            assert_eq!(found.registries.len(), 1, "{what}: {ended}");
            let written = written(&log, &data);
            // Profiles, device ELFs and the registry.
            assert_eq!(written.len(), 2 * objects + 1, "{what}: {written:?}");
            // `rocov run` completes the registry of a program with fat binaries when the program has ended.
            let is_completed = |path: &Path| is_registry(path) && way != "a module";
            let expected = |path: &Path| if is_completed(path) { 2 } else { 1 };
            assert!(
                written.iter().all(|(path, times)| *times == expected(path)),
                "{what}: {written:?}"
            );
        }
    }
}

/// Logs in `log` the files that `command` puts in place. The kernel stops it at no other call: the modelled GPU makes
/// thousands of those.
fn under_strace(command: &Command, log: &Path) -> Command {
    let mut traced = limited("strace");
    traced.args([
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-e",
        "trace=/^rename.*|^link.*",
        "-e",
        "signal=none",
        "-o",
    ]);
    traced.arg(log).arg("timeout").args(command.get_args());
    traced
}
