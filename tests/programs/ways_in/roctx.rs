//! ROCTx: ranges become labels if the user enables it; librocov always passes calls on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::programs::{HIP, KERNEL, link, object, on_model, tally_object};
use crate::parts;
use crate::support::artifacts::built;
use crate::support::command::{Ended, run};
use crate::support::profile::{functions, merge, raw_profiles};
use crate::support::unpacked::asked;

/// Runs the annotated program, linked with ROCTx's functions.
fn ended(data: &Path, preloaded: &[PathBuf], roctx: &Path, opted: &str) -> Ended {
    let mut path = OsString::from("-Wl,-rpath,");
    path.push(roctx.parent().expect("a file is in a directory"));
    let first = parts![object("annotated.cpp", &[]), tally_object(KERNEL), HIP[0]];
    let program = link("annotated", &[&first[..], &parts![roctx, path]].concat());
    run(on_model(data, preloaded).arg(opted).arg(program)).success()
}

/// ROCm's own library, if it is unpacked.
fn real() -> Option<PathBuf> {
    let libraries = asked("libraries", "roctx-7.2.4", "no range goes to ROCTx")?;
    Some(Path::new(libraries.trim_end()).join("libroctx64.so.4"))
}

/// The kernel's number of calls in the profiles of a directory.
fn calls(directory: &Path) -> u64 {
    const CALLS_OF_A_RUN: u64 = 128;
    let merged = directory.join("all.profdata");
    merge(&raw_profiles(directory), &merged);
    functions(&merged)[KERNEL].calls / CALLS_OF_A_RUN
}

#[test]
fn ranges_are_labels_where_asked_for() {
    let librocov = built("librocov.so");
    // Without a ROCTx, the calls end in librocov, which answers as ROCTx does.
    let levels = "levels: 0 1 2 2 1 0 -1\n";
    for roctx in [Some(librocov.clone()), real()].into_iter().flatten() {
        let data = tempfile::tempdir().expect("a temporary directory");
        let preloaded = std::slice::from_ref(&librocov);
        let ended = ended(data.path(), preloaded, &roctx, "ROCOV_ROCTX=1");
        assert!(ended.stdout.ends_with(levels), "{ended}");
        let calls_with = |label: &str| calls(&data.path().join("profraw/labels").join(label));
        let found = ["start%20up", "train", "train/step%201"].map(calls_with);
        assert_eq!((found, calls(data.path())), ([1, 2, 1], 1), "{ended}");
        // rocov reports a range that cannot be a label.
        assert_eq!(
            ended.stderr.matches("rocov_label_push: ").count(),
            1,
            "{ended}"
        );
    }
}

#[test]
fn calls_are_passed_on_as_they_are() {
    let Some(roctx) = real() else { return };
    let data = tempfile::tempdir().expect("a temporary directory");
    let without = ended(data.path(), &[], &roctx, "ROCOV_ROCTX=0");
    let calls = without.stdout.matches("operation ").count();
    // A mark, three pushes and four pops.
    assert_eq!(calls, 8, "{without}");
    for opted in ["ROCOV_ROCTX=0", "ROCOV_ROCTX=1"] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let preloaded = [built("librocov.so")];
        let ended = ended(data.path(), &preloaded, &roctx, opted);
        assert_eq!(ended.stdout, without.stdout, "{ended}");
        assert_eq!(
            data.path().join("profraw/labels").exists(),
            opted.ends_with('1')
        );
    }
}
