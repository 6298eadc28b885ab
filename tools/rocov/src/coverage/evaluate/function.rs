//! The counts of one function, from its mapping and its counters.

use std::collections::HashSet;
use std::sync::Arc;

use rocov::format::codeobject::{
    Counter, Expression, MappedFunction, MappedRegion, RegionKind, SourcePlace,
};
use rocov::format::profraw::FunctionCounts;

use super::counters::Counters;
use super::decisions::{MappedDecision, decisions};
use super::test_vectors::{DecisionError, Numbering, has_too_many_ways, outcome};
use crate::coverage::function::{
    Branch, Counts, Decision, Function, Kind, Location, Marks, Place, Region, Span,
};
use crate::coverage::model::Record;

/// LLVM's numbers of the kinds of regions that concern branches.
const BRANCH: u8 = 4;
const DECISION: u8 = 5;
const CONDITION: u8 = 6;

/// A decision that cannot be evaluated, and the reason.
#[derive(Debug)]
pub(super) struct DamagedDecision {
    /// The name of the function.
    pub(super) name: Arc<str>,
    pub(super) place: SourcePlace,
    pub(super) error: DecisionError,
}

/// A function as its coverage mapping describes it.
#[derive(Debug)]
pub(super) struct IndexedFunction {
    /// The hash of the name, and the hash of the structure.
    pub(super) hashes: (u64, u64),
    /// Equal for functions of equal names in equal files. The first that has a record is the function.
    pub(super) key: usize,
    /// True if this may stand in for a function that its unit does not use: it is one region without a counter.
    is_stand_in: bool,
    expressions: Vec<Expression>,
    regions: Vec<MappedRegion>,
    decisions: Vec<MappedDecision>,
    pub(super) description: Arc<Function>,
    /// The starts of MC/DC decisions that have too many ways through their conditions.
    pub(super) left_out: Vec<SourcePlace>,
}

/// The evaluation of a function. llvm-cov leaves out all but records, too.
pub(super) enum Evaluation {
    Record(Record),
    /// It only stands in for a function that ran.
    StandIn,
    /// It refers to counters that the profile does not have.
    TooFewCounters,
}

impl IndexedFunction {
    /// Makes the description of a function.
    pub(super) fn new(mapped: MappedFunction, name: &str) -> Self {
        let mut decisions = decisions(&mapped.regions, mapped.files.len());
        let left_out = decisions.extract_if(.., |decision| has_too_many_ways(&decision.conditions));
        let left_out = left_out.map(|decision| decision.region.start).collect();
        let is_stand_in = is_stand_in(&mapped);
        let regions = mapped.regions.iter().filter_map(described);
        let branches = mapped.regions.iter().filter_map(branch);
        let description = Function {
            name: without_file(name, &mapped).into(),
            regions: regions.collect(),
            branches: branches.collect(),
            decisions: decisions.iter().map(described_decision).collect(),
            marks: marks(&mapped.regions, &decisions),
            filenames: mapped.files,
            line_table: None,
        };
        Self {
            hashes: (mapped.name, mapped.hash),
            key: 0,
            is_stand_in,
            expressions: mapped.expressions,
            regions: mapped.regions,
            decisions,
            description: Arc::new(description),
            left_out,
        }
    }

    /// Its record with the counts that the profile has of it, if any.
    pub(super) fn record(
        &self,
        counts: Option<&FunctionCounts>,
        numbering: Numbering,
    ) -> Result<Evaluation, DamagedDecision> {
        let counters = counts.map(|count| &*count.counters);
        if self.is_stand_in && counters.is_some_and(|counter| counter.first() > Some(&0)) {
            return Ok(Evaluation::StandIn);
        }
        let mut counters = Counters::new(counters, &self.expressions);
        let Some(mut evaluated) = self.counts(&mut counters) else {
            return Ok(Evaluation::TooFewCounters);
        };
        let bitmap = counts.map(|count| (&*count.bitmap, numbering));
        for decision in &self.decisions {
            let outcome = outcome(&decision.conditions, decision.bitmap, bitmap);
            evaluated
                .decisions
                .push(outcome.map_err(|error| DamagedDecision {
                    name: Arc::clone(&self.description.name),
                    place: decision.region.start,
                    error,
                })?);
        }
        let function = Arc::clone(&self.description);
        Ok(Evaluation::Record(Record::new(function, evaluated)))
    }

