//! Evaluates coverage without llvm-cov: from the coverage mappings of code objects ([`object`]) and the counts of
//! their functions to records ([`function`]).
//!
//! llvm-cov is the oracle: the tests compare the records with those of its export, one by one. So a function
//! has the place and the name that it has there, and functions are left out for the reasons of llvm-cov.

mod counters;
mod decisions;
mod function;
mod object;
mod test_vectors;

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Result;
use rocov::format::profraw::FunctionCounts;

use self::function::{Evaluation, IndexedFunction};
use self::object::CountedFunction;
use self::test_vectors::Numbering;
use super::model::Record;
use crate::profdata::ProfileCounts;
use crate::support::failure::failure;

pub(crate) use self::object::{ObjectIndex, Unmapped};

/// The bit of a structure's hash that marks a kind of profile. llvm-cov takes a function for absent, not for
/// another, if this differs.
const KIND_OF_PROFILE: u64 = 1 << 60;

/// The coverage of a code object.
#[derive(Debug, Default)]
pub(crate) struct Evaluated {
    /// The functions, in the order of llvm-cov.
    pub(crate) records: Vec<Record>,
    /// The names of functions whose counts are of other code: they are left out.
    pub(crate) mismatched: Vec<Arc<str>>,
    /// The names of functions that have fewer counters in the profile: they are left out.
    pub(crate) short: Vec<Arc<str>>,
}

impl ObjectIndex {
    /// Evaluates the coverage of all functions from `counts`.
    ///
    /// # Errors
    ///
    /// Fails if an MC/DC decision is damaged.
    pub(crate) fn evaluate(&self, counts: &ProfileCounts) -> Result<Evaluated> {
        self.evaluate_some(counts, 0..self.functions.len())
    }

    /// Evaluates the coverage of the functions with these numbers, in order, from `counts`.
    ///
    /// # Errors
    ///
    /// Fails if an MC/DC decision is damaged.
    pub(crate) fn evaluate_some(
        &self,
        counts: &ProfileCounts,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<Evaluated> {
        let numbering = match counts.version.has_new_bitmaps() {
            false => Numbering::Values,
            true => Numbering::Ways,
        };
        let mut evaluated = Evaluated::default();
        let mut known = HashSet::new();
        for number in numbers {
            let function = match &self.functions[number] {
                CountedFunction::Mapped(function) => function,
                CountedFunction::Listed(function) => {
                    if known.insert(function.key) {
                        evaluated.records.push(function.record(counts));
                    }
                    continue;
                }
            };
            let counts = match find(function, counts) {
                Found::Counts(counts) => Some(counts),
                Found::Nothing => None,
                Found::OtherCode => {
                    let name = Arc::clone(&function.description.name);
                    evaluated.mismatched.push(name);
                    continue;
                }
            };
            let evaluation = function.record(counts, numbering).map_err(|damaged| {
                let (name, place, error) = (damaged.name, damaged.place, damaged.error);
                let (paths, line, column) = (&self.paths, place.line, place.column);
                failure!(
                    "{paths}: cannot evaluate the decision of {name} at {line}:{column}: {error}";
                    "build and run it again"
                )
            })?;
            match evaluation {
                Evaluation::Record(record) if known.insert(function.key) => {
                    evaluated.records.push(record);
                }
                Evaluation::TooFewCounters => {
                    let name = Arc::clone(&function.description.name);
                    evaluated.short.push(name);
                }
                Evaluation::Record(_) | Evaluation::StandIn => {}
            }
        }
        Ok(evaluated)
    }

    /// The numbers of the functions that ran.
    pub(crate) fn reached(&self, counts: &ProfileCounts) -> impl Iterator<Item = usize> {
        let functions = self.functions.iter().enumerate();
        let reached = functions.filter(|(_, function)| match function {
            CountedFunction::Mapped(function) => {
                let counts = counts.functions.get(&function.hashes);
                counts.is_some_and(|count| !count.is_nothing())
            }
            CountedFunction::Listed(function) => function.is_reached(counts),
        });
        reached.map(|(number, _)| number)
    }
}

/// The result of a search for the counts of a function.
enum Found<'a> {
    Counts(&'a FunctionCounts),
    /// The function was never loaded, or no unit uses it.
    Nothing,
    /// There are counts of another function of this name.
    OtherCode,
}

fn find<'a>(function: &IndexedFunction, counts: &'a ProfileCounts) -> Found<'a> {
    let (name, hash) = function.hashes;
    if let Some(counts) = counts.functions.get(&(name, hash)) {
        return Found::Counts(counts);
    }
    let of_name = (name, 0)..=(name, u64::MAX);
    let mut others = counts.functions.range(of_name).map(|((_, hash), _)| hash);
    match others.any(|other| (other ^ hash) & KIND_OF_PROFILE == 0) {
        true => Found::OtherCode,
        false => Found::Nothing,
    }
}

#[cfg(test)]
pub(crate) mod tests;
