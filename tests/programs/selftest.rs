//! `rocov selftest`: all steps hold on each HIP, and each planted fault is found at its own step, with what was
//! expected and what to do next.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::artifacts::built;
use crate::support::command::{Ended, limited, run};
use crate::support::compilers::Compiler;
use crate::support::gpu::Stack;
use crate::support::program::TARGET;
use crate::support::unpacked::not_run;

/// The steps in their order.
const STEPS: [&str; 10] = [
    "GPU",
    "compiler",
    "flags",
    "compile",
    "instrumentation",
    "start",
    "preload",
    "run",
    "drain",
    "merge",
];
/// The last one.
const COUNTS: &str = "counts";

/// `rocov selftest OPTIONS -- FLAGS` with the usual compiler, on Debian 12's HIP.
fn selftest(options: &[&str], flags: &[&str]) -> Ended {
    let mut command = limited(built("rocov"));
    command.arg("selftest").args(options);
    if !options.contains(&"--clang") {
        command.args(["--clang", Compiler::usual().clang]);
    }
    command.arg("--").args(Stack::Debian12.flags()).args(flags);
    run(&mut command)
}

/// `rocov selftest` on the modelled GPU.
fn on_model(options: &[&str], flags: &[&str]) -> Ended {
    selftest(&[&["--gpu", "model"], options].concat(), flags)
}

/// The steps that hold.
fn held(ended: &Ended) -> Vec<&str> {
    let lines = ended.stdout.lines();
    let held = lines.filter_map(|line| line.strip_prefix("ok       "));
    held.filter_map(|line| Some(line.split_once(": ")?.0))
        .collect()
}

/// Expects that this step is the first wrong one, and that its three lines have these words.
#[track_caller]
fn is_wrong(ended: &Ended, step: &str, found: &str, expected: &str, remedy: &str) {
    assert_eq!(ended.status.code(), Some(1), "{ended}");
    assert_eq!(ended.stderr, "", "{ended}");
    let before: Vec<_> = STEPS.into_iter().take_while(|name| *name != step).collect();
    assert_eq!(held(ended), before, "{ended}");
    let lines: Vec<_> = ended.stdout.lines().skip(before.len()).collect();
    let [wrong, wanted, next] = lines[..] else {
        panic!("no three lines about a wrong step: {ended}");
    };
    let starts = |line: &str, start: &str| line.starts_with(start);
    assert!(starts(wrong, &format!("WRONG    {step}: ")), "{ended}");
    assert!(starts(wanted, "         expected: "), "{ended}");
    assert!(starts(next, "         -> "), "{ended}");
    for (line, words) in [(wrong, found), (wanted, expected), (next, remedy)] {
        assert!(line.contains(words), "no {words:?} in {line}: {ended}");
    }
}

/// A program that a shell interprets.
fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).expect("a file can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    path
}

/// A compiler that drops the flags that match a pattern of a shell, with the word before that passes them on.
fn dropping(directory: &Path, pattern: &str) -> String {
    let clang = Compiler::usual().clang;
    let text = format!(
        "#!/bin/bash\nkept=()\nfor word; do\n  case $word in\n    {pattern}) unset 'kept[-1]' ;;\n    *) kept+=(\"$word\") ;;\n  \
         esac\ndone\nexec {clang} \"${{kept[@]}}\"\n"
    );
    script(directory, "compiler", &text).display().to_string()
}

/// A compiler that compiles another text than it is given.
fn replacing(directory: &Path, from: &str, to: &str) -> String {
    let clang = Compiler::usual().clang;
    let text = format!(
        "#!/bin/sh\nfor word; do case $word in *.hip) sed -i 's/{from}/{to}/' \"$word\" ;; esac; done\nexec {clang} \"$@\"\n"
    );
    script(directory, "compiler", &text).display().to_string()
}

#[test]
fn all_steps_hold_on_each_stack() {
    for stack in Stack::for_programs() {
        let launcher = stack.starter().join(&OsString::from(" "));
        let mut command = limited(built("rocov"));
        command.args(["selftest", "--gpu", &format!("model:{TARGET}")]);
        command.args(["--clang", stack.compiler().clang]);
        if !launcher.is_empty() {
            command.arg("--launcher").arg(launcher);
        }
        let ended = run(command.arg("--").args(stack.flags()))
            .success()
            .silently();
        let all: Vec<_> = STEPS.into_iter().chain([COUNTS]).collect();
        assert_eq!(held(&ended), all, "{ended}");
        let last = "counts: 17 lines, each with the expected count (0 to 2700)\n";
        assert!(ended.stdout.ends_with(last), "{ended}");
    }
}

