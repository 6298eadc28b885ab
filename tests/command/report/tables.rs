//! The profiles that a report merges, and its table.

use super::*;

#[test]
fn a_device_elf_and_its_profile_give_a_table() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let output = place.report(&[&"--object", &elf]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let heading = "gfx90a: 1 profile of 1 code object\n";
    assert!(said.starts_with(&format!("{heading}\nFilename ")), "{said}");
    let verbose = stdout(&place.report(&[&"--object", &elf, &"-v"]));
    let line = format!("{heading}  device ELF      {}\n\nFilename ", elf.display());
    assert!(verbose.starts_with(&line), "{verbose}");
    // All counters are 1, so `else` has 1 - 1 = 0: its lines did not run.
    assert_eq!(total_lines(&said), ("10", "2"), "{said}");
    let entries = fs::read_dir(place.data()).unwrap();
    assert_eq!(entries.count(), 1, "the profile alone: nothing was written");
}

#[test]
fn profiles_of_two_gpus_are_summed() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 3);
    place.profile(&elf, "gfx90a", 1, 4);
    let said = stdout(&place.report(&[&"--object", &elf, &"--show"]));
    assert!(
        said.starts_with("gfx90a: 2 profiles of 1 code object\n"),
        "{said}"
    );
    assert_eq!(shown_count(&said, "return value * 2;"), "7", "{said}");
}

#[test]
fn profiles_of_two_archs_stay_apart() {
    let place = Place::new();
    let bundle = compile_bundle(place.path(), &["gfx90a", "gfx942"], &INSTRUMENTED);
    let old = compile(place.path(), "old.elf", "gfx90a", &INSTRUMENTED);
    let new = compile(place.path(), "new.elf", "gfx942", &INSTRUMENTED);
    place.profile(&old, "gfx90a", 0, 1);
    place.profile(&new, "gfx942", 1, 0);
    let output = place.report(&[&"--object", &bundle]);
    let said = stdout(&output);
    assert_eq!(stderr(&output), "");
    let (first, second) = said
        .split_once("gfx942: 1 profile of 1 code object\n")
        .unwrap();
    assert!(first.starts_with("gfx90a: "), "{said}");
    assert_eq!(total_lines(first), ("10", "2"), "{said}");
    assert_eq!(total_lines(second), ("10", "10"), "{said}");
}

#[test]
fn profiles_of_two_raw_versions_are_merged() {
    let place = Place::new();
    let new = compile(place.path(), "new.elf", "gfx90a", &INSTRUMENTED);
    // From the command under test, as no clang of this version links without the header.
    let flags = stdout(&run(rocov().args(["flags", "--clang", "clang++-15"])));
    let flags: Vec<_> = flags.split_whitespace().collect();
    let old = compile_with("clang++-15", place.path(), "old.elf", "gfx90a", &flags);
    place.profile(&new, "gfx90a", 0, 3);
    profile::write(&old, 4, 8, &place.profile(&old, "gfx90a", 0, 4));
    let output = place.report(&[&"--object", &new, &old, &"--show"]);
    let said = stdout(&output);
    assert_eq!(stderr(&output), "");
    assert!(
        said.starts_with("gfx90a: 2 profiles of 2 code objects\n"),
        "{said}"
    );
    assert_eq!(shown_count(&said, "return value * 2;"), "7", "{said}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let mut command = place.command();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.arg("--object").arg(&elf).stdout(writer);
    let output = command.output().unwrap();
    assert_eq!(stderr(&output), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn tools_can_be_chosen() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let output = place.report(&[&"--object", &elf, &"--llvm-bin", &"/usr/lib/llvm-22/bin"]);
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
    let message = failure(
        &place.report(&[&"--object", &elf, &"--llvm-bin", &"/etc"]),
        1,
    );
    assert!(
        message.contains("no llvm-profdata and llvm-cov in /etc"),
        "{message}"
    );
}
