//! The flags of a function that only records which blocks ran.
//!
//! Blocks share a flag if a call of the function runs all of them or none: the first is on all ways to the last, and the last
//! on all ways on from the first ("super blocks": Agrawal, "Dominators, super blocks, and program coverage", 1994). The
//! flag is set in the one that runs least often, so few are set in loops. The blocks that each call runs need no instruction
//! at all: their flag, the first one, is set from the start.

use std::collections::HashSet;

use crate::format::ptx::module::PtxFunction;
use crate::instrument::dominators::{DominatorTree, immediate_dominators};
use crate::instrument::ptx::flow;

/// The most blocks of a function whose blocks share flags.
const MAX_BLOCKS: usize = 1024;

/// A flag of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    /// The blocks that run if it is set, in the order of the text.
    pub(super) blocks: Vec<usize>,
    /// The block that sets it. `None` if each call of the function runs the blocks.
    pub(super) at: Option<usize>,
}

/// The flags of a function, those of each call of the function first. `depths` has the loops around each block, and `calls`
/// the statements that call a function which may end the threads.
pub(super) fn flags(function: &PtxFunction<'_>, depths: &[usize], calls: &[usize]) -> Vec<Flag> {
    let count = depths.len();
    let heads = match count {
        ..=MAX_BLOCKS => heads(function, calls),
        _ => (0..count).collect(),
    };
    let mut flags: Vec<Flag> = Vec::new();
    let mut numbers = vec![None; count];
    for (block, head) in heads.into_iter().enumerate() {
        let number = *numbers[head].get_or_insert_with(|| {
            flags.push(Flag {
                blocks: Vec::new(),
                at: (head != 0).then_some(block),
            });
            flags.len() - 1
        });
        let flag = &mut flags[number];
        flag.blocks.push(block);
        flag.at = flag
            .at
            .map(|at| std::cmp::min_by_key(at, block, |place| depths[*place]));
    }
    flags
}

/// The first block of those that run together with each block.
fn heads(function: &PtxFunction<'_>, calls: &[usize]) -> Vec<usize> {
    let spans = &function.body.blocks.spans;
    let outside = spans.len();
    let mut next = vec![Vec::new(); outside + 1];
    let mut before = next.clone();
    let calling: HashSet<usize> = calls
        .iter()
        .map(|number| spans.partition_point(|span| span.last < *number))
        .collect();
    let ending = calling.into_iter().map(|block| (block, outside));
    // Nothing comes after the outside: a call of the function is one way through it.
    let ways = flow::ways(function).into_iter();
    for (from, to) in ways.filter(|(from, _)| *from != outside).chain(ending) {
        if !next[from].contains(&to) {
            next[from].push(to);
            before[to].push(from);
        }
    }
    let dominators = immediate_dominators(&next, &before, 0);
    let later = immediate_dominators(&before, &next, outside);
    let on_all_ways_on = DominatorTree::new(&later, outside);
    let mut heads: Vec<usize> = (0..outside).collect();
    for (block, head) in heads.iter_mut().enumerate() {
        let mut above = block;
        while let Some(dominator) = dominators[above].filter(|dominator| *dominator != above) {
            if on_all_ways_on.dominates(block, dominator) {
                *head = dominator;
            }
            above = dominator;
        }
    }
    heads
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
