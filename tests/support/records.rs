//! Records: files of the repository that a test makes again and compares with those that are committed.
//!
//! `cargo xtask bless` sets `ROCOV_BLESS` and runs these tests, which then write the files. It reads the lines on
//! standard error that start with `record `.

use std::fs;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};

use super::artifacts::repository;

/// The variable of `cargo xtask bless`.
const BLESS: &str = "ROCOV_BLESS";

/// The lines of the differences of a record that a failure shows.
const SHOWN: usize = 40;

/// A record that is not what a test made.
#[derive(Debug, PartialEq)]
pub struct Difference {
    /// Its path in the repository.
    pub path: PathBuf,
    /// The first changed lines, as `diff -u` prints them.
    pub lines: String,
}

/// Returns whether tests write their records.
pub fn are_blessed() -> bool {
    std::env::var_os(BLESS).is_some_and(|value| !value.is_empty())
}

/// Compares texts with the files that record them, by their paths in the repository. Writes those that differ if
/// `cargo xtask bless` asks for that; otherwise fails, and names all of them.
#[track_caller]
pub fn compare<P: AsRef<Path>>(made: impl IntoIterator<Item = (P, String)>) {
    let found = differences(&repository(""), made, are_blessed());
    let state = if are_blessed() { "written" } else { "stale" };
    for difference in &found {
        // Around the capture of tests' output: `cargo xtask` lists these lines.
        let _ = writeln!(stderr(), "record {state}: {}", difference.path.display());
    }
    if are_blessed() || found.is_empty() {
        return;
    }
    let described = found.iter().map(|found| {
        format!(
            "{} is out of date:\n{}\n",
            found.path.display(),
            found.lines
        )
    });
    panic!(
        "{}Run `cargo xtask bless`, and look at the difference before you commit it.",
        described.collect::<String>()
    );
}

/// Compares texts with files below a folder, and writes the texts that differ if `are_written`.
pub fn differences<P: AsRef<Path>>(
    root: &Path,
    made: impl IntoIterator<Item = (P, String)>,
    are_written: bool,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for (path, text) in made {
        let path = path.as_ref().to_owned();
        let file = root.join(&path);
        let recorded = fs::read_to_string(&file).unwrap_or_default();
        if recorded == text {
            continue;
        }
        if are_written {
            write(&file, &text);
        }
        let lines = first_changes(&recorded, &text);
        found.push(Difference { path, lines });
    }
    found
}

/// Writes a record.
fn write(file: &Path, text: &str) {
    let folder = file.parent().expect("a record is in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, text))
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}

/// Returns the first changed lines.
fn first_changes(recorded: &str, made: &str) -> String {
    let patch = diffy::create_patch(recorded, made).to_string();
    // The two lines with the names of the files come first.
    let lines: Vec<_> = patch.lines().skip(2).collect();
    let mut shown = lines[..lines.len().min(SHOWN)].join("\n");
    if lines.len() > SHOWN {
        shown += &format!("\n... {} more lines", lines.len() - SHOWN);
    }
    shown
}
