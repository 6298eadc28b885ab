//! Each release of LLVM that knows the version of a merged profile reads in it what llvm-profdata would have merged.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use rocov_tests::cli::release::Release;
use rocov_tests::cli::{run, stdout};

use crate::merge::Place;

/// The releases, each with the last version of indexed profiles that it reads.
const READERS: [(u32, u64); 4] = [(15, 8), (19, 12), (22, 13), (23, 14)];
/// The most conditions of a decision.
const CONDITIONS: usize = 40;
/// The number of functions without decisions. Each has up to 70 counters.
const FUNCTIONS: usize = 300;

/// A program with functions of all sizes.
fn source() -> String {
    let mut text = String::from("static bool bits[64];\n");
    let mut calls = String::new();
    for number in 0..=CONDITIONS {
        let conditions: Vec<_> = (0..number).map(|bit| format!("bits[{bit}]")).collect();
        let all = if number == 0 {
            "true".to_owned()
        } else {
            conditions.join(" && ")
        };
        writeln!(text, "bool all_{number}() {{ return {all}; }}").unwrap();
        writeln!(calls, "  sum += all_{number}();").unwrap();
    }
    for number in 0..FUNCTIONS {
        writeln!(text, "int plain_{number}(int i) {{").unwrap();
        for branch in 0..number % 70 {
            writeln!(text, "  if (i == {branch}) return {branch};").unwrap();
        }
        writeln!(text, "  return i;\n}}").unwrap();
        if number % 3 != 0 {
            writeln!(calls, "  sum += plain_{number}(i % 80);").unwrap();
        }
    }
    write!(
        text,
        "int main() {{ int sum = 0;\n for (int i = 0; i < 1000; ++i) {{\n  bits[i * 7 % 64] = i % 5 != 0;\n\
         {calls} }}\n return sum == 1; }}\n"
    )
    .unwrap();
    text
}

/// The text form of a profile by a release, in an order of its own.
fn text(release: &Release, profile: &Path) -> Vec<String> {
    let mut merge = Command::new(release.program("llvm-profdata"));
    merge.args(["merge", "--text", "-o", "-"]).arg(profile);
    let text = stdout(&run(&mut merge));
    let mut functions: Vec<_> = text.split("# Func Hash:").map(str::to_owned).collect();
    functions.sort_unstable();
    functions
}

#[test]
fn every_release_reads_what_was_merged() {
    for (number, _) in READERS {
        let Some(release) = Release::find(number, "merged profiles of all sizes") else {
            continue;
        };
        // Debian has no runtime of profiles for LLVM 19. That of 22 writes the same raw version.
        let linker = if number == 19 { 22 } else { number };
        let linker = Release::find(linker, "merged profiles of all sizes").unwrap();
        let place = Place::new();
        fs::write(place.path("main.cpp"), source()).unwrap();
        let clang = |release: &Release| {
            let mut clang = Command::new(release.program("clang++"));
            clang
                .current_dir(place.path(""))
                .arg("-fprofile-instr-generate");
            clang
        };
        let mut compile = clang(&release);
        compile.args(["-w", "-fcoverage-mapping", "-c", "main.cpp", "-o", "main.o"]);
        compile.args((number > 15).then_some("-fcoverage-mcdc"));
        run(&mut compile);
        run(clang(&linker).args(["main.o", "-o", "main"]));
        fs::create_dir(place.path("runs")).unwrap();
        for name in ["one", "two"] {
            let raw = place.path("runs").join(name).with_extension("profraw");
            run(Command::new(place.path("main")).env("LLVM_PROFILE_FILE", raw));
        }
        let merged = |options: &[&str]| {
            let theirs = place.path("theirs.profdata");
            let mut merge = Command::new(release.program("llvm-profdata"));
            merge.current_dir(place.path("")).arg("merge").args(options);
            merge.args(["runs/one.profraw", "runs/two.profraw", "-o"]);
            run(merge.arg(&theirs));
            theirs
        };
        for (arguments, written, options) in [
            (&["-o", "merged.profdata"][..], "merged.profdata", &[][..]),
            (
                &["-o", "sparse.profdata", "--sparse"],
                "sparse.profdata",
                &["--sparse"],
            ),
            (&["-o", "directory"], "directory/host.profdata", &[]),
            (&["--pgo", "pgo", "--quiet"], "pgo/host.profdata", &[]),
        ] {
            let arguments = [&["runs"], arguments].concat();
            place.merged(&arguments);
            let ours = place.path(written);
            let bytes = fs::read(&ours).unwrap();
            let version = u64::from_le_bytes(bytes[8..16].try_into().unwrap()) & 0xff_ffff;
            let theirs = merged(options);
            let expected = text(&release, &theirs);
            for (reader, last) in READERS {
                let what = format!("{arguments:?} of clang {number}, read by {reader}");
                if version > last {
                    continue;
                }
                if let Some(reader) = Release::find(reader, "merged profiles of all sizes") {
                    assert_eq!(text(&reader, &ours), expected, "{what}");
                }
            }
            let export = |profile: &Path| {
                let mut export = Command::new(release.program("llvm-cov"));
                export.args(["export", "-instr-profile"]).arg(profile);
                stdout(&run(export.arg(place.path("main"))))
            };
            assert_eq!(
                export(&ours),
                export(&theirs),
                "{arguments:?} of clang {number}"
            );
        }
    }
}
