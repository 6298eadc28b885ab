//! llvm-profdata shows the profiles that rocov writes as it shows its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::system::command;

const PROFDATA: &str = "llvm-profdata-22";

/// The output of llvm-profdata for a profile: its functions, sorted, as it prints them in the order of the hash
/// table, and the summary.
fn shown(profile: &Path) -> (Vec<String>, String) {
    let mut show = Command::new(PROFDATA);
    show.args(["show", "--all-functions", "--counts", "--detailed-summary"]);
    let shown = command::output(show.arg(profile)).unwrap().stdout;
    let shown = String::from_utf8(shown).unwrap();
    let (functions, summary) = shown.split_once("Instrumentation level").unwrap();
    let mut shown: Vec<String> = Vec::new();
    for line in functions.lines() {
        match shown.last_mut() {
            Some(function) if line.starts_with("    ") => *function += line,
            _ => shown.push(line.to_owned()),
        }
    }
    shown.sort_unstable();
    (shown, summary.to_owned())
}

/// The raw profile of a program with many functions, compiled with `flags` by clang 22.
fn raw_profile(directory: &TempDir, flags: &[&str], functions: usize) -> PathBuf {
    let path = |name: &str| directory.path().join(name);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/coverage/other.cpp");
    let many: String = (0..functions)
        .map(|number| {
            format!("int function_{number}(int i) {{ return i > 5 && i % 2 ? {number} : i; }}\n")
        })
        .collect();
    let calls: String = (0..functions)
        .filter(|number| number % 3 == 0)
        .map(|number| format!("for (int i = 0; i < {number}; ++i) sum += function_{number}(i);\n"))
        .collect();
    let text = format!(
        "#include \"{source}\"\n{many}int main() {{ int sum = 0;\n{calls} return sum == 1; }}"
    );
    fs::write(path("source.cpp"), text).unwrap();
    let mut clang = Command::new("clang++-22");
    clang.args(flags).args(["-w", "-o"]).arg(path("program"));
    command::output(clang.arg(path("source.cpp"))).unwrap();
    let mut program = Command::new(path("program"));
    program.env("LLVM_PROFILE_FILE", path("raw"));
    command::output(&mut program).unwrap();
    path("raw")
}

#[test]
fn llvm_profdata_shows_equal_counts_and_summaries() {
    let kinds = [
        "-fprofile-instr-generate",
        "-fprofile-generate -mllvm -disable-vp",
    ];
    for kind in kinds {
        let flags: Vec<_> = kind.split(' ').collect();
        // Names of many functions are deflated, those of a few are not.
        for (functions, sparse) in [(0, false), (300, false), (300, true)] {
            let directory = tempfile::tempdir().unwrap();
            let raw = raw_profile(&directory, &flags, functions);
            let mut sum = Sum::of(fs::read(&raw).unwrap()).unwrap();
            sum.add(&fs::read(&raw).unwrap()).unwrap();
            let [ours, theirs] = ["ours", "theirs"].map(|name| directory.path().join(name));
            // Two code objects with the functions add up.
            let profile = IndexedProfile::of([&sum, &sum]).unwrap();
            fs::write(&ours, profile.bytes(sparse).unwrap()).unwrap();
            let mut merge = Command::new(PROFDATA);
            merge.arg("merge").args([&raw; 4]);
            merge.args(sparse.then_some("--sparse"));
            command::output(merge.arg("-o").arg(&theirs)).unwrap();
            let (ours, theirs) = (shown(&ours), shown(&theirs));
            let has_counts = |function: &String| function.contains("Hash: ");
            let known = theirs.0.iter().filter(|it| has_counts(it)).count();
            assert!(known > functions / 4, "{known} of {functions}");
            assert_eq!(ours, theirs, "{kind} {functions} {sparse}");
        }
    }
}

#[test]
fn counts_without_room_have_no_indexed_profile() {
    let directory = tempfile::tempdir().unwrap();
    let flags = [
        "-fprofile-instr-generate",
        "-fcoverage-mapping",
        "-fcoverage-mcdc",
    ];
    let raw = raw_profile(&directory, &flags, 3);
    let with_bitmap = Sum::of(fs::read(&raw).unwrap()).unwrap();
    let front_end = raw_profile(&directory, &flags[..1], 3);
    let front_end = Sum::of(fs::read(&front_end).unwrap()).unwrap();
    let ir = raw_profile(
        &directory,
        &["-fprofile-generate", "-mllvm", "-disable-vp"],
        3,
    );
    let ir = Sum::of(fs::read(&ir).unwrap()).unwrap();
    assert!(IndexedProfile::of([&front_end]).is_some());
    assert!(!with_bitmap.profile().sections.bitmap.is_empty());
    assert!(IndexedProfile::of([&with_bitmap]).is_none());
    assert!(IndexedProfile::of([&front_end, &ir]).is_none());
}
