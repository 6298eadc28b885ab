//! Messages of rocov if it has nothing to report or lost counts. Each says in one line what
//! happened and what to do next.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::artifacts::built;
use crate::support::command::{Ended, limited, no_use, run};
use crate::support::compile::sample;
use crate::support::gpu::Stack;
use crate::support::program::{Program, TARGET};

/// A working directory without links in its path.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().expect("a directory")
    }

    /// Runs rocov in that directory.
    #[track_caller]
    fn rocov(&self, arguments: &[&str]) -> Ended {
        let mut command = limited(built("rocov"));
        command.args(arguments).current_dir(self.path());
        run(command.env_remove("LLVM_PROFILE_FILE"))
    }

    /// Runs a program in that directory under `rocov run`.
    #[track_caller]
    fn run(&self, options: &[&str], program: &Path, arguments: &[&str]) -> Ended {
        let program = program.to_str().expect("a path in UTF-8");
        self.rocov(&[&["run"], options, &["--", program], arguments].concat())
    }

    /// Expects only this line from rocov, and this exit status.
    #[track_caller]
    fn says(&self, status: i32, arguments: &[&str], line: &str) {
        let ended = self.rocov(arguments).with_status(status);
        assert_eq!(ended.stderr, format!("rocov: {line}\n"), "{ended}");
    }
}

const SNAPSHOTS: &str = "`rocov run --snapshot-every 1s` drains while a program runs";

fn endings() -> PathBuf {
    Program::build(Stack::usual(), &["endings/endings.hip"], &[], &["-ldl"]).file
}

fn last_line(ended: &Ended) -> &str {
    ended.stderr.lines().last().unwrap_or_default()
}

#[test]
fn a_program_that_dies_before_its_drain() {
    let place = Place::new();
    let program = endings();
    let name = program.display();
    for (ending, signal, when) in [
        (
            "crash",
            "SIGSEGV",
            "before its counters were drained: they are lost",
        ),
        (
            "abort",
            "SIGABRT",
            "before its counters were drained: they are lost",
        ),
        (
            "drain, abort",
            "SIGABRT",
            "after its last drain: later counts are lost",
        ),
    ] {
        let ended = place.run(&["--gpu", "model", "-o", ending], &program, &[ending]);
        assert!(
            ended.status.code().is_some_and(|code| code > 128),
            "{ended}"
        );
        let word = match ending.contains(' ') {
            true => format!("'{ending}'"),
            false => ending.to_owned(),
        };
        let line = format!("rocov: `{name} {word}` was killed by {signal} {when}; {SNAPSHOTS}");
        assert_eq!(last_line(&ended), line, "{ended}");
    }
    // Only a device ELF of the first run remains, and the note about its end; the report explains the loss.
    let ended = place.rocov(&["report", "crash"]).with_status(1);
    let note = format!(
        "it was killed by SIGSEGV before its counters were drained: they are lost; {SNAPSHOTS}"
    );
    let (first, rest) = ended.stderr.split_once('\n').expect("two lines");
    assert!(
        first.starts_with("rocov: process ") && first.ends_with(&note),
        "{ended}"
    );
    let start = "rocov: no device profiles in crash: instrumented GPU code was loaded (crash/objects/gfx90a.";
    let end = ".elf), but its process was killed before the counters were drained; run it again, with \
               `rocov run --snapshot-every 1s` if it does not end by itself\n";
    assert!(rest.starts_with(start) && rest.ends_with(end), "{ended}");
}

#[test]
fn a_process_that_dies_below_the_program() {
    let place = Place::new();
    let command = format!("{} crash", endings().display());
    let script = format!("{command}; exit 0");
    let options = ["--gpu", "model", "--label", "unit/crash", "-o", "d"];
    let ended = place
        .run(&options, Path::new("sh"), &["-c", &script])
        .success();
    let line = last_line(&ended);
    let start = format!("rocov: `{command}` (process ");
    let end = format!(
        ", label unit/crash) ended before its counters were drained: they are lost; {SNAPSHOTS}"
    );
    assert!(line.starts_with(&start) && line.ends_with(&end), "{ended}");
}

