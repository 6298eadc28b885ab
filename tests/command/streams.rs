//! Standard output and standard error that nobody reads, that are closed or full: no subcommand panics, and each ends
//! with the status that it would have had.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rocov_tests::cli::device::{INSTRUMENTED, compile};
use rocov_tests::cli::place::Place;
use rocov_tests::cli::{empty_libraries, rocov, stderr};
use tempfile::TempDir;

/// A place to which nothing can be written.
#[derive(Clone, Copy, Debug)]
enum Nowhere {
    /// The descriptor is closed.
    Closed,
    /// A file on a full disk.
    Full,
    /// A pipe without a reader.
    Broken,
}

impl Nowhere {
    const ALL: [Self; 3] = [Self::Closed, Self::Full, Self::Broken];

    fn stdio(self) -> Stdio {
        match self {
            Self::Closed => Stdio::null(),
            Self::Full => File::options()
                .write(true)
                .open("/dev/full")
                .unwrap()
                .into(),
            Self::Broken => {
                let (_, writer) = io::pipe().unwrap();
                writer.into()
            }
        }
    }
}

/// A directory with everything that the calls below name.
struct Scene {
    place: Place,
    libraries: TempDir,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
        place.keep(&elf);
        let profile = place.profile(&elf, "gfx90a", 0, 7);
        // It gives each command that reads the data a reason for a line on standard error.
        let damaged = place.profile_path(&elf, "gfx90a", 1);
        fs::write(damaged, &fs::read(&profile).unwrap()[..100]).unwrap();
        Self {
            place,
            libraries: empty_libraries(),
        }
    }

    /// `rocov` with these arguments. `closes` is an instruction of the shell for its descriptors.
    fn call(&self, arguments: &str, closes: &str) -> Command {
        let rocov = rocov();
        let mut command = Command::new("sh");
        let script = format!("exec \"$0\" {arguments} {closes}");
        command.arg("-c").arg(script).arg(rocov.get_program());
        for (name, value) in rocov.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("ROCOV_LIBRARY_DIR", self.libraries.path());
        command.current_dir(self.place.path());
        command
    }

    fn with_stderr(&self, arguments: &str, nowhere: Nowhere) -> Output {
        let closes = match nowhere {
            Nowhere::Closed => "2>&-",
            _ => "",
        };
        let mut call = self.call(arguments, closes);
        call.stderr(nowhere.stdio()).output().unwrap()
    }

    fn with_stdout(&self, arguments: &str, nowhere: Nowhere) -> Output {
        let closes = match nowhere {
            Nowhere::Closed => ">&-",
            _ => "",
        };
        let mut call = self.call(arguments, closes);
        call.stdout(nowhere.stdio()).output().unwrap()
    }
}

/// Calls of each subcommand, most of which print to both streams.
const CALLS: [&str; 36] = [
    "",
    "--help",
    "--version",
    "--mistyped",
    "run -- sh -c 'exit 7'",
    "run --strict -- true",
    "run -- sh -c 'echo $$ hip lost >> $ROCOV_JOURNAL; exit 7'",
    "run -- ./absent",
    "run --help",
    "dump 2147483647",
    "status 2147483647",
    "report rocov-data",
    "report nowhere",
    "report rocov-data --fail-under-lines 101",
    "report rocov-data --lcov",
    "report rocov-data --json",
    "report rocov-data --html -o pages",
    "report --object kernel.elf",
    "which kernel.hip:1 rocov-data",
    "query --list",
    "diff rocov-data rocov-data",
    "merge rocov-data -o merged.profdata",
    "merge rocov-data",
    "kernels rocov-data",
    "export rocov-data --rocpd kernels.db",
    "clean nowhere",
    "clean --dry-run rocov-data",
    "extract kernel.elf --list",
    "extract nowhere",
    "show kernel.elf rocov-data",
    "show nowhere",
    "flags --clang clang++-22",
    "pass nowhere",
    "doctor kernel.elf",
    "completions bash",
    "man /dev/null/there",
];

#[test]
fn a_standard_error_that_takes_nothing_changes_no_status() {
    let scene = Scene::new();
    for arguments in CALLS {
        let usual = scene.call(arguments, "").output().unwrap();
        let status = usual.status.code().expect("no signal");
        assert_ne!(status, 101, "rocov {arguments}: {}", stderr(&usual));
        for nowhere in Nowhere::ALL {
            let output = scene.with_stderr(arguments, nowhere);
            let what = format!("rocov {arguments}, {nowhere:?}");
            assert_eq!(output.status.code(), Some(status), "{what}");
            assert_eq!(output.stdout.len(), usual.stdout.len(), "{what}");
        }
    }
}

#[test]
fn a_standard_output_that_takes_nothing_is_an_error_only_if_it_is_full() {
    let scene = Scene::new();
    for arguments in CALLS {
        let usual = scene.call(arguments, "").output().unwrap();
        let status = usual.status.code().expect("no signal");
        for nowhere in Nowhere::ALL {
            let output = scene.with_stdout(arguments, nowhere);
            let what = format!("rocov {arguments}, {nowhere:?}");
            // clap prints help itself, and drops what it cannot print.
            let is_help = arguments.starts_with("--") || arguments.ends_with("--help");
            let loses = matches!(nowhere, Nowhere::Full) && !usual.stdout.is_empty() && !is_help;
            let expected = if loses { 1 } else { status };
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(expected), "{what}: {said}");
            let says = said.contains("cannot write to standard output: No space left on device");
            assert_eq!(says, loses, "{what}: {said}");
        }
    }
}

#[test]
fn a_reader_that_goes_leaves_the_status_to_the_program() {
    let scene = Scene::new();
    let script = "{ \"$0\" run --strict -- sh -c 'exit 7'; echo $? > status; } 2>&1 | true";
    for _ in 0..5 {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).arg(rocov().get_program());
        shell.env("ROCOV_LIBRARY_DIR", scene.libraries.path());
        shell.current_dir(scene.place.path()).status().unwrap();
        let status = fs::read_to_string(scene.place.path().join("status")).unwrap();
        assert_eq!(status, "7\n");
    }
}

#[test]
fn a_file_on_a_full_disk_is_an_error() {
    let scene = Scene::new();
    assert!(Path::new("/dev/full").exists());
    for format in [
        "",
        "--lcov",
        "--json",
        "--cobertura",
        "--sonar",
        "--markdown",
    ] {
        let arguments = format!("report rocov-data {format} -o /dev/full");
        let output = scene.call(&arguments, "").output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {said}");
        assert!(
            said.contains("No space left on device"),
            "{arguments}: {said}"
        );
    }
}
