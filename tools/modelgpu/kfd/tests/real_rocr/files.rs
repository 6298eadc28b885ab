//! Under the preload, programs see the driver's files, and all other files unchanged.

use std::fs;
use std::path::Path;

use crate::harness::{Ended, Run, c_program, scratch};

/// Paths that are not the driver's; some differ only a little.
const OTHERS: [&str; 7] = [
    "/etc/passwd",
    "/proc/self",
    "/dev/null",
    "/sys/class",
    "/nowhere/at/all",
    "relative",
    "",
];

fn files(paths: &[&str], model: bool) -> Ended {
    let mut run = Run::new(&c_program("files"));
    if !model {
        run = run.without("LD_PRELOAD");
    }
    for path in paths {
        run = run.arg(path);
    }
    let ended = run.output();
    assert_eq!(ended.status, 0, "{}", ended.text());
    ended
}

#[test]
fn other_files_are_as_without_the_model() {
    assert_eq!(files(&OTHERS, true).stdout, files(&OTHERS, false).stdout);
}

#[test]
fn device_nodes_look_like_device_nodes() {
    let ended = files(&["/dev/kfd", "/dev/dri/renderD128"], true);
    let expected = |path: &str, minor: u32| {
        format!(
            "{path}\n  stat: character device minor {minor}\n  lstat: character device minor {minor}\n  \
             fstatat: character device minor {minor}\n  statx: device\n  access: yes\n  \
             faccessat: yes\n  realpath: found\n  fopen: yes\n  openat: yes\n  \
             fstat: character device minor {minor}\n  \
             terminal: Inappropriate ioctl for device\n  opendir: Not a directory\n"
        )
    };
    let both = expected("/dev/kfd", 0) + &expected("/dev/dri/renderD128", 128);
    assert!(ended.stdout.starts_with(&both), "{}", ended.text());
}

/// Without the variable the library models nothing and writes nothing.
#[test]
fn inert_without_the_variable() {
    let tmp = scratch().join("inert");
    let _ = fs::remove_dir_all(&tmp);
    fs::create_dir_all(&tmp).unwrap();
    let paths = [
        "/dev/kfd",
        "/dev/dri",
        "/proc/modules",
        "/sys/class/drm",
        "/etc/passwd",
    ];
    let with = |preload: bool| {
        let mut run = Run::new(&c_program("files"))
            .without("ROCOV_MODELGPU")
            .env("ROCOV_MODELGPU_TMP", &tmp);
        if !preload {
            run = run.without("LD_PRELOAD");
        }
        paths.iter().fold(run, |run, path| run.arg(path)).output()
    };
    let (inert, plain) = (with(true), with(false));
    assert_eq!(inert.stdout, plain.stdout);
    assert_eq!(inert.stderr, "");
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
}

/// Shells, interpreters and tools often run under the preload.
#[test]
fn other_programs_run_under_the_preload() {
    let shell = |script: &str| {
        let run = Run::new(Path::new("bash")).arg("-c").arg(script);
        let ended = run.output();
        assert_eq!(
            (ended.status, ended.stderr.as_str()),
            (0, ""),
            "{}",
            ended.text()
        );
        ended.stdout
    };
    assert_eq!(
        shell("env true && echo $(cat /etc/hostname | wc -l) | tr -d '\\n'"),
        "1"
    );
    assert_eq!(
        shell("[ -c /dev/kfd ] && [ -e /dev/dri/renderD128 ] && echo there"),
        "there\n"
    );
    assert_eq!(shell("ls /dev/dri | grep -c render"), "1\n");
    assert_eq!(
        shell("find /dev/null | xargs -n 1 stat -c %n"),
        "/dev/null\n"
    );
    assert_eq!(
        shell("cat /sys/devices/virtual/kfd/kfd/topology/nodes/1/properties | grep gfx_target"),
        "gfx_target_version 90010\n"
    );
    assert_eq!(shell("perl -e 'print -e \"/dev/kfd\" ? 1 : 0'"), "1");
    assert_eq!(shell("cargo --version > /dev/null && echo fine"), "fine\n");
}

#[test]
fn a_bad_value_ends_the_process_with_one_line() {
    for (name, value, problem) in [
        ("ROCOV_MODELGPU", "gfx900", "\"gfx900\" is no modelled GPU"),
        ("ROCOV_MODELGPU", "gfx90ax9", "allowed: 1 to 8"),
        ("ROCOV_MODELGPU_BAR", "medium", "allowed: small, large"),
        ("ROCOV_MODELGPU_VRAM_MIB", "lots", "allowed: 1 to 1048576"),
    ] {
        // The launcher, `timeout`, is the first process under the preload.
        let ended = Run::new(Path::new("true")).env(name, value).output();
        assert_eq!(ended.status, 2, "{}", ended.text());
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.text());
        let start = format!("rocov modelgpu: {name}={value:?}: ");
        assert!(ended.stderr.starts_with(&start), "{}", ended.text());
        assert!(ended.stderr.contains(problem), "{}", ended.text());
    }
}

/// The model rejects a tree that another user made under its name, and reports a directory that it
/// cannot write.
#[test]
fn a_place_that_cannot_be_written_is_said() {
    let ended = Run::new(&c_program("agents"))
        .env("ROCOV_MODELGPU_TMP", "/proc/nowhere")
        .output();
    assert_ne!(ended.status, 0, "{}", ended.text());
    let said = ended
        .stderr
        .matches("cannot write the modelled machine's description");
    assert_eq!(said.count(), 1, "{}", ended.text());
}
