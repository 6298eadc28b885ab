//! The sources of a report, and their paths.

use super::*;

/// The source files of a tracefile.
fn sources(tracefile: &str) -> Vec<&str> {
    let records = tracefile.lines();
    records
        .filter_map(|record| record.strip_prefix("SF:"))
        .collect()
}

/// A place with counts of a source and of its header.
fn with_header() -> (Place, PathBuf) {
    let place = Place::new();
    let folder = place.path().join("src/inner");
    fs::create_dir_all(&folder).unwrap();
    let header = "__attribute__((device)) inline int doubled(int v) { return v * 2; }\n";
    fs::write(folder.join("header.h"), header).unwrap();
    let source = place.path().join("src/kernel.hip");
    let kernel = "#include \"inner/header.h\"\nextern \"C\" __attribute__((global)) void kernel(int *v) \
                  {\n  *v = doubled(*v);\n}\n";
    fs::write(&source, kernel).unwrap();
    let elf = compile_source(&source, place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    (place, elf)
}

#[test]
fn sources_are_chosen_by_name_by_path_and_by_path_from_here() {
    let (place, elf) = with_header();
    let both = ["src/inner/header.h", "src/kernel.hip"].map(|path| place.path().join(path));
    let both = both.map(|path| path.display().to_string());
    let [header, kernel] = both.each_ref().map(String::as_str);
    let absolute = format!("--include={kernel}");
    for (arguments, expected) in [
        (&[][..], &[header, kernel][..]),
        (&["--include=*.h"], &[header]),
        (
            &["--include", "*.h", "--include", "*.hip"],
            &[header, kernel],
        ),
        (&["--exclude", "*.h"], &[kernel]),
        (&["--include=src/*"], &[kernel]),
        (&["--include=src/**"], &[header, kernel]),
        (&["--exclude=**/inner/*"], &[kernel]),
        (&[absolute.as_str()], &[kernel]),
        (&["--include=src/**", "--exclude=src/inner/*"], &[kernel]),
    ] {
        let mut command = place.command();
        command.args(arguments).args(["--lcov", "--object"]);
        let said = stdout(&run(command.arg(&elf)));
        assert_eq!(sources(&said), expected, "{arguments:?}");
    }
    // The figures are of what is chosen: a function of one line of two.
    let said = stdout(&place.report(&[&"--include=*.h", &"--object", &elf]));
    assert_eq!(total_lines(&said), ("1", "0"), "{said}");
    let output = place.report(&[&"--include=a[", &"--object", &elf]);
    let message = failure(&output, 1);
    assert!(message.contains("`a[` is not a glob"), "{message}");
}

#[test]
fn what_matches_nothing_is_said() {
    let (place, elf) = with_header();
    let report = |arguments: &[&str]| {
        let mut command = place.command();
        let output = command.args(arguments).arg("--object").arg(&elf).output();
        let output = output.unwrap();
        (output.status.code(), stderr(&output))
    };
    let moved = format!("--path-map={}=/now", place.path().display());
    for (arguments, expected) in [
        (&["--exclude=zzz"][..], "--exclude zzz matches no source:"),
        (
            &["--include=*.h", "--include=lost/*.h", "--exclude=*.hip"],
            "--include lost/*.h matches no source:",
        ),
        (
            &["--ignore-filename-regex=^/usr/", "--exclude=*.h"],
            "--ignore-filename-regex ^/usr/ matches no source:",
        ),
        (
            &[&*moved, "--path-map=/nope=/x"],
            "--path-map /nope=/x moves no source: none was compiled in /nope;",
        ),
    ] {
        let expected = (
            Some(0),
            format!("rocov: {expected} fix it, or leave it out\n"),
        );
        assert_eq!(report(arguments), expected, "{arguments:?}");
    }
    let all = [&*moved, "--include=/now/**", "--exclude=*.h"];
    assert_eq!(report(&all), (Some(0), String::new()));
    assert_eq!(
        report(&["--exclude=zzz", "--quiet"]),
        (Some(0), String::new())
    );

    for format in [&[][..], &["--html=pages"], &["--lcov", "--output=pages"]] {
        let (status, said) = report(&[&["--include=nope*"], format].concat());
        assert_eq!(status, Some(1), "{said}");
        let expected = "rocov: --include nope* matches no source: fix it, or leave it out\n\
                        rocov: no source file is left to report: nothing was written; check --include, \
                        --exclude, --exclude-function, --exclude-line and --arch\n";
        assert_eq!(said, expected);
        assert!(!place.path().join("pages").exists());
    }
}

#[test]
fn regular_expressions_leave_out_paths_with_a_part_that_matches() {
    let (place, elf) = with_header();
    for (regex, left) in [
        ("inner/", &["kernel.hip"][..]),
        (r"\.h(ip)?$", &[]),
        ("kernel|nothing", &["header.h"]),
    ] {
        let ignore = format!("--ignore-filename-regex={regex}");
        let output = place.report(&[&ignore, &"--lcov", &"--object", &elf]);
        let said = stdout(&output);
        let names: Vec<_> = sources(&said)
            .iter()
            .filter_map(|path| path.rsplit('/').next())
            .collect();
        assert_eq!(names, left, "{regex}");
        assert_eq!(output.status.success(), !left.is_empty(), "{regex}");
    }
    let output = place.report(&[&"--ignore-filename-regex=(", &"--object", &elf]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn sources_are_where_they_are_said_to_be() {
    let (place, elf) = with_header();
    let map = format!("--path-map={}=/now", place.path().join("src").display());
    let said = stdout(&place.report(&[&map, &"--lcov", &"--object", &elf]));
    assert_eq!(sources(&said), ["/now/inner/header.h", "/now/kernel.hip"]);
    let filtered = [&map as &dyn AsRef<OsStr>, &"--include=/now/*", &"--lcov"];
    let said = stdout(&place.report(&[&filtered[..], &[&"--object", &elf]].concat()));
    assert_eq!(sources(&said), ["/now/kernel.hip"]);
    let output = place.report(&[&"--path-map=/a", &"--object", &elf]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("FROM=TO"), "{}", stderr(&output));
}
