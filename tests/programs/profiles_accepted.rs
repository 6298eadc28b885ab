//! LLVM accepts the drain's profiles: its tools read them without a warning, both those of the
//! compiler's release and those of the first release with this raw version.

use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::code_object;
use crate::support::compilers::{Compiler, RELEASES, raw_version_of};
use crate::support::gpu::{Stack, the_profile};
use crate::support::spec::expand;

const TARGET: &str = "gfx90a";

fn accepted_by(llvm: &Compiler) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let spec = expand(&repository("testdata/kernels/calls.spec"), directory.path());
    let object = code_object("calls", TARGET, "-O1", Stack::usual().code_object_version());
    Stack::usual()
        .run(TARGET, &object, &spec, directory.path())
        .success();
    let raw = the_profile(directory.path());
    let merged = directory.path().join("merged.profdata");

    let mut merge = limited(llvm.tool("llvm-profdata"));
    merge.arg("merge").arg(&raw).arg("-o").arg(&merged);
    run(&mut merge).success().silently();

    for profile in [&raw, &merged] {
        let mut show = limited(llvm.tool("llvm-profdata"));
        show.args(["show", "--all-functions", "--counts"])
            .arg(profile);
        let shown = run(&mut show).success().silently().stdout;
        assert!(shown.contains("_Z8classifyi"), "{shown}");
    }

    let mut report = limited(llvm.tool("llvm-cov"));
    report
        .arg("report")
        .arg(&object)
        .arg("-instr-profile")
        .arg(&merged);
    let table = run(&mut report).success().silently().stdout;
    assert!(table.contains("calls.hip"), "{table}");
}

#[test]
fn by_its_own_release() {
    accepted_by(Compiler::usual());
}

#[test]
fn by_the_first_release_with_its_raw_version() {
    let version = Compiler::usual().raw_version();
    let first = RELEASES
        .into_iter()
        .find(|release| raw_version_of(*release) == version)
        .expect("the tests' compiler is a release of the list");
    if let Some(first) = Compiler::find(first) {
        accepted_by(first);
    }
}
