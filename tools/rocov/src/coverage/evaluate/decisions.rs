//! The conditions of each MC/DC decision.
//!
//! A condition belongs to the innermost decision around it, itself or by the expansions around it, that lacks a
//! condition of its number. So decisions and conditions are visited in the order of the source, with each
//! expansion in its place.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::iter;
use std::rc::Rc;

use rocov::format::codeobject::{Counter, MappedRegion, RegionKind, SourcePlace};

/// A condition of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// Its number in the decision, from 0.
    pub(super) number: u16,
    /// The number of the condition that is looked at after this, if this is false and if it is true.
    pub(super) next: [Option<u16>; 2],
    /// True if the compiler folded it: a side has no counter.
    pub(super) is_folded: bool,
}

/// A decision with its conditions.
#[derive(Debug)]
pub(super) struct MappedDecision {
    pub(super) region: MappedRegion,
    /// Its place in the function's bitmap.
    pub(super) bitmap: u32,
    /// All of them, in the order of the source.
    pub(super) conditions: Vec<Condition>,
}

/// The decisions of a function with this number of files, in the order of their last conditions. Leaves out
/// those that lack a condition.
pub(super) fn decisions(regions: &[MappedRegion], files: usize) -> Vec<MappedDecision> {
    let is_decision = |region: &MappedRegion| matches!(region.kind, RegionKind::Decision { .. });
    if !regions.iter().any(is_decision) {
        return Vec::new();
    }
    let ways = ways(regions, files);
    let parts = regions.iter().filter(|region| {
        let is_condition = matches!(region.kind, RegionKind::Condition { .. });
        is_condition || is_decision(region)
    });
    let parts = parts.map(|region| Part {
        region,
        way: Rc::clone(&ways[region.file as usize]),
    });
    let mut parts: Vec<_> = parts.collect();
    // A decision comes before a condition that is as long.
    let order = |part: &Part<'_>| (Reverse(part.region.end), !is_decision(part.region));
    parts.sort_by(|a, b| a.path().cmp(b.path()).then_with(|| order(a).cmp(&order(b))));
    let mut open: Vec<OpenDecision<'_>> = Vec::new();
    let mut complete = Vec::new();
    for part in parts {
        match part.region.kind {
            RegionKind::Decision { bitmap, conditions } => open.push(OpenDecision {
                decision: MappedDecision {
                    region: *part.region,
                    bitmap,
                    conditions: Vec::new(),
                },
                part,
                number: conditions,
                known: HashSet::new(),
            }),
            RegionKind::Condition {
                number,
                next,
                sides,
            } => {
                let lacks = |decision: &OpenDecision<'_>| {
                    decision.lacks(number) && decision.surrounds(&part)
                };
                let Some(place) = open.iter().rposition(lacks) else {
                    continue;
                };
                open[place].known.insert(number);
                let conditions = &mut open[place].decision.conditions;
                conditions.push(Condition {
                    number,
                    next,
                    is_folded: sides.contains(&Counter::Zero),
                });
                if conditions.len() == usize::from(open[place].number) {
                    complete.push(open.remove(place).decision);
                }
            }
            _ => {}
        }
    }
    complete
}

/// For each file, the starts of the expansions that lead to it, outermost first.
fn ways(regions: &[MappedRegion], files: usize) -> Vec<Rc<[SourcePlace]>> {
    let mut expansions = vec![None; files];
    for region in regions {
        if let RegionKind::Expansion { file, .. } = region.kind {
            expansions[file as usize] = Some(region);
        }
    }
    let way_to = |file| {
        let inner = |file: usize| expansions[file];
        let start = inner(file);
        let way = iter::successors(start, |region| inner(region.file as usize));
        // The reader of the mapping rejects a file that leads to itself.
        let mut way: Vec<_> = way.map(|region| region.start).collect();
        way.reverse();
        way.into()
    };
    (0..files).map(way_to).collect()
}

/// A decision or a condition.
struct Part<'a> {
    region: &'a MappedRegion,
    /// The way to its file.
    way: Rc<[SourcePlace]>,
}

impl Part<'_> {
    /// The starts of the expansions around it, and its own.
    fn path(&self) -> impl Iterator<Item = &SourcePlace> {
        self.way.iter().chain(iter::once(&self.region.start))
    }
}

/// A decision that lacks conditions.
struct OpenDecision<'a> {
    decision: MappedDecision,
    part: Part<'a>,
    /// The number of its conditions.
    number: u16,
    /// The numbers of those that were found.
    known: HashSet<u16>,
}

impl OpenDecision<'_> {
    fn lacks(&self, number: u16) -> bool {
        number < self.number && !self.known.contains(&number)
    }

    fn surrounds(&self, part: &Part<'_>) -> bool {
        let (region, depth) = (self.part.region, self.part.way.len());
        let place = part.path().nth(depth);
        part.way.starts_with(&self.part.way)
            && place.is_some_and(|path| (region.start..region.end).contains(path))
    }
}
