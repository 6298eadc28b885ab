//! Files that are not in a report: damaged ones, and those without coverage.

use super::*;

#[test]
fn nothing_to_report_says_how_to_change_that() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &[]);
    fs::create_dir(place.path().join("other")).unwrap();
    fs::write(place.path().join("other/notes"), "").unwrap();
    // A part of a data directory, and pages next to another one's files.
    for folder in [
        "whole/objects",
        "whole/profraw",
        "pages",
        ".rocov/pages/objects",
    ] {
        fs::create_dir_all(place.path().join(folder)).unwrap();
    }
    for folder in ["whole/objects", ".rocov/pages/objects"] {
        let name = format!("gfx90a.{}.elf", profile::identity(&elf));
        fs::copy(&elf, place.path().join(folder).join(name)).unwrap();
    }
    fs::write(place.path().join("pages/index.html"), "").unwrap();
    for (directory, remedy) in [
        ("missing", "that `rocov run` wrote to"),
        ("rocov-data", "is empty: name the directory"),
        ("other", "`rocov flags`"),
        ("whole/objects", "`rocov report whole` reports on all of it"),
        ("pages", "pages/index.html is a page of a report"),
    ] {
        let output = place.report(&[&directory, &"--object", &elf]);
        let message = failure(&output, 1);
        assert!(message.contains(directory), "{message}");
        assert!(message.contains(remedy), "{message}");
        assert_eq!(stdout(&output), "");
    }
    fs::write(place.data().join("4711.profraw"), "").unwrap();
    let message = failure(&place.report(&[&"--object", &elf]), 1);
    assert!(
        message.contains("only 1 profile, of host code"),
        "{message}"
    );
}

#[test]
fn saved_sections_are_left_out_and_are_code_that_ran() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let name = format!("gfx90a.{}.0.1.7.sections", profile::identity(&elf));
    fs::write(place.data().join(&name), "").unwrap();
    let output = place.report(&[&"--object", &elf]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("left out: "), "{said}");
    assert!(
        said.contains(&format!("`rocov show rocov-data/{name}`")),
        "{said}"
    );
    assert!(said.contains("instrumented GPU code ran, but"), "{said}");
    assert!(!said.contains("no instrumented"), "{said}");

    // A profile next to it, named by LLVM_PROFILE_FILE=x-%p.raw.
    let profile = place.profile(&elf, "gfx90a", 0, 1);
    let renamed = profile.to_str().unwrap().replace("4711.profraw", "x-1.raw");
    fs::rename(&profile, renamed).unwrap();
    let output = place.report(&[&"--object", &elf]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
    assert!(stderr(&output).contains(&name), "{}", stderr(&output));
}

#[test]
fn damaged_profiles_are_named() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let path = place.profile(&elf, "gfx90a", 0, 1);
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let whole = fs::read(&path).unwrap();
    for contents in [
        &b""[..],
        b"text, and long enough",
        &whole[..whole.len() - 64],
    ] {
        fs::write(&path, contents).unwrap();
        let output = place.report(&[&"--object", &elf]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let (left_out, failed) = said.split_once('\n').unwrap();
        assert!(left_out.starts_with("rocov: left out: "), "{said}");
        assert!(left_out.contains(&name), "{said}");
        assert!(failed.contains("can be read"), "{said}");
        assert!(!place.data().join("gfx90a.profdata").exists());
    }
}

