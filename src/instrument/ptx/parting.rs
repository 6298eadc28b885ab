//! The exits of a function that threads must not share.
//!
//! Threads of a warp that part at a branch meet where their ways join. If all ways out lead to one exit, those that leave
//! early wait there for the others, and these may wait for them: at a barrier, or to exchange values. So an exit is apart if
//! its threads have parted from threads that may still wait, and have not met them since. Exits may be one if their threads
//! have gone the same way at each such branch, and threads that went another way come to none of them.

use std::collections::HashMap;

use crate::format::ptx::module::PtxFunction;
use crate::format::ptx::statements::{Flow, Instruction, StatementKind};
use crate::instrument::dominators::immediate_dominators;
use crate::instrument::ptx::flow;

/// The most blocks of a function for which [`apart`] looks at the ways. If a larger function waits, each of its exits is
/// alone.
const MAX_BLOCKS: usize = 1024;

/// The other statements that leave by the same exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Exits {
    /// Those that are not apart from any thread that may wait.
    #[default]
    Common,
    /// Those that have this number, too.
    Of(usize),
    /// None.
    Alone,
}

/// The statements that leave the function by an exit that is not the common one: returns, and branches to a block that only
/// returns.
pub(super) fn apart(function: &PtxFunction<'_>) -> HashMap<usize, Exits> {
    let Some(ways) = Ways::new(function) else {
        return HashMap::new();
    };
    if ways.next.len() > MAX_BLOCKS {
        let exits = ways.exits.into_iter().flatten();
        return exits.map(|number| (number, Exits::Alone)).collect();
    }
    let meeting = ways.meeting();
    // The sides of branches on which threads come to each exit. `None` if they come there on several sides of one branch.
    let mut sides: HashMap<usize, Option<Vec<(usize, usize)>>> = HashMap::new();
    for (block, next) in ways.next.iter().enumerate() {
        let meets = meeting[block].is_some_and(|meeting| meeting != ways.outside());
        let late = next.iter().copied().filter(|block| ways.may_wait[*block]);
        let late: Vec<usize> = late.collect();
        if meets || late.is_empty() || next.len() < 2 {
            continue;
        }
        let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
        for side in next {
            for leaving in ways.leaving(block, *side) {
                let from = found.entry(leaving).or_default();
                // Several entries of a table may lead to it.
                if from.last() != Some(side) {
                    from.push(*side);
                }
            }
        }
        // Threads that leave after the only side that may wait are not apart from others.
        let is_last = |from: &[usize]| late.len() == 1 && from == late;
        for (exit, from) in found.into_iter().filter(|(_, from)| !is_last(from)) {
            let own = sides.entry(exit).or_insert_with(|| Some(Vec::new()));
            match (own.as_mut(), from.as_slice()) {
                (Some(own), [side]) => own.push((block, *side)),
                _ => *own = None,
            }
        }
    }
    let mut numbers = HashMap::new();
    let mut apart = HashMap::new();
    for (exit, sides) in sides {
        let number = sides.map(|sides| {
            let next = numbers.len();
            *numbers.entry(sides).or_insert(next)
        });
        apart.insert(exit, number.map_or(Exits::Alone, Exits::Of));
    }
    // Threads that continue to a block which only returns meet no others there.
    let blocks = &function.body.blocks;
    let to_apart = blocks
        .targets
        .iter()
        .filter(|(_, target)| leaves(function, **target).is_some())
        .filter(|(_, target)| apart.contains_key(&blocks.spans[**target].last));
    let to_apart: Vec<usize> = to_apart.map(|(number, _)| *number).collect();
    for number in to_apart {
        apart.entry(number).or_insert(Exits::Alone);
    }
    apart
}

/// The ways between the blocks of a function. The number after that of the last block is the outside, and so are blocks
/// that only return.
struct Ways {
    next: Vec<Vec<usize>>,
    /// The statements of each block that leave the function.
    exits: Vec<Vec<usize>>,
    /// True if a thread that comes to the block may wait for others.
    may_wait: Vec<bool>,
}

