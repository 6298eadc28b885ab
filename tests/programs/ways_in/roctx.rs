//! ROCTx: ranges become labels if the user enables it; librocov always passes calls on.
//!
//! Debian 12 has no ROCTx, so the test has a substitute library.

use super::programs::{HIP, KERNEL, link, object, on_model, tally_object};
use crate::parts;
use crate::support::artifacts::built;
use crate::support::command::{Ended, run};
use crate::support::profile::{functions, merge, raw_profiles};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runs the annotated program, linked with ROCTx's functions.
fn ended(data: &Path, preloaded: &[PathBuf], roctx: &Path, opted: &str) -> Ended {
    let mut path = OsString::from("-Wl,-rpath,");
    path.push(roctx.parent().expect("a file is in a directory"));
    let first = parts![object("annotated.cpp", &[]), tally_object(KERNEL), HIP[0]];
    let program = link("annotated", &[&first[..], &parts![roctx, path]].concat());
    run(on_model(data, preloaded).arg(opted).arg(program)).success()
}

fn stand_in() -> PathBuf {
    link(
        "libroctx64.so",
        &parts!["-shared", object("roctx.cpp", &[])],
    )
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
    // Without a ROCTx, the calls end in librocov.
    for (roctx, levels) in [
        (librocov.clone(), "levels: 0 1 2 2 1 0 -1\n"),
        (stand_in(), "levels: 10 11 12 12 11 10 9\n"),
    ] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let preloaded = std::slice::from_ref(&librocov);
        let ended = ended(data.path(), preloaded, &roctx, "ROCOV_ROCTX=1");
        assert!(ended.stdout.ends_with(levels), "{ended}");
        let of = |label: &str| calls(&data.path().join("profraw/labels").join(label));
        let found = ["start%20up", "train", "train/step%201"].map(of);
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
    let stand_in = stand_in();
    let data = tempfile::tempdir().expect("a temporary directory");
    let without = ended(data.path(), &[], &stand_in, "ROCOV_ROCTX=0");
    for opted in ["ROCOV_ROCTX=0", "ROCOV_ROCTX=1"] {
        let data = tempfile::tempdir().expect("a temporary directory");
        let preloaded = [built("librocov.so")];
        let ended = ended(data.path(), &preloaded, &stand_in, opted);
        assert_eq!(ended.stdout, without.stdout, "{ended}");
        assert_eq!(
            data.path().join("profraw/labels").exists(),
            opted.ends_with('1')
        );
    }
}
