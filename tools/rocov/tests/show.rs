//! `rocov show`: what files are, told apart from what they are not.

mod common;

use common::{rocov, run, stdout};
use rocov::profraw::{SavedSection, SavedSections};
use std::fs;

/// A raw profile that clang's own runtime writes.
fn host_profile(directory: &std::path::Path) -> std::path::PathBuf {
    let (program, profile) = (directory.join("program"), directory.join("host.profraw"));
    let source = directory.join("program.c");
    fs::write(
        &source,
        "int main(int c, char **v) { return c > 1 ? v[1][0] : 0; }",
    )
    .unwrap();
    run(std::process::Command::new("clang-22")
        .args(["-fprofile-instr-generate", "-o"])
        .arg(&program)
        .arg(&source));
    run(std::process::Command::new(&program).env("LLVM_PROFILE_FILE", &profile));
    profile
}

#[test]
fn a_raw_profile_is_taken_apart() {
    let directory = tempfile::tempdir().unwrap();
    let profile = host_profile(directory.path());
    let shown = stdout(&run(rocov().arg("show").arg(&profile)));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], format!("{}:", profile.display()));
    assert_eq!(lines[1], "  raw profile, version 10");
    assert!(
        lines[2].starts_with("  data ") && lines[2].ends_with(", 1 records"),
        "{shown}"
    );
    assert!(lines[3].ends_with(", 2 counters"), "{shown}");
    assert!(
        lines[5].starts_with("  uniform counters") && lines[5].contains(" 0 bytes"),
        "{shown}"
    );
}

#[test]
fn saved_sections_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.sections");
    let section = |name: &str, len: usize| SavedSection {
        name: name.into(),
        address: 0x7f00_0000_2000,
        bytes: vec![1; len],
    };
    let saved = SavedSections {
        word: 1 << 56 | 12,
        load_delta: 0x7f00_0000_0000,
        sections: vec![section("data", 72), section("names", 5)],
    };
    fs::write(&file, saved.encode()).unwrap();
    let shown = stdout(&run(rocov().arg("show").arg(&file)));
    let expected = format!(
        "{}:\n  sections saved from a device, raw version 12 with variant bits 0x1000000, load delta \
         0x7f0000000000\n  data                      72 bytes at 0x7f0000002000\n  names            \
         \x20         5 bytes at 0x7f0000002000\n",
        file.display()
    );
    assert_eq!(shown, expected);
}

#[test]
fn other_files_are_named_and_the_rest_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let profile = host_profile(directory.path());
    let bytes = fs::read(&profile).unwrap();
    let cut = directory.path().join("cut.profraw");
    fs::write(&cut, &bytes[..140]).unwrap();
    let other = directory.path().join("other");
    fs::write(
        &other,
        "neither one nor the other, and longer than a header",
    )
    .unwrap();
    let missing = directory.path().join("missing");
    let output = rocov()
        .arg("show")
        .args([&cut, &other, &missing, &profile])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    let cannot = format!(
        "rocov: {} cannot be shown: raw profile is cut short: ",
        cut.display()
    );
    assert!(lines[0].starts_with(&cannot), "{said}");
    assert!(lines[1].contains("not a raw profile: magic 0x"), "{said}");
    assert!(
        lines[2].starts_with(&format!("rocov: cannot open {}: ", missing.display())),
        "{said}"
    );
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("raw profile, version 10")
    );
}
