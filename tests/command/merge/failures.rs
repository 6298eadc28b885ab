//! Inputs that cannot be merged: each is named, and `--failure-mode` says what becomes of the others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use rocov::format::profraw::RawProfile;
use rocov_tests::artifacts::built;
use rocov_tests::cli::{device, failure, profile, run, stderr};

use crate::merge::Place;

/// A place with a whole profile of count 5 in `data`, and a damaged one next to it.
struct Damage {
    place: Place,
    elf: PathBuf,
    whole: PathBuf,
    damaged: PathBuf,
}

/// The next step after damage.
const RUN: &str = "run the program again";

impl Damage {
    fn new(damage: impl FnOnce(&mut Vec<u8>)) -> Self {
        let place = Place::new();
        let elf = place.elf("gfx90a");
        let whole = place.profile("data", &elf, 1, 5);
        let damaged = place.profile("data", &elf, 2, 7);
        let mut bytes = fs::read(&damaged).unwrap();
        damage(&mut bytes);
        fs::write(&damaged, bytes).unwrap();
        Self {
            place,
            elf,
            whole,
            damaged,
        }
    }

    /// `rocov merge data -o out` merges the other file, names the damaged one with `reason` and the `next` step, and fails
    /// unless that is allowed.
    fn is_named(&self, reason: &str, next: &str) {
        let damaged = self.damaged.strip_prefix(self.place.0.path()).unwrap();
        let line = format!("cannot merge {}: {reason}; {next}\n", damaged.display());

        let output = self.place.merge(&["data", "-o", "out"]);
        let end = "the merge was written without 1 damaged input: name other inputs, or allow this with \
                   --failure-mode=all";
        assert_eq!(
            stderr(&output),
            format!("rocov: left out: {line}rocov: {end}\n")
        );
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(self.place.calls("out/gfx90a.profdata"), 5);
        fs::remove_dir_all(self.place.path("out")).unwrap();

        let mut command = self.place.command(&["data", "-o", "out"]);
        let output = run(command.arg("--failure-mode=all"));
        assert_eq!(stderr(&output), format!("rocov: left out: {line}"));
        assert_eq!(self.place.calls("out/gfx90a.profdata"), 5);
    }
}

#[test]
fn a_profile_that_is_cut_short() {
    let damage = Damage::new(|bytes| bytes.truncate(300));
    let whole = fs::read(&damage.whole).unwrap();
    let needed = RawProfile::parse(&whole).unwrap().sections.names.end;
    damage.is_named(
        &format!(
            "raw profile is cut short: names should end at byte {needed}, but the file has 300"
        ),
        RUN,
    );
}

#[test]
fn a_file_that_is_something_else() {
    Damage::new(|bytes| bytes[..8].fill(0)).is_named(
        "not a raw profile: magic 0x0000000000000000, expected 0xff6c70726f667281",
        RUN,
    );
}

#[test]
fn an_empty_file() {
    Damage::new(Vec::clear).is_named(
        "raw profile is cut short: the header should end at byte 16, but the file has 0",
        RUN,
    );
}

#[test]
fn a_version_that_is_not_known() {
    Damage::new(|bytes| bytes[8] = 77).is_named(
        "unknown raw profile version 77, expected 8 to 11",
        "compile with clang 15 or later, or use a newer rocov",
    );
}

#[test]
fn a_profile_of_other_code() {
    // The hash of the first function: after the header and the hash of its name.
    let damage = Damage::new(|bytes| bytes[128 + 8] ^= 1);
    let whole = damage.whole.strip_prefix(damage.place.0.path()).unwrap();
    damage.is_named(
        &format!(
            "it is a profile of other code, although its name says otherwise, compared with {}",
            whole.display()
        ),
        "remove whichever is wrong",
    );
}

#[test]
fn two_profiles_in_one_file() {
    let damage = Damage::new(|bytes| bytes.extend_from_within(..));
    let size = fs::metadata(&damage.whole).unwrap().len();
    damage.is_named(&format!(
        "raw profile continues after its names, at byte {size}, for {size} bytes: rocov does not add up value \
        profiles, virtual tables or several profiles in one file"
    ), RUN);
}

#[test]
fn the_first_of_a_code_object_is_no_worse_than_the_others() {
    let damage = Damage::new(|_| {});
    fs::write(&damage.whole, "").unwrap();
    let third = damage.place.profile("data", &damage.elf, 3, 1);
    let mut command = damage.place.command(&["data", "-o", "out"]);
    let output = run(command.arg("--failure-mode=all"));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    assert_eq!(damage.place.calls("out/gfx90a.profdata"), 8);
    assert!(third.exists(), "inputs stay");
}