    /// The counts of regions and branches. `None` if one of them cannot be computed.
    fn counts(&self, counters: &mut Counters<'_>) -> Option<Counts> {
        let mut counts = Counts {
            regions: Vec::with_capacity(self.description.regions.len()),
            branches: Vec::with_capacity(self.description.branches.len()),
            ..Counts::default()
        };
        for region in &self.regions {
            if let Some((_, counter, _)) = kind(region) {
                counts.regions.push(counters.count(counter)?);
            } else if let Some((_, [if_true, if_false])) = sides(region) {
                let sides = [counters.count(if_true)?, counters.count(if_false)?];
                if branch(region).is_some() {
                    counts.branches.push(sides);
                }
            }
        }
        counts.calls = counts.regions.first().copied().unwrap_or(0);
        Some(counts)
    }
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
    let rest = mapped
        .files
        .first()
        .and_then(|file| name.strip_prefix(&**file));
    let rest = rest.and_then(|rest| rest.strip_prefix([':', ';']));
    rest.unwrap_or(name)
}

/// The kind of a region with a count, its counter, and the file that it expands to.
fn kind(region: &MappedRegion) -> Option<(Kind, Counter, u32)> {
    match region.kind {
        RegionKind::Code(counter) => Some((Kind::Code, counter, 0)),
        RegionKind::Expansion { file, counter } => Some((Kind::Expansion, counter, file)),
        RegionKind::Skipped => Some((Kind::Skipped, Counter::Zero, 0)),
        RegionKind::Gap(counter) => Some((Kind::Gap, counter, 0)),
        RegionKind::Branch(_) | RegionKind::Condition { .. } | RegionKind::Decision { .. } => None,
    }
}

/// LLVM's number of the kind of a branch, and its counters for true and false.
fn sides(region: &MappedRegion) -> Option<(u8, [Counter; 2])> {
    match region.kind {
        RegionKind::Branch(sides) => Some((BRANCH, sides)),
        RegionKind::Condition { sides, .. } => Some((CONDITION, sides)),
        _ => None,
    }
}

fn described(region: &MappedRegion) -> Option<Region> {
    let (kind, _, expanded) = kind(region)?;
    let location = location(region, expanded);
    Some(Region { location, kind })
}

/// The description of a branch. `None` if the compiler folded both sides.
fn branch(region: &MappedRegion) -> Option<Branch> {
    any_branch(region).filter(|branch| branch.folded != [true; 2])
}

/// The description of a branch.
fn any_branch(region: &MappedRegion) -> Option<Branch> {
    let (kind, sides) = sides(region)?;
    Some(Branch {
        location: location(region, 0),
        kind,
        // The compiler gives no counter to a side that cannot run.
        folded: sides.map(|side| side == Counter::Zero),
    })
}

/// The facts about a function with these regions and decisions that llvm-cov's export lacks.
fn marks(regions: &[MappedRegion], decisions: &[MappedDecision]) -> Marks {
    let counted = || {
        regions
            .iter()
            .filter(|region| kind(region).is_some())
            .enumerate()
    };
    let gaps = counted().filter(|(_, region)| region.kind == RegionKind::Gap(Counter::Zero));
    let gaps: Vec<_> = gaps.map(|(index, _)| index).collect();
    let mut known = HashSet::new();
    // The body of a statement has a gap before it, with its counter.
    let own = counted().filter(|(_, region)| match region.kind {
        RegionKind::Code(Counter::Value(number)) => !gaps.is_empty() && known.insert(number),
        RegionKind::Gap(Counter::Value(number)) => {
            known.insert(number);
            false
        }
        _ => false,
    });
    let own = own.map(|(index, _)| index).collect();
    let conditions = decisions.iter().map(|decision| {
        let conditions = decision.conditions.iter();
        conditions.map(|condition| condition.is_folded).collect()
    });
    let mut conditions: Vec<Vec<bool>> = conditions.collect();
    if !conditions.iter().flatten().any(|is_folded| *is_folded) {
        conditions.clear();
    }
    let branches = regions.iter().filter_map(any_branch);
    let folded: Vec<_> = branches
        .filter(|branch| branch.folded == [true; 2])
        .collect();
    Marks {
        folded_conditions: conditions,
        uncounted_gaps: gaps,
        own_counters: own,
        has_folded_branches: !folded.is_empty(),
        folded_branches: folded,
    }
}

fn described_decision(decision: &MappedDecision) -> Decision {
    Decision {
        location: location(&decision.region, 0),
        kind: DECISION,
    }
}

fn location(region: &MappedRegion, expanded: u32) -> Location {
    let place = |place: SourcePlace| Place {
        line: place.line,
        column: place.column,
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
