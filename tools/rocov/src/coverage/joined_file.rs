//! A source file with one count of those in all columns: of everything, or of one label.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::function::{Place, Span};

/// The counts of a source file.
#[derive(Debug, Default, Clone)]
pub(crate) struct JoinedFile {
    /// By the number of the line.
    pub(crate) lines: BTreeMap<u32, u64>,
    /// The calls of functions, by the lines that they start on and their mangled names.
    pub(crate) functions: BTreeMap<(u32, String), u64>,
    pub(super) branches: BTreeMap<Where, Joined>,
}

/// The counts under one label, in the files that it reached.
#[derive(Debug)]
pub(crate) struct LabelCounts {
    /// The label. Labels that share counts have ` & ` between them.
    pub(crate) label: String,
    pub(crate) files: HashMap<Arc<str>, JoinedFile>,
}

impl JoinedFile {
    /// The branches of each line: the number of times that each was true and was false.
    pub(crate) fn branches_by_line(&self) -> BTreeMap<u32, Vec<Joined>> {
        let mut by_line: BTreeMap<u32, Vec<Joined>> = BTreeMap::new();
        for ((path, _), sides) in &self.branches {
            let Place { line, .. } = path[0];
            by_line.entry(line).or_default().push(*sides);
        }
        by_line
    }

    /// Returns whether any of it ran.
    pub(crate) fn has_run(&self) -> bool {
        let mut sides = self.branches.values().flatten().flatten();
        self.lines
            .values()
            .chain(self.functions.values())
            .any(|count| *count > 0)
            || sides.any(|count| *count > 0)
    }

    /// Removes lines, functions and branches that did not run.
    pub(crate) fn leave_out_zeros(&mut self) {
        self.lines.retain(|_, count| *count > 0);
        self.functions.retain(|_, count| *count > 0);
        self.branches
            .retain(|_, sides| sides.iter().any(|count| *count > Some(0)));
    }

    /// All of this file, with the counts that `part` has, and zeros elsewhere.
    pub(crate) fn with_counts_of(&self, part: &Self) -> Self {
        let of = |part: Option<&u64>| part.copied().unwrap_or(0);
        let lines = self.lines.keys();
        let functions = self.functions.keys();
        let branches = self.branches.iter();
        Self {
            lines: lines
                .map(|line| (*line, of(part.lines.get(line))))
                .collect(),
            functions: functions
                .map(|function| (function.clone(), of(part.functions.get(function))))
                .collect(),
            branches: branches
                .map(|(place, all)| {
                    let part = part.branches.get(place);
                    let side = |side: usize| {
                        all[side].map(|_| part.and_then(|sides| sides[side]).unwrap_or(0))
                    };
                    (place.clone(), [side(0), side(1)])
                })
                .collect(),
        }
    }

    /// Takes the counts of `part` away.
    pub(crate) fn subtract(&mut self, part: &Self) {
        let less = |count: &mut u64, part: Option<u64>| {
            *count = count.saturating_sub(part.unwrap_or(0));
        };
        for (line, count) in &mut self.lines {
            less(count, part.lines.get(line).copied());
        }
        for (function, count) in &mut self.functions {
            less(count, part.functions.get(function).copied());
        }
        for (place, sides) in &mut self.branches {
            let Some(part) = part.branches.get(place) else {
                continue;
            };
            for (count, part) in sides.iter_mut().zip(part) {
                if let Some(count) = count {
                    less(count, *part);
                }
            }
        }
    }
}

/// The position of a branch: its place in the file, preceded by the places that lead to it if it is in
/// a macro that the file uses; and its span. llvm-cov takes all branches of a macro for one, without a span.
pub(super) type Where = (Vec<Place>, Option<Span>);

/// The numbers of times that a branch was true and was false; `None` for a side that is folded.
pub(crate) type Joined = [Option<u64>; 2];
