//! `rocov pass build`: the plugin that it makes fits the compiler, and `rocov flags` finds it. Each lack has a
//! message with the next step.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use rocov_tests::cli::{failure, rocov, run, stderr, stdout};

const CLANG: &str = "clang++-22";

/// `rocov SUBCOMMAND --clang CLANG`, which finds no plugins but those of the user in `home`.
fn user_command(home: &Path, subcommand: &[&str], clang: &Path) -> Command {
    let mut command = rocov();
    command.env("ROCOV_LIBRARY_DIR", home);
    command.env("XDG_DATA_HOME", home);
    command.args(subcommand).arg("--clang").arg(clang);
    command
}

fn build(home: &Path, clang: &Path) -> Command {
    user_command(home, &["pass", "build"], clang)
}

fn message(command: &mut Command) -> String {
    failure(&command.output().unwrap(), 1)
}

/// A compiler that says another release of itself.
fn disguised(directory: &Path, version: &str) -> std::path::PathBuf {
    let path = directory.join("clang++");
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) echo clang version {version};; *) exec {CLANG} \"$@\";; esac\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_plugin_of_the_user_fits_the_compiler_it_was_made_for() {
    let home = tempfile::tempdir().unwrap();
    let version = stdout(&run(Command::new(CLANG).arg("--version")));
    let (_, version) = version.split_once("clang version ").unwrap();
    let version = version.split_whitespace().next().unwrap();
    let name = format!("librocov_pass-{version}.so");
    let plugin = home.path().join("rocov").join(name);

    let output: Output = run(&mut build(home.path(), Path::new(CLANG)));
    assert_eq!(stderr(&output), "");
    assert_eq!(stdout(&output).trim_end(), plugin.to_str().unwrap());
    // Nothing else is left there.
    let folder = plugin.parent().unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);

    let mut flags = user_command(home.path(), &["flags"], Path::new(CLANG));
    let output = run(&mut flags);
    assert_eq!(stderr(&output), "");
    let flag = format!("-fpass-plugin={}", plugin.display());
    assert!(stdout(&output).contains(&flag), "{}", stdout(&output));
}

#[test]
fn a_compiler_too_old_for_the_plugin_is_named() {
    let home = tempfile::tempdir().unwrap();
    let message = message(&mut build(home.path(), Path::new("clang++-15")));
    assert!(message.contains("clang++-15 is LLVM 15.0."), "{message}");
    assert!(message.contains("use clang 19 or later"), "{message}");
}

#[test]
fn missing_headers_have_the_name_of_their_package() {
    let home = tempfile::tempdir().unwrap();
    // Its tree has the headers of LLVM 22.1.
    let clang = disguised(home.path(), "97.2.0");
    let message = message(&mut build(home.path(), &clang));
    for part in [
        "LLVM 97.2.0",
        "is of LLVM 22.1.",
        "llvm-97-dev",
        "rocm-llvm-dev",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_compiler_that_fails_leaves_no_plugin() {
    let home = tempfile::tempdir().unwrap();
    let mut command = build(home.path(), Path::new(CLANG));
    let message = message(command.env("CXX", "false"));
    assert!(message.contains("false cannot compile"), "{message}");
    assert!(message.contains("set CXX"), "{message}");
    let folder = home.path().join("rocov");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn without_a_home_the_file_must_be_given() {
    let home = tempfile::tempdir().unwrap();
    let mut command = build(home.path(), Path::new(CLANG));
    let message = message(command.env_remove("HOME").env_remove("XDG_DATA_HOME"));
    assert!(message.contains("--output"), "{message}");
}
