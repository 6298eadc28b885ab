//! Reads a unified diff of `git diff` or `diff -u`: the lines that each file got.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use diffy::Line;
use diffy::patch_set::{FileOperation, FilePatch, ParseOptions, PatchKind, PatchSet};
use rocov::support::diagnostic::fail;

use crate::coverage::path_match::common_suffix;

/// A file that is there after the change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    /// The diff's name of it, without the prefixes that distinguish the two sides. Bytes that are not
    /// UTF-8 are replaced, as llvm-cov does.
    pub(crate) path: String,
    /// The lines that were added or modified, without their ends, by their numbers after the change.
    pub(crate) lines: BTreeMap<u32, Vec<u8>>,
    /// True if the diff does not say which.
    pub(crate) is_binary: bool,
}

impl ChangedFile {
    /// Returns whether nothing of it was added or modified.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && !self.is_binary
    }
}

/// Reads a diff; an empty one changes nothing.
///
/// # Errors
///
/// Fails if the text is not a diff, is damaged, is a diff of a merge, or has a file twice.
pub(crate) fn read(diff: &[u8]) -> Result<Vec<ChangedFile>> {
    // Line ends are of no interest, and a diff may have been through a tool that changes them.
    let diff = without_carriage_returns(diff);
    if let Some(line) = lines(&diff).find(|line| is_combined(line)) {
        fail!(
            "a combined diff of a merge ({})", String::from_utf8_lossy(line);
            "use one against a single revision, such as `git diff main...` writes"
        );
    }
    let is_git = lines(&diff).any(|line| line.starts_with(b"diff --git "));
    if !is_git && !lines(&diff).any(|line| line.starts_with(b"+++ ")) {
        return match lines(&diff).find(|line| !says_no_lines(line)) {
            None => Ok(Vec::new()),
            Some(line) => {
                fail!(
                    "not a unified diff: it starts with '{}'", String::from_utf8_lossy(line).trim();
                    "create one with `git diff`"
                )
            }
        };
    }
    let options = if is_git {
        ParseOptions::gitdiff()
    } else {
        ParseOptions::unidiff()
    };
    let mut files = Vec::new();
    let mut hunks = 0;
    for patch in PatchSet::parse_bytes(&diff, options) {
        let patch = patch.context("a damaged diff")?;
        if let PatchKind::Text(text) = patch.patch() {
            hunks += text.hunks().len();
        }
        files.extend(changed(&patch)?);
    }
    // The parser passes over the hunks that follow a damaged one.
    let expected = lines(&diff)
        .filter(|line| line.starts_with(b"@@ -"))
        .count();
    if hunks != expected {
        fail!(
            "a damaged diff: {hunks} of its {expected} hunks can be read";
            "create it again with `git diff`"
        );
    }
    let mut paths = BTreeSet::new();
    if let Some(twice) = files.iter().find(|file| !paths.insert(&file.path)) {
        fail!(
            "{} is changed twice", twice.path;
            "use a single diff instead of several patches"
        );
    }
    Ok(files)
}

fn lines(diff: &[u8]) -> impl Iterator<Item = &[u8]> {
    diff.split(|byte| *byte == b'\n')
}

fn without_carriage_returns(diff: &[u8]) -> Vec<u8> {
    let mut lines: Vec<_> = lines(diff)
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect();
    // One that was cut off is still a line.
    if lines.last().is_some_and(|last| !last.is_empty()) {
        lines.push(b"");
    }
    lines.join(&b'\n')
}

