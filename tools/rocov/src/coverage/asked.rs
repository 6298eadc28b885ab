//! Which source, and which line of it, a user means.

use super::file::Line;
use super::places::{Match, Places};
use super::view::View;
use crate::sources::not_known;
use anyhow::{Result, bail};
use std::path::Path;

impl View {
    /// The source at `file`, or, if there is nothing, the one whose path ends like that.
    ///
    /// # Errors
    ///
    /// When there is none, or there are several.
    pub(crate) fn source(&self, file: &Path) -> Result<&str> {
        let here = file.canonicalize();
        let root = here.is_ok().then_some(Path::new("/"));
        let path = here.as_deref().unwrap_or(file);
        let paths = || self.paths.iter().map(|path| &**path);
        let found = match Places::new(root, paths()).find(&path.to_string_lossy()) {
            Match::Source(found) | Match::Likely(found) => found.to_owned(),
            Match::Nothing => return Err(not_known([file], paths())),
            Match::Ambiguous(several) => bail!(
                "{} may be one of {}: give more of its path",
                file.display(),
                several.join(", ")
            ),
        };
        // Of the view, as the places go.
        let source = paths().find(|path| **path == *found);
        source.ok_or_else(|| not_known([file], paths()))
    }

    /// A line of one of its source files, which has a count in each column.
    ///
    /// # Errors
    ///
    /// When there is no code on it.
    pub(crate) fn line(&self, path: &str, number: u32) -> Result<Line> {
        let mut lines = self.file(path).lines;
        let Err(after) = lines.binary_search_by_key(&number, |line| line.number) else {
            lines.retain(|line| line.number == number);
            return Ok(lines.remove(0));
        };
        let before = after.checked_sub(1).and_then(|index| lines.get(index));
        let near = before.into_iter().chain(lines.get(after));
        let near: Vec<_> = near.map(|line| line.number.to_string()).collect();
        bail!(
            "there is no GPU code on line {number} of {path}: the nearest is on {}",
            near.join(" and ")
        )
    }
}
