//! `rocov run`: what the program gets from its surroundings, and what its caller gets from it.

mod common;

use common::{DRAIN, MODEL_GPU, empty_libraries, failure, rocov, stderr, stdout};
use std::fs;
use std::process::{Command, Output};
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
fn the_exit_status_is_the_programs() {
    let place = Place::new();
    for status in [0, 1, 2, 42, 125, 255] {
        let output = place.script(&[], &format!("exit {status}"));
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(stderr(&output), "");
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

const SHOW_ENVIRONMENT: &str = r#"echo "$LD_PRELOAD|$LLVM_PROFILE_FILE|${ROCOV_MODELGPU-unset}""#;

#[test]
fn the_program_gets_the_drain_and_an_absolute_profile_name() {
    let place = Place::new();
    let directory = place.directory.path().display().to_string();
    let output = place.script(&[], SHOW_ENVIRONMENT);
    let drain = place.library(DRAIN);
    assert_eq!(
        stdout(&output),
        format!("{drain}|{directory}/rocov-data/%p.profraw|unset\n")
    );
    let output = place.script(&["-o", "some/where"], SHOW_ENVIRONMENT);
    assert_eq!(
        stdout(&output),
        format!("{drain}|{directory}/some/where/%p.profraw|unset\n")
    );
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
    common::empty_library(&other);
    let run = |options: &[&str]| {
        let mut command = place.command(options);
        command
            .env("LD_PRELOAD", &other)
            .env("LLVM_PROFILE_FILE", "mine-%m.profraw")
            .args(["--", "sh", "-c", SHOW_ENVIRONMENT]);
        stdout(&command.output().unwrap())
    };
    let preload = format!("{}:{}", place.library(DRAIN), other.display());
    assert_eq!(run(&[]), format!("{preload}|mine-%m.profraw|unset\n"));
    // An option is nearer to the user than the environment.
    let directory = place.directory.path().display();
    assert_eq!(
        run(&["-o", "out"]),
        format!("{preload}|{directory}/out/%p.profraw|unset\n")
    );
}

#[test]
fn a_program_without_a_gpu_leaves_nothing_behind() {
    let place = Place::new();
    let output = place.script(&["-v"], "true");
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(said.contains("no device profiles in"), "{said}");
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
