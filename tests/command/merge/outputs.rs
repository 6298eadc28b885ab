//! The files that a merge writes, and its messages.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocov_tests::artifacts::built;
use rocov_tests::cli::{failure, run, stderr, stdout};

use crate::merge::{Place, names};

/// Writes profiles of host code as processes 1 and 2 of an instrumented program would.
fn host_profiles(place: &Place, clang: &str, directories: [&str; 2]) {
    let source = place.path("main.c");
    let program = place.path("main");
    fs::write(&source, "int main(void) { return 0; }").unwrap();
    let mut clang = Command::new(clang);
    clang.arg("-fprofile-instr-generate").arg(&source);
    run(clang.arg("-o").arg(&program));
    for (index, directory) in directories.iter().enumerate() {
        let path = place.path(directory).join(format!("{index}.profraw"));
        run(Command::new(&program).env("LLVM_PROFILE_FILE", path));
    }
}

/// A place with profiles of two archs and of host code in `one` and `two`.
fn mixed() -> Place {
    let place = Place::new();
    for (arch, count) in [("gfx90a", 1), ("gfx942", 10)] {
        let elf = place.elf(arch);
        place.profile("one", &elf, 1, count);
        place.profile("two", &elf, 2, 2 * count);
    }
    host_profiles(&place, "clang-22", ["one", "two"]);
    place
}

#[test]
fn a_directory_has_a_file_for_each_arch_and_for_host_code() {
    let place = mixed();
    let said = place.merged(&["one", "two", "-o", "new/out"]);
    assert_eq!(
        said,
        "gfx90a: 2 profiles of 1 code object: new/out/gfx90a.profdata\n\
         gfx942: 2 profiles of 1 code object: new/out/gfx942.profdata\n\
         host: 2 profiles of host code: new/out/host.profdata\n"
    );
    for (arch, calls) in [("gfx90a", 3), ("gfx942", 30), ("host", 2)] {
        assert_eq!(place.calls(&format!("new/out/{arch}.profdata")), calls);
    }
    // Into the directory of the inputs, and again: they are not counted twice.
    for _ in 0..2 {
        place.merged(&["one", "two", "-o", "one"]);
        assert_eq!(place.calls("one/host.profdata"), 2);
        assert_eq!(place.calls("one/gfx90a.profdata"), 3);
    }
}

#[test]
fn rocov_adds_up_host_code_itself() {
    let place = Place::new();
    for directory in ["one", "two"] {
        fs::create_dir(place.path(directory)).unwrap();
    }
    host_profiles(&place, "clang-15", ["one", "two"]);
    place.merged(&["one", "two", "-o", "out", "--pooled", "all"]);
    for file in ["out/host.profdata", "all/profraw/pooled-host.profdata"] {
        assert_eq!(place.calls(file), 2);
        // Every llvm-profdata here writes a later version.
        let version = &fs::read(place.path(file)).unwrap()[8..16];
        assert_eq!(version, 7_u64.to_le_bytes());
    }
}

#[test]
fn one_file_is_of_one_arch() {
    let place = mixed();
    let message = failure(&place.merge(&["one", "-o", "out.profdata"]), 1);
    assert_eq!(
        message,
        "rocov: the profiles come from gfx90a, gfx942, host, but one file cannot keep their functions separate: \
         choose one with --arch, or name a directory with -o\n"
    );
    assert!(!place.path("out.profdata").exists());
    for (arch, calls) in [("gfx942", 10), ("host", 1)] {
        place.merged(&["one", "--arch", arch, "-o", "new/out.profdata"]);
        assert_eq!(place.calls("new/out.profdata"), calls);
    }
}

