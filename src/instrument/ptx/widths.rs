//! The widths of the registers of counters in loops.
//!
//! A register of 64 bits takes twice the space and twice the instructions of one of 32 bits, and kernels with many counters
//! need the space: the compiler keeps values in memory that find no register. A thread may run a loop more than 2^32 times, so
//! registers of 32 bits are checked at the head of their loop. If one is half full, its thread moves most of the count to
//! local memory, which it uses for nothing else. No block of a loop runs more often than its head. So if a register counts the
//! head, it is the only one that is looked at.
//!
//! On an H200, a kernel of `zoom` from HeCBench had room for fewer threads with registers of 64 bits, and took 1.93 times its
//! plain time. With checked ones, it took 1.76 times.
//!
//! Between two runs of a block, a thread comes through the head of a loop around it. If all ways into each loop of the
//! function come through its head, it is the head of the innermost one. For an edge, it is the innermost one around both of
//! its blocks, and an edge in no loop runs once at most.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::ptx::module::PtxFunction;
use crate::instrument::ptx::flow;

/// Registers of a function with so few counters in loops have 64 bits, and those of one that has room for all: a check
/// costs more.
const FEW: usize = 4;
/// Registers of a loop with so few counters, and without a loop in it, have 64 bits.
const FEW_IN_LOOP: usize = 1;

/// A register of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    /// That of the block with this [number](super::plan::Way::Number).
    Block(usize),
    /// That of the edge with this [number](super::flow::Counter::Register).
    Edge(usize),
}

/// The registers for the counters of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The number of registers of 32 bits that counters may take before the compiler uses memory.
    pub(super) registers: usize,
    /// True if as many threads fit on an SM with registers of 64 bits as with those of 32 bits.
    pub(super) is_for_wide: bool,
}

/// The widths of the registers of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Widths {
    /// Those with 64 bits.
    wide: BTreeSet<Slot>,
    /// The registers that get room at the start of a block.
    pub(super) checks: BTreeMap<usize, Vec<Slot>>,
    /// The registers whose numbers show there whether one of those is half full.
    pub(super) tested: BTreeMap<usize, Vec<Slot>>,
    /// Registers such that none has a larger number than all of these.
    pub(super) largest: Vec<Slot>,
    /// The registers that are checked. Each has a word in local memory, at its place here.
    pub(super) checked: Vec<Slot>,
}

impl Widths {
    /// The widths of registers that count these blocks, or edges between two blocks.
    /// `leader` is the register that counts the runs of a block, if there is one.
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
        widths
    }

    /// Returns whether a register has 64 bits.
    pub(super) fn is_wide(&self, slot: Slot) -> bool {
        self.wide.contains(&slot)
    }

    /// The name of a register.
    pub(super) fn name(&self, slot: Slot) -> String {
        match (slot, self.is_wide(slot)) {
            (Slot::Block(number), true) => format!("%rocov_w{number}"),
            (Slot::Block(number), false) => format!("%rocov_n{number}"),
            (Slot::Edge(number), true) => format!("%rocov_g{number}"),
            (Slot::Edge(number), false) => format!("%rocov_f{number}"),
        }
    }

    /// The place of a register in local memory, if it is checked. `%rocov_z` has the start.
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
