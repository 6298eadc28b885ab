//! The coverage of one function, in a form that joins archs on which it is not the same.
//!
//! Inside an `#ifdef`, a function has other lines, regions and branches on each arch. So each of these has a key that does
//! not depend on the others: a line its number, a region its span and the macro expansions that lead to it. Instances of
//! a template are joined by these keys, too.

use std::collections::BTreeMap;

use super::figures::{Figure, Figures};
use super::function::{DecisionOutcome, Function, Kind, Location, Place, Span};
use super::model::Record;

/// The key of a region or branch of a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Starts of the macro expansions that it is in, outermost first.
    expansions: Vec<Place>,
    span: Span,
    /// Number among those of the same span.
    number: usize,
}

/// The coverage of a function.
#[derive(Debug, Clone, Default)]
pub(crate) struct FunctionCoverage {
    /// `None` if its entry is left out.
    is_called: Option<bool>,
    lines: BTreeMap<u32, bool>,
    regions: BTreeMap<Key, bool>,
    /// The sides of branches that are not folded.
    branches: BTreeMap<(Key, usize), bool>,
    conditions: BTreeMap<(Key, usize), bool>,
}

impl FunctionCoverage {
    pub(crate) fn from_record(record: &Record) -> Self {
        let (function, counts) = (&record.function, &record.counts);
        let main = function.main_file();
        let keys = Keys::new(function.expansion_paths());

        let counted = function.regions.iter().zip(&counts.regions);
        let code = counted.filter(|(region, _)| region.kind == Kind::Code);
        let mut regions = BTreeMap::new();
        for (region, count) in code {
            keys.insert(&mut regions, region.location, *count > 0);
        }
        for region in &record.inferred {
            if region.is_mapped && region.region.kind == Kind::Code {
                let location = Location {
                    span: region.region.span,
                    file: region.file,
                    expanded: 0,
                };
                keys.insert(&mut regions, location, region.region.count > 0);
            }
        }
        let mut pairs = BTreeMap::new();
        for (branch, sides) in function.branches.iter().zip(&counts.branches) {
            keys.insert(&mut pairs, branch.location, (branch.folded, sides));
        }
        let branches = pairs.into_iter().flat_map(|(key, (folded, sides))| {
            let sides = sides.iter().enumerate();
            let sides = sides.filter(move |(side, _)| !folded[*side]);
            sides.map(move |(side, count)| ((key.clone(), side), *count > 0))
        });
        // llvm-cov leaves out those in macros.
        let mut outcomes = BTreeMap::new();
        for (index, (decision, outcome)) in record.decisions().enumerate() {
            if decision.location.file == main {
                keys.insert(&mut outcomes, decision.location, (index, outcome));
            }
        }
        let conditions = outcomes.into_iter().flat_map(|(key, (decision, outcome))| {
            let conditions = unfolded(function, decision, outcome);
            conditions.map(move |(index, covered)| ((key.clone(), index), covered))
        });
        Self {
            is_called: entry(record),
            lines: ran(record.lines(&record.segments())).collect(),
            regions,
            branches: branches.collect(),
            conditions: conditions.collect(),
        }
    }

    /// Its lines with code, and whether they ran.
    pub(crate) fn lines(&self) -> &BTreeMap<u32, bool> {
        &self.lines
    }

    /// Adds the coverage of the same function on another arch, or of another instance of its template.
    pub(crate) fn join(&mut self, other: Self) {
        self.is_called = self.is_called.max(other.is_called);
        join(&mut self.lines, other.lines);
        join(&mut self.regions, other.regions);
        join(&mut self.conditions, other.conditions);
        join(&mut self.branches, other.branches);
    }

    /// The figures of a function on one arch.
    pub(crate) fn figures_of(record: &Record) -> Figures {
        let (function, counts) = (&record.function, &record.counts);
        let main = function.main_file();
        let regions = function.regions.iter().zip(&counts.regions);
        let code = regions.filter(|(region, _)| region.kind == Kind::Code);
        let branches = function.branches.iter().zip(&counts.branches);
        let sides = branches.flat_map(|(branch, sides)| branch.folded.iter().zip(sides));
        let sides = sides.filter(|(is_folded, _)| !**is_folded);
        let decisions = record.decisions().enumerate();
        let in_main = decisions.filter(|(_, (decision, _))| decision.location.file == main);
        let conditions =
            in_main.flat_map(|(index, (_, outcome))| unfolded(function, index, outcome));
        let called = Figure::count_all(entry(record));
        Figures {
            regions: Figure::count_all(code.map(|(_, count)| *count > 0)),
            functions: called,
            instantiations: called,
            lines: Figure::count_all(
                record
                    .lines(&record.segments())
                    .into_iter()
                    .map(|(_, count)| count > 0),
            ),
            branches: Figure::count_all(sides.map(|(_, count)| *count > 0)),
            conditions: Figure::count_all(conditions.map(|(_, is_covered)| is_covered)),
        }
    }

    /// The figures of this function.
    pub(crate) fn figures(&self) -> Figures {
        let function = Figure::count_all(self.is_called);
        Figures {
            regions: Figure::count_all(self.regions.values().copied()),
            functions: function,
            instantiations: function,
            lines: Figure::count_all(self.lines.values().copied()),
            branches: Figure::count_all(self.branches.values().copied()),
            conditions: Figure::count_all(self.conditions.values().copied()),
        }
    }
}

/// Returns whether a function was called; `None` if its entry is left out.
fn entry(record: &Record) -> Option<bool> {
    (!record.is_entry_excluded).then_some(record.counts.calls > 0)
}

/// The conditions of a decision that the compiler did not fold, by their indices, and whether each is covered.
fn unfolded(
    function: &Function,
    decision: usize,
    outcome: &DecisionOutcome,
) -> impl Iterator<Item = (usize, bool)> {
    let covered = outcome.covered.iter().copied().enumerate();
    covered.filter(move |(index, _)| !function.marks.is_folded(decision, *index))
}

/// The lines, and whether they ran.
fn ran(lines: Vec<(u32, u64)>) -> impl Iterator<Item = (u32, bool)> {
    lines.into_iter().map(|(line, count)| (line, count > 0))
}

fn join<K: Ord>(ran: &mut BTreeMap<K, bool>, other: BTreeMap<K, bool>) {
    for (key, ran_there) in other {
        *ran.entry(key).or_default() |= ran_there;
    }
}

/// Makes keys from locations.
struct Keys {
    /// For each file of the function, the expansions that lead to it.
    expansions: Vec<Vec<Place>>,
}

impl Keys {
    fn new(expansions: Vec<Vec<Place>>) -> Self {
        Self { expansions }
    }

    fn insert<V>(&self, map: &mut BTreeMap<Key, V>, location: Location, value: V) {
        let mut key = Key {
            expansions: self.expansions[location.file as usize].clone(),
            span: location.span,
            number: 0,
        };
        while map.contains_key(&key) {
            key.number += 1;
        }
        map.insert(key, value);
    }
}