#[test]
fn nothing_was_drained() {
    let place = Place::new();
    let plain = sample(&[]);
    let instrumented = endings();
    let no_gpu = "nothing was drained: this machine has no GPU (no /dev/kfd); `rocov run --gpu model` \
                  runs the program on a modelled one";
    let not_instrumented = format!(
        "nothing was drained: no process loaded instrumented GPU code; compile it with the flags that `rocov flags` \
         prints, or have hipRTC compile it with the flags that `rocov flags --hiprtc` prints, and run `rocov doctor \
         {}`; to keep the current flags, use `rocov run --instrument` or `rocov run --trace --gpu model`",
        plain.display()
    );
    let other_target = format!(
        "nothing was drained: `{}` contains code only for {TARGET}, but the modelled GPU is gfx1100; compile with \
         --offload-arch=gfx1100, or choose --gpu model:{TARGET}",
        plain.display()
    );
    let mut runs: Vec<(&[&str], &Path, &[&str], &str)> = vec![
        (&[], Path::new("true"), &[], no_use(None)),
        (
            &["--gpu", "model"],
            Path::new("true"),
            &[],
            no_use(Some("model")),
        ),
        (&["--gpu", "model"], &plain, &[], &not_instrumented),
        (&["--gpu", "model:gfx1100"], &plain, &[], &other_target),
    ];
    if !Path::new("/dev/kfd").exists() {
        runs.push((&[], &instrumented, &["return"], no_gpu));
    }
    for (options, program, arguments, line) in runs {
        let ended = place.run(options, program, arguments);
        assert_eq!(last_line(&ended), format!("rocov: {line}"), "{ended}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    // A build that starts hundreds of programs counts as one run.
    let many = "for i in 1 2 3 4 5 6 7 8; do true; sh -c true; done";
    let ended = place.run(&[], Path::new("sh"), &["-c", many]).success();
    assert_eq!(ended.stderr, format!("rocov: {}\n", no_use(None)));
}

/// In this case the program does not start.
#[test]
fn a_directory_that_cannot_be_written() {
    let place = Place::new();
    std::fs::write(place.path().join("file"), "").expect("a file can be written");
    let here = place.path();
    let line = format!(
        "profiles cannot be written to {0}/file/d: {0}/file: not a directory; choose another directory \
         with --output",
        here.display()
    );
    let started = here.join("started");
    let touch = ["touch", started.to_str().unwrap()];
    place.says(
        125,
        &[&["run", "-o", "file/d", "--"], &touch[..]].concat(),
        &line,
    );
    let mut command = limited(built("rocov"));
    command.args(["run", "--"]).args(touch);
    command.env("LLVM_PROFILE_FILE", here.join("file/d/%p.profraw"));
    let ended = run(&mut command).with_status(125);
    assert_eq!(ended.stderr, format!("rocov: {line}\n"));
    assert!(!started.exists());
}

#[test]
fn an_option_behind_the_program() {
    let place = Place::new();
    let hint = "rocov: --gpu is passed to true: put an option of `rocov run` before the program, as in `rocov run \
                --gpu ... -- true`\n";
    let ended = place.rocov(&["run", "true", "--gpu", "model"]).success();
    assert!(ended.stderr.starts_with(hint), "{ended}");
    let ended = place
        .rocov(&["run", "--", "true", "--gpu", "model"])
        .success();
    assert!(!ended.stderr.contains("--gpu is passed"), "{ended}");
}

#[test]
fn a_report_of_nothing() {
    let place = Place::new();
    let make = |path: &str| {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).expect("a directory can be made");
        std::fs::write(path, "").expect("a file can be written");
    };
    let here = place.path();
    let missing = |name: &str| {
        format!(
            "{name} does not exist in {}: name the directory that `rocov run` wrote to; it writes none if \
             no instrumented GPU code ran",
            here.display()
        )
    };
    for command in [&["report"][..], &["kernels"], &["which", "a.hip:1"]] {
        place.says(1, command, &missing("rocov-data"));
    }
    place.says(1, &["report", "elsewhere"], &missing("elsewhere"));
    place.says(
        1,
        &["merge", "elsewhere", "-o", "merged"],
        &format!(
            "elsewhere does not exist in {}: check the path\n\
             rocov: nothing written: no input can be merged; see the reasons above",
            here.display()
        ),
    );

    std::fs::create_dir(place.path().join("empty")).expect("a directory can be made");
    place.says(
        1,
        &["report", "empty"],
        "empty is empty: name the directory that `rocov run` wrote to; it writes nothing if no instrumented \
         GPU code ran",
    );

    make("pages/index.html");
    place.says(
        1,
        &["report", "pages"],
        "no device profiles in pages: pages/index.html is a page of a report; name the directory that `rocov run` \
        wrote to",
    );
    make("merged/gfx90a.profdata");
    place.says(
        1,
        &["report", "merged"],
        "no device profiles in merged: merged/gfx90a.profdata is a merged profile, but a report needs raw profiles; \
         name the directories that were merged",
    );
    make("other/notes");
    place.says(
        1,
        &["report", "other"],
        "no device profiles in other: no instrumented GPU code ran; compile the program with the flags that \
         `rocov flags` prints, and run it under `rocov run`",
    );
}

/// The registry knows code without instrumentation if it records all code objects.
#[test]
fn a_report_of_code_that_is_not_instrumented() {
    let place = Place::new();
    let mut command = limited(built("rocov"));
    command.args(["run", "--gpu", "model", "-o"]);
    command.arg(place.path().join("d")).arg("--");
    let command = command.arg(sample(&[])).env("ROCOV_REGISTRY", "always");
    run(command).success();
    place.says(
        1,
        &["report", "d"],
        "no device profiles in d: the GPU code that ran is not instrumented; compile it with the flags that \
         `rocov flags` prints, or have hipRTC compile it with those that `rocov flags --hiprtc` prints; `rocov doctor PROGRAM` lists what is instrumented",
    );
}

#[test]
fn a_report_without_a_coverage_mapping() {
    let mut flags: Vec<OsString> = ["-Xarch_device", "-fprofile-instr-generate", "-Xarch_device"]
        .map(OsString::from)
        .to_vec();
    flags.extend(["-fprofile-update=atomic".into(), "-include".into()]);
    flags.push(crate::support::compile::device_header().into());
    let program = Program::with_flags(
        Stack::usual(),
        &["endings/endings.hip"],
        &flags,
        &["-ldl"],
        &[],
    );
    let place = Place::new();
    let data = place.path().join("d");
    run(program.under_rocov(TARGET, &data).arg("return"));
    let ended = place.rocov(&["report", "d"]).with_status(1);
    assert_eq!(
        last_line(&ended),
        "rocov: no code object in d has a coverage mapping: compile the program with all the flags that \
         `rocov flags` prints, -fcoverage-mapping among them, do not strip it, and run it again"
    );
    assert_eq!(ended.stderr.lines().count(), 2, "{ended}");
}

#[test]
fn other_slips() {
    let place = Place::new();
    let text = place.path().join("l.info");
    std::fs::write(&text, "TN:\nSF:a.hip\nend_of_record\n").expect("a file can be written");
    place.says(
        1,
        &["show", "l.info"],
        "l.info: it is a text file, not one that rocov supports; name a raw profile, a registry, saved sections, a \
         device ELF, a bundle, or a program or library with one",
    );
    place.says(
        1,
        &["show", "."],
        ". is a directory: `rocov report .` reports on it, and `rocov show` accepts the files in it",
    );
    let ended = place.rocov(&["dump", "server"]).with_status(2);
    ended.says(&[
        "a process id is a number; `pgrep -x server` prints that of a program by its name",
    ]);
    let ended = place.rocov(&["which", "x"]).with_status(2);
    ended.says(&[
        "x is not FILE:LINE: add LINE, a number from 1, as in x:12",
        "Usage: rocov which FILE:LINE... [DIR] [OPTIONS]",
    ]);

    std::fs::create_dir(place.path().join("lab")).expect("a directory can be made");
    let ended = place.rocov(&["which", "x", "lab"]).with_status(2);
    ended.says(&["error: x is not FILE:LINE: add LINE, a number from 1, as in x:12\n"]);
    let ended = place.rocov(&["which", "lab"]).with_status(2);
    ended.says(&["lab is a directory: name FILE:LINE before it"]);

    let program = endings();
    place.run(&["--gpu", "model", "-o", "d"], &program, &["return"]);
    let ended = place
        .rocov(&["report", "d", "--show", "vec"])
        .with_status(1);
    let source = crate::support::artifacts::repository("testdata/programs/endings/endings.hip");
    let line = format!(
        "rocov: the GPU code that ran was not compiled from vec, but from {}: use --path-map if sources have moved",
        source.display()
    );
    assert_eq!(last_line(&ended), line, "{ended}");
    let ended = place.rocov(&["report", "d", "--lcov", "--output", "none/x.info"]);
    assert_eq!(
        ended.with_status(1).stderr,
        "rocov: cannot write none/x.info: No such file or directory (os error 2); check the path, and create the \
        directory if it is missing\n"
    );
}

/// A user who runs a program without `rocov run` sees no such message.
#[test]
fn the_status_stays_the_programs() {
    let place = Place::new();
    let ended = place.run(&["--gpu", "model"], &endings(), &["crash"]);
    assert_eq!(ended.status.signal(), None);
    // SIGSEGV in a shell's notation.
    assert_eq!(ended.status.code(), Some(128 + 11));
}
