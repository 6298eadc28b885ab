//! Paths, line numbers and figures as they are shown.

use crate::coverage::figures::Figure;
use std::borrow::Cow;
use std::env;
use std::path::{Path, PathBuf};

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

/// The directory that all of the paths are in; nothing if there is but one.
pub(crate) fn common<'a>(paths: impl IntoIterator<Item = &'a str>) -> PathBuf {
    let mut paths = paths.into_iter().map(Path::new);
    let (Some(first), Some(second)) = (paths.next(), paths.next()) else {
        return PathBuf::new();
    };
    let mut common = first.parent().unwrap_or(first);
    for path in [second].into_iter().chain(paths) {
        while !path.starts_with(common) {
            common = common.parent().unwrap_or(Path::new(""));
        }
    }
    common.to_path_buf()
}

/// Line numbers in order, as ranges: `1-3, 7`.
pub(crate) fn ranges(lines: impl IntoIterator<Item = u32>) -> Vec<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    let text = |(first, last)| {
        if first == last {
            format!("{first}")
        } else {
            format!("{first}-{last}")
        }
    };
    ranges.into_iter().map(text).collect()
}

/// A figure with what it is of: `95.45% (21/22)`; a dash of nothing.
pub(crate) fn share(figure: Figure) -> String {
    if figure.total == 0 {
        return percent(figure);
    }
    format!("{} ({}/{})", percent(figure), figure.covered, figure.total)
}

/// A figure in percent; a dash of nothing.
pub(crate) fn percent(figure: Figure) -> String {
    let percent = figure.percent();
    percent.map_or("-".to_owned(), |percent| format!("{percent:.2}%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_directory_is_of_whole_components() {
        assert_eq!(common(["/a/bc/x", "/a/bd/y", "/a/bc/z"]), Path::new("/a"));
        assert_eq!(common(["/a/b/x", "/a/b/c/y"]), Path::new("/a/b"));
        assert_eq!(common(["/a/x", "/b/x"]), Path::new("/"));
        assert_eq!(common(["/a/x"]), Path::new(""));
        assert_eq!(below("/a/b/x", Path::new("/a")), "b/x");
        assert_eq!(below("/ab/x", Path::new("/a")), "/ab/x");
    }

    #[test]
    fn neighbours_are_a_range() {
        assert_eq!(ranges([1, 2, 3, 7, 9, 10]), ["1-3", "7", "9-10"]);
        assert!(ranges([]).is_empty());
    }
}
