//! The lines that a unified diff changes, by their numbers before the change.

use anyhow::{Context, Result};
use rocov::support::diagnostic::{diagnostic, fail};

/// Reads the lines of the old side of a diff: pairs of a path and a number. An insertion has the line that it
/// follows.
///
/// # Errors
///
/// Fails if the text is not a unified diff, or is damaged.
pub(super) fn old_lines(diff: &str) -> Result<Vec<(String, i32)>> {
    let mut path = None;
    let mut found = Vec::new();
    let mut text = diff.lines();
    while let Some(line) = text.next() {
        if let Some(name) = line.strip_prefix("--- ") {
            let name = name.split('\t').next().unwrap_or_default();
            path = Some(name.strip_prefix("a/").unwrap_or(name).to_owned());
        } else if let Some(hunk) = line.strip_prefix("@@ -") {
            let sides = hunk.split_once(" +").and_then(|(old, new)| {
                let new = new.split_once(" @@")?.0;
                Some((side(old)?, side(new)?))
            });
            let damaged =
                || diagnostic!("a damaged diff ('{line}')"; "create it again with `git diff`");
            let ((first, old), (_, new)) = sides.with_context(damaged)?;
            let path = path.as_ref().with_context(damaged)?;
            skip(&mut text, old, new).with_context(damaged)?;
            let lines = first..first.saturating_add(old.max(1));
            found.extend(lines.map(|line| (path.clone(), line)));
        }
    }
    if let (true, Some(first)) = (found.is_empty(), diff.lines().next()) {
        fail!(
            "not a unified diff: it starts with '{first}'";
            "create one with `git diff --unified=0`"
        );
    }
    Ok(found)
}

/// The first line and the number of lines of one side of a hunk.
fn side(text: &str) -> Option<(i32, i32)> {
    match text.split_once(',') {
        None => Some((text.parse().ok()?, 1)),
        Some((first, number)) => Some((first.parse().ok()?, number.parse().ok()?)),
    }
}

/// Passes the lines of a hunk, which may look like headings.
fn skip<'a>(text: &mut impl Iterator<Item = &'a str>, old: i32, new: i32) -> Option<()> {
    let (mut old, mut new) = (old, new);
    while old > 0 || new > 0 {
        match text.next()?.bytes().next() {
            Some(b'-') => old -= 1,
            Some(b'+') => new -= 1,
            Some(b'\\') => {}
            _ => (old, new) = (old - 1, new - 1),
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_numbers_before_the_change() {
        let diff = "diff --git a/a.sql b/a.sql\n--- a/a.sql\n+++ b/a.sql\n@@ -3,2 +3 @@\n--- a comment\n-x\n+y\n\
                    @@ -9,0 +9,1 @@ of\n+z\n--- a/b c.hip\t2026-11-24\n+++ b/b c.hip\n@@ -1 +1 @@\n-x\n+y\n\
                    \\ No newline at end of file\n";
        let expected = [("a.sql", 3), ("a.sql", 4), ("a.sql", 9), ("b c.hip", 1)];
        let expected = expected.map(|(path, line)| (path.to_owned(), line));
        assert_eq!(old_lines(diff).unwrap(), expected);
        assert_eq!(old_lines("").unwrap(), []);
        for (text, reason) in [
            ("hello\n", "not a unified diff: it starts with 'hello'"),
            ("@@ -1 +1 @@\n-x\n+y\n", "a damaged diff"),
            ("--- a\n+++ b\n@@ -1,3 +1 @@\n-x\n", "a damaged diff"),
            ("--- a\n+++ b\n@@ -x +1 @@\n", "a damaged diff"),
        ] {
            let error = old_lines(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