fn is_combined(line: &[u8]) -> bool {
    [&b"diff --cc "[..], b"diff --combined ", b"@@@ "]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Returns whether a diff may have this line in the place of changed lines.
fn says_no_lines(line: &[u8]) -> bool {
    let starts = [
        &b"Submodule "[..],
        b"* Unmerged path ",
        b"Only in ",
        b"Binary files ",
        b"Files ",
    ];
    line.trim_ascii().is_empty() || starts.iter().any(|start| line.starts_with(start))
}

/// The file after the change; `None` if it was deleted.
fn changed(patch: &FilePatch<'_, [u8]>) -> Result<Option<ChangedFile>> {
    let path = match patch.operation() {
        FileOperation::Delete(_) => return Ok(None),
        FileOperation::Create(path) => without_side(&text(path)),
        FileOperation::Modify { original, modified } => {
            modified_path(&text(original), &text(modified))
        }
        FileOperation::Rename { to, .. } | FileOperation::Copy { to, .. } => text(to).into_owned(),
    };
    let mut file = ChangedFile {
        path,
        ..ChangedFile::default()
    };
    let hunks = match patch.patch() {
        PatchKind::Text(text) => text.hunks(),
        PatchKind::Binary(_) => {
            file.is_binary = true;
            &[]
        }
    };
    for hunk in hunks {
        let mut number = hunk.new_range().start();
        for line in hunk.lines() {
            match line {
                Line::Delete(_) => continue,
                Line::Context(_) => {}
                Line::Insert(added) => {
                    let too_large = || format!("{}: line {number} is too large", file.path);
                    let number = u32::try_from(number).with_context(too_large)?;
                    let added = added.strip_suffix(b"\n").unwrap_or(added);
                    file.lines.insert(number, added.to_vec());
                }
            }
            number += 1;
        }
    }
    Ok(Some(file))
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The path of a modified file, without the prefixes `a/` and `b/`, or other prefixes of the two sides.
fn modified_path(original: &str, modified: &str) -> String {
    if original == modified {
        return modified.to_owned();
    }
    let (original, modified_path) = (Path::new(original), Path::new(modified));
    match common_suffix(original, modified_path) {
        0 => without_side(modified),
        common => {
            let components = modified_path.components();
            let prefix = components.clone().count() - common;
            let path: PathBuf = components.skip(prefix).collect();
            path.to_string_lossy().into_owned()
        }
    }
}

/// The path without a prefix of one letter: besides `b/`, git writes `w/`, `i/` and `c/` if
/// `diff.mnemonicPrefix` is set.
fn without_side(path: &str) -> String {
    let rest = ["b/", "w/", "i/", "c/"]
        .iter()
        .find_map(|side| path.strip_prefix(side));
    rest.unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths and changed lines.
    #[track_caller]
    fn changed(diff: &str) -> Vec<(String, Vec<u32>)> {
        let files = read(diff.as_bytes()).unwrap().into_iter();
        files
            .map(|file| (file.path, file.lines.into_keys().collect()))
            .collect()
    }

    fn file(path: &str, lines: &[u32]) -> (String, Vec<u32>) {
        (path.to_owned(), lines.to_vec())
    }

    #[test]
    fn lines_are_those_after_the_change() {
        let diff = "\
diff --git a/new.hip b/new.hip
new file mode 100644
index 0000000..587be6b
--- /dev/null
+++ b/new.hip
@@ -0,0 +1 @@
+x
\\ No newline at end of file
diff --git a/gone.hip b/gone.hip
deleted file mode 100644
index 587be6b..0000000
--- a/gone.hip
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/image.png b/image.png
index 1..2 100644
Binary files a/image.png and b/image.png differ
diff --git a/mode b/mode
old mode 100644
new mode 100755
diff --git a/some.hip b/some.hip
index 1..2 100644
--- a/some.hip
+++ b/some.hip
@@ -2,2 +2,3 @@ context
 a
--- b
+++ c
+@@ -1 +1 @@
@@ -9,2 +10,0 @@ context
-d
-e
Submodule part 123..456 (commits not present)
";
        let expected = [
            file("new.hip", &[1]),
            file("image.png", &[]),
            file("mode", &[]),
            file("some.hip", &[3, 4]),
        ];
        assert_eq!(changed(diff), expected);
        assert!(read(diff.as_bytes()).unwrap()[1].is_binary);
    }

    #[test]
    fn prefixes_of_the_sides_are_no_part_of_a_path() {
        for (old, new, expected) in [
            ("a/src/x.hip", "b/src/x.hip", "src/x.hip"),
            ("i/src/x.hip", "w/src/x.hip", "src/x.hip"),
            ("src/x.hip", "src/x.hip", "src/x.hip"),
            ("/dev/null", "b/src/x.hip", "src/x.hip"),
            (
                "old/src/x.hip\t2026-11-21",
                "new/src/x.hip\t2026-11-21",
                "src/x.hip",
            ),
            ("x.hip.orig", "x.hip", "x.hip"),
            (
                "\"a/\\303\\274 \\\"x\"",
                "\"b/\\303\\274 \\\"x\"",
                "\u{fc} \"x",
            ),
            ("\"a/\\374\"", "\"b/\\374\"", "\u{fffd}"),
        ] {
            let diff = format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-x\n+y\n");
            assert_eq!(changed(&diff), [file(expected, &[1])], "{new}");
        }
    }

    #[test]
    fn nothing_is_no_damage() {
        for diff in ["", "\n", "Submodule part 123..456 (commits not present)\n"] {
            assert_eq!(changed(diff), []);
        }
    }
}
