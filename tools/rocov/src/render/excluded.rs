//! The number of excluded lines, and the excluded sides of branches.

use std::collections::BTreeMap;

use crate::coverage::exclusions::ExcludedBranch;
use crate::coverage::view::View;
use crate::term::plural::count;

/// The number of lines that are left out, with the groups of reasons, as a text; `None` if there are none.
pub(super) fn excluded(view: &View) -> Option<String> {
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for path in &view.paths {
        for reason in view.excluded(path).values() {
            *groups.entry(reason.group()).or_default() += 1;
        }
    }
    let lines = groups.values().sum();
    let groups = groups.iter();
    let groups: Vec<_> = groups
        .map(|(group, lines)| format!("{lines} by {group}"))
        .collect();
    (lines > 0).then(|| format!("{}, {}", count(lines, "line"), groups.join(", ")))
}

/// The conditions of a source on lines that stay of which a side is left out: their lines, and the sides in words.
pub(super) fn excluded_branches_of(view: &View, path: &str) -> Vec<(u32, String)> {
    let mut by_line: BTreeMap<u32, Vec<&ExcludedBranch>> = BTreeMap::new();
    for (place, branch) in view.excluded_branches(path) {
        by_line.entry(place.line).or_default().push(branch);
    }
    let lines = by_line.into_iter().flat_map(|(line, branches)| {
        let abouts = excluded_branches(branches.into_iter());
        abouts.into_iter().map(move |about| (line, about))
    });
    lines.collect()
}

/// The excluded sides of conditions in words, with the reasons. Each text is there once.
pub(super) fn excluded_branches<'a>(
    branches: impl Iterator<Item = &'a ExcludedBranch>,
) -> Vec<String> {
    let mut abouts = Vec::new();
    for (sides, reason) in branches.flat_map(ExcludedBranch::by_reason) {
        let about = format!("{sides} excluded: {reason}");
        if !abouts.contains(&about) {
            abouts.push(about);
        }
    }
    abouts
}