#[test]
fn counters_of_reached_code_are_compared_as_such() {
    let ended = on_model(&["--counters", "reached"], &[])
        .success()
        .silently();
    let last = "counts: 17 lines, each reached or not, as expected\n";
    assert!(ended.stdout.ends_with(last), "{ended}");
}

#[test]
fn files_are_kept_if_they_are_wanted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kept = directory.path().join("kept");
    let output = kept.display().to_string();
    on_model(&["--output", &output], &[]).success();
    for name in [
        "selftest",
        "selftest.hip",
        "data",
        "selftest.profdata",
        "selftest.info",
    ] {
        assert!(kept.join(name).exists(), "{name}");
    }
    let again = on_model(&["--output", &output], &[]).with_status(1);
    again.says(&["kept is not empty: name a new directory with --output"]);
}

#[test]
fn a_compiler_that_ignores_the_flags() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let compiler = dropping(directory.path(), "-fprofile-*|-fcoverage-*");
    let ended = on_model(&["--compiler", &compiler], &[]);
    is_wrong(
        &ended,
        "instrumentation",
        "1 code object, none instrumented",
        "instrumented code with a coverage mapping",
        "look for a wrapper, a ccache or an options file",
    );
}

#[test]
fn a_compiler_that_drops_atomic_updates() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let compiler = dropping(directory.path(), "-fprofile-update=*");
    let ended = on_model(&["--compiler", &compiler, "--counters", "llvm"], &[]);
    is_wrong(
        &ended,
        "instrumentation",
        "are not atomic: counts are too low",
        "instrumented code",
        "The command was `",
    );
}

#[test]
fn a_compiler_that_is_not_there_or_does_not_compile() {
    let ended = on_model(&["--clang", "/nonexistent/clang++"], &[]);
    is_wrong(
        &ended,
        "compiler",
        "/nonexistent/clang++",
        "clang++ or amdclang++, 15 or later",
        "`rocov doctor` lists",
    );
    let ended = on_model(&[], &["-fno-such-flag"]);
    is_wrong(
        &ended,
        "compile",
        "unknown argument: '-fno-such-flag'",
        "a program",
        "add the flags that your own programs need after `--`",
    );
}

/// The program is linked with a runtime that is not there when it runs.
#[test]
fn a_runtime_that_is_missing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut link = Command::new("cc");
    link.args([
        "-shared",
        "-Wl,-soname,libamdhip64.so.99",
        "-x",
        "c",
        "/dev/null",
        "-o",
    ]);
    run(link.arg(directory.path().join("libamdhip64.so"))).success();
    let place = format!("-L{}", directory.path().display());
    let ended = on_model(&[], &[&place, "-Wl,--unresolved-symbols=ignore-all"]);
    is_wrong(
        &ended,
        "start",
        "libamdhip64.so.99: cannot open shared object file",
        "the program starts",
        "install the runtime",
    );
}

#[test]
fn a_preload_that_is_stripped() {
    let ended = on_model(&["--launcher", "env -u LD_PRELOAD"], &[]);
    is_wrong(
        &ended,
        "preload",
        "librocov is not in the process",
        "LD_PRELOAD",
        "look for a launcher, a script or a container that drops LD_PRELOAD",
    );
}

#[test]
fn a_gpu_that_computes_something_else() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let compiler = replacing(directory.path(), "sum += step;", "sum += 2;");
    let ended = on_model(&["--compiler", &compiler], &[]);
    is_wrong(
        &ended,
        "run",
        "item 1 is 12 instead of 6",
        "its results are right",
        "without rocov",
    );
}

#[test]
fn counts_that_are_wrong() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let compiler = replacing(directory.path(), "Launches = 3", "Launches = 2");
    let ended = on_model(&["--compiler", &compiler], &[]);
    is_wrong(
        &ended,
        COUNTS,
        "has 200; 16 of 17 lines are wrong",
        "300",
        "counts are lost",
    );
}

/// Counters of one byte without the word that says so.
#[test]
fn a_drain_that_loses_counts() {
    let flags = [
        "-Xclang",
        "-mllvm",
        "-Xclang",
        "-enable-single-byte-coverage",
    ];
    let ended = on_model(&["--counters", "llvm"], &flags);
    is_wrong(
        &ended,
        "drain",
        "not a multiple of 8",
        "a profile of the kernel, and no loss",
        "`rocov run -v` prints each step of the drain",
    );
}

#[test]
fn a_machine_without_a_gpu() {
    if Path::new("/dev/kfd").exists() || Path::new("/dev/nvidiactl").exists() {
        not_run("a machine without a GPU: this one has one");
        return;
    }
    is_wrong(
        &selftest(&[], &[]),
        "GPU",
        "no /dev/kfd",
        "a GPU that this user may use",
        "use --gpu model",
    );
}
