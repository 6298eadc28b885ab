//! The directories of a report, which it leaves as they are.

use std::os::unix::fs::{PermissionsExt, chown};

use rocov_tests::artifacts::built;

use super::*;

/// Some user that is not the owner of anything here.
const SOMEBODY: u32 = 65534;

/// The table of a report on these directories of a place.
fn table(place: &Place, directories: &[&str]) -> String {
    let mut command = rocov();
    command.current_dir(place.path()).arg("report");
    let said = stdout(&run(command.args(directories)));
    let (_, table) = said.split_once("\n\n").unwrap();
    table.to_owned()
}

/// A place with a kernel's device ELF; its profile, with every counter at `count`, goes to `directory`.
fn put(place: &Place, elf: &Path, directory: &str, pid: u32, count: u64) {
    let name = format!("gfx90a.{}.0.{pid}.profraw", profile::identity(elf));
    let path = place.path().join(directory).join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    profile::write(elf, count, RAW_VERSION, &path);
}

fn keep(place: &Place, elf: &Path, directory: &str) {
    let name = format!("gfx90a.{}.elf", profile::identity(elf));
    let path = place.path().join(directory).join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(elf, path).unwrap();
}

/// The count of a line that every work-item comes to.
fn count(place: &Place, directories: &[&str]) -> u64 {
    let mut command = rocov();
    command.current_dir(place.path()).arg("report");
    let output = run(command.args(directories).arg("--lcov"));
    assert_eq!(stderr(&output), "", "{directories:?}");
    let counts = crate::report::archs::lcov_lines(&stdout(&output));
    counts.into_iter().map(|(_, count)| count).max().unwrap()
}

#[test]
fn a_report_works_on_what_only_others_may_write_to_and_writes_nothing() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    put(&place, &elf, "rocov-data/profraw", 1, 1);
    put(&place, &elf, "rocov-data/profraw/labels/one", 1, 1);
    let bundle = compile_bundle(place.path(), &["gfx90a"], &INSTRUMENTED);
    let program = embed(&bundle, place.path());
    // For others to come here, and not to write.
    for directory in [place.path().to_owned(), place.data()] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    chown(&out, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    let before = tree(&place.data());
    for options in [
        &["--object", "program"][..],
        &["--object", "program", "--per-test"],
        &["--object", "program", "--show"],
        &["--object", "program", "--json"],
        &["--object", "program", "--html", "out/html"],
        &["--object", "program", "--fail-under-lines", "50"],
    ] {
        let options = options.iter().map(|option| match *option {
            "program" => program.as_os_str(),
            other => OsStr::new(other),
        });
        let mut command = Command::new("setpriv");
        command.args([
            format!("--reuid={SOMEBODY}"),
            format!("--regid={SOMEBODY}"),
            "--clear-groups".to_owned(),
            "--no-new-privs".to_owned(),
        ]);
        command.arg("--").arg(built("rocov")).arg("report");
        command.args(options).current_dir(place.path());
        let output = run(&mut command);
        assert_eq!(stderr(&output), "");
        assert_eq!(tree(&place.data()), before);
    }
    let which = format!("{}:4", data("kernel.hip").display());
    let mut command = rocov();
    command.current_dir(place.path()).arg("which").arg(which);
    command.arg("--object").arg(&program).output().unwrap();
    assert_eq!(tree(&place.data()), before);
}

