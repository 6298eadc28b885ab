//! The counts of one function, from its mapping and its counters.

use std::sync::Arc;

use rocov::format::codeobject::{Counter, MappedFunction, MappedRegion, RegionKind, SourcePlace};
use rocov::format::profraw::FunctionCounts;

use super::counters::Counters;
use super::decisions::{MappedDecision, decisions};
use super::test_vectors::{DecisionError, Numbering, outcome};
use crate::coverage::function::{
    Branch, Counts, Decision, Function, Kind, Location, Place, Region, Span,
};
use crate::coverage::model::Record;

/// LLVM's numbers of the kinds of regions that concern branches.
const BRANCH: u8 = 4;
const DECISION: u8 = 5;
const CONDITION: u8 = 6;

/// A decision that cannot be evaluated, and the reason.
#[derive(Debug)]
pub(super) struct DamagedDecision {
    pub(super) place: SourcePlace,
    pub(super) error: DecisionError,
}

/// The record of a function. `counts` are its counts, if the profile has any. `None` if llvm-cov leaves the
/// function out, too: it refers to counters that it does not have, or it only stands in for a function that
/// ran.
pub(super) fn record(
    mapped: &MappedFunction,
    name: &str,
    counts: Option<&FunctionCounts>,
    numbering: Numbering,
) -> Result<Option<Record>, DamagedDecision> {
    let counters = counts.map(|it| &*it.counters);
    if is_stand_in(mapped) && counters.is_some_and(|it| it.first() > Some(&0)) {
        return Ok(None);
    }
    let bitmap = counts.map(|it| (&*it.bitmap, numbering));
    let mut evaluation = Evaluation {
        counters: Counters::new(counters, &mapped.expressions),
        function: Function {
            name: without_file(name, mapped).into(),
            filenames: mapped.files.clone(),
            regions: Vec::new(),
            branches: Vec::new(),
            decisions: Vec::new(),
        },
        counts: Counts::default(),
    };
    for region in &mapped.regions {
        if evaluation.add(region).is_none() {
            return Ok(None);
        }
    }
    for decision in decisions(&mapped.regions, mapped.files.len()) {
        evaluation.decide(&decision, bitmap)?;
    }
    let Evaluation {
        function,
        mut counts,
        ..
    } = evaluation;
    counts.calls = counts.regions.first().copied().unwrap_or(0);
    let function = Arc::new(function);
    Ok(Some(Record { function, counts }))
}

/// Returns whether this is one region without a counter, as of a function that its unit does not use.
fn is_stand_in(mapped: &MappedFunction) -> bool {
    let [region] = &mapped.regions[..] else {
        return false;
    };
    match region.kind {
        RegionKind::Code(counter)
        | RegionKind::Gap(counter)
        | RegionKind::Expansion { counter, .. }
        | RegionKind::Branch([counter, _])
        | RegionKind::Condition {
            sides: [counter, _],
            ..
        } => counter == Counter::Zero,
        RegionKind::Skipped | RegionKind::Decision { .. } => true,
    }
}

/// The name of a function without the file that a static function has before it, if it is the first file of
/// the function.
fn without_file<'a>(name: &'a str, mapped: &MappedFunction) -> &'a str {
    let rest = mapped.files.first().and_then(|it| name.strip_prefix(&**it));
    let rest = rest.and_then(|it| it.strip_prefix([':', ';']));
    rest.unwrap_or(name)
}

/// A function and its counts, while its regions are added.
struct Evaluation<'a> {
    counters: Counters<'a>,
    function: Function,
    counts: Counts,
}

impl Evaluation<'_> {
    /// Adds a region. `None` if its count cannot be computed.
    fn add(&mut self, region: &MappedRegion) -> Option<()> {
        let (kind, counter, expanded) = match region.kind {
            RegionKind::Code(counter) => (Kind::Code, counter, 0),
            RegionKind::Expansion { file, counter } => (Kind::Expansion, counter, file),
            RegionKind::Skipped => (Kind::Skipped, Counter::Zero, 0),
            RegionKind::Gap(counter) => (Kind::Gap, counter, 0),
            RegionKind::Branch(sides) => return self.add_branch(region, BRANCH, sides),
            RegionKind::Condition { sides, .. } => {
                return self.add_branch(region, CONDITION, sides);
            }
            RegionKind::Decision { .. } => return Some(()),
        };
        self.counts.regions.push(self.counters.count(counter)?);
        let location = location(region, expanded);
        self.function.regions.push(Region { location, kind });
        Some(())
    }

    fn add_branch(
        &mut self,
        region: &MappedRegion,
        kind: u8,
        [if_true, if_false]: [Counter; 2],
    ) -> Option<()> {
        let counts = [
            self.counters.count(if_true)?,
            self.counters.count(if_false)?,
        ];
        // The compiler gives no counter to a side that cannot run.
        let folded = [if_true, if_false].map(|it| it == Counter::Zero);
        if folded != [true; 2] {
            self.counts.branches.push(counts);
            self.function.branches.push(Branch {
                location: location(region, 0),
                kind,
                folded,
            });
        }
        Some(())
    }

    fn decide(
        &mut self,
        decision: &MappedDecision<'_>,
        bitmap: Option<(&[u8], Numbering)>,
    ) -> Result<(), DamagedDecision> {
        let place = decision.region.start;
        let outcome = outcome(&decision.conditions, decision.bitmap, bitmap);
        let outcome = outcome.map_err(|error| DamagedDecision { place, error })?;
        self.counts.decisions.push(outcome);
        self.function.decisions.push(Decision {
            location: location(decision.region, 0),
            kind: DECISION,
        });
        Ok(())
    }
}

fn location(region: &MappedRegion, expanded: u32) -> Location {
    let place = |it: SourcePlace| Place {
        line: it.line,
        column: it.column,
    };
    Location {
        span: Span {
            start: place(region.start),
            end: place(region.end),
        },
        file: region.file,
        expanded,
    }
}
