//! `rocov run`: what the program gets from its surroundings, and what its caller gets from it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use rocov_tests::cli::{DRAIN, MODEL_GPU, empty_libraries, failure, rocov, run, stderr, stdout};
use rocov_tests::command::no_use;
use tempfile::TempDir;

/// A directory to run in and libraries to preload.
struct Place {
    libraries: TempDir,
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            libraries: empty_libraries(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// `rocov run` with `options`, in the place's directory.
    fn command(&self, options: &[&str]) -> Command {
        let mut command = rocov();
        command
            .env("ROCOV_LIBRARY_DIR", self.libraries.path())
            .current_dir(self.directory.path())
            .arg("run")
            .args(options);
        command
    }

    /// Runs a shell script.
    fn script(&self, options: &[&str], script: &str) -> Output {
        self.command(options)
            .args(["--", "sh", "-c", script])
            .output()
            .unwrap()
    }

    fn library(&self, name: &str) -> String {
        let path = self.libraries.path().canonicalize().unwrap().join(name);
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn a_strict_run_fails_if_counts_are_lost_or_missing() {
    let place = Place::new();
    let write =
        |words: &str| format!("for word in {words}; do echo $$ $word >> $ROCOV_JOURNAL; done");
    for (words, status) in [
        ("", 3),
        ("hip loaded counts wrote ended", 0),
        ("hip loaded counts wrote lost ended", 3),
        ("hip loaded counts", 3),
        ("hip loaded ended", 3),
    ] {
        let output = place.script(&["--strict"], &write(words));
        assert_eq!(output.status.code(), Some(status), "{words}");
        assert_eq!(stderr(&output).is_empty(), status == 0, "{words}");
        let output = place.script(&[], &write(words));
        assert_eq!(output.status.code(), Some(0), "{words}");
    }
    let output = place.script(&["--strict"], "exit 7");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn the_exit_status_is_the_programs() {
    let place = Place::new();
    for status in [0, 1, 2, 42, 125, 255] {
        let output = place.script(&[], &format!("exit {status}"));
        assert_eq!(output.status.code(), Some(status));
        // Nobody knows better whether it should have used one.
        assert_eq!(stderr(&output), format!("rocov: {}\n", no_use(None)));
    }
}

#[test]
fn a_program_ended_by_a_signal_gives_128_and_its_number() {
    let place = Place::new();
    for (signal, status) in [("KILL", 137), ("TERM", 143), ("SEGV", 139), ("INT", 130)] {
        // A signal that the caller ignores, as shells make background jobs do with SIGINT, would
        // end nothing; and sh cannot take that back itself.
        let script = format!("ulimit -c 0; kill -{signal} $$");
        let output = place
            .command(&["--", "env", "--default-signal", "sh", "-c", &script])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{signal}");
    }
}

#[test]
fn a_program_that_cannot_be_started_has_the_statuses_of_env() {
    let place = Place::new();
    let missing = place.command(&["--", "no-such-program"]).output().unwrap();
    let message = failure(&missing, 127);
    assert!(message.contains("no-such-program"), "{message}");

    let directory = place.directory.path().to_str().unwrap();
    let not_executable = place.command(&["--", directory]).output().unwrap();
    let message = failure(&not_executable, 126);
    assert!(message.contains(directory), "{message}");
}

#[test]
fn usage_errors_have_status_2_and_say_what_is_allowed() {
    let place = Place::new();
    for options in [
        &["--gpu", "real", "--", "true"][..],
        &["--gpu", "model:gfx900", "--", "true"],
    ] {
        let output = place.command(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("allowed: "), "{}", stderr(&output));
    }
    for options in [&[][..], &["--"], &["--no-such-option", "--", "true"]] {
        let output = place.command(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn options_after_the_program_are_its_own() {
    let place = Place::new();
    let output = place
        .command(&["--", "echo", "--gpu", "x", "--help", "--", "-v"])
        .output()
        .unwrap();
    assert_eq!(stdout(&output), "--gpu x --help -- -v\n");
}

const SHOW_ENVIRONMENT: &str =
    r#"echo "$LD_PRELOAD|$LLVM_PROFILE_FILE|${ROCOV_DATA-unset}|${ROCOV_MODELGPU-unset}""#;

/// A text with RUN instead of the word of the run.
fn without_run(text: &str) -> String {
    let (before, after) = text.split_once("%p-").expect("a word of the run");
    format!("{before}%p-RUN{}", &after[8..])
}

#[test]
fn the_program_gets_the_drain_and_an_absolute_profile_name() {
    let place = Place::new();
    let directory = place.directory.path().display().to_string();
    let output = place.script(&[], SHOW_ENVIRONMENT);
    let drain = place.library(DRAIN);
    assert_eq!(
        without_run(&stdout(&output)),
        format!(
            "{drain}|{directory}/rocov-data/profraw/%p-RUN.profraw|{directory}/rocov-data|unset\n"
        )
    );
    let output = place.script(&["-o", "some/where"], SHOW_ENVIRONMENT);
    assert_eq!(
        without_run(&stdout(&output)),
        format!(
            "{drain}|{directory}/some/where/profraw/%p-RUN.profraw|{directory}/some/where|unset\n"
        )
    );
}

#[test]
fn what_is_asked_of_the_drain_is_in_the_environment() {
    let place = Place::new();
    for (option, variable, expected) in [
        ("--label=unit/add", "ROCOV_LABEL", "unit/add"),
        ("--control", "ROCOV_CONTROL", "1"),
        ("--control=/run/dir", "ROCOV_CONTROL", "/run/dir"),
        ("--snapshot-every=30s", "ROCOV_SNAPSHOT_EVERY", "30s"),
        ("--snapshot-on=USR2", "ROCOV_SNAPSHOT_SIGNAL", "USR2"),
        ("--roctx", "ROCOV_ROCTX", "1"),
        ("--paused", "ROCOV_PAUSED", "1"),
        ("--verbose", "ROCOV_VERBOSE", "1"),
    ] {
        let show = format!("echo ${{{variable}-unset}}");
        assert_eq!(stdout(&place.script(&[], &show)), "unset\n", "{option}");
        let output = place.script(&[option], &show);
        assert_eq!(stdout(&output), format!("{expected}\n"), "{option}");
    }
}

#[test]
fn nvtx_loads_the_drain_only_where_asked_for() {
    let place = Place::new();
    let show = "echo ${NVTX_INJECTION64_PATH-unset}";
    assert_eq!(stdout(&place.script(&[], show)), "unset\n");
    let expected = format!("{}\n", place.library(DRAIN));
    assert_eq!(stdout(&place.script(&["--nvtx"], show)), expected);
}

#[test]
fn the_modelled_gpu_comes_before_the_drain() {
    let place = Place::new();
    let output = place.script(&["--gpu", "model:gfx942x2"], SHOW_ENVIRONMENT);
    let libraries = format!("{}:{}", place.library(MODEL_GPU), place.library(DRAIN));
    let said = stdout(&output);
    assert!(said.starts_with(&format!("{libraries}|")), "{said}");
    assert!(said.ends_with("|gfx942x2\n"), "{said}");
}

#[test]
fn what_the_user_set_is_kept() {
    let place = Place::new();
    let other = place.directory.path().join("other.so");
    rocov_tests::cli::empty_library(&other);
    let run = |options: &[&str]| {
        let mut command = place.command(options);
        command
            .env("LD_PRELOAD", &other)
            .env("LLVM_PROFILE_FILE", "mine-%m.profraw")
            .args(["--", "sh", "-c", SHOW_ENVIRONMENT]);
        stdout(&command.output().unwrap())
    };
    let preload = format!("{}:{}", place.library(DRAIN), other.display());
    assert_eq!(run(&[]), format!("{preload}|mine-%m.profraw|unset|unset\n"));
    // An option is nearer to the user than the environment.
    let directory = place.directory.path().display();
    assert_eq!(
        without_run(&run(&["-o", "out"])),
        format!("{preload}|{directory}/out/profraw/%p-RUN.profraw|{directory}/out|unset\n")
    );
}

#[test]
fn a_directory_of_temporary_files_that_is_not_there_is_named() {
    let place = Place::new();
    let mut command = place.command(&[]);
    let absent = place.directory.path().join("absent");
    let output = command
        .env("TMPDIR", &absent)
        .args(["--", "true"])
        .output()
        .unwrap();
    assert_eq!(
        failure(&output, 125),
        format!(
            "rocov: cannot create a temporary file in {}: No such file or directory (os error 2); set TMPDIR to a \
            writable directory\n",
            absent.display()
        )
    );
}

#[test]
fn a_pattern_that_librocov_would_not_take_is_an_error_before_the_program_starts() {
    let place = Place::new();
    for (pattern, reason) in [
        ("x/%c.profraw", "%c in the profile name \"x/%c.profraw\""),
        ("%q", "use %p, %h, %t"),
        ("x/", "has no file name"),
        (".", "has no file name"),
        ("/dev/full", "is a device; name a file such as"),
        ("/dev/fd/1", "to write no profiles"),
        ("/usr", "is a directory; name a file such as"),
    ] {
        let mut command = place.command(&[]);
        command.env("LLVM_PROFILE_FILE", pattern);
        let output = command.args(["--", "touch", "started"]).output().unwrap();
        let message = failure(&output, 125);
        assert!(
            message.starts_with("rocov: LLVM_PROFILE_FILE: "),
            "{message}"
        );
        assert!(message.contains(reason), "{message}");
        assert!(!place.directory.path().join("started").exists());
        // An option is nearer to the user than the environment.
        let mut command = place.command(&["-o", "out"]);
        command.env("LLVM_PROFILE_FILE", pattern);
        run(command.args(["--", "true"]));
    }
}

#[test]
fn no_output_goes_to_what_is_no_directory() {
    let place = Place::new();
    for output in [
        "/dev/null",
        "/dev/full",
        "/dev/stdout",
        "/dev/fd/0",
        "/dev/fd/99",
    ] {
        let mut command = place.command(&["-o", output]);
        let ended = command.args(["--", "touch", "started"]).output().unwrap();
        let message = failure(&ended, 125);
        let start = format!("rocov: profiles cannot be written to {output}: ");
        assert!(message.starts_with(&start), "{message}");
        assert!(
            message.ends_with("choose another directory with --output\n"),
            "{message}"
        );
        assert!(!place.directory.path().join("started").exists());
    }
    // No profile is what the environment asks for, and the user may not know that.
    let mut command = place.command(&["--strict"]);
    command.env("LLVM_PROFILE_FILE", "/dev/null");
    let ended = command.args(["--", "true"]).output().unwrap();
    let said = failure(&ended, 3);
    assert!(
        said.starts_with("rocov: nothing was written: LLVM_PROFILE_FILE is /dev/null"),
        "{said}"
    );
}

/// A number is that of several processes, and a process has several programs (`exec`).
#[test]
fn each_program_of_a_run_must_have_its_last_drain() {
    let place = Place::new();
    let lines = |lines: &str| format!("printf '{lines}' >> $ROCOV_JOURNAL");
    for (text, status) in [
        (
            "7:1:2 name aaaaaaaa\\n7:1:2 counts\\n7:1:2 wrote\\n7:1:2 ended\\n",
            0,
        ),
        // Another process of this number.
        (
            "7:1:2 counts\\n7:1:2 wrote\\n7:1:2 ended\\n7:5:2 counts\\n",
            3,
        ),
        (
            "7:1:2 counts\\n7:1:2 wrote\\n7:1:2 ended\\n7:1:3 counts\\n",
            3,
        ),
        // Another program of this process.
        (
            "7:1:2 name aaaaaaaa\\n7:1:2 counts\\n7:1:2 wrote\\n7:1:2 ended\\n7:1:2 name bbbbbbbb\\n7:1:2 counts\\n",
            3,
        ),
        // Number 1 always runs, but this one has ended.
        ("1:1:2 counts\\n1:1:2 wrote\\n", 3),
    ] {
        let output = place.script(&["--strict"], &lines(text));
        assert_eq!(output.status.code(), Some(status), "{text}");
    }
}

#[test]
fn a_program_without_a_gpu_leaves_nothing_behind() {
    let place = Place::new();
    let output = place.script(&["-v"], "true");
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(said.ends_with(&format!("{}\n", no_use(None))), "{said}");
    assert_eq!(fs::read_dir(place.directory.path()).unwrap().count(), 0);
}

#[test]
fn a_library_that_is_not_there_is_named_with_the_remedy() {
    let place = Place::new();
    fs::remove_file(place.libraries.path().join(MODEL_GPU)).unwrap();
    let message = failure(&place.script(&["--gpu", "model"], "echo ran"), 125);
    assert!(message.contains(MODEL_GPU), "{message}");
    assert!(message.contains("ROCOV_LIBRARY_DIR"), "{message}");
    // Not needed without the modelled GPU.
    assert_eq!(place.script(&[], "true").status.code(), Some(0));
}

#[test]
fn paths_that_the_loader_cannot_express_are_refused() {
    let place = Place::new();
    for name in ["with space", "with:colon"] {
        let directory = place.directory.path().join(name);
        fs::create_dir(&directory).unwrap();
        fs::copy(place.libraries.path().join(DRAIN), directory.join(DRAIN)).unwrap();
        let mut command = place.command(&["--", "echo", "ran"]);
        command.env("ROCOV_LIBRARY_DIR", &directory);
        let output = command.output().unwrap();
        let message = failure(&output, 125);
        assert!(message.contains(name), "{message}");
        assert_eq!(stdout(&output), "");
    }
    let message = failure(&place.script(&["-o", "50%"], "echo ran"), 125);
    assert!(message.contains("50%"), "{message}");
}

/// Tests whose program is a script that writes what it gets to a file.
const TESTS: &str = r#"
cmake_minimum_required(VERSION 3.20)
project(tests NONE)
enable_testing()
add_test(NAME plain COMMAND sh ${script} "x;y" "")
set_tests_properties(plain PROPERTIES ENVIRONMENT "OWN=1;OTHER=2" FIXTURES_REQUIRED fixture)
add_test(NAME "Suite/odd [\"name\"] $x @y@ \\ é" COMMAND sh ${script})
add_test(NAME "a//b" COMMAND sh ${script})
add_test(NAME "a;b" COMMAND sh ${script})
add_test(NAME fails COMMAND false)
add_subdirectory(below)
"#;
const TESTS_BELOW: &str = "
add_test(NAME setup COMMAND sh ${script})
set_tests_properties(setup PROPERTIES FIXTURES_SETUP fixture)
";

/// A build directory of these tests, and the file that they write to: label, own environment and
/// arguments of each on a line.
fn build_tests(place: &Place) -> [PathBuf; 2] {
    let names = ["source", "build", "out", "script"];
    let [source, build, out, script] = names.map(|name| place.directory.path().join(name));
    let record = r#"line=$(printf '%s|' "$ROCOV_LABEL" "$OWN" "$@"); echo "$line""#;
    fs::write(&script, format!("{record} >>{}", out.display())).unwrap();
    fs::create_dir_all(source.join("below")).unwrap();
    fs::write(source.join("CMakeLists.txt"), TESTS).unwrap();
    fs::write(source.join("below/CMakeLists.txt"), TESTS_BELOW).unwrap();
    let mut cmake = Command::new("cmake");
    cmake.arg(format!("-Dscript={}", script.display()));
    run(cmake.arg("-S").arg(source).arg("-B").arg(&build));
    [build, out]
}

#[test]
fn each_test_of_ctest_has_its_own_label() {
    let place = Place::new();
    let [build, out] = build_tests(&place);
    let ctest = |arguments: &[&str]| {
        let mut command = place.command(&["--per-test", "--", "ctest"]);
        let output = command.args(arguments).output().unwrap();
        let written = fs::read_to_string(&out).unwrap_or_default();
        let _ = fs::remove_file(&out);
        let mut lines: Vec<_> = written.lines().map(str::to_owned).collect();
        lines.sort();
        (output, lines)
    };
    let (output, lines) = ctest(&["--test-dir", "build", "-j2", "--output-junit", "j.xml"]);
    // Short forms by CRC-32, as zlib's crc32 gives it.
    let expected = [
        r#"Suite/odd ["name"] $x @y@ \ é||"#,
        "a/-00000000/b||",
        "a_b-295a9749||",
        "plain|1|x;y||",
        "setup||",
    ];
    assert_eq!(lines, expected, "{output:?}");
    // ctest's own status when a test failed.
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    let said = stderr(&output);
    for told in [
        r#"rocov: the test "a//b" has the label a/-"#,
        r#"test "a;b""#,
    ] {
        assert!(said.contains(told), "{said}");
    }
    assert!(build.join("j.xml").exists());

    // A script that starts ctest by its name.
    let script = "cd build && ctest --version && ctest -j2";
    let mut shell = place.command(&["--per-test", "--", "sh", "-c", script]);
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    assert!(stdout(&output).starts_with("ctest version "), "{output:?}");
    let written = fs::read_to_string(&out).unwrap();
    fs::remove_file(&out).unwrap();
    let mut lines: Vec<_> = written.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, expected, "{output:?}");
    // Another ctest, and a build directory that is not there.
    for (script, status, told) in [
        ("exit 4", 4, "the command did not start ctest by name"),
        (
            "ctest --test-dir nowhere",
            125,
            "cannot find the build directory nowhere",
        ),
    ] {
        let mut shell = place.command(&["--per-test", "--", "sh", "-c", script]);
        let output = shell.output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(stderr(&output).contains(told), "{output:?}");
    }
    let strict = ["--per-test", "--strict", "--", "sh", "-c", "true"];
    assert_eq!(
        place.command(&strict).output().unwrap().status.code(),
        Some(3)
    );

    // ctest remembers the failed test, although rocov has removed its own directory of tests.
    let (output, lines) = ctest(&["--test-dir", "build", "--rerun-failed"]);
    assert!(
        stdout(&output).contains("0% tests passed, 1 tests failed out of 1"),
        "{output:?}"
    );
    assert!(lines.is_empty(), "{lines:?}");
    // A fixture comes with the test that needs it.
    let (_, lines) = ctest(&["-R", "plain", "--test-dir", "build"]);
    assert_eq!(lines, ["plain|1|x;y||", "setup||"]);
    let mut here = place.command(&["--per-test", "-o", "data", "--", "ctest", "-R", "setup"]);
    run(here.current_dir(&build));
    assert_eq!(fs::read_to_string(&out).unwrap(), "setup||\n");
}

#[test]
fn what_cannot_be_labelled_test_by_test_is_refused() {
    let place = Place::new();
    for (command, told) in [
        (&["ctest"][..], "no CTestTestfile.cmake in"),
        (&["ctest", "--test-dir", "nowhere"], "nowhere"),
        (&["ctest", "-S", "script.cmake"], "`ctest -S`"),
    ] {
        let mut run = place.command(&["--per-test", "--"]);
        let message = failure(&run.args(command).output().unwrap(), 125);
        assert!(message.contains(told), "{message}");
    }
    // Another program may be one of GoogleTest, or start some.
    for (kind, script, told) in [
        ("--per-test", None, "did not start a GoogleTest program"),
        (
            "--per-test=gtest",
            Some("true"),
            "neither ctest by name nor a GoogleTest program",
        ),
    ] {
        let mut run = place.command(&[kind, "--strict", "--"]);
        match script {
            Some(script) => run.args(["sh", "-c", script]),
            None => run.arg("true"),
        };
        let output = run.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stderr(&output).contains(told), "{output:?}");
    }
}
