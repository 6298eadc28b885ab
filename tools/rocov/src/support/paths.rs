//! Paths as they are shown, and the directories of the user.

use std::borrow::Cow;
use std::env;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rocov::support::diagnostic::Remedy;

/// The error that a path that the user has given leads nowhere.
#[derive(Debug)]
pub(crate) struct Absent {
    path: PathBuf,
    /// The next step.
    remedy: Cow<'static, str>,
}

impl Absent {
    /// Makes the error for `path`.
    pub(crate) fn new(path: &Path, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path: path.to_owned(),
            remedy: remedy.into(),
        }
    }

    /// Returns whether an error of the system says so. A part of the path may be a file.
    pub(crate) fn is(error: &io::Error) -> bool {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not exist", self.path.display())?;
        if self.path.is_relative() {
            write!(f, " in {}", here().display())?;
        }
        Ok(())
    }
}

impl Error for Absent {}

impl Remedy for Absent {
    fn remedy(&self) -> Cow<'static, str> {
        self.remedy.clone()
    }
}

/// The directory `rocov` of the user's files of one kind: in the directory that `variable` names
/// (`XDG_CACHE_HOME`), or in `fallback` of the home directory. As in the XDG Base Directory Specification, a
/// relative path counts as not set.
pub(crate) fn user_directory(variable: &str, fallback: &str) -> Option<PathBuf> {
    let directory = |name| env::var_os(name).map(PathBuf::from);
    let absolute = |name| directory(name).filter(|path| path.is_absolute());
    let base = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(fallback)));
    base.map(|base| base.join("rocov"))
}

/// The current directory, which paths are shown from.
pub(crate) fn here() -> PathBuf {
    env::current_dir().unwrap_or_default()
}

/// `path` from the directory `base`, if it is below that.
pub(crate) fn below<'a>(path: &'a str, base: &Path) -> Cow<'a, str> {
    match Path::new(path).strip_prefix(base) {
        Ok(rest) => rest.to_string_lossy(),
        Err(_) => path.into(),
    }
}

/// The innermost directory that all of the paths are in; nothing if there are none.
pub(crate) fn common<'a>(paths: impl IntoIterator<Item = &'a str>) -> PathBuf {
    let mut paths = paths.into_iter().map(Path::new);
    let Some(first) = paths.next() else {
        return PathBuf::new();
    };
    let mut common = first.parent().unwrap_or(first);
    for path in paths {
        while !path.starts_with(common) {
            common = common.parent().unwrap_or(Path::new(""));
        }
    }
    common.to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_directory_is_of_whole_components() {
        assert_eq!(common(["/a/bc/x", "/a/bd/y", "/a/bc/z"]), Path::new("/a"));
        assert_eq!(common(["/a/b/x", "/a/b/c/y"]), Path::new("/a/b"));
        assert_eq!(common(["/a/x", "/b/x"]), Path::new("/"));
        assert_eq!(common(["/a/x"]), Path::new("/a"));
        assert_eq!(common([]), Path::new(""));
        assert_eq!(below("/a/b/x", Path::new("/a")), "b/x");
        assert_eq!(below("/ab/x", Path::new("/a")), "/ab/x");
    }
}
