//! A program that is compiled with LLVM's documented flags has no atomic additions: half of its lines are reported as
//! not run. Each command prints that its counts are too low.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::support::artifacts::built;
use crate::support::command::{Ended, limited, run};
use crate::support::gpu::Stack;
use crate::support::json::json;
use crate::support::program::{Program, TARGET};

const SOURCE: &str = "non_atomic/both.hip";

/// A part of each line about it.
const LINE: &str = "adds to its counters without atomic operations: counts are too low";
const FLAG: &str = "-fprofile-update=atomic";

/// The program by LLVM's documented flags and `more`.
fn program(flags: &[&str], more: &[&str]) -> Program {
    let flags: Vec<OsString> = flags.iter().map(Into::into).collect();
    Program::with_flags(Stack::usual(), &[SOURCE], &flags, more, &[])
}

fn coverage_program(more: &[&str]) -> Program {
    program(&["-fprofile-instr-generate", "-fcoverage-mapping"], more)
}

fn rocov(arguments: &[&str], paths: &[&Path]) -> Ended {
    run(limited(built("rocov")).args(arguments).args(paths))
}

/// The number of lines that have this part.
fn lines_with(text: &str, part: &str) -> usize {
    text.lines().filter(|line| line.contains(part)).count()
}

struct Ran {
    _directory: tempfile::TempDir,
    data: PathBuf,
    ended: Ended,
}

/// Two processes of the program, as one strict run.
fn ran(program: &Program) -> Ran {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let twice = format!("{0} && {0}", program.file.display());
    let mut command = limited(built("rocov"));
    command
        .args(["run", "--strict", "--gpu", &format!("model:{TARGET}"), "-o"])
        .arg(&data)
        .args(["--", "sh", "-c", &twice]);
    Ran {
        ended: run(&mut command),
        data,
        _directory: directory,
    }
}

#[test]
fn a_run_and_its_reports_name_the_flag() {
    let program = coverage_program(&[]);
    let Ran { data, ended, .. } = &ran(&program);
    // A loss, in one line for both processes, with the file's name.
    assert_eq!(ended.status.code(), Some(3), "{ended}");
    assert_eq!(lines_with(&ended.stderr, LINE), 1, "{ended}");
    let name = program.file.file_name().expect("a name").to_string_lossy();
    for part in [FLAG, &*name] {
        assert_eq!(lines_with(&ended.stderr, part), 1, "{part}: {ended}");
    }

    let table = rocov(&["report"], &[data]).success();
    assert_eq!(lines_with(&table.stderr, LINE), 1, "{table}");
    assert_eq!(lines_with(&table.stdout, FLAG), 1, "{table}");
    let markdown = rocov(&["report", "--markdown"], &[data]).success();
    assert_eq!(lines_with(&markdown.stdout, FLAG), 1, "{markdown}");
    let report = json(&rocov(&["report", "--json"], &[data]).success().stdout);
    assert_eq!(report["rocov"]["columns"][0]["non_atomic"], 1);
    let pages = data.with_file_name("pages");
    rocov(&["report", "--html"], &[&pages, data]).success();
    let page = std::fs::read_to_string(pages.join("index.html")).expect("a page");
    assert_eq!(lines_with(&page, FLAG), 1);

    // The gate would hold.
    let gate = rocov(&["report", "--fail-under-lines", "1"], &[data]);
    assert_eq!(gate.status.code(), Some(3), "{gate}");
    let broken = "gate: 1 code object with counts that are too low: see above";
    assert_eq!(lines_with(&gate.stderr, broken), 1, "{gate}");

    let doctor = rocov(&["doctor"], &[&program.file]);
    assert_eq!(lines_with(&doctor.stdout, FLAG), 1, "{doctor}");
}

#[test]
fn clang_optimizes_by_such_counts_only_if_asked_to() {
    let front_end = coverage_program(&[]);
    let of_ir = program(
        &["-Xarch_device", "-fprofile-generate"],
        &["-mllvm", "-disable-vp"],
    );
    for program in [front_end, of_ir] {
        let Ran { data, ended, .. } = &ran(&program);
        assert_eq!(lines_with(&ended.stderr, LINE), 1, "{ended}");
        let out = data.with_file_name("pgo");
        let refused = rocov(&["merge", "--pgo"], &[&out, data]);
        assert_eq!(refused.status.code(), Some(1), "{refused}");
        for part in [LINE, FLAG, "--allow-non-atomic"] {
            assert_eq!(lines_with(&refused.stderr, part), 1, "{refused}");
        }
        assert!(!out.exists(), "{refused}");
        let allowed = rocov(&["merge", "--allow-non-atomic", "--pgo"], &[&out, data]).success();
        assert_eq!(lines_with(&allowed.stderr, LINE), 1, "{allowed}");
        assert!(out.join(format!("{TARGET}.profdata")).exists(), "{allowed}");
    }
}

#[test]
fn with_the_flag_nothing_is_printed() {
    let program = coverage_program(&[FLAG]);
    let Ran { data, ended, .. } = &ran(&program);
    assert_eq!(ended.status.code(), Some(0), "{ended}");
    assert_eq!(lines_with(&ended.stderr, LINE), 0, "{ended}");
    let gate = rocov(&["report", "--fail-under-lines", "1"], &[data]).success();
    assert_eq!(lines_with(&gate.stderr, LINE), 0, "{gate}");
    assert_eq!(lines_with(&gate.stdout, FLAG), 0, "{gate}");
    let out = data.with_file_name("pgo");
    rocov(&["merge", "--pgo"], &[&out, data]).success();
    let doctor = rocov(&["doctor"], &[&program.file]);
    assert_eq!(lines_with(&doctor.stdout, FLAG), 0, "{doctor}");
}