#[test]
fn nothing_is_left_but_damage() {
    let damage = Damage::new(Vec::clear);
    fs::remove_file(&damage.whole).unwrap();
    for (mode, status) in [("any", 1), ("all", 1), ("warn", 0)] {
        let mut command = damage.place.command(&["data", "-o", "out"]);
        let output = command.args(["--failure-mode", mode]).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(said.contains("the file has 0"), "{said}");
        let last = "nothing written: no input can be merged; see the reasons above";
        assert!(said.trim_end().ends_with(last), "{said}");
        assert!(!damage.place.path("out").exists());
    }
}

#[test]
fn what_is_not_there() {
    let place = Place::new();
    place.profile("data", &place.elf("gfx90a"), 1, 5);
    for (input, reason) in [
        ("/missing", "/missing does not exist; check the path"),
        ("*.raw", "no file matches `*.raw`; check the pattern"),
        (
            "/dev/null",
            "/dev/null is not a file; name a profile or a directory",
        ),
    ] {
        let output = place.merge(&["data", input, "-o", "out"]);
        let said = stderr(&output);
        let named = format!("rocov: left out: {reason}\n");
        assert!(said.starts_with(&named), "{said}");
        assert_eq!(output.status.code(), Some(1));
        fs::remove_dir_all(place.path("out")).unwrap();
        let mut command = place.command(&["data", input, "-o", "out"]);
        let output = run(command.arg("--failure-mode=all"));
        assert_eq!(stderr(&output), named);
        fs::remove_dir_all(place.path("out")).unwrap();
    }
}

/// The command as a user for whom permissions hold: not as root, whom these tests may be run by.
fn unprivileged(place: &Place, arguments: &[&str]) -> Command {
    let is_root = run(Command::new("id").arg("-u")).stdout == b"0\n";
    if !is_root {
        return place.command(arguments);
    }
    // All users can reach this copy.
    let copy = place.path("rocov");
    // Another process copies, because a child that this one starts in the meantime has the file open for writing until it
    // runs a program of its own. Nobody can start the copy as long.
    run(Command::new("cp").arg(built("rocov")).arg(&copy));
    for (path, mode) in [(place.0.path(), 0o777), (copy.as_path(), 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(copy).arg("merge").args(arguments);
    command.current_dir(place.0.path());
    command
}

#[test]
fn a_directory_that_may_not_be_read() {
    let place = Place::new();
    let elf = place.elf("gfx90a");
    place.profile("data", &elf, 1, 5);
    place.profile("data/closed", &elf, 2, 7);
    let close = |mode| {
        fs::set_permissions(place.path("data/closed"), fs::Permissions::from_mode(mode)).unwrap();
    };
    close(0);
    let failed = unprivileged(&place, &["data", "-o", "first"])
        .output()
        .unwrap();
    let merging = &["data", "-o", "out", "--failure-mode=all"];
    let merged = unprivileged(&place, merging).output().unwrap();
    close(0o755);
    let reason = "cannot read data/closed: Permission denied (os error 13); run as a user who is allowed to do that, \
    or change the file's permissions\n";
    let said = stderr(&failed);
    assert_eq!(failed.status.code(), Some(1), "{said}");
    let named = format!("rocov: left out: {reason}");
    assert!(said.starts_with(&named), "{said}");
    assert_eq!(stderr(&merged), named);
    assert_eq!(place.calls("first/gfx90a.profdata"), 5);
    assert_eq!(place.calls("out/gfx90a.profdata"), 5);
}

#[test]
fn both_kinds_of_instrumentation_are_not_mixed() {
    let place = Place::new();
    let front_end = place.elf("gfx90a");
    place.profile("data", &front_end, 1, 5);
    let name = "ir.elf";
    let flags = ["-fprofile-generate", "-fprofile-update=atomic"];
    let elf = device::compile(place.0.path(), name, "gfx90a", &flags);
    let ir_level = place.profile_path("data", "gfx90a", &elf, 1);
    profile::write(&elf, 3, 1 << 56 | 10, &ir_level);
    let message = failure(&place.merge(&["data", "-o", "out"]), 1);
    for part in ["-fprofile-generate", "-fprofile-instr-generate"] {
        assert!(message.contains(part), "{message}");
    }
    for elf in [&front_end, &elf] {
        assert!(message.contains(&profile::identity(elf)), "{message}");
    }
    // In a pooled directory they lie side by side.
    place.merged(&["data", "--pooled", "pooled"]);
    place.merged(&["pooled/profraw/*.profraw", "--pooled", "again"]);
}
