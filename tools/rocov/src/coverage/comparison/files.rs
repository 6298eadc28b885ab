//! Pairs of files before and after, which may have been compiled in different directories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::pair::Pair;
use crate::support::paths::common;

/// Pairs the files before and after: by their paths, then by their paths from the directory that all
/// others of their side are in. The rest has no partner.
pub(super) fn pairs<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Pair<Option<&'a str>>> {
    let set = |paths: &[&'a str]| paths.iter().copied().collect::<BTreeSet<_>>();
    let (before, after) = (set(before), set(after));
    let same = before.intersection(&after).copied();
    let mut pairs: Vec<_> = same.map(|path| (Some(path), Some(path))).collect();
    let mut old = relative(before.difference(&after).copied());
    for (path, after) in relative(after.difference(&before).copied()) {
        pairs.push((old.remove(path), Some(after)));
    }
    pairs.extend(old.into_values().map(|before| (Some(before), None)));
    let pairs = pairs.into_iter();
    pairs
        .map(|(before, after)| Pair { before, after })
        .collect()
}

/// The paths by their names from the directory that all are in.
fn relative<'a>(paths: impl Iterator<Item = &'a str> + Clone) -> BTreeMap<&'a Path, &'a str> {
    let base = common(paths.clone());
    let from_base = |path: &'a str| {
        let path = Path::new(path);
        path.strip_prefix(&base).unwrap_or(path)
    };
    paths.map(|path| (from_base(path), path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &[&str], after: &[&str], expected: &[(Option<&str>, Option<&str>)]) {
        let found = pairs(before, after);
        let found: Vec<_> = found.iter().map(|pair| (pair.before, pair.after)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_are_the_same_by_path_or_by_path_from_their_root() {
        check(
            &["/usr/h.h", "/one/src/a.hip", "/one/b.hip"],
            &["/usr/h.h", "/two/x/src/a.hip", "/two/x/c.hip"],
            &[
                (Some("/usr/h.h"), Some("/usr/h.h")),
                (None, Some("/two/x/c.hip")),
                (Some("/one/src/a.hip"), Some("/two/x/src/a.hip")),
                (Some("/one/b.hip"), None),
            ],
        );
        check(
            &["/one/a.hip"],
            &["/two/a.hip"],
            &[(Some("/one/a.hip"), Some("/two/a.hip"))],
        );
        check(
            &["/one/a.hip"],
            &["/one/b.hip"],
            &[(None, Some("/one/b.hip")), (Some("/one/a.hip"), None)],
        );
    }
}
