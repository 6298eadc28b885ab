//! A function as a code object's coverage mapping or line table describes it, and its counts.
//!
//! All code objects that have a function share its description. Counts are of one of them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A place in a source file; line and column count from 1, the column in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The text from a place up to another, which is not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Span {
    pub(crate) start: Place,
    pub(crate) end: Place,
}

/// A location: a span of one of the function's files.
///
/// A function has a file for its body and one more for each macro expanded in it, so one path can
/// be there several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Location {
    pub(crate) span: Span,
    /// Index into [`Function::filenames`].
    pub(crate) file: u32,
    /// For an expansion, the index of the file with its expansion.
    pub(crate) expanded: u32,
}

/// The kind of a region, with the numbers of LLVM's `CounterMappingRegion::RegionKind`. Their order
/// decides which of two regions of one span is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// Code that is counted.
    Code = 0,
    /// A macro that is expanded here.
    Expansion = 1,
    /// Left out by the preprocessor.
    Skipped = 2,
    /// Between two statements: it counts for lines that nothing starts in.
    Gap = 3,
}

/// A region of a function's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Region {
    pub(crate) location: Location,
    pub(crate) kind: Kind,
}

/// A condition that decides the flow of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Branch {
    pub(crate) location: Location,
    /// LLVM's number of its kind: 4, or 6 for one that MC/DC looks at.
    pub(crate) kind: u8,
    /// For each side, true if the compiler folded it: such a side cannot be covered.
    pub(crate) folded: [bool; 2],
}

/// A decision that MC/DC looks at: several conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Decision {
    pub(crate) location: Location,
    /// LLVM's number of its kind, 5.
    pub(crate) kind: u8,
}

/// Facts in a coverage mapping that llvm-cov's export lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Marks {
    /// For each decision, true for each condition that the compiler folded: such a condition cannot be covered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) folded_conditions: Vec<Vec<bool>>,
    /// The indices of gaps without a counter: nothing runs between their statements, if the compiler is right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) uncounted_gaps: Vec<usize>,
    /// If there are such gaps, the indices of code regions that are the first region with their counter. Labels begin
    /// such regions: what follows may run after a gap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) own_counters: Vec<usize>,
    /// The conditions of which the compiler folded both sides. Only the lists of files in an export have them.
    #[serde(skip)]
    pub(crate) folded_branches: Vec<Branch>,
    /// True if the compiler folded both sides of a condition. Up to clang 20, it also marks an `if constexpr` so,
    /// and up to clang 17 the mapping does not have the parts of that which are left out.
    #[serde(default)]
    pub(crate) has_folded_branches: bool,
}

impl Marks {
    /// Returns whether the compiler folded a condition of the decision with this index.
    pub(crate) fn is_folded(&self, decision: usize, condition: usize) -> bool {
        let conditions = self.folded_conditions.get(decision);
        conditions.is_some_and(|folded| folded.get(condition) == Some(&true))
    }
}

/// The lines of a function of code that has a line table instead of a coverage mapping.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LineTable {
    /// The place that the function is declared at.
    pub(crate) start: Place,
    /// The lines with code, in order, each once.
    pub(crate) lines: Vec<TableLine>,
}

/// A line of a line table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableLine {
    /// Index into [`Function::filenames`].
    pub(crate) file: u32,
    /// The number of the line, from 1.
    pub(crate) line: u32,
}

/// A function, without counts.
///
/// A line table describes lines. Regions, branches and decisions of its functions are not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    /// Mangled.
    pub(crate) name: Arc<str>,
    pub(crate) filenames: Vec<Arc<str>>,
    pub(crate) regions: Vec<Region>,
    pub(crate) branches: Vec<Branch>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) marks: Marks,
    /// `None` if the function has a coverage mapping.
    pub(crate) line_table: Option<LineTable>,
}

/// The key of a function, which is the same in several code objects, however each was compiled.
pub(crate) type Key = (Arc<str>, Vec<Arc<str>>);

impl Function {
    /// Name and files.
    pub(crate) fn key(&self) -> Key {
        (Arc::clone(&self.name), self.filenames.clone())
    }

