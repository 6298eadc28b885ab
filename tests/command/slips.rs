//! Slips of a user, each with the message that it gets: what happened, and what to do next.
//!
//! `cargo xtask bless slips` writes them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use rocov_tests::cli::{rocov, stderr};
use rocov_tests::records;

/// Command lines in a directory with the files that [`files`] makes.
const SLIPS: [&str; 29] = [
    "report nowhere",
    "report notes.txt",
    "report notes.txt/data",
    "report llvms",
    "report llvms-of-several-gpus",
    "report llvms-of-one-device",
    "report --object nowhere rocov-data",
    "which a.hip:1 notes.txt",
    "kernels notes.txt",
    "diff notes.txt nowhere",
    "clean notes.txt",
    "show nowhere",
    "show notes.txt",
    "extract nowhere",
    "extract notes.txt",
    "merge nowhere -o out",
    "merge notes.txt/data -o out",
    "flags --clang no-such-clang",
    "flags --clang ./no-such-clang",
    "flags --clang notes.txt",
    "flags --clang ./notes.txt",
    "flags --clang true",
    "run --trace -- true",
    "run --trace --gpu model --drain llvm -- true",
    "run -- no-such-program",
    "run -- ./no-such-program",
    "run -- in-the-directory",
    "run -- ./notes.txt",
    "run -- ./no-interpreter",
];

/// Makes the files.
fn files(directory: &std::path::Path) {
    let make = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    make("notes.txt", "not a file of rocov\n");
    make("rocov-data/profraw/gfx90a.0f3c9b.0.4711.profraw", "");
    // The names of LLVM's own drain, and the program's profile next to them.
    make("llvms/profraw/gfx942:sramecc+:xnack-.4711.profraw", "");
    make("llvms/profraw/4711.profraw", "");
    make("llvms/objects/gfx942.0f3c9b.elf", "");
    make("llvms-of-several-gpus/gfx90a.1.4711.profraw", "");
    make("llvms-of-one-device/gfx942.hsa0.4711.profraw", "");
    for (name, text) in [
        ("in-the-directory", "#!/bin/sh\n"),
        ("no-interpreter", "#!/no/such/shell\n"),
    ] {
        let path = make(name, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn each_slip_gets_a_message_that_helps() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    files(&path);
    let libraries = rocov_tests::cli::empty_libraries();
    let mut messages = String::new();
    for slip in SLIPS {
        let mut command = rocov();
        command.args(slip.split(' ')).current_dir(&path);
        command.env("ROCOV_LIBRARY_DIR", libraries.path());
        let output = command.output().unwrap();
        let text = stderr(&output).replace(path.to_str().unwrap(), "DIRECTORY");
        let status = output.status.code().unwrap();
        let _ = write!(messages, "$ rocov {slip}\n{text}-> {status}\n\n");
    }
    let path = "tests/command/snapshots/slips.txt";
    records::compare([(path, messages.trim_end().to_owned() + "\n")]);
}
