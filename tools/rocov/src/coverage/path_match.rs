//! Matches paths in a repository with the sources of a report.
//!
//! Git and diffs have paths from the root of a repository, and a report has them as they were compiled,
//! often elsewhere: in a container, or from a part of the repository.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The result of a search for a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match<'a> {
    /// The path is this source.
    Source(&'a str),
    /// Most likely this source: the first directories of the path are not in its own.
    Likely(&'a str),
    /// One of these sources.
    Ambiguous(Vec<&'a str>),
    Nothing,
}

/// The number of components that both paths end with.
pub(super) fn common_suffix(one: &Path, other: &Path) -> usize {
    let same = one.components().rev().zip(other.components().rev());
    same.take_while(|(one, other)| one == other).count()
}

/// The sources of a report, found by path.
#[derive(Debug)]
pub(super) struct PathIndex {
    root: Option<PathBuf>,
    /// The sources in the work tree, by their paths in it.
    inside: HashMap<PathBuf, String>,
    /// The others, by the last component.
    by_name: HashMap<OsString, Vec<String>>,
}

impl PathIndex {
    /// Takes the sources, some of which are in the work tree with this root, if there is one.
    pub(super) fn new<'a>(root: Option<&Path>, sources: impl IntoIterator<Item = &'a str>) -> Self {
        let mut places = Self {
            root: root.map(Path::to_path_buf),
            inside: HashMap::new(),
            by_name: HashMap::new(),
        };
        for source in sources {
            let inside = root.and_then(|root| {
                let place = Path::new(source).canonicalize().ok()?;
                place.starts_with(root).then_some(place)
            });
            if let Some(place) = inside {
                places.inside.insert(place, source.to_owned());
            } else if let Some(name) = Path::new(source).file_name() {
                let same_name = places.by_name.entry(name.to_owned()).or_default();
                same_name.push(source.to_owned());
            }
        }
        places
    }

    /// Finds `path`, from the root of the repository.
    ///
    /// A source in the work tree has its own path. Among others, the one that ends with the most
    /// components of `path` is taken: with all that either has, or at least with a directory.
    pub(super) fn find(&self, path: &str) -> Match<'_> {
        let path = Path::new(path);
        let here = self.root.as_ref().map(|root| root.join(path));
        if let Some(source) = here.as_ref().and_then(|here| self.inside.get(here)) {
            return Match::Source(source);
        }
        let same_name = path.file_name().and_then(|name| self.by_name.get(name));
        let whole = path.components().count();
        let mut longest = 2;
        let mut found: Vec<(&str, bool)> = Vec::new();
        for source in same_name.into_iter().flatten() {
            let place = Path::new(source);
            if here.as_deref() == Some(place) {
                return Match::Source(source);
            }
            let common = common_suffix(path, place);
            let is_whole = common == whole || common == place.components().count();
            let length = if common == whole { usize::MAX } else { common };
            if length < longest && !is_whole {
                continue;
            }
            if length > longest {
                found.clear();
                longest = length;
            }
            found.push((source, is_whole));
        }
        match found[..] {
            [] => Match::Nothing,
            [(source, true)] => Match::Source(source),
            [(source, false)] => Match::Likely(source),
            _ => Match::Ambiguous(found.into_iter().map(|(source, _)| source).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_suffix_is_found_and_doubt_is_told() {
        let sources = [
            "/build/p/src/a.hip",
            "/build/q/src/a.hip",
            "/build/b.hip",
            "gen/c.h",
        ];
        let places = PathIndex::new(None, sources);
        let find = |path| places.find(path);
        assert_eq!(find("p/src/a.hip"), Match::Source(sources[0]));
        assert_eq!(find("q/src/a.hip"), Match::Source(sources[1]));
        assert_eq!(find("src/a.hip"), Match::Ambiguous(sources[..2].to_vec()));
        assert_eq!(find("x/p/src/a.hip"), Match::Likely(sources[0]));
        assert_eq!(find("b.hip"), Match::Source(sources[2]));
        // A name is too little, and half a component is nothing.
        assert_eq!(find("x/b.hip"), Match::Nothing);
        assert_eq!(find("rc/a.hip"), Match::Nothing);
        assert_eq!(find("top/gen/c.h"), Match::Source(sources[3]));
    }

    #[test]
    fn a_source_in_the_repository_is_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("one/src")).unwrap();
        std::fs::write(root.join("one/src/a.hip"), "").unwrap();
        let here = root.join("one/src/a.hip");
        let here = here.to_str().unwrap();
        let built = "/build/two/src/a.hip";
        let places = PathIndex::new(Some(&root), [here]);
        assert_eq!(places.find("one/src/a.hip"), Match::Source(here));
        assert_eq!(places.find("two/src/a.hip"), Match::Nothing);
        let places = PathIndex::new(Some(&root), [here, built]);
        assert_eq!(places.find("two/src/a.hip"), Match::Source(built));
    }
}
