//! Labels, windows, dumps and snapshots of CUDA modules, and NVTX ranges.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::setup::{BIN_OF, Setup, counts};
use crate::support::artifacts::{built, repository};
use crate::support::command::{Ended, limited, run};
use crate::support::profile::raw_profiles;
use crate::support::unpacked::asked;

fn data() -> TempDir {
    TempDir::new().expect("a directory can be made")
}

/// Runs `all`, in which `FILE` stands for the cubin.
fn done(setup: &Setup, options: &[&str], all: &str, data: &Path) -> Ended {
    let file = setup.cubin.display().to_string();
    let all: Vec<String> = all
        .split_whitespace()
        .map(|step| {
            step.replace("FILE", &file)
                .replace("BIN", "__profc__Z6bin_off")
        })
        .collect();
    let mut command = limited(built("rocov"));
    command
        .arg("run")
        .args(options)
        .arg("-o")
        .arg(data)
        .arg("--");
    run(setup.program(&mut command, "steps").args(all))
}

/// The calls of `bin_of` in the profiles of a label; those without a label for "".
fn calls(data: &Path, label: &str) -> u64 {
    let mut directory = data.join("profraw");
    if !label.is_empty() {
        directory = directory.join("labels").join(label);
    }
    let profiles: Vec<PathBuf> = raw_profiles(&directory)
        .into_iter()
        .filter(|path| path.parent() == Some(&directory))
        .collect();
    match profiles.is_empty() {
        true => 0,
        false => counts(&profiles, data)[BIN_OF][0],
    }
}

#[test]
fn labels_have_the_counts_of_their_time() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let all = "load:FILE plant:BIN:1,0,0 label:a plant:BIN:3,0,0 label:b plant:BIN:7,0,0 pop plant:BIN:15,0,0 \
               unload load:FILE plant:BIN:16,0,0 pop plant:BIN:48,0,0";
    done(setup, &[], all, data.path()).success().silently();
    let found = ["", "a", "a/b"].map(|label| calls(data.path(), label));
    assert_eq!(found, [33, 26, 4]);
}

#[test]
fn modules_that_the_driver_loads_by_itself_have_labels_too() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let all = "library:FILE label:a launch plant:BIN:3,0,0 pop plant:BIN:7,0,0 label:b plant:BIN:15,0,0 reset pop";
    done(setup, &[], all, data.path()).success().silently();
    let found = ["", "a", "b"].map(|label| calls(data.path(), label));
    assert_eq!(found, [4, 3, 8]);
}

#[test]
fn windows_and_dumps_have_the_counts_of_their_time() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let all = "load:FILE plant:BIN:1,0,0 start plant:BIN:3,0,0 stop plant:BIN:7,0,0 start plant:BIN:15,0,0 dump:x \
               plant:BIN:31,0,0 stop plant:BIN:63,0,0";
    done(setup, &["--paused"], all, data.path())
        .success()
        .silently();
    let found = ["", "x"].map(|label| calls(data.path(), label));
    assert_eq!(found, [18, 8]);
}

#[test]
fn counters_can_be_zeroed() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let all = "load:FILE plant:BIN:5,0,0 drain plant:BIN:9,0,0 reset-counts plant:BIN:2,0,0";
    done(setup, &[], all, data.path()).success().silently();
    assert_eq!(calls(data.path(), ""), 7);
}

/// A program that is compiled with NVTX's own headers.
fn annotated(setup: &Setup, directory: &Path) -> Option<PathBuf> {
    let tools = asked("bin", "cuda-12.9", "no range comes from NVTX")?;
    let headers = Path::new(tools.trim_end()).with_file_name("include");
    let program = directory.join("nvtx");
    let mut compiler = limited("gcc");
    compiler
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(headers);
    compiler
        .arg("-o")
        .arg(&program)
        .arg(repository("testdata/cuda/nvtx.c"));
    run(compiler.arg(setup.library("libcuda.so.1")).arg("-ldl")).success();
    Some(program)
}

fn ran(setup: &Setup, program: &Path, options: &[&str], data: &Path) -> Command {
    let mut command = limited(built("rocov"));
    command
        .arg("run")
        .args(options)
        .arg("-o")
        .arg(data)
        .arg("--");
    setup
        .program(&mut command, &program.to_string_lossy())
        .arg(&setup.cubin);
    command
}

#[test]
fn ranges_of_nvtx_are_labels() {
    let Some(setup) = Setup::get() else { return };
    let place = data();
    let Some(program) = annotated(setup, place.path()) else {
        return;
    };
    // The program is not touched, but by the option.
    let plain = place.path().join("plain");
    let without = run(&mut ran(setup, &program, &[], &plain))
        .success()
        .silently();
    assert_eq!(without.stdout, "levels -2 -2\n");
    assert!(!plain.join("profraw/labels").exists());

    let data = place.path().join("data");
    let ended = run(&mut ran(setup, &program, &["--nvtx"], &data)).success();
    assert_eq!(ended.stdout, without.stdout);
    // The message without text, and the one that is too long.
    let said: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(said.len(), 2, "{ended}");
    assert!(
        said.iter().all(|line| line.contains("an NVTX range: ")),
        "{ended}"
    );
    let expected = [
        ("start%20up", 1),
        ("train", 1 << 1 | 1 << 5),
        ("train/step%201", 1 << 2),
        ("train/library/sort", 1 << 3),
        ("train/library/sort/w%C3%A4rme", 1 << 4),
        ("epoch", 1 << 6),
        ("epoch&inner", 1 << 7),
        ("inner", 1 << 8),
        ("library/loose", 1 << 9),
        ("", 1 << 10 | 1 << 11 | 1 << 12),
    ];
    for (label, calls_in_it) in expected {
        assert_eq!(calls(&data, label), calls_in_it, "{label}: {ended}");
    }
}

#[test]
fn another_tool_keeps_nvtx() {
    let Some(setup) = Setup::get() else { return };
    let place = data();
    let Some(program) = annotated(setup, place.path()) else {
        return;
    };
    let data = place.path().join("data");
    let mut command = ran(setup, &program, &["--nvtx"], &data);
    let ended = run(command.env("NVTX_INJECTION64_PATH", "/nowhere/tool.so"))
        .success()
        .says(&["NVTX_INJECTION64_PATH names /nowhere/tool.so: NVTX ranges do not become labels"]);
    assert_eq!(ended.stdout, "levels -2 -2\n");
    assert!(!data.join("profraw/labels").exists());
}
