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
