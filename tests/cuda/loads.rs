//! Modules that are loaded and unloaded in each way.

use tempfile::TempDir;

use crate::setup::{BIN_OF, HISTOGRAM, Setup, counts, expect, profiles, step, steps};

fn data() -> TempDir {
    TempDir::new().expect("a directory can be made")
}

#[test]
fn a_module_is_drained_at_exit() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps([
        "plant:__profc__Z6bin_off:999,0,769",
        "plant:__profc__Z9histogramPKfiPj:1024,1000,999",
        "exit:3",
    ]));
    let ended = setup.run(data.path(), &all).with_status(3).silently();
    assert_eq!(ended.stdout, "done\n");
    let found = counts(&profiles(data.path()), data.path());
    expect(
        &found,
        &[(BIN_OF, &[999, 0, 769]), (HISTOGRAM, &[1024, 1000, 999])],
    );
}

#[test]
fn a_module_that_is_unloaded_and_loaded_again_adds_up() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let mut all = Vec::new();
    for planted in ["1,2,3", "10,20,30", "100,200,300"] {
        all.push(step("load", &setup.cubin));
        all.push(format!("plant:__profc__Z6bin_off:{planted}"));
        all.extend(steps(["unload"]));
    }
    setup.run(data.path(), &all).success().silently();
    let found = counts(&profiles(data.path()), data.path());
    expect(&found, &[(BIN_OF, &[111, 222, 333])]);
}

#[test]
fn a_library_is_drained_whoever_loads_its_module() {
    let Some(setup) = Setup::get() else { return };
    // The CUDA runtime asks for the module. A launch loads it without a call that tells of its handle.
    for how in ["get", "launch"] {
        for end in ["unload", "release", "exit:0"] {
            let data = data();
            let mut all = vec![step("library", &setup.cubin)];
            all.extend(steps([how, "plant:__profc__Z6bin_off:7,8,9", end]));
            setup.run(data.path(), &all).success().silently();
            let found = counts(&profiles(data.path()), data.path());
            expect(&found, &[(BIN_OF, &[7, 8, 9])]);
        }
    }
}

#[test]
fn each_gpu_has_its_own_counts() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let mut all = vec![step("load", &setup.cubin)];
    all.extend(steps(["plant:__profc__Z6bin_off:1,0,0", "device:1"]));
    all.push(step("load", &setup.cubin));
    all.extend(steps(["plant:__profc__Z6bin_off:0,5,0"]));
    setup.run(data.path(), &all).success().silently();
    let found = profiles(data.path());
    assert_eq!(found.len(), 2, "{found:?}");
    expect(&counts(&found[..1], data.path()), &[(BIN_OF, &[1, 0, 0])]);
    expect(&counts(&found[1..], data.path()), &[(BIN_OF, &[0, 5, 0])]);
    expect(&counts(&found, data.path()), &[(BIN_OF, &[1, 5, 0])]);
}

#[test]
fn a_module_that_does_not_count_leaves_no_file() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let directory = data.path().join("data");
    let mut all = vec![step("load", &setup.plain())];
    all.extend(steps(["exit:5"]));
    let ended = setup.run(&directory, &all).with_status(5);
    assert_eq!(ended.stdout, "done\n");
    ended.says(&["nothing was drained: no process loaded GPU code that counts"]);
    assert!(!directory.exists(), "a directory was made");
}
