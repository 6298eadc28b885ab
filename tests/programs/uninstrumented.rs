//! A HIP program without instrumentation runs as without rocov and leaves no profile. The report
//! tells the user how to instrument it.

use crate::support::artifacts::built;
use crate::support::command::{limited, rocov_run, run};
use crate::support::compile::sample;

#[test]
fn runs_as_without_rocov_and_the_report_says_why_there_is_none() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let sample = sample(&[]);

    let mut bare = limited("env");
    let mut preload = std::ffi::OsString::from("LD_PRELOAD=");
    preload.push(built("librocov_modelgpu.so"));
    bare.arg(preload).arg("ROCOV_MODELGPU=gfx90a");
    bare.arg(&sample).args(["--exit-status", "7"]);
    let bare = run(&mut bare).with_status(7);
    assert!(bare.stdout.contains("all as on the CPU"), "{bare}");

    let mut rocov = rocov_run(Some("model:gfx90a"), &data);
    let ended = run(rocov.arg(&sample).args(["--exit-status", "7"])).with_status(7);
    assert_eq!(ended.stdout, bare.stdout, "standard output");
    // tests/programs/messages.rs checks the messages of `rocov run` and of `rocov report` below.
    let said = ended.stderr.lines().count() - bare.stderr.lines().count();
    assert_eq!(said, 1, "{ended}");
    assert!(!data.exists(), "{} was made", data.display());

    let mut report = limited(built("rocov"));
    report.arg("report").arg(&data).arg("--object").arg(&sample);
    let ended = run(&mut report).with_status(1);
    assert_eq!(ended.stdout, "");
    ended.says(&["no instrumented GPU code ran"]);
}
