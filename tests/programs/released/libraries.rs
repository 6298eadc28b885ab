//! Device code in shared libraries, each with a copy of LLVM's drain.

use std::path::PathBuf;
use std::process::Command;

use super::{Both, GPU, LARGE, Ran, Released, repository, tally_source, words};
use crate::support::command::run;

/// Calls of the two launches of each library.
const CALLS: u64 = 2 * 128;

#[track_caller]
fn run_libraries(what: &str) -> Option<Both> {
    let released = Released::find()?;
    let source = repository("testdata/programs/ways_in/loader.cpp");
    let loader = released.compiled(&source, &[], &[], "loader.o");
    let loader = released.linked(&[loader], &["-Wl,--as-needed"], "loader");
    let objects = ["first", "second"].map(|kernel| {
        let define = format!("-DTALLY_KERNEL={kernel}");
        let object = released.compiled(&tally_source(), &[], &[&define], "tally.o");
        (object, format!("lib{kernel}.so"))
    });
    let shared = ["-shared"];
    let with_llvms = objects
        .clone()
        .map(|(object, name)| released.linked_with_drain(&[object], &shared, &name));
    let without = objects.map(|(object, name)| released.linked(&[object], &shared, &name));
    let arguments = |libraries: [PathBuf; 2]| {
        let mut arguments = words(&[what, "local"]);
        arguments.extend(libraries.map(PathBuf::into_os_string));
        arguments
    };
    let run_with =
        |mut command: Command, libraries| run(command.arg(&loader).args(arguments(libraries)));
    let llvms = Ran::new(&released, |data| {
        run_with(released.with_llvms(GPU, LARGE, data), with_llvms)
    });
    let rocovs = Ran::new(&released, |data| {
        run_with(released.under_rocov(GPU, LARGE, &[], data), without)
    });
    Some(Both { llvms, rocovs })
}

#[test]
fn two_libraries_at_exit() {
    let Some(ran) = run_libraries("keep") else {
        return;
    };
    let counted = [("first", CALLS), ("second", CALLS)];
    ran.have(&counted, &counted);
}

#[test]
fn two_libraries_closed() {
    let Some(ran) = run_libraries("close") else {
        return;
    };
    let counted = [("first", CALLS), ("second", CALLS)];
    ran.have(&counted, &counted);
}
