//! librocov that comes in when code is loaded already and kernels have run.

use super::opened::library;
use super::programs::{KERNEL, counts_twice, link, object, on_model, source, tally_code_object};
use crate::parts;
use crate::support::artifacts::built;
use std::path::PathBuf;

fn late() -> PathBuf {
    link("late", &parts![object("late.cpp", &[])])
}

/// Drained at exit; on request, which nothing has been seen of before; and from a reset on. What is
/// unloaded after a drain is not looked for again, though another has its handle.
#[test]
fn finds_what_is_loaded() {
    let kernels = ["tally_one", "tally_two"];
    for scope in ["local", "global"] {
        for (how, kernels) in [
            ("exit", &kernels[..1]),
            ("drain", &kernels[..]),
            ("reset", &kernels[..1]),
        ] {
            let data = tempfile::tempdir().expect("a temporary directory");
            let mut command = on_model(data.path(), &[]);
            command.arg(late()).arg(scope).arg(built("librocov.so"));
            command.arg(how).args(kernels.iter().map(|it| library(it)));
            let ended = counts_twice(&mut command, data.path(), kernels);
            assert!(!ended.stderr.contains("rocov: cannot"), "{ended}");
        }
    }
}

/// As an extension of Python's does it: each library in a scope of its own.
#[test]
fn may_be_opened_by_python() {
    for scope in ["local", "global"] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut command = on_model(data.path(), &[]);
        command.arg("python3").arg(source("opens_hip.py"));
        command.arg(scope).arg(tally_code_object()).arg(KERNEL);
        counts_twice(command.arg(built("librocov.so")), data.path(), &[KERNEL]);
    }
}
