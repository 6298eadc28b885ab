//! Finds the source, and the line of it, that a user means.

use std::path::Path;

use anyhow::{Error, Result};
use rocov::support::diagnostic::fail;

use super::line::Line;
use super::path_match::{Match, PathIndex};
use super::view::View;
use crate::support::failure::failure;

impl View {
    /// The source at `file`. If there is none, the source whose path ends like `file`.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or there are several.
    pub(crate) fn source(&self, file: &Path) -> Result<&str> {
        let here = file.canonicalize();
        let root = here.is_ok().then_some(Path::new("/"));
        let path = here.as_deref().unwrap_or(file);
        let paths = || self.paths.iter().map(|path| &**path);
        let found = match PathIndex::new(root, paths()).find(&path.to_string_lossy()) {
            Match::Source(found) | Match::Likely(found) => found.to_owned(),
            Match::Nothing => return Err(not_known([file], paths())),
            Match::Ambiguous(several) => {
                fail!(
                    "{} may be any of {}", file.display(), several.join(", ");
                    "use more of its path"
                )
            }
        };
        // The index is gone, and the view has the path, too.
        let source = paths().find(|path| **path == *found);
        source.ok_or_else(|| not_known([file], paths()))
    }

    /// A line of one of its source files, which has a count in each column.
    ///
    /// # Errors
    ///
    /// Fails if there is no code on it.
    pub(crate) fn line(&self, path: &str, number: u32) -> Result<Line> {
        let mut lines = self.file(path).lines;
        let Err(after) = lines.binary_search_by_key(&number, |line| line.number) else {
            lines.retain(|line| line.number == number);
            return Ok(lines.remove(0));
        };
        let before = after.checked_sub(1).and_then(|index| lines.get(index));
        let near = before.into_iter().chain(lines.get(after));
        let near: Vec<_> = near.map(|line| line.number.to_string()).collect();
        fail!(
            "there is no GPU code on line {number} of {path}";
            "use the nearest line with code, {}", near.join(" or ")
        )
    }
}

/// Makes the error that none of the sources that code was `compiled` from is one of those `asked` for.
pub(crate) fn not_known(
    asked: impl IntoIterator<Item = impl AsRef<Path>>,
    compiled: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Error {
    fn list(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> String {
        let paths = paths.into_iter();
        let paths = paths.map(|path| path.as_ref().display().to_string());
        paths.collect::<Vec<_>>().join(", ")
    }
    failure!(
        "the GPU code that ran was not compiled from {}, but from {}", list(asked), list(compiled);
        "use --path-map if sources have moved"
    )
}
