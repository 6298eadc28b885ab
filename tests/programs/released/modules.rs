//! Modules: code objects that the program loads itself.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{Both, GPU, Program, Released, repository, tally_source};

/// Calls of one launch.
const CALLS: u64 = 128;

/// The program that runs steps, and two code objects with one kernel each.
pub(super) struct Modules {
    program: Program,
    first: PathBuf,
    second: PathBuf,
}

impl Modules {
    /// Returns `None` if LLVM's drain or its HIP is not unpacked.
    pub(super) fn find() -> Option<Self> {
        let released = Released::find()?;
        let source = repository("testdata/programs/found/modules.cpp");
        let object = released.compiled(&source, &[], &[], "modules.o");
        let module = |kernel: &str| {
            let name = format!("-DTALLY_KERNEL={kernel}");
            released.code_object(&tally_source(), &[&name], &format!("{kernel}.module"))
        };
        Some(Self {
            first: module("first"),
            second: module("second"),
            program: Program::link(released, &[object], "modules"),
        })
    }

    /// The arguments for these steps. FIRST and SECOND are the code objects' files, `first` and
    /// `second` launches of their kernels.
    fn steps(&self, steps: &str) -> Vec<OsString> {
        let [first, second] = [&self.first, &self.second].map(|path| path.display().to_string());
        let step = |step: &str| match step {
            "first" | "second" => format!("launch:{step}:100").into(),
            _ => step
                .replace("FIRST", &first)
                .replace("SECOND", &second)
                .into(),
        };
        let steps = steps.split_whitespace().map(step);
        std::iter::once(OsString::from("none"))
            .chain(steps)
            .collect()
    }

    #[track_caller]
    fn have(&self, steps: &str, llvms: &[(&str, u64)], rocovs: &[(&str, u64)]) {
        self.both(steps).have(llvms, rocovs);
    }

    /// Runs these steps with each drain.
    pub(super) fn both(&self, steps: &str) -> Both {
        self.program.both(&self.steps(steps))
    }

    /// Expects these counts of rocov's drain. LLVM's sometimes loses those of `second`.
    #[track_caller]
    fn have_on(&self, gpus: &str, steps: &str, rocovs: &[(&str, u64)]) {
        let ran = self.program.both_on(gpus, &self.steps(steps));
        ran.rocovs.has(rocovs);
        assert_eq!(
            ran.llvms.calls.get("first"),
            Some(&CALLS),
            "{}",
            ran.llvms.ended
        );
    }
}

#[test]
fn from_memory_at_exit() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let counted = [("first", CALLS)];
    modules.have("data:FIRST first sync", &counted, &counted);
}

#[test]
fn from_memory_unloaded() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let counted = [("first", CALLS)];
    modules.have("data:FIRST first sync unload", &counted, &counted);
}

#[test]
fn from_a_file_at_exit() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let counted = [("first", CALLS)];
    modules.have("load:FIRST first sync", &counted, &counted);
}

#[test]
fn from_a_file_unloaded() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let counted = [("first", CALLS)];
    modules.have("load:FIRST first sync unload", &[], &counted);
}

#[test]
fn launches_after_a_collect() {
    let Some(modules) = Modules::find() else {
        return;
    };
    modules.have(
        "data:FIRST first sync collect first first sync",
        &[("first", CALLS)],
        &[("first", 3 * CALLS)],
    );
}

#[test]
fn another_module_after_a_collect() {
    let Some(modules) = Modules::find() else {
        return;
    };
    modules.have(
        "data:FIRST first sync collect data:SECOND second second sync",
        &[("first", CALLS)],
        &[("first", CALLS), ("second", 2 * CALLS)],
    );
}

#[test]
fn a_collect_before_the_first_launch() {
    let Some(modules) = Modules::find() else {
        return;
    };
    modules.have(
        "data:FIRST collect first first sync",
        &[],
        &[("first", 2 * CALLS)],
    );
}

/// LLVM's drain keeps copies of sections by their addresses. HIP uses an address again, from the
/// second module on or from the third, and the counts of the first module there come again.
#[test]
fn a_reused_address() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let round = "data:FIRST first sync unload data:SECOND second second sync unload ";
    let ran = modules.both(&round.repeat(4));
    ran.rocovs
        .has(&[("first", 4 * CALLS), ("second", 8 * CALLS)]);
    assert_ne!(ran.llvms.calls, ran.rocovs.calls, "{}", ran.llvms.ended);
}

/// The address of the second module is sometimes that of the first.
#[test]
fn another_module_at_exit() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let steps = "data:FIRST first sync unload data:SECOND second second sync";
    modules.have_on(GPU, steps, &[("first", CALLS), ("second", 2 * CALLS)]);
}

#[test]
fn another_module_unloaded() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let steps = "data:FIRST first sync unload data:SECOND second second sync unload";
    modules.have_on(GPU, steps, &[("first", CALLS), ("second", 2 * CALLS)]);
}

#[test]
fn two_gpus_at_exit() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let steps = "device:0 data:FIRST first sync device:1 data:SECOND second second sync";
    let ran = modules
        .program
        .both_on(&format!("{GPU}x2"), &modules.steps(steps));
    let counted = [("first", CALLS), ("second", 2 * CALLS)];
    ran.have(&counted, &counted);
}

/// LLVM's drain can find the first module's sections at the second one's addresses.
#[test]
fn two_gpus_unloaded() {
    let Some(modules) = Modules::find() else {
        return;
    };
    let steps =
        "device:0 data:FIRST first sync unload device:1 data:SECOND second second sync unload";
    let gpus = format!("{GPU}x2");
    modules.have_on(&gpus, steps, &[("first", CALLS), ("second", 2 * CALLS)]);
}
