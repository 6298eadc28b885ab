//! Helpers that the tests of the command share.

pub mod device;
pub mod place;
pub mod profile;
pub mod random;
pub mod registry;
pub mod release;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::artifacts::{built, repository, temporary_directory};

/// Name of the library that `rocov run` preloads.
pub const DRAIN: &str = "librocov.so";
/// Name of the library that `rocov run --gpu model` preloads.
pub const MODEL_GPU: &str = "librocov_modelgpu.so";

/// The command under test, with an environment of its own.
pub fn rocov() -> Command {
    let mut command = Command::new(built("rocov"));
    for variable in [
        "LD_PRELOAD",
        "LLVM_PROFILE_FILE",
        "ROCOV_DATA",
        "ROCOV_LIBRARY_DIR",
        "ROCOV_MODELGPU",
    ] {
        command.env_remove(variable);
    }
    // Not in the home of whoever runs the tests.
    for variable in ["XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        command.env(variable, temporary_directory());
    }
    command
}

/// The compiler plugin for this release of LLVM, which tools/dev/pass has built.
pub fn plugin(llvm: u32) -> PathBuf {
    let command = built("rocov");
    let target = command.ancestors().nth(2).unwrap();
    let plugin = target.join(format!("pass/librocov_pass-{llvm}.so"));
    assert!(
        plugin.exists(),
        "{} is not there: tools/dev/pass builds it",
        plugin.display()
    );
    plugin
}

/// Shared libraries that do nothing, under the names that `rocov run` preloads: these tests are
/// of the command, not of what it preloads.
pub fn empty_libraries() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in [DRAIN, MODEL_GPU] {
        empty_library(&directory.path().join(name));
    }
    directory
}

/// Builds a shared library that does nothing.
pub fn empty_library(path: &Path) {
    run(Command::new("cc")
        .args(["-shared", "-x", "c", "/dev/null", "-o"])
        .arg(path));
}

/// Runs `command`, which must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The one line on standard error of a run that failed with `status`.
pub fn failure(output: &Output, status: i32) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    assert!(said.starts_with("rocov: "), "{said}");
    said
}

/// The path of a file in tests/command/data.
pub fn data(name: &str) -> PathBuf {
    repository("tests/command/data").join(name)
}
