//! `rocov report` on data directories that the tests make up: device ELFs of a small kernel and raw
//! profiles with counts of their choice.

mod common;

use common::device::{INSTRUMENTED, compile, compile_bundle, compile_with, embed};
use common::{data, failure, profile, rocov, run, stderr, stdout};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const RAW_VERSION: u64 = 10;

/// A working directory with a data directory in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.data()).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn data(&self) -> PathBuf {
        self.path().join("rocov-data")
    }

    /// Writes the profile of `elf` as librocov would, every counter at `count`.
    fn profile(&self, elf: &Path, arch: &str, agent: u32, count: u64) -> PathBuf {
        let identity = profile::identity(elf);
        let name = format!("{arch}.{identity}.{agent}.4711.profraw");
        let path = self.data().join(name);
        profile::write(elf, count, RAW_VERSION, &path);
        path
    }

    fn command(&self) -> Command {
        let mut command = rocov();
        command.current_dir(self.path()).arg("report");
        command
    }

    fn report(&self, arguments: &[&dyn AsRef<OsStr>]) -> Output {
        let mut command = self.command();
        command.args(arguments.iter().map(AsRef::as_ref));
        command.output().unwrap()
    }
}

/// The columns of `name`'s line in a table of llvm-cov.
fn columns<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let line = table.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no line for {name} in {table}"));
    line.split_whitespace().collect()
}

/// Lines and missed lines of the total, in llvm-cov's columns.
fn total_lines(table: &str) -> (&str, &str) {
    let columns = columns(table, "TOTAL");
    (columns[7], columns[8])
}

/// The count beside a line of annotated source.
fn shown_count<'a>(shown: &'a str, source: &str) -> &'a str {
    let line = shown.lines().find(|line| line.contains(source));
    line.unwrap().split('|').nth(1).unwrap().trim()
}

#[test]
fn a_device_elf_and_its_profile_give_a_table() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let output = place.report(&[&"--object", &elf]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    assert!(
        said.starts_with("gfx90a: 1 profile of 1 code object\n"),
        "{said}"
    );
    assert!(
        said.contains(&format!("  device ELF      {}\n", elf.display())),
        "{said}"
    );
    assert!(
        said.contains("  merged profile  rocov-data/gfx90a.profdata\n"),
        "{said}"
    );
    // All counters are 1, so `else` has 1 - 1 = 0: its lines did not run.
    assert_eq!(total_lines(&said), ("10", "2"), "{said}");
    assert!(place.data().join("gfx90a.profdata").is_file());
    assert!(
        !place.data().join("objects").exists(),
        "nothing had to be taken out"
    );
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
fn device_elfs_are_taken_out_of_a_host_file() {
    let place = Place::new();
    let bundle = compile_bundle(place.path(), &["gfx90a"], &INSTRUMENTED);
    let program = embed(&bundle, place.path());
    // Compiled apart, and byte for byte what the bundle holds.
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let output = place.report(&[&"--object", &program]);
    let said = stdout(&output);
    assert_eq!(stderr(&output), "");
    assert_eq!(total_lines(&said), ("10", "2"), "{said}");
    let kept = format!("objects/gfx90a.{}.elf", profile::identity(&elf));
    assert!(
        said.contains(&format!("  device ELF      rocov-data/{kept}\n")),
        "{said}"
    );
    let kept = place.data().join(kept);
    assert_eq!(fs::read(kept).unwrap(), fs::read(elf).unwrap());
}

#[test]
fn show_prints_source_of_the_files_asked_for() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let source = data("kernel.hip");
    let said = stdout(&place.report(&[&"--object", &elf, &"--show", &source]));
    for line in ["  1|    *value = doubled(*value);", "  0|    *value = 0;"] {
        assert!(said.contains(line), "{said}");
    }
    let other = place.path().join("other.hip");
    fs::write(&other, "").unwrap();
    let said = stdout(&place.report(&[&"--object", &elf, &"--show", &other]));
    assert!(!said.contains("doubled"), "{said}");
    let missing = place.report(&[&"--object", &elf, &"--show", &"/missing.hip"]);
    let message = failure(&missing, 1);
    assert!(message.contains("/missing.hip"), "{message}");
}

