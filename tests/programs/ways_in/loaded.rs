//! librocov.so preloaded, or linked before or after HIP.

use std::ffi::OsString;

use super::programs::{KERNEL, counts_twice, link, object, on_model, plain, stacks, tally_object};
use crate::parts;
use crate::support::artifacts::built;

const HOOKED: &str = "hooked into HSA's tool table";

fn needed() -> [OsString; 2] {
    let library = built("librocov.so");
    let directory = library.parent().expect("a file is in a directory");
    let mut path = OsString::from("-Wl,-rpath,");
    path.push(directory);
    [library.into_os_string(), path]
}

#[test]
fn a_preloaded_library_interposes() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = on_model(data.path(), &[built("librocov.so")]);
    let ended = counts_twice(command.arg(plain()), data.path(), &[KERNEL]);
    assert!(!ended.stderr.contains(HOOKED), "{ended}");
}

#[test]
fn a_library_that_is_needed_before_or_behind_hip_interposes() {
    let [library, path] = needed();
    let all = "-Wl,--no-as-needed";
    let [main, tally] = [object("main.cpp", &[]), tally_object(KERNEL)];
    for stack in stacks() {
        let hip = stack.linking();
        let orders = [
            [&parts![all, &library, &path, &main, &tally], hip.as_slice()].concat(),
            [
                &parts![all, &main, &tally],
                hip.as_slice(),
                &parts![&library, &path],
            ]
            .concat(),
        ];
        for order in orders {
            let data = tempfile::tempdir().expect("a temporary directory");
            let mut command = on_model(data.path(), &[]);
            command.args(stack.starter());
            let program = link("tally-needs-rocov", &order);
            let ended = counts_twice(command.arg(program), data.path(), &[KERNEL]);
            assert!(!ended.stderr.contains(HOOKED), "{stack:?}: {ended}");
        }
    }
}
