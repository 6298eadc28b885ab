//! The widths of the registers of counters in loops.
//!
//! A register of 64 bits takes four times the space of a count of 16 bits, and kernels with many counters need the space: the
//! compiler keeps values in memory that find no register, or fewer threads fit on an SM. So two counts share a register of 32
//! bits if those of 64 bits would not find room. A thread may run a loop more than 2^16 times, so such counts are checked at
//! the head of their loop. If the highest bit of one is set, its thread moves most of it to local memory, which it uses for
//! nothing else. There, 32 bits are room for 2^46 runs in all, for which a thread needs days. No block of a loop runs more
//! often than its head. So if a count is that of the head, it is the only one that is looked at.
//!
//! On an H200, the kernels of `zoom` from HeCBench took 1.66 times their plain time with counts of 32 bits, and 1.52 times with
//! those of 16 bits. One of `pool` took 1.53 and 1.42 times its plain time.
//!
//! Between two runs of a block, a thread comes through the head of a loop around it. If all ways into each loop of the
//! function come through its head, it is the head of the innermost one. For an edge, it is the innermost one around both of
//! its blocks, and an edge in no loop runs once at most.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::ptx::module::PtxFunction;
use crate::instrument::ptx::flow;

/// Counts of a function with so few in loops have registers of 64 bits, and those of one that has room for all: a check
/// costs more.
const FEW: usize = 4;
/// Counts of a loop with so few, and without a loop in it, have registers of 64 bits.
const FEW_IN_LOOP: usize = 1;

/// The bits of a half of a register.
pub(super) const HALF: u32 = 16;

/// A count in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// That of the block with this [number](super::plan::Way::Number).
    Block(usize),
    /// That of the edge with this [number](super::flow::Counter::Register).
    Edge(usize),
}

/// The room for the counters of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The number of registers of 32 bits that counters may take before the compiler uses memory.
    pub(super) registers: usize,
    /// True if as many threads fit on an SM with registers of 64 bits as with two counts in each of 32 bits.
    pub(super) is_for_wide: bool,
}

/// The widths of the registers of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Widths {
    /// The counts with a register of 64 bits.
    wide: BTreeSet<Slot>,
    /// The others. Two of them share a register of 32 bits.
    halves: Vec<Slot>,
    /// The counts that get room at the start of a block.
    pub(super) checks: BTreeMap<usize, Vec<Slot>>,
    /// The counts that show there whether one of those has little room.
    pub(super) tested: BTreeMap<usize, Vec<Slot>>,
    /// Counts such that none is larger than all of these.
    pub(super) largest: Vec<Slot>,
    /// The counts that are checked. Each has a word in local memory, at its place here.
    pub(super) checked: Vec<Slot>,
}

impl Widths {
    /// The widths for counts of these blocks, or of edges between two blocks.
    /// `leader` is the count in a register of the runs of a block, if there is one.
    pub(super) fn new(
        function: &PtxFunction<'_>,
        counted: &[(Slot, [usize; 2])],
        leader: impl Fn(usize) -> Option<Slot>,
        room: Room,
    ) -> Self {
        let mut widths = Self::default();
        let is_roomy =
            counted.len() <= FEW || room.is_for_wide && 2 * counted.len() <= room.registers;
        let blocks = &function.body.blocks;
        let all = &function.body.statements.all;
        let ways = flow::ways(function);
        let loops = blocks.loops.iter().map(|found| (found.head, found.last));
        let loops: Vec<Span> = loops.collect();
        let are_closed = loops.iter().all(|around| is_closed(*around, &ways));
        let mut by_heads: BTreeMap<Vec<usize>, Vec<Slot>> = BTreeMap::new();
        for (slot, [from, to]) in counted {
            let heads = match are_closed {
                true => loops_around(&loops, [*from, *to])
                    .last()
                    .into_iter()
                    .collect(),
                false => loops_around(&loops, [*from, *from]).collect(),
            };
            by_heads.entry(heads).or_default().push(*slot);
        }
        for (heads, slots) in by_heads {
            let has_inner = heads.iter().any(|head| {
                let last = loops.iter().find(|(other, _)| other == head);
                let last = last.map_or(*head, |(_, last)| *last);
                let mut others = loops.iter();
                others.any(|(other, _)| (head + 1..=last).contains(other))
            });
            // A label of an inner scope is unknown outside of it.
            let is_checkable = heads
                .iter()
                .all(|head| all[blocks.spans[*head].first].scope == 0);
            // No block of a loop runs more often than its head, if all threads come through that.
            let leader = match heads.as_slice() {
                [head] if are_closed => leader(*head).filter(|slot| slots.contains(slot)),
                _ => None,
            };
            let tested = leader.map_or_else(|| slots.clone(), |leader| vec![leader]);
            // An edge in no loop runs once at most.
            if !heads.is_empty() {
                widths.largest.extend(&tested);
            }
            let is_short = !has_inner && slots.len() <= FEW_IN_LOOP && !heads.is_empty();
            if is_roomy || is_short || !is_checkable {
                widths.wide.extend(slots);
                continue;
            }
            for head in &heads {
                widths.checks.entry(*head).or_default().extend(&slots);
                widths.tested.entry(*head).or_default().extend(&tested);
            }
            if !heads.is_empty() {
                widths.checked.extend(slots);
            }
        }
        widths.checked.sort_unstable();
        let slots = counted.iter().map(|(slot, _)| *slot);
        widths.halves = slots.filter(|slot| !widths.is_wide(*slot)).collect();
        widths
    }

