//! librocov joins the process after code is loaded and kernels have run.

use std::path::PathBuf;

use super::opened::library;
use super::programs::{KERNEL, counts_twice, link, object, on_model, source, tally_code_object};
use crate::parts;
use crate::support::artifacts::built;

fn late() -> PathBuf {
    link("late", &parts![object("late.cpp", &[])])
}

/// The test drains at exit, on the first request, and after a reset. rocov does not search again
/// for code unloaded after a drain, even if other code has its handle.
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
            command
                .arg(how)
                .args(kernels.iter().map(|kernel| library(kernel)));
            let ended = counts_twice(&mut command, data.path(), kernels);
            assert!(!ended.stderr.contains("rocov: cannot"), "{ended}");
        }
    }
}

/// Like a Python extension: each library has its own scope.
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