/// All paths in a directory, with the times of their last change.
fn tree(directory: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        all.push((entry.path(), entry.metadata().unwrap().modified().unwrap()));
        if entry.file_type().unwrap().is_dir() {
            all.extend(tree(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn nested_directories_are_added_up_and_several_are_too() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    put(&place, &elf, "ranks/0/profraw", 1, 1);
    put(&place, &elf, "ranks/1/profraw", 1, 2);
    put(&place, &elf, "ranks/1/profraw/labels/one", 1, 4);
    put(&place, &elf, "more/profraw", 1, 8);
    keep(&place, &elf, "ranks/0/objects");
    keep(&place, &elf, "more/objects");
    for (directories, expected) in [
        (&["ranks"][..], 7),
        (&["ranks/1", "more"], 14),
        (&["ranks", "more"], 15),
        (&["more", "ranks", "ranks/1", "."], 15),
        (&["."], 15),
        (&["more/profraw"], 8),
    ] {
        assert_eq!(count(&place, directories), expected, "{directories:?}");
    }
    // A part of a data directory uses the device ELFs of the whole directory.
    keep(&place, &elf, "ranks/1/objects");
    assert_eq!(count(&place, &["ranks/1/profraw/labels/one"]), 4);
    assert_eq!(count(&place, &["ranks/1/profraw/labels"]), 4);
}

#[test]
fn what_belongs_to_an_own_pattern_lies_beside_it() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    put(&place, &elf, "cov/7", 7, 1);
    put(&place, &elf, "cov/8", 8, 2);
    keep(&place, &elf, "cov.rocov/objects");
    put(&place, &elf, "here", 1, 4);
    keep(&place, &elf, ".rocov/here/objects");
    assert_eq!(count(&place, &["cov"]), 3);
    assert_eq!(count(&place, &["cov/8"]), 2);
    assert_eq!(count(&place, &["here"]), 4);
    let mut command = rocov();
    command.current_dir(place.path().join("here"));
    let said = stdout(&run(command.args(["report", "."])));
    assert!(
        said.starts_with("gfx90a: 1 profile of 1 code object"),
        "{said}"
    );
}

/// A merge has the counts of the runs that it was made of, so both together would count them twice.
#[test]
fn a_merge_below_the_runs_that_it_was_made_of_is_left_out() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    put(&place, &elf, "data/profraw", 1, 3);
    keep(&place, &elf, "data/objects");
    for output in [["-o", "sums/merged"], ["--pooled", "sums/pooled"]] {
        let mut merge = rocov();
        merge.current_dir(place.path()).args(["merge", "data"]);
        run(merge.args(output));
    }
    let report = |directories: &[&str]| {
        let mut report = rocov();
        report.current_dir(place.path()).arg("report");
        run(report.args(directories).arg("--lcov"))
    };
    let alone = report(&["data"]);
    assert_eq!(stderr(&alone), "");
    let all = report(&["."]);
    assert_eq!(stdout(&all), stdout(&alone));
    let lines = stderr(&all);
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (line, merge) in lines.iter().zip(["sums/merged", "sums/pooled"]) {
        let start = format!("rocov: left out: ./{merge}: `rocov merge` wrote it");
        assert!(line.starts_with(&start), "{line}");
    }
    // By itself, and if the user names both.
    assert_eq!(count(&place, &["sums/pooled"]), 3);
    assert_eq!(count(&place, &["data", "sums/pooled"]), 6);
}

#[test]
fn what_a_merge_has_written_can_be_reported() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    for (rank, count) in [(0, 1), (1, 2)] {
        put(&place, &elf, &format!("ranks/{rank}/profraw"), 1, count);
        keep(&place, &elf, &format!("ranks/{rank}/objects"));
    }
    let merge = |arguments: &[&str]| {
        let mut command = rocov();
        command.current_dir(place.path()).arg("merge");
        stderr(&run(command.args(arguments)))
    };
    let expected = table(&place, &["ranks"]);
    assert_eq!(merge(&["ranks", "-o", "merged"]), "");
    assert_eq!(table(&place, &["merged"]), expected);
    assert_eq!(count(&place, &["merged"]), 3);
    // An earlier merge is replaced, and never added to.
    assert_eq!(merge(&["ranks", "-o", "merged"]), "");
    assert_eq!(count(&place, &["merged"]), 3);
    assert_eq!(merge(&["ranks/0", "-o", "merged"]), "");
    assert_eq!(count(&place, &["merged"]), 1);
    // A merge into its own input, or into a place in it or around it, leaves raw profiles as they are.
    for output in ["ranks", "ranks/merged", "."] {
        assert_eq!(merge(&["ranks", "-o", output]), "", "{output}");
        assert_eq!(count(&place, &["ranks"]), 3, "{output}");
    }
    // The files of a run stay.
    put(&place, &elf, "other/profraw", 1, 8);
    keep(&place, &elf, "other/objects");
    let said = merge(&["ranks", "-o", "other"]);
    assert!(
        said.contains("other/profraw contains profiles of runs"),
        "{said}"
    );
    assert_eq!(count(&place, &["other"]), 8);
}

#[test]
fn show_takes_a_data_directory_for_what_it_is() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    put(&place, &elf, "build/rocov-data/profraw", 1, 1);
    keep(&place, &elf, "build/rocov-data/objects");
    fs::remove_dir_all(place.data()).unwrap();
    let source = data("kernel.hip");
    let expected = place.report(&[&"build/rocov-data", &"--show"]);
    assert!(stdout(&expected).contains("doubled"), "{expected:?}");
    for arguments in [
        &[&"--show" as &dyn AsRef<OsStr>, &"build/rocov-data"][..],
        &[&"--show", &"build/rocov-data/profraw"],
        &[&"--show", &source, &"build/rocov-data"],
    ] {
        let output = place.report(arguments);
        assert_eq!(stderr(&output), "");
        assert!(stdout(&output).contains("doubled"), "{output:?}");
    }
    let help = stdout(&run(place.command().arg("--help")));
    assert!(
        help.contains("Usage: rocov report [DIR]... [OPTIONS]"),
        "{help}"
    );
}

#[test]
fn the_data_directory_of_a_build_directory_is_named() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    put(&place, &elf, "build/rocov-data/profraw", 1, 1);
    fs::remove_dir_all(place.data()).unwrap();
    let message = failure(&place.report(&[]), 1);
    assert!(
        message.contains("rocov-data does not exist in "),
        "{message}"
    );
    assert!(
        message.ends_with(": name build/rocov-data, which does\n"),
        "{message}"
    );
    let message = failure(&place.report(&[&"other"]), 1);
    assert!(
        message.contains("name the directory that `rocov run` wrote to"),
        "{message}"
    );
}