#[test]
fn host_code_goes_through_pooled_directories() {
    let place = mixed();
    place.merged(&["one", "--pooled", "pooled-one"]);
    place.merged(&["two", "--pooled", "pooled-two"]);
    let said = place.merged(&["pooled-one", "pooled-two", "--pooled", "all", "-o", "out"]);
    assert!(
        said.ends_with("host: 2 profiles of host code: all/profraw/pooled-host.profdata\n"),
        "{said}"
    );
    assert_eq!(place.calls("out/host.profdata"), 2);
    assert_eq!(place.calls("all/profraw/pooled-host.profdata"), 2);
    assert_eq!(place.calls("out/gfx942.profdata"), 30);
}

#[test]
fn kept_device_elfs_go_with_pooled_profiles() {
    let place = Place::new();
    let elf = place.elf("gfx90a");
    let keep = |directory: &str| -> PathBuf {
        let profile = place.profile(directory, &elf, 1, 1);
        let identity = crate::merge::profile::identity(&elf);
        let kept = place
            .path(directory)
            .join(format!("objects/gfx90a.{identity}.elf"));
        fs::create_dir(kept.parent().unwrap()).unwrap();
        fs::copy(&elf, &kept).unwrap();
        assert!(profile.exists());
        kept
    };
    let kept = keep("one");
    keep("two");
    let name = kept.file_name().unwrap();
    // By directories, and by the names of files next to them.
    for (input, output) in [("one", "by-directory"), ("one/*.profraw", "by-name")] {
        place.merged(&[input, "two", "--pooled", output]);
        let found = place.path(output).join("objects").join(name);
        assert_eq!(inode(&found), inode(&kept), "a hard link");
        assert_eq!(names(&place.path(output)).len(), 2);
    }
    // All that a report needs is there.
    let mut report = crate::merge::rocov();
    report
        .current_dir(place.0.path())
        .args(["report", "by-name"]);
    let said = stdout(&run(&mut report));
    assert!(
        said.starts_with("gfx90a: 1 profile of 1 code object\n"),
        "{said}"
    );
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

#[test]
fn a_pooled_directory_is_no_input() {
    let place = Place::new();
    place.profile("data", &place.elf("gfx90a"), 1, 1);
    fs::create_dir(place.path("empty")).unwrap();
    place.merged(&["data", "--pooled", "empty"]);
    let message = failure(&place.merge(&["data", "--pooled", "data/pooled"]), 1);
    assert!(
        message.contains("lies in the input data: write the output elsewhere"),
        "{message}"
    );
    // A merge of nothing leaves nothing.
    fs::create_dir(place.path("damage")).unwrap();
    fs::write(place.path("damage/gfx90a.00.0.1.profraw"), "").unwrap();
    place.merge(&["damage", "--pooled", "failed"]);
    assert_eq!(
        names(place.0.path()),
        ["damage", "data", "empty", "gfx90a.elf"]
    );
    assert_eq!(names(&place.path("data")).len(), 1);
    let mode = fs::metadata(place.path("empty")).unwrap().mode();
    let usual = fs::metadata(place.path("data")).unwrap().mode();
    assert_eq!(mode, usual, "as any directory that is made here");
}

#[test]
fn what_is_left_out_is_said() {
    let place = Place::new();
    place.profile("data", &place.elf("gfx90a"), 1, 1);
    for name in ["gfx90a.aa.0.1.1.sections", "gfx90a.aa.0.1.2.sections"] {
        fs::write(place.path("data").join(name), "").unwrap();
    }
    let sections = "rocov: left out: 2 files of saved sections (see `rocov show`), such as \
                    data/gfx90a.aa.0.1.1.sections\n";
    for output in [["-o", "out"], ["--pooled", "pooled"]] {
        let output = run(&mut place.command(&[&["data"], output.as_slice()].concat()));
        assert_eq!(stderr(&output), sections);
    }
}

#[test]
fn functions_that_never_ran_are_left_out_of_sparse_profiles() {
    let place = Place::new();
    place.profile("data", &place.elf("gfx90a"), 1, 0);
    place.merged(&["data", "-o", "whole.profdata"]);
    place.merged(&["data", "--sparse", "-o", "sparse.profdata"]);
    assert!(place.shown("whole.profdata").contains("Total functions: 2"));
    assert!(
        place
            .shown("sparse.profdata")
            .contains("Total functions: 0")
    );
}

#[test]
fn the_rate_is_shown_on_a_terminal_alone() {
    let place = Place::new();
    place.profile("data", &place.elf("gfx90a"), 1, 1);
    assert_eq!(place.merged(&["data", "-q", "-o", "out"]), "");
    let on_terminal = |more: &str| {
        let rocov = built("rocov");
        let rocov = rocov.display();
        let command = format!("{rocov} merge data -o out.profdata {more}");
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]);
        stdout(&run(script.current_dir(place.0.path())))
    };
    let said = on_terminal("");
    assert!(
        said.contains("\x1b[Krocov: 1 profile, 0.0 MB in 0.0 s: "),
        "{said:?}"
    );
    assert!(said.contains(" profiles/s, "), "{said:?}");
    assert_eq!(on_terminal("--quiet"), "");
}

