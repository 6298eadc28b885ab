//! Which source of a report a path in a repository is, and the other way round.
//!
//! Git and diffs have paths from the root of a repository, and a report has them as they were compiled,
//! often elsewhere: in a container, or from a part of the repository.

use std::path::Path;

/// What a path is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match<'a> {
    /// This source.
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

/// Finds `path` among `sources`, in the repository with this root if that is known.
///
/// A source in the repository is where it is. Of others, the one that ends with the most components
/// of `path` is taken: with all that either has, or at least with a directory.
pub(super) fn find<'a>(
    path: &str,
    root: Option<&Path>,
    sources: impl IntoIterator<Item = &'a str>,
) -> Match<'a> {
    let path = Path::new(path);
    let whole = path.components().count();
    let mut longest = 2;
    let mut found: Vec<(&str, bool)> = Vec::new();
    for source in sources {
        let place = Path::new(source);
        if let Some(root) = root {
            let is_it = place == root.join(path);
            if is_it || place.canonicalize().is_ok_and(|it| it == root.join(path)) {
                return Match::Source(source);
            }
            if place.starts_with(root) && place.exists() {
                continue;
            }
        }
        let common = common_suffix(path, place);
        let is_whole = common == whole || common == place.components().count();
        let length = if common == whole { usize::MAX } else { common };
        if common == 0 || (length < longest && !is_whole) {
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
        let find = |path| find(path, None, sources);
        assert_eq!(find("p/src/a.hip"), Match::Source(sources[0]));
        assert_eq!(find("q/src/a.hip"), Match::Source(sources[1]));
        assert_eq!(find("src/a.hip"), Match::Ambiguous(sources[..2].to_vec()));
        assert_eq!(find("x/p/src/a.hip"), Match::Likely(sources[0]));
        assert_eq!(find("b.hip"), Match::Source(sources[2]));
        // A name alone says too little, and half a component nothing.
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
        let find = |path, source| find(path, Some(&root), [source]);
        assert_eq!(find("one/src/a.hip", here), Match::Source(here));
        assert_eq!(find("two/src/a.hip", here), Match::Nothing);
        let built = "/build/two/src/a.hip";
        assert_eq!(find("two/src/a.hip", built), Match::Source(built));
    }
}
