//! Groups of functions that are evaluated together.
//!
//! Functions that share lines of a file decide the counts of these lines together: a lambda and the function
//! around it, instances of a template, and functions that expand one macro. So do descriptions of one function.
//! The coverage of a group does not depend on other groups.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::function::{Function, Key};

/// The groups of functions, by their descriptions.
#[derive(Debug)]
pub(crate) struct FunctionGroups(HashMap<Arc<Function>, usize>);

impl FunctionGroups {
    /// Groups these functions.
    pub(crate) fn new<'a>(functions: impl Iterator<Item = &'a Arc<Function>>) -> Self {
        let mut numbers: HashMap<Arc<Function>, usize> = HashMap::new();
        let mut sets = Sets::default();
        let mut known: HashMap<Key, usize> = HashMap::new();
        let mut by_path: HashMap<Arc<str>, Vec<(RangeInclusive<u32>, usize)>> = HashMap::new();
        for function in functions {
            if numbers.contains_key(function) {
                continue;
            }
            let number = sets.add();
            numbers.insert(Arc::clone(function), number);
            let first = *known.entry(function.key()).or_insert(number);
            sets.join(first, number);
            for (path, lines) in lines(function) {
                by_path.entry(path).or_default().push((lines, number));
            }
        }
        for mut functions in by_path.into_values() {
            functions.sort_unstable_by_key(|(lines, _)| *lines.start());
            let mut last: Option<(u32, usize)> = None;
            for (lines, number) in functions {
                let end = match last {
                    Some((end, before)) if *lines.start() <= end => {
                        sets.join(before, number);
                        end.max(*lines.end())
                    }
                    _ => *lines.end(),
                };
                last = Some((end, number));
            }
        }
        let groups = numbers.into_iter();
        Self(
            groups
                .map(|(function, number)| (function, sets.find(number)))
                .collect(),
        )
    }

    /// The number of a function's group. `None` if the function is not known.
    pub(crate) fn get(&self, function: &Arc<Function>) -> Option<usize> {
        self.0.get(function).copied()
    }
}

/// The lines of a function in each of its files, from the first to the last.
fn lines(function: &Function) -> HashMap<Arc<str>, RangeInclusive<u32>> {
    let mut lines = HashMap::new();
    let start = function.start().line;
    lines.insert(Arc::clone(function.main_path()), start..=start);
    for region in &function.regions {
        let span = region.location.span;
        let (start, end) = (span.start.line, span.end.line);
        let path = Arc::clone(function.path(region.location.file));
        let known = lines.entry(path).or_insert(start..=end);
        *known = start.min(*known.start())..=end.max(*known.end());
    }
    for listed in function
        .line_table
        .iter()
        .flat_map(|line_table| &line_table.lines)
    {
        let path = Arc::clone(function.path(listed.file));
        let known = lines.entry(path).or_insert(listed.line..=listed.line);
        *known = listed.line.min(*known.start())..=listed.line.max(*known.end());
    }
    lines
}

/// Disjoint sets of numbers.
#[derive(Debug, Default)]
struct Sets {
    /// Another number of the set. The first number of a set has itself.
    parents: Vec<usize>,
}

impl Sets {
    /// Adds a set of a new number, and returns the number.
    fn add(&mut self) -> usize {
        let number = self.parents.len();
        self.parents.push(number);
        number
    }

    /// The first number of the set that has this one.
    fn find(&mut self, mut number: usize) -> usize {
        while self.parents[number] != number {
            self.parents[number] = self.parents[self.parents[number]];
            number = self.parents[number];
        }
        number
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.parents[one.max(other)] = one.min(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::function::{Kind, Location, Place, Region, Span};

    fn function(name: &str, files: &[&str], lines: &[(u32, RangeInclusive<u32>)]) -> Arc<Function> {
        let regions = lines.iter().map(|(file, lines)| Region {
            location: Location {
                span: Span {
                    start: Place {
                        line: *lines.start(),
                        column: 1,
                    },
                    end: Place {
                        line: *lines.end(),
                        column: 2,
                    },
                },
                file: *file,
                expanded: 0,
            },
            kind: Kind::Code,
        });
        Arc::new(Function {
            name: name.into(),
            filenames: files.iter().map(|file| (*file).into()).collect(),
            regions: regions.collect(),
            ..Function::default()
        })
    }

    #[test]
    fn functions_that_share_lines_or_a_name_are_a_group() {
        let all = [
            function("outer", &["a"], &[(0, 1..=9), (0, 3..=4)]),
            function("lambda", &["a"], &[(0, 4..=5)]),
            function("next", &["a"], &[(0, 10..=12)]),
            function("macro", &["b", "c"], &[(0, 1..=2), (1, 7..=7)]),
            function("other macro", &["d", "c"], &[(0, 1..=2), (1, 6..=8)]),
            function("next", &["a"], &[(0, 20..=22)]),
            function("elsewhere", &["e"], &[(0, 1..=9)]),
        ];
        let groups = FunctionGroups::new(all.iter().chain(&all[..1]));
        let groups: Vec<_> = all.iter().map(|name| groups.get(name).unwrap()).collect();
        assert_eq!(groups, [0, 0, 2, 3, 3, 2, 6]);
    }
}
