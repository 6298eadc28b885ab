//! rocov.h compiles with the strictest options of C and C++ compilers, and works under AddressSanitizer and
//! Valgrind.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the directory of cargo's librocov.so.
fn artifacts() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let directory = test
        .ancestors()
        .nth(2)
        .expect("cargo puts tests into <profile>/deps");
    let library = directory.join("librocov.so");
    assert!(
        library.exists(),
        "{} does not exist: build the workspace first, as tools/test does",
        library.display()
    );
    directory.to_owned()
}

/// Compiles no_gpu.c with this compiler and these additional flags.
fn compile(directory: &Path, compiler: &str, flags: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.join("no_gpu");
    let mut search = std::ffi::OsString::from("-Wl,-rpath,");
    search.push(artifacts());
    let mut command = Command::new(compiler);
    command
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"])
        .arg(format!(
            "-DROCOV_EXPECTED_VERSION=\"{}\"",
            env!("CARGO_PKG_VERSION")
        ))
        .args(flags)
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("tests/c/no_gpu.c"))
        .arg("-L")
        .arg(artifacts())
        .arg(search)
        .args(["-lrocov", "-o"])
        .arg(&program);
    succeeds(&run(&mut command), &command);
    program
}

fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

#[track_caller]
fn succeeds(output: &Output, command: &Command) {
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs the program. librocov must print three lines about patterns, and no others.
#[track_caller]
fn check(program: impl AsRef<OsStr>, arguments: &[&OsStr]) {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("LLVM_PROFILE_FILE");
    let output = run(&mut command);
    succeeds(&output, &command);
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("=="))
        .collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("rocov: rocov_set_file: ")),
        "{said}"
    );
}

#[test]
fn c_and_cpp_compile_and_link() {
    for (compiler, flags) in [
        ("gcc", ["-std=c11"]),
        ("gcc", ["-std=c17"]),
        ("g++", ["-xc++"]),
        ("clang-22", ["-std=c11"]),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        check(compile(directory.path(), compiler, &flags), &[]);
    }
}

#[test]
fn address_sanitizer_finds_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let flags = ["-std=c11", "-fsanitize=address,undefined"];
    check(compile(directory.path(), "gcc", &flags), &[]);
}

#[test]
fn valgrind_finds_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = compile(directory.path(), "gcc", &["-std=c11"]);
    let arguments = ["-q", "--error-exitcode=9", "--leak-check=full"].map(OsStr::new);
    let mut arguments = arguments.to_vec();
    arguments.push(program.as_os_str());
    check("valgrind", &arguments);
}