#[test]
fn nothing_to_report_says_how_to_change_that() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &[]);
    for directory in ["missing", "rocov-data"] {
        let output = place.report(&[&directory, &"--object", &elf]);
        let message = failure(&output, 1);
        assert!(message.contains(directory), "{message}");
        assert!(message.contains("`rocov flags`"), "{message}");
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
    assert!(said.contains("instrumented GPU code ran, and"), "{said}");
    assert!(!said.contains("no instrumented"), "{said}");

    // A profile beside it, named by LLVM_PROFILE_FILE=x-%p.raw.
    let profile = place.profile(&elf, "gfx90a", 0, 1);
    let renamed = profile.to_str().unwrap().replace("4711.profraw", "x-1.raw");
    fs::rename(&profile, renamed).unwrap();
    let output = place.report(&[&"--object", &elf]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
    assert!(stderr(&output).contains(&name), "{}", stderr(&output));
}

#[test]
fn a_profile_without_its_device_elf_is_named() {
    let place = Place::new();
    let known = compile(place.path(), "known.elf", "gfx90a", &INSTRUMENTED);
    let other = compile(
        place.path(),
        "other.elf",
        "gfx90a",
        &["-O0", "-fprofile-instr-generate"],
    );
    place.profile(&known, "gfx90a", 0, 1);
    let stranger = place.profile(&other, "gfx90a", 0, 1);
    let name = stranger.file_name().unwrap().to_str().unwrap();

    let output = place.report(&[&"--object", &known]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
    assert_eq!(stderr(&output).lines().count(), 1);
    assert!(stderr(&output).contains(name), "{}", stderr(&output));

    fs::remove_file(place.profile(&known, "gfx90a", 0, 1)).unwrap();
    let output = place.report(&[&"--object", &known]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no profile in rocov-data is of device code in the given"));
}

#[test]
fn a_device_elf_without_a_profile_is_left_out_and_said() {
    let place = Place::new();
    let bundle = compile_bundle(place.path(), &["gfx90a", "gfx942"], &INSTRUMENTED);
    let plain = compile(place.path(), "plain.elf", "gfx90a", &[]);
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    // An uninstrumented ELF among its objects makes llvm-cov fail.
    let output = place.report(&[&"--object", &bundle, &plain]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(total_lines(&stdout(&output)), ("10", "2"));
    let said = stderr(&output);
    assert!(
        said.contains("1 of 2 device ELFs in") && said.contains("(gfx942)"),
        "{said}"
    );
    assert!(
        said.contains("1 of 1 device ELF in") && said.contains("plain.elf"),
        "{said}"
    );
}

#[test]
fn objects_that_cannot_be_used_are_named_with_the_reason() {
    let place = Place::new();
    let elf = compile(place.path(), "kernel.elf", "gfx90a", &INSTRUMENTED);
    place.profile(&elf, "gfx90a", 0, 1);
    let text = place.path().join("text");
    fs::write(&text, "not an object").unwrap();
    let bundle = compile_bundle(place.path(), &["gfx90a"], &["--offload-compress"]);
    let compressed = embed(&bundle, place.path());
    for (object, reason) in [
        (place.path().join("missing"), "No such file"),
        (place.data(), "comes before --object"),
        (PathBuf::from("/bin/true"), "no .hip_fatbin section"),
        (text, "ELF"),
        (compressed, "--no-offload-compress"),
        (bundle, "--no-offload-compress"),
        (PathBuf::from("/dev/null"), "not a file"),
    ] {
        let message = failure(&place.report(&[&"--object", &object]), 1);
        assert!(message.contains(&object.display().to_string()), "{message}");
        assert!(message.contains(reason), "{message}");
    }
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
    profile::write(&elf, 1, (1 << 59) | 99, &path);
    let output = place.report(&[&"--object", &elf]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let name = path.file_name().unwrap().to_str().unwrap();
    let reason = format!("{name}: raw profile version 99 is not known, expected 8 to 11\n");
    assert!(said.contains(&reason), "{said}");
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

#[test]
fn an_object_must_be_given() {
    let output = Place::new().report(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--object"));
}