#[test]
fn labels_stay_apart_through_merges_if_the_user_wants_that() {
    let place = Place::new();
    let elf = place.elf("gfx90a");
    for (label, pid, count) in [("one", 1, 1), ("two", 2, 10), ("two", 3, 10)] {
        place.profile(&format!("runs/labels/{label}"), &elf, pid, count);
    }
    place.merged(&["runs", "--per-test", "--pooled", "first"]);
    place.merged(&["first", "--per-test", "--pooled", "second"]);
    place.merged(&["second", "--per-test", "-o", "out"]);
    for pooled in ["first", "second", "out"] {
        for (label, calls) in [("one", 1), ("two", 20)] {
            let directory = format!("{pooled}/profraw/labels/{label}");
            let [name] = &names(&place.path(&directory))[..] else {
                panic!("{directory}");
            };
            assert_eq!(
                place.calls(&format!("{directory}/{name}")),
                calls,
                "{directory}"
            );
        }
    }
    assert_eq!(place.calls("out/gfx90a.profdata"), 21);
    let report = |directory: &str| {
        let mut report = crate::merge::rocov();
        report.current_dir(place.0.path());
        report.args(["report", directory, "--per-test", "--object", "gfx90a.elf"]);
        report.output().unwrap()
    };
    let said = stdout(&report("second"));
    for label in ["one ", "two "] {
        assert!(
            said.lines()
                .any(|line| line.trim_start().starts_with(label)),
            "{said}"
        );
    }
    place.merged(&["first", "--pooled", "together"]);
    assert_eq!(
        failure(&report("together"), 1),
        "rocov: no labelled profiles in together: `rocov merge` has added up the counts of all labels: name the \
        directories that were merged, or merge them with --per-test\n"
    );
}

#[test]
fn a_merge_replaces_an_earlier_one_and_nothing_else() {
    let place = mixed();
    for (input, calls) in [("one", 10), ("two", 20)] {
        place.merged(&[input, "--arch", "gfx942", "--pooled", "pooled"]);
        let [name] = &names(&place.path("pooled/profraw"))[..] else {
            panic!("{:?}", names(&place.path("pooled/profraw")));
        };
        assert_eq!(place.calls(&format!("pooled/profraw/{name}")), calls);
    }
    // An input that would go.
    let message = failure(
        &place.merge(&["pooled/profraw/*.profraw", "--pooled", "pooled"]),
        1,
    );
    assert!(message.contains("lies in "), "{message}");
    assert!(message.contains("which the merge replaces"), "{message}");
    let run = place.profile("run/profraw", &place.elf("gfx90a"), 1, 1);
    let message = failure(&place.merge(&["one", "--pooled", "run"]), 1);
    assert!(
        message.contains("contains more than a merge wrote"),
        "{message}"
    );
    assert!(run.exists());
}
