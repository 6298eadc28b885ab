//! Effects other than counts: names of files, and the use of the GPU.

use std::process::Command;

use super::modules::Modules;
use super::{GPU, LARGE, Program, Ran, Released, repository};
use crate::support::command::run;

/// Programs that archive files for CI refuse colons in their names.
#[test]
fn colons_in_names() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let ran = modules.both("data:FIRST first sync unload");
    let have_colons = |ran: &Ran| {
        let mut names = ran
            .profiles
            .iter()
            .filter_map(|profile| profile.file_name());
        assert!(!ran.profiles.is_empty(), "{}", ran.ended);
        names.any(|name| name.to_string_lossy().contains(':'))
    };
    assert!(have_colons(&ran.llvms), "{:?}", ran.llvms.profiles);
    assert!(!have_colons(&ran.rocovs), "{:?}", ran.rocovs.profiles);
}

/// The modelled GPU's log has a line when a process opens the GPU's driver.
#[test]
fn a_program_that_uses_no_gpu() {
    let Some(released) = Released::find() else {
        return;
    };
    let source = repository("testdata/programs/found/modules.cpp");
    let object = released.compiled(&source, &[], &[], "modules.o");
    let program = Program::link(released, &[object], "modules");
    let log = ("ROCOV_MODELGPU_LOG", "2");
    let opens = |command: &mut Command| {
        let ended = run(command.arg("none").env(log.0, log.1)).success();
        ended.stderr.contains("opened: ")
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut llvms = released.with_llvms(GPU, LARGE, directory.path());
    assert!(opens(llvms.arg(&program.with_llvms)));
    let mut rocovs = released.under_rocov(GPU, LARGE, &[], directory.path());
    assert!(!opens(rocovs.arg(&program.without)));
}