#[test]
fn a_damaged_profile_is_left_out_and_the_others_are_reported() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let other = compile(
        place.path(),
        "other.elf",
        "gfx90a",
        &[&INSTRUMENTED[..], &["-O0"]].concat(),
    );
    place.profile(&elf, "gfx90a", 0, 7);
    let mut damaged = Vec::new();
    for (elf, agent, cut) in [(&elf, 1, true), (&elf, 2, false), (&other, 0, true)] {
        let path = place.profile(elf, "gfx90a", agent, 1);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..if cut { whole.len() - 64 } else { 0 }]).unwrap();
        damaged.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    let output = place.report(&[&"--object", &elf, &other, &"--show"]);
    let (said, shown) = (stderr(&output), stdout(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");
    for name in damaged {
        let line = said.lines().find(|line| line.contains(&name)).unwrap();
        assert!(line.starts_with("rocov: left out: "), "{said}");
        assert!(line.contains("cut short"), "{said}");
    }
    assert!(
        shown.starts_with("gfx90a: 1 profile of 1 code object\n"),
        "{shown}"
    );
    assert_eq!(shown_count(&shown, "return value * 2;"), "7", "{shown}");
}

#[test]
fn a_raw_version_that_is_not_known_is_named_with_those_that_are() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    let path = place.profile(&elf, "gfx90a", 0, 1);
    // Flags in the high bits are no part of the version.
    profile::write(&elf, 1, (1 << 60) | 99, &path);
    let output = place.report(&[&"--object", &elf]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let name = path.file_name().unwrap().to_str().unwrap();
    let reason = format!(
        "{name}: unknown raw profile version 99, expected 8 to 11; compile with clang 15 or later, or use a newer \
        rocov\n"
    );
    assert!(said.contains(&reason), "{said}");
}

#[test]
fn a_profile_that_llvm_profdata_refuses_is_left_out_and_the_others_are_reported() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 7);
    let refused = place.profile(&elf, "gfx90a", 1, 1);
    // Whole, but the first record, after 16 words of header, has no counters: a u32 at byte 48.
    let mut bytes = fs::read(&refused).unwrap();
    bytes[128 + 48..][..4].fill(0);
    fs::write(&refused, bytes).unwrap();

    let output = place.report(&[&"--object", &elf, &"--show"]);
    let (said, shown) = (stderr(&output), stdout(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let name = refused.file_name().unwrap().to_str().unwrap();
    let line =
        format!("rocov: left out: rocov-data/{name}: data record 0 of the raw profile is damaged");
    assert!(said.starts_with(&line), "{said}");
    assert!(
        shown.starts_with("gfx90a: 1 profile of 1 code object\n"),
        "{shown}"
    );
    assert_eq!(shown_count(&shown, "return value * 2;"), "7", "{shown}");

    fs::remove_file(place.profile(&elf, "gfx90a", 0, 7)).unwrap();
    let output = place.report(&[&"--object", &elf]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("can be read"),
        "{}",
        stderr(&output)
    );
}

/// A part that rocov does not read follows the names, and llvm-profdata rejects it, too.
#[test]
fn a_profile_with_a_damaged_part_behind_its_names_is_left_out_by_rocovs_reason() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 7);
    let refused = place.profile(&elf, "gfx90a", 1, 1);
    let whole = fs::read(&refused).unwrap();
    fs::write(&refused, [&whole[..], &[1; 16]].concat()).unwrap();
    let mut merge = Command::new("llvm-profdata-22");
    merge.arg("merge").arg(&refused);
    let merged = merge.arg("-o").arg(place.path().join("none.profdata"));
    assert!(!merged.output().unwrap().status.success());

    let output = place.report(&[&"--object", &elf, &"--show"]);
    let (said, shown) = (stderr(&output), stdout(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    let name = refused.file_name().unwrap().to_str().unwrap();
    let (start, end) = (
        format!("rocov: left out: rocov-data/{name}: raw profile continues after its names, "),
        "in one file; run the program again\n",
    );
    assert!(said.starts_with(&start) && said.ends_with(end), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(shown_count(&shown, "return value * 2;"), "7", "{shown}");
}

#[test]
fn profiles_without_coverage_are_said_to_be_for_optimization() {
    const IR_LEVEL: u64 = 1 << 56;
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    for agent in [0, 1] {
        let path = place.profile(&elf, "gfx90a", agent, 1);
        profile::write(&elf, 1, IR_LEVEL | RAW_VERSION, &path);
    }
    let message = failure(&place.report(&[&"--object", &elf]), 1);
    assert!(
        message.starts_with("rocov: 2 profiles from -fprofile-generate in rocov-data: "),
        "{message}"
    );
    for words in ["`rocov merge rocov-data --pgo OUT`", "`rocov flags`"] {
        assert!(message.contains(words), "{message}");
    }

    // Together with others, they are left out.
    place.profile(&elf, "gfx90a", 2, 7);
    let output = place.report(&[&"--object", &elf, &"--show"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.starts_with("rocov: left out: 2 profiles from"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(shown_count(&stdout(&output), "return value * 2;"), "7");
}

/// The code object has one definition of a function, and the profile has the counts of another.
#[test]
fn functions_with_the_counts_of_other_code_are_named() {
    let place = Place::new();
    let elf_of = |name: &str, body: &str| {
        let source = place.path().join(format!("{name}.hip"));
        let text = format!(
            "__attribute__((device, noinline, used)) int chosen(int v) {{\n  {body}\n}}\n\
             extern \"C\" __attribute__((global)) void kernel(int *v) {{\n  *v = chosen(*v);\n}}\n"
        );
        fs::write(&source, text).unwrap();
        compile_source(&source, place.path(), name, "gfx90a", &INSTRUMENTED)
    };
    let [elf, other] = [
        elf_of("one", "return v;"),
        elf_of("two", "if (v) return 1;\n  return v;"),
    ];
    place.keep(&elf);
    let profile = place.profile_path(&elf, "gfx90a", 0);
    profile::write(&other, 3, RAW_VERSION, &profile);
    let output = place.report(&[&"--json"]);
    assert_eq!(
        stderr(&output),
        format!(
            "rocov: rocov-data/objects/gfx90a.{}.elf: left out: 1 function (chosen(int)), because the profile \
            contains the counts of another definition: translation units define functions of the same name in \
            different ways; give them different names\n",
            profile::identity(&elf)
        )
    );
    let found = json(output.stdout)["data"][0]["totals"].clone();
    assert_eq!(
        found,
        crate::report::parts::totals(&place, &elf, &[&profile])
    );
    assert_eq!(found["functions"]["count"], 1);
}

/// The record of a function in the profile has one counter fewer than its mapping refers to.
#[test]
fn functions_with_fewer_counters_than_their_code_are_named() {
    /// The sizes of the header and of a record, and the place of NumCounters, a u32, in a record.
    const HEADER: usize = 128;
    const RECORD: usize = 64;
    const NUM_COUNTERS: usize = 48;
    let place = Place::new();
    let source = place.path().join("short.hip");
    let text = "__attribute__((device, noinline, used)) int chosen(int v) {\n  if (v) return 1;\n  return v;\n}\n\
                extern \"C\" __attribute__((global)) void kernel(int *v) {\n  *v = chosen(*v);\n}\n";
    fs::write(&source, text).unwrap();
    let elf = compile_source(&source, place.path(), "short", "gfx90a", &INSTRUMENTED);
    place.keep(&elf);
    let profile = place.profile(&elf, "gfx90a", 0, 3);
    let mut bytes = fs::read(&profile).unwrap();
    let records = bytes[HEADER..][..2 * RECORD].chunks_exact_mut(RECORD);
    let mut counters = records.map(|record| &mut record[NUM_COUNTERS]);
    // Only `chosen` has two: one for itself, one for its condition.
    let number = counters.find(|number| **number == 2).unwrap();
    *number = 1;
    fs::write(&profile, bytes).unwrap();

    let output = place.report(&[&"--json"]);
    assert_eq!(
        stderr(&output),
        format!(
            "rocov: rocov-data/objects/gfx90a.{}.elf: left out: 1 function (chosen(int)), because the profile has \
            fewer counters than the code: the profile is damaged; run the program again\n",
            profile::identity(&elf)
        )
    );
    let found = json(output.stdout)["data"][0]["totals"].clone();
    assert_eq!(
        found,
        crate::report::parts::totals(&place, &elf, &[&profile])
    );
    assert_eq!(found["functions"]["count"], 1);
}