impl Ways {
    /// `None` if no thread waits for others.
    fn new(function: &PtxFunction<'_>) -> Option<Self> {
        let blocks = &function.body.blocks;
        let spans = &blocks.spans;
        let block_of = |number: usize| spans.partition_point(|span| span.last < number);
        let outside = spans.len();
        let waiting = function
            .instructions()
            .filter(|(_, _, instruction)| waits(instruction));
        let waiting: Vec<usize> = waiting.map(|(number, _, _)| block_of(number)).collect();
        if waiting.is_empty() {
            return None;
        }
        let only_leaves: Vec<bool> = (0..outside)
            .map(|block| leaves(function, block).is_some())
            .collect();
        let mut ways = Self {
            next: vec![Vec::new(); outside + 1],
            exits: vec![Vec::new(); outside + 1],
            may_wait: vec![false; outside + 1],
        };
        for (number, _, it) in function.instructions() {
            let block = block_of(number);
            let targets = blocks.ways.get(&number).into_iter().flatten().flatten();
            let leaving = targets.copied().filter(|target| only_leaves[*target]);
            match it.flow {
                Flow::Return | Flow::Exit => ways.exits[block].push(number),
                Flow::Branch { .. } => ways.exits[block].extend(leaving.map(|_| number)),
                _ => ways.exits[block].extend(leaving.map(|target| spans[target].last)),
            }
            let is_last = spans[block].last == number;
            let goes_on = it.is_guarded || matches!(it.flow, Flow::Next | Flow::Call { .. });
            if is_last && goes_on && only_leaves.get(block + 1) == Some(&true) {
                ways.exits[block].push(spans[block + 1].last);
            }
        }
        for (from, to) in flow::ways(function) {
            if from == outside || only_leaves[from] {
                continue;
            }
            let is_end = only_leaves.get(to).is_none_or(|is_leaf| *is_leaf);
            let to = if is_end { outside } else { to };
            if !ways.next[from].contains(&to) {
                ways.next[from].push(to);
            }
        }
        let before = ways.before();
        let mut left = waiting;
        while let Some(block) = left.pop() {
            if !std::mem::replace(&mut ways.may_wait[block], true) {
                left.extend(&before[block]);
            }
        }
        Some(ways)
    }

    fn outside(&self) -> usize {
        self.next.len() - 1
    }

    /// The blocks before each block.
    fn before(&self) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.next.len()];
        for (block, next) in self.next.iter().enumerate() {
            for it in next {
                before[*it].push(block);
            }
        }
        before
    }

    /// The exits that threads may come to from a block by one of its sides.
    fn leaving(&self, block: usize, side: usize) -> Vec<usize> {
        if side == self.outside() {
            return self.exits[block].clone();
        }
        let mut left = vec![side];
        let mut found = Vec::new();
        let mut is_known = vec![false; self.next.len()];
        while let Some(block) = left.pop() {
            if !std::mem::replace(&mut is_known[block], true) {
                found.extend(&self.exits[block]);
                left.extend(&self.next[block]);
            }
        }
        found
    }

    /// The first block after each that all ways from it to the outside come to. `None` if no way leads to the outside.
    fn meeting(&self) -> Vec<Option<usize>> {
        immediate_dominators(&self.before(), &self.next, self.outside())
    }
}

/// Returns whether a thread may wait for others of its warp at an instruction: at a barrier, in an exchange of values, or in a
/// function.
fn waits(it: &Instruction<'_>) -> bool {
    let is_call = matches!(it.flow, Flow::Call { .. });
    let is_barrier = matches!(it.name(), "bar" | "barrier");
    is_call || is_barrier || it.opcode.contains(".sync") || it.opcode.contains(".aligned")
}

/// The instruction of a block that only ends the call of its function.
pub(super) fn leaves<'text>(function: &PtxFunction<'text>, block: usize) -> Option<&'text str> {
    let span = function.body.blocks.spans[block];
    let StatementKind::Instruction(it) = &function.body.statements.all[span.first].kind else {
        return None;
    };
    let is_end = matches!(it.flow, Flow::Return | Flow::Exit) && !it.is_guarded;
    (is_end && span.first == span.last).then_some(it.opcode)
}

#[cfg(test)]
#[path = "parting_tests.rs"]
mod tests;
