//! The bits of counters that are known where waves end.

use std::collections::BTreeMap;

use modelgpu_isa::Flow;

use super::function::Function;
use super::plan::{Counter, Home, Kind, Plan};

/// The end of a kernel that sets the bits of its counters at once: they follow from the way that leads there.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownEnd {
    /// The number of the instruction that ends waves. It is a stretch.
    pub(super) at: usize,
    /// The bits, by the number of the stretch before.
    pub(super) bits: BTreeMap<usize, u32>,
}

impl KnownEnd {
    /// Finds the end of a kernel without calls, if it has one, and the bits there depend only on the stretch before it. A copy of
    /// the end for each value costs less than bits in a register, which need an instruction at the start and in each block.
    pub(super) fn find(function: &Function<'_>, plan: &Plan) -> Option<Self> {
        /// The most copies of the end.
        const MAX_COPIES: usize = 3;
        let [batch] = plan.batches.as_slice() else {
            return None;
        };
        batch.bits?;
        let ends = function.all.iter().enumerate();
        let mut ends = ends.filter(|(_, ins)| matches!(ins.flow, Flow::End));
        let (at, _) = ends.next().filter(|_| function.is_kernel())?;
        let traps = function
            .all
            .iter()
            .any(|ins| matches!(ins.flow, Flow::Trap));
        // Other code may bring bits to memory before.
        let is_checked = plan.counters.iter().any(|counter| counter.is_checked);
        if ends.next().is_some() || traps || is_checked || function.calls {
            return None;
        }
        let end = function.stretch_of(at);
        if function.stretches[end].first != at || !function.stretches[end].starts_block {
            return None;
        }
        // Branches to the copies lead past counters there, and jumps do not lead to copies.
        let counts =
            |counter: &Counter| counter.stretch == end && !matches!(counter.kind, Kind::Times(_));
        let is_counted = plan.counters.iter().any(counts) || plan.factors.contains_key(&(0, end));
        if is_counted || function.jumps.values().any(|goal| *goal == at) {
            return None;
        }
        let mut sets = vec![0; function.stretches.len()];
        for counter in &plan.counters {
            match (counter.home, counter.guard) {
                (Home::Bit(_, bit), _) if !counter.is_first => {
                    sets[counter.stretch] |= 1_u32 << bit;
                }
                (_, Some((_, bit))) => sets[counter.stretch] |= 1_u32 << bit,
                _ => {}
            }
        }
        // The bits that are set for certain, and those that may be.
        let mut before: Vec<Option<(u32, u32)>> = vec![None; function.stretches.len()];
        let mut open = Vec::new();
        let start = plan.first_bits(batch, Some(0));
        for entry in &function.entries {
            let stretch = function.stretch_of(*entry);
            before[stretch] = Some((start, start));
            open.push(stretch);
        }
        let mut found = Self {
            at,
            bits: BTreeMap::new(),
        };
        while let Some(stretch) = open.pop() {
            let Some((certain, possible)) = before[stretch] else {
                continue;
            };
            let (certain, possible) = (certain | sets[stretch], possible | sets[stretch]);
            for next in function.stretches_behind(stretch).iter().copied() {
                if next == end {
                    // The last value is that of all ways to the stretch.
                    match certain == possible {
                        true => _ = found.bits.insert(stretch, certain),
                        false => return None,
                    }
                }
                let joined = match before[next] {
                    Some((one, other)) => (one & certain, other | possible),
                    None => (certain, possible),
                };
                if before[next] != Some(joined) {
                    before[next] = Some(joined);
                    open.push(next);
                }
            }
        }
        let mut values: Vec<u32> = found.bits.values().copied().collect();
        values.sort_unstable();
        values.dedup();
        (!values.is_empty() && values.len() <= MAX_COPIES).then_some(found)
    }
}
