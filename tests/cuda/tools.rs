//! The command and LLVM's tools on the counts of a cubin.

use tempfile::TempDir;

use crate::setup::{Setup, profiles, step, steps};
use crate::support::artifacts::{built, repository};
use crate::support::command::{limited, run};
use crate::support::profile::{cov, merge};

/// The data of a program that has counted.
fn counted(setup: &Setup) -> TempDir {
    let data = TempDir::new().expect("a directory can be made");
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps([
        "plant:__profc__Z6bin_off:999,0,769",
        "plant:__profc__Z9histogramPKfiPj:1024,1000,999",
    ]));
    setup.run(data.path(), &all).success().silently();
    data
}

#[test]
fn reports_have_the_figures_of_llvm_cov() {
    let Some(setup) = Setup::get() else { return };
    let data = counted(setup);
    let merged = data.path().join("merged.profdata");
    merge(&profiles(data.path()), &merged);
    let objects = data.path().join("objects");
    let elf = std::fs::read_dir(objects).expect("an ELF is kept").next();
    let elf = elf
        .expect("an ELF is kept")
        .expect("it can be listed")
        .path();
    let mut export = limited(cov());
    export.args(["export", "--format=lcov", "--instr-profile"]);
    let expected = run(export.arg(&merged).arg(&elf)).success().stdout;
    let lcov = data.path().join("lines.info");
    let mut report = limited(built("rocov"));
    report.args(["report", "--lcov", "-o"]).arg(&lcov);
    run(report.arg(data.path())).success();
    let ours = std::fs::read_to_string(lcov).expect("it was written");
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("DA:"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&ours), lines(&expected));
    assert!(lines(&ours).len() > 15, "{ours}");
}

#[test]
fn kernels_are_listed_with_their_registers() {
    let Some(setup) = Setup::get() else { return };
    let data = counted(setup);
    let mut kernels = limited(built("rocov"));
    let listed = run(kernels.arg("kernels").arg(data.path()))
        .success()
        .stdout;
    assert!(
        listed.contains("histogram(float const*, int, unsigned int*)"),
        "{listed}"
    );
    let source = repository("testdata/cuda/kernels.cu");
    assert!(
        listed.contains(&*source.to_string_lossy()) || listed.contains("kernels.cu"),
        "{listed}"
    );
}

#[test]
fn a_report_counts_what_a_cubin_has_and_nothing_ran() {
    let Some(setup) = Setup::get() else { return };
    let data = TempDir::new().expect("a directory can be made");
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps(["exit:0"]));
    setup.run(data.path(), &all).success();
    let mut report = limited(built("rocov"));
    report.arg("report").arg(data.path());
    let text = run(report.arg("--object").arg(&setup.cubin))
        .success()
        .stdout;
    assert!(text.contains("kernels.cu"), "{text}");
    assert!(text.contains("sm_90: "), "{text}");
}
