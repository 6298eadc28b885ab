//! Host code together with that of GPUs.

use super::*;
use crate::report::archs::lcov_lines;

/// The export of llvm-cov for an object with one raw profile.
fn export(place: &Place, object: &Path, profile: &Path) -> serde_json::Value {
    let merged = place.path().join("expected.profdata");
    let mut merge = Command::new("llvm-profdata-22");
    run(merge.arg("merge").arg(profile).arg("-o").arg(&merged));
    let mut export = Command::new("llvm-cov-22");
    export.args(["export", "-instr-profile"]).arg(merged);
    json(run(export.arg(object)).stdout)["data"][0].clone()
}

/// Compiles `both.hip` as a program of the host.
fn for_the_host(place: &Place, name: &str, flags: &[&str]) -> PathBuf {
    let program = place.path().join(name);
    let mut clang = Command::new("clang++-22");
    clang.args(flags).args(["-x", "c++"]).arg(data("both.hip"));
    run(clang.arg("-o").arg(&program));
    program
}

#[test]
fn a_function_of_both_sides_has_the_counts_of_each() {
    let place = Place::new();
    let source = data("both.hip");
    let elf = compile_source(&source, place.path(), "both.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    let device = place.profile(&elf, "gfx90a", 0, 7);
    let program = for_the_host(&place, "both", &INSTRUMENTED);
    let host = place.data().join("4711.profraw");
    run(Command::new(&program).env("LLVM_PROFILE_FILE", &host));

    let output = place.report(&[&"--json", &"--host-binary", &program]);
    assert_eq!(stderr(&output), "");
    let found = json(output.stdout);
    for (index, (name, object, profile)) in [("gfx90a", &elf, &device), ("host", &program, &host)]
        .into_iter()
        .enumerate()
    {
        assert_eq!(found["rocov"]["columns"][index]["name"], name);
        let expected = export(&place, object, profile);
        for part in ["totals", "functions", "files"] {
            assert_eq!(found["data"][index][part], expected[part], "{name} {part}");
        }
    }
    // `if (value % 2 != 0)`: 7 times on the GPU, and not 2 more on the host.
    let lines = lcov_lines(&stdout(&place.report(&[
        &"--lcov",
        &"--host-binary",
        &program,
    ])));
    assert!(lines.contains(&(11, 7)), "{lines:?}");
    // The GPU has no counts of `main`.
    assert!(lines.contains(&(23, 1)), "{lines:?}");
}

/// LLVM's runtime makes the file of a process at its start, so a process that was killed leaves an empty one.
#[test]
fn a_killed_process_takes_only_its_own_host_counts_along() {
    let place = Place::new();
    let source = data("both.hip");
    let elf = compile_source(&source, place.path(), "both.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    place.profile(&elf, "gfx90a", 0, 7);
    let program = for_the_host(&place, "both", &INSTRUMENTED);
    let killed = place.data().join("4712.profraw");
    fs::write(&killed, "").expect("a file can be written");
    let message = failure(&place.report(&[&"--host-binary", &program]), 1);
    assert!(
        message.contains("killed or aborted: run them again"),
        "{message}"
    );

    let host = place.data().join("4711.profraw");
    run(Command::new(&program).env("LLVM_PROFILE_FILE", &host));
    let output = place.report(&[&"--lcov", &"--host-binary", &program]);
    let message = stderr(&output);
    assert!(
        message.contains("the host counts of 1 process"),
        "{message}"
    );
    assert!(message.contains("4712.profraw"), "{message}");
    let lines = lcov_lines(&stdout(&output));
    assert!(lines.contains(&(23, 1)), "{lines:?}");

    // A gate does not hold without them.
    let output = place.report(&[&"--fail-under-lines=1", &"--host-binary", &program]);
    assert_eq!(output.status.code(), Some(3));
    let message = stderr(&output);
    assert!(message.contains("gate: host counts"), "{message}");
    // They are of no interest to a report of device code.
    let output = place.report(&[&"--fail-under-lines=1"]);
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_program_without_host_coverage_gets_the_flags_of_host_code() {
    let place = Place::new();
    let source = data("both.hip");
    let elf = compile_source(&source, place.path(), "both.elf", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    place.profile(&elf, "gfx90a", 0, 7);
    let programs = [("plain", &[][..]), ("counted", &INSTRUMENTED[..])];
    let [plain, counted] = programs.map(|(name, flags)| for_the_host(&place, name, flags));
    let host = place.data().join("4711.profraw");
    run(Command::new(&counted).env("LLVM_PROFILE_FILE", &host));
    let message = failure(&place.report(&[&"--host-binary", &plain]), 1);
    assert!(
        message.contains("compile it with the flags that `rocov flags --host` prints"),
        "{message}"
    );
}