    /// The index of the file that the function is defined in: the first that is no expansion.
    pub(crate) fn main_file(&self) -> u32 {
        let expanded: HashSet<_> = self
            .expansions()
            .map(|expansion| expansion.expanded)
            .collect();
        self.files()
            .find(|file| !expanded.contains(file))
            .unwrap_or(0)
    }

    /// The indices of the function's files.
    fn files(&self) -> Range<u32> {
        0..u32::try_from(self.filenames.len()).unwrap_or(u32::MAX)
    }

    /// The path of the file that the function is defined in.
    pub(crate) fn main_path(&self) -> &Arc<str> {
        self.path(self.main_file())
    }

    /// The path of one of the function's files.
    pub(crate) fn path(&self, file: u32) -> &Arc<str> {
        &self.filenames[file as usize]
    }

    /// The start of the function. Instances of one template start at the same place.
    pub(crate) fn start(&self) -> Place {
        if let Some(table) = &self.line_table {
            return table.start;
        }
        let main = self.main_file();
        let is_in_main = |region: &&Region| region.location.file == main;
        let first = self.regions.iter().find(is_in_main);
        first
            .or(self.regions.first())
            .map_or(Place { line: 1, column: 1 }, |region| {
                region.location.span.start
            })
    }

    /// The end of the function: the last place of its regions in the file that its first region is in, or its last
    /// line.
    pub(crate) fn end(&self) -> Place {
        if let Some(table) = &self.line_table {
            let main = self.main_file();
            let here = table.lines.iter().filter(|line| line.file == main);
            let last = here.map(|line| line.line).max();
            let line = last.unwrap_or(table.start.line).max(table.start.line);
            return Place { line, column: 1 };
        }
        let first = self.regions.first().map(|region| region.location.file);
        let regions = self.regions.iter().map(|region| region.location);
        let here = regions.filter(|location| Some(location.file) == first);
        let ends = here.map(|location| location.span.end);
        ends.max().unwrap_or_else(|| self.start())
    }

    /// The macro expansions, in order.
    pub(crate) fn expansions(&self) -> impl Iterator<Item = Location> {
        self.regions
            .iter()
            .filter(|region| region.kind == Kind::Expansion)
            .map(|region| region.location)
    }

    /// For each file, the places of the expansions that lead to it from the main file.
    pub(crate) fn expansion_paths(&self) -> Vec<Vec<Place>> {
        let parents: HashMap<u32, Location> = self
            .expansions()
            .map(|expansion| (expansion.expanded, expansion))
            .collect();
        let path_to = |file| {
            let mut path = Vec::new();
            let mut file = file;
            // A file that leads to itself would be damage: no path is longer than there are files.
            while let Some(expansion) = parents.get(&file)
                && path.len() < self.filenames.len()
            {
                path.push(expansion.span.start);
                file = expansion.file;
            }
            path.reverse();
            path
        };
        self.files().map(path_to).collect()
    }

    /// Returns whether this may be the description of a function that a compilation unit does not use:
    /// one region without a counter.
    pub(crate) fn may_be_placeholder(&self) -> bool {
        self.regions.len() == 1 && self.branches.is_empty()
    }
}

/// The numbers of times that a branch was true and was false.
pub(crate) type Sides = [u64; 2];

/// The counts of a function, in the order of its regions, branches, decisions and lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of entries of the function.
    pub(crate) calls: u64,
    pub(crate) regions: Vec<u64>,
    /// The uniformity of each region; empty if the report does not have it.
    pub(crate) uniformity: Vec<Uniformity>,
    pub(crate) branches: Vec<Sides>,
    pub(crate) decisions: Vec<DecisionOutcome>,
    /// The numbers of times that threads ran the lines of its line table.
    pub(crate) lines: Vec<u64>,
}

