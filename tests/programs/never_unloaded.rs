//! A code object that is still loaded at the program's end is drained then. Its profile equals that
//! of a program that unloads it.

use crate::support::artifacts::repository;
use crate::support::command::run;
use crate::support::compile::code_object;
use crate::support::gpu::{Stack, data, the_profile};
use crate::support::profile::{Functions, functions};
use crate::support::spec::expand;

const TARGET: &str = "gfx90a";

/// The counts after a run with these options before the runner's arguments.
fn counts(stack: Stack, options: &[&str]) -> Functions {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let template = repository("testdata/kernels/collatz.spec");
    let spec = expand(&template, directory.path());
    let object = code_object("collatz", TARGET, "-O1", stack.code_object_version());
    let mut command = stack.runner(TARGET, &data(directory.path()));
    command.args(options).args([&object, &spec]);
    run(command.arg(directory.path())).success().silently();
    functions(&the_profile(directory.path()))
}

#[test]
fn is_drained_at_exit() {
    let stacks = Stack::all().into_iter();
    for stack in stacks {
        let unloaded = counts(stack, &[]);
        assert!(
            unloaded.values().any(|function| function.calls > 0),
            "nothing was counted by {stack:?}: {unloaded:?}"
        );
        let kept = counts(stack, &["--keep-loaded"]);
        assert_eq!(kept, unloaded, "never unloaded, unloaded, by {stack:?}");
    }
}