    /// Returns whether a count has a register of 64 bits.
    pub(super) fn is_wide(&self, slot: Slot) -> bool {
        self.wide.contains(&slot)
    }

    /// The name of the register that a count is in.
    pub(super) fn name(&self, slot: Slot) -> String {
        match (self.half(slot), slot) {
            (Some(half), _) => format!("%rocov_n{}", half / 2),
            (None, Slot::Block(number)) => format!("%rocov_w{number}"),
            (None, Slot::Edge(number)) => format!("%rocov_g{number}"),
        }
    }

    /// The number of the half with a count.
    fn half(&self, slot: Slot) -> Option<usize> {
        self.halves.iter().position(|half| *half == slot)
    }

    /// The first bit of a count in its register.
    pub(super) fn shift(&self, slot: Slot) -> u32 {
        self.half(slot).map_or(0, |half| HALF * (half % 2) as u32)
    }

    /// The names of all registers, and their bits.
    pub(super) fn registers(&self) -> impl Iterator<Item = (String, u32)> {
        let wide = self.wide.iter().map(|slot| (self.name(*slot), u64::BITS));
        let halves = self.halves.iter().step_by(2);
        wide.chain(halves.map(|slot| (self.name(*slot), u32::BITS)))
    }

    /// The numbers of the registers with these counts of 16 bits, each with the places of these bits of the counts.
    pub(super) fn masks(&self, slots: &[Slot], bits: u32) -> BTreeMap<usize, u32> {
        let mut masks = BTreeMap::new();
        for slot in slots {
            if let Some(half) = self.half(*slot) {
                *masks.entry(half / 2).or_default() |= bits << self.shift(*slot);
            }
        }
        masks
    }

    /// The place of a count in local memory, if it is checked. `%rocov_z` has the start.
    pub(super) fn high(&self, slot: Slot) -> Option<String> {
        let place = self.checked.binary_search(&slot).ok()?;
        Some(format!("[%rocov_z+{}]", 4 * place))
    }
}

/// The first block of a loop, and the last one with a branch to it.
type Span = (usize, usize);

/// The heads of the loops around two blocks, in their order.
fn loops_around(loops: &[Span], blocks: [usize; 2]) -> impl Iterator<Item = usize> {
    let around = loops.iter().copied();
    let around = around
        .filter(move |(head, last)| blocks.iter().all(|block| (*head..=*last).contains(block)));
    around.map(|(head, _)| head)
}

/// Returns whether all ways into a loop come through its head.
fn is_closed((head, last): Span, ways: &[(usize, usize)]) -> bool {
    let blocks = head..=last;
    ways.iter()
        .all(|(from, to)| blocks.contains(from) || !blocks.contains(to) || *to == head)
}

#[cfg(test)]
#[path = "widths_tests.rs"]
mod tests;