impl Counts {
    /// Adds the counts of the same function in another code object.
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        for (sum, count) in self.regions.iter_mut().zip(&other.regions) {
            *sum = sum.saturating_add(*count);
        }
        if self.uniformity.len() < other.uniformity.len() {
            let len = other.uniformity.len();
            self.uniformity.resize(len, Uniformity::default());
        }
        for (sum, more) in self.uniformity.iter_mut().zip(&other.uniformity) {
            *sum = sum.plus(*more);
        }
        for (sum, count) in self.branches.iter_mut().zip(&other.branches) {
            add(sum, *count);
        }
        for (sum, outcome) in self.decisions.iter_mut().zip(&other.decisions) {
            sum.add(outcome);
        }
        for (sum, count) in self.lines.iter_mut().zip(&other.lines) {
            *sum = sum.saturating_add(*count);
        }
    }
}

/// A sum that is too large stays the largest.
fn add(sum: &mut Sides, sides: Sides) {
    for (sum, count) in sum.iter_mut().zip(sides) {
        *sum = sum.saturating_add(count);
    }
}

/// The results of an MC/DC decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DecisionOutcome {
    /// The numbers of times that it was true and was false, as llvm-cov has them.
    pub(crate) branch: Sides,
    /// For each condition, true if it was shown to decide by itself.
    pub(crate) covered: Vec<bool>,
    /// The values that were seen; llvm-cov lists them from LLVM 22 on.
    pub(crate) vectors: Option<Vec<Vector>>,
}

/// Values of the conditions of a decision, `None` for one that was not looked at, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Vector {
    pub(crate) conditions: Vec<Option<bool>>,
    pub(crate) executed: bool,
    pub(crate) result: bool,
}

impl DecisionOutcome {
    fn add(&mut self, other: &Self) {
        add(&mut self.branch, other.branch);
        for (covered, more) in self.covered.iter_mut().zip(&other.covered) {
            *covered |= *more;
        }
        let (Some(vectors), Some(more)) = (&mut self.vectors, &other.vectors) else {
            return;
        };
        for vector in more {
            if !vectors.contains(vector) {
                vectors.push(vector.clone());
            }
        }
        // A pair may have one half in each code object.
        for (condition, covered) in self.covered.iter_mut().enumerate() {
            *covered |= vectors
                .iter()
                .any(|a| vectors.iter().any(|b| a.shows(condition, b)));
        }
    }
}

impl Vector {
    /// Returns whether this and `other` show that only `condition` decides: it and the result differ,
    /// and no other condition that was looked at in both does.
    fn shows(&self, condition: usize, other: &Self) -> bool {
        let differ = |index: usize| match (self.conditions[index], other.conditions[index]) {
            (Some(one), Some(another)) => one != another,
            _ => false,
        };
        self.executed
            && other.executed
            && self.result != other.result
            && self.conditions.len() == other.conditions.len()
            && differ(condition)
            && (0..self.conditions.len()).all(|index| index == condition || !differ(index))
    }
}

/// The uniformity of a part of the code. Each active lane counts as one execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Uniformity {
    /// The number of executions whose uniformity is known.
    pub(crate) known: u64,
    /// The number of these that had all lanes of the wave active.
    pub(crate) uniform: u64,
}

impl Uniformity {
    /// The sum of two parts.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            known: self.known.saturating_add(other.known),
            uniform: self.uniform.saturating_add(other.uniform),
        }
    }

    /// The uniform share of the known executions in percent; `None` if there are none.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share needs no more than 53 bits of its counts"
    )]
    pub(crate) fn percent(self) -> Option<f64> {
        (self.known > 0).then(|| self.uniform as f64 / self.known as f64 * 100.0)
    }
}

/// The symbol in the name of a function in a profile. A static function has its file before it:
/// `dir/a.hip;_ZL4stepi`, up to LLVM 17 `a.hip:_ZL4stepi`.
pub(crate) fn symbol(name: &str) -> &str {
    name.rsplit([':', ';']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_function_is_found_by_its_symbol() {
        for name in ["_ZL4stepi", "a b.hip:_ZL4stepi", "/x/a.hip;_ZL4stepi"] {
            assert_eq!(symbol(name), "_ZL4stepi");
        }
    }
}
