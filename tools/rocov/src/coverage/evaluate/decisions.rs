//! The conditions of each MC/DC decision.
//!
//! The mapping has a decision before its conditions. A condition belongs to the first open decision that
//! surrounds it, itself or by the expansions around it, and that lacks a condition of its number.

use std::collections::HashSet;

use rocov::format::codeobject::{MappedRegion, RegionKind};

/// A condition of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// Its number in the decision, from 0.
    pub(super) number: u16,
    /// The number of the condition that is looked at after this, if this is false and if it is true.
    pub(super) next: [Option<u16>; 2],
}

/// A decision with conditions.
#[derive(Debug)]
pub(super) struct OpenDecision<'a> {
    pub(super) region: &'a MappedRegion,
    /// Its place in the function's bitmap.
    pub(super) bitmap: u32,
    /// The number of its conditions.
    number: u16,
    /// The conditions that were found: first that of number 0, then the others in their order.
    pub(super) conditions: Vec<Condition>,
    /// Their numbers.
    known: HashSet<u16>,
    /// The files of expansions inside.
    expanded: HashSet<u32>,
}

/// The decisions that lack conditions, in order.
#[derive(Debug, Default)]
pub(super) struct OpenDecisions<'a>(Vec<OpenDecision<'a>>);

impl<'a> OpenDecisions<'a> {
    /// Takes the next region of a function. Returns the decision that it completes.
    pub(super) fn take(&mut self, region: &'a MappedRegion) -> Option<OpenDecision<'a>> {
        match region.kind {
            RegionKind::Decision { bitmap, conditions } => self.0.push(OpenDecision {
                region,
                bitmap,
                number: conditions,
                conditions: Vec::new(),
                known: HashSet::new(),
                expanded: HashSet::new(),
            }),
            RegionKind::Expansion { file, .. } => {
                let mut around = self.0.iter_mut();
                if let Some(decision) = around.find(|it| it.surrounds(region)) {
                    decision.expanded.insert(file);
                }
            }
            RegionKind::Condition { number, next, .. } => {
                let place = self.0.iter().position(|it| it.lacks(number, region))?;
                let decision = &mut self.0[place];
                decision.add(Condition { number, next });
                if decision.conditions.len() == usize::from(decision.number) {
                    return Some(self.0.remove(place));
                }
            }
            _ => {}
        }
        None
    }
}

impl OpenDecision<'_> {
    fn surrounds(&self, region: &MappedRegion) -> bool {
        let is_inside = region.file == self.region.file
            && region.start >= self.region.start
            && region.end <= self.region.end;
        is_inside || self.expanded.contains(&region.file)
    }

    fn lacks(&self, number: u16, region: &MappedRegion) -> bool {
        number < self.number && !self.known.contains(&number) && self.surrounds(region)
    }

    fn add(&mut self, condition: Condition) {
        self.known.insert(condition.number);
        match condition.number {
            0 => self.conditions.insert(0, condition),
            _ => self.conditions.push(condition),
        }
    }
}
