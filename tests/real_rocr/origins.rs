//! `ROCOV_ONLY` and `ROCOV_SKIP`: rocov drains one component of a program and not the others.

use std::path::{Path, PathBuf};

use crate::programs::{Ran, modules, object, source};
use crate::support::artifacts::repository;
use crate::support::command::Ended;
use crate::support::compile::{Compilation, INSTRUMENTATION, device_header};
use crate::support::gpu::Stack;
use crate::support::profile::functions;

/// A unit of unit.hip for HIP 5.2, instrumented.
fn compilation(unit: u32) -> Compilation {
    let instrumentation = INSTRUMENTATION.map(|flag| ["-Xarch_device", flag]);
    Compilation::on(Stack::Debian12)
        .arguments(["--config"])
        .source(repository("testdata/sample/debian12.cfg"))
        .arguments(["-O1"])
        .arguments(instrumentation.concat())
        .arguments(["-include"])
        .source(device_header())
        .arguments([format!("-DUNIT={unit}")])
        .source(source("unit.hip"))
}

/// A program with unit 0 in it and unit 1 in a library.
fn program() -> (PathBuf, PathBuf) {
    let library = compilation(1)
        .arguments(["-shared", "-fPIC"])
        .output("libcomponent.so");
    let program = compilation(0)
        .source(source("units.cpp"))
        .source(&library)
        .output("component_user");
    (program, library)
}

/// Expects a message if nothing was drained, and otherwise none.
#[track_caller]
fn says_what_is_left_out(ended: &Ended, is_nothing: bool) {
    const LINE: &str = "rocov: nothing was drained: ROCOV_ONLY and ROCOV_SKIP leave out all GPU code \
                        that was loaded; change or unset them\n";
    assert_eq!(ended.stderr, if is_nothing { LINE } else { "" }, "{ended}");
}

/// The kernels in the profiles of a run.
fn drained(program: &Path, environment: &[(&str, &str)]) -> Vec<String> {
    let ran = Ran::new(Stack::Debian12, "gfx90a", environment, [program]);
    let profiles = ran.profiles();
    let mut kernels: Vec<String> = profiles
        .iter()
        .flat_map(|profile| functions(profile).into_keys())
        .filter(|name| name.starts_with("unit_"))
        .collect();
    kernels.sort();
    says_what_is_left_out(&ran.ended, kernels.is_empty());
    kernels
}

#[test]
fn an_instrumented_library_apart_from_its_instrumented_user() {
    let (program, library) = program();
    let directory = library.parent().expect("a directory").display();
    let all = format!("{directory}/*");
    for (environment, expected) in [
        (&[][..], &["unit_0", "unit_1"][..]),
        (&[("ROCOV_ONLY", "libcomponent.so*")], &["unit_1"]),
        (&[("ROCOV_SKIP", "libcomponent.so*")], &["unit_0"]),
        (&[("ROCOV_ONLY", "nothing, component_user*")], &["unit_0"]),
        (&[("ROCOV_ONLY", &all)], &["unit_0", "unit_1"]),
        (
            &[("ROCOV_ONLY", &all), ("ROCOV_SKIP", "component_user*")],
            &["unit_1"],
        ),
        (&[("ROCOV_SKIP", "*")], &[]),
    ] {
        assert_eq!(drained(&program, environment), expected, "{environment:?}");
    }
}

#[test]
fn code_in_memory_comes_from_who_loads_it() {
    for stack in Stack::all() {
        let object = object("count.hip", stack);
        let loader = modules(stack);
        let loader = loader.file_name().unwrap_or_default().to_string_lossy();
        for (variable, glob, expected) in [
            ("ROCOV_ONLY", &*loader, 1),
            ("ROCOV_SKIP", &*loader, 0),
            ("ROCOV_ONLY", "libamdhip64.so*,librocov.so,libhsa*", 0),
        ] {
            let environment = [(variable, glob)];
            let steps = "data launch sync unload";
            let ran = Ran::steps_with(stack, "gfx90a", &environment, &object, steps);
            assert_eq!(
                ran.profiles().len(),
                expected,
                "{environment:?} on {stack:?}: {}",
                ran.ended
            );
            says_what_is_left_out(&ran.ended, expected == 0);
        }
    }
}

#[test]
fn what_is_not_a_glob_is_said_once_and_everything_is_drained() {
    let object = object("count.hip", Stack::Debian12);
    let environment = [("ROCOV_ONLY", "app,lib[a")];
    let steps = "load launch sync unload load launch sync";
    let ran = Ran::steps_with(Stack::Debian12, "gfx90a", &environment, &object, steps);
    ran.profile();
    let lines: Vec<&str> = ran.ended.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{}", ran.ended);
    ran.ended
        .says(&["ROCOV_ONLY", "`lib[a` is not a glob", "everything"]);
}
