//! Contexts that come and go, threads, forks, and kernels that fail.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::setup::{BIN_OF, Setup, counts, expect, profiles, step, steps};
use crate::support::profile::raw_profiles;

fn data() -> TempDir {
    TempDir::new().expect("a directory can be made")
}

/// The counts of `bin_of` after `steps`, in which `FILE` stands for the cubin.
fn bin_of(setup: &Setup, all: &str) -> Vec<u64> {
    let data = data();
    let all = with_cubin(setup, all);
    setup.run(data.path(), &all).success().silently();
    let found = counts(&profiles(data.path()), data.path());
    found[BIN_OF].clone()
}

fn with_cubin(setup: &Setup, all: &str) -> Vec<String> {
    let file = setup.cubin.display().to_string();
    let all = all.split_whitespace();
    all.map(|step| {
        step.replace("FILE", &file)
            .replace("BIN", "__profc__Z6bin_off")
    })
    .collect()
}

#[test]
fn code_that_comes_in_any_way_is_drained() {
    let Some(setup) = Setup::get() else { return };
    for how in ["load", "data", "options", "fatbinary"] {
        let all = format!("{how}:FILE plant:BIN:1,2,3 unload {how}:FILE plant:BIN:10,20,30");
        assert_eq!(bin_of(setup, &all), [11, 22, 33], "{how}");
    }
    for how in ["library", "library-file"] {
        let all =
            format!("{how}:FILE get plant:BIN:1,2,3 unload {how}:FILE launch plant:BIN:4,0,0");
        assert_eq!(bin_of(setup, &all), [5, 2, 3], "{how}");
    }
}

#[test]
fn code_that_the_driver_compiles_is_drained() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let ptx: PathBuf = data.path().join("kernels.ptx");
    let text = format!("// cubin: {}\n.version 8.8\n", setup.cubin.display());
    std::fs::write(&ptx, text).expect("it can be written");
    for how in ["load", "data"] {
        let data = TempDir::new().expect("a directory can be made");
        let mut all = vec![step(how, &ptx)];
        all.extend(steps(["plant:__profc__Z6bin_off:3,0,1"]));
        setup.run(data.path(), &all).success().silently();
        let found = counts(&profiles(data.path()), data.path());
        expect(&found, &[(BIN_OF, &[3, 0, 1])]);
    }
}

#[test]
fn contexts_that_end_lose_nothing() {
    let Some(setup) = Setup::get() else { return };
    // Two contexts have one cubin.
    let both = "load:FILE plant:BIN:1,0,0 context:0 load:FILE plant:BIN:0,2,0";
    for end in [
        "",
        "destroy",
        "use:0 release",
        "use:0 reset",
        "destroy use:0 reset",
    ] {
        assert_eq!(bin_of(setup, &format!("{both} {end}")), [1, 2, 0], "{end}");
    }
    // A primary context has its address again after a reset, and numbers of modules continue.
    let anew =
        "load:FILE plant:BIN:1,0,0 reset load:FILE plant:BIN:0,5,0 reset load:FILE plant:BIN:0,0,9";
    assert_eq!(bin_of(setup, anew), [1, 5, 9]);
    let library = "library:FILE get plant:BIN:1,0,0 reset launch plant:BIN:0,5,0 reset";
    assert_eq!(bin_of(setup, library), [1, 5, 0]);
}

#[test]
fn two_libraries_of_one_cubin_do_not_take_each_others_counts() {
    let Some(setup) = Setup::get() else { return };
    // The driver has loaded the module of the second by itself. Asked for that of the first, it loads another.
    let all = "library:FILE library:FILE launch plant:BIN:1,2,3 exit:0";
    assert_eq!(bin_of(setup, all), [1, 2, 3]);
}

#[test]
fn any_thread_may_unload() {
    let Some(setup) = Setup::get() else { return };
    let all =
        "load:FILE plant:BIN:1,0,0 thread:unload load:FILE thread:plant:BIN:0,2,0 thread:reset";
    assert_eq!(bin_of(setup, all), [1, 2, 0]);
}

#[test]
fn threads_that_load_and_drain_do_not_wait_for_each_other() {
    let Some(setup) = Setup::get() else { return };
    let all = "load:FILE plant:BIN:1,2,3 race:300:FILE";
    assert_eq!(bin_of(setup, all), [1, 2, 3]);
}

#[test]
fn forked_children_write_nothing() {
    let Some(setup) = Setup::get() else { return };
    let data = data();
    let all = with_cubin(
        setup,
        "load:FILE plant:BIN:1,2,3 fork:7 plant:BIN:4,5,6 exit:2",
    );
    let ended = setup.run(data.path(), &all).with_status(2).silently();
    assert_eq!(ended.stdout, "child: status 7\ndone\n");
    let found = counts(&profiles(data.path()), data.path());
    expect(&found, &[(BIN_OF, &[4, 5, 6])]);
}

#[test]
fn a_kernel_that_fails_costs_one_line() {
    let Some(setup) = Setup::get() else { return };
    let line =
        "counts since the last drain are lost: a kernel or its GPU has failed with CUDA error 719";
    for end in ["exit:3", "reset exit:3", "unload exit:3"] {
        let data = data();
        let all = format!(
            "context:1 load:FILE plant:BIN:0,0,5 use:0 \
             load:FILE load:FILE load:FILE plant:BIN:1,2,3 drain plant:BIN:9,9,9 trap {end}"
        );
        let ended = setup
            .run(data.path(), &with_cubin(setup, &all))
            .with_status(3);
        assert_eq!(ended.stdout, "done\n");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        // The second is the closing line of the command.
        assert!(lines.len() == 2 && lines[0].contains(line), "{ended}");
        // Earlier drains and the other context keep their counts.
        let found = counts(&profiles(data.path()), data.path());
        expect(&found, &[(BIN_OF, &[1, 2, 8])]);
    }
}

#[test]
fn a_capture_of_a_graph_goes_on() {
    let Some(setup) = Setup::get() else { return };
    for during in ["drain", "label:a pop", "load:FILE unload", "dump:x"] {
        let data = data();
        let all = format!("load:FILE plant:BIN:1,2,3 capture:begin {during} capture:end");
        let ended = setup
            .run(data.path(), &with_cubin(setup, &all))
            .success()
            .silently();
        assert_eq!(ended.stdout, "capture: status 0\ndone\n", "{during}");
        let mut all = profiles(data.path());
        all.extend(raw_profiles(&data.path().join("profraw/labels/x")));
        expect(&counts(&all, data.path()), &[(BIN_OF, &[1, 2, 3])]);
    }
}

#[test]
fn a_drain_waits_for_kernels() {
    let Some(setup) = Setup::get() else { return };
    assert_eq!(
        bin_of(setup, "load:FILE plant:BIN:1,2,3 kernel:20 unload"),
        [1, 2, 3]
    );
    let data = data();
    let all = with_cubin(
        setup,
        "load:FILE plant:BIN:1,2,3 kernel:1000000 unload exit:0",
    );
    let mut command = setup.command(data.path(), &all);
    let ended = crate::support::command::run(command.env("ROCOV_WAIT", "1")).success();
    ended.says(&["a kernel is still running after 1 s (ROCOV_WAIT) while code is unloaded"]);
}
