//! Counts of blocks in loops that follow from other counts: as many threads leave a block as enter it.
//!
//! The starts and the ends of the blocks of a function and its outside are the nodes of a graph. Its edges are the blocks, and the
//! ways between them. The edges of a spanning tree need no count: each follows from those that are not in the tree (Knuth
//! and Stevenson, "Optimal measurement points for program frequency counts", 1973). The tree takes the edges whose counts
//! would cost most. Blocks in no loop have bits, which cost next to nothing, so only the counts of those in loops are derived.
//!
//! A way between blocks is counted after the branch that it does not take, or on a detour, which costs more than to count in
//! a block. A way that has no such place must be in the tree.

use std::collections::BTreeMap;

use crate::format::ptx::module::PtxFunction;
use crate::format::ptx::statements::{Flow, StatementKind};

/// The most blocks of a function whose counts are derived.
const MAX_BLOCKS: usize = 1024;
/// The most counts that one follows from. Others are counted.
pub(super) const MAX_TERMS: usize = 16;
/// Counts follow from others if that saves so many registers, even if it takes more instructions.
const MANY_REGISTERS: usize = 8;
/// A loop in a loop is expected to run so many times as often.
const TURNS: u64 = 8;
/// No loop counts as deeper.
const MAX_DEPTH: usize = 8;

/// The place where an edge is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a block: all that run it take this edge.
    Block(usize),
    /// After the statement with this number: a guarded branch, or the last one of a block.
    Behind(usize),
    /// On a detour of the branch with this number.
    Detour(usize),
    /// Nowhere.
    Nowhere,
}

/// A count that others follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// That of a block.
    Block(usize),
    /// That of the edge with this number, of those that are counted.
    Edge(usize),
}

/// An edge that has a counter of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountedEdge {
    /// The block before it, and the one after it.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) place: Place,
    /// The number of its counter. If it runs once at most in a call of the function, it has a bit, else a register.
    pub(super) counter: Counter,
}

/// The counter of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    Bit(usize),
    Register(usize),
}

/// The counts of a function that follow from others.
#[derive(Clone, Debug, Default)]
pub(super) struct Derivation {
    pub(super) edges: Vec<CountedEdge>,
    /// The blocks that are not counted: their counts are sums of others, each with a factor.
    pub(super) blocks: BTreeMap<usize, Vec<(Source, i64)>>,
    /// The number of bits of edges.
    pub(super) bits: usize,
    /// The number of registers of edges.
    pub(super) registers: usize,
}

impl Derivation {
    /// The counted edge on the detour of a branch.
    pub(super) fn detour_of(&self, branch: usize) -> Option<CountedEdge> {
        let mut edges = self.edges.iter().copied();
        edges.find(|edge| edge.place == Place::Detour(branch))
    }

    /// Leaves out the counts that are not sums of counts of blocks, and all edges.
    pub(super) fn keep_sums(&mut self) {
        let is_block = |source: &Source| matches!(source, Source::Block(_));
        self.blocks
            .retain(|_, terms| is_sum(terms) && terms.iter().all(|(source, _)| is_block(source)));
        self.edges.clear();
        (self.bits, self.registers) = (0, 0);
    }

    /// Adds a way between two of the `blocks` blocks with a counter, and returns its number.
    fn count(&mut self, edge: &Edge, blocks: usize, is_in_loop: bool) -> usize {
        let (next, counter): (&mut usize, fn(usize) -> Counter) = match is_in_loop {
            true => (&mut self.registers, Counter::Register),
            false => (&mut self.bits, Counter::Bit),
        };
        self.edges.push(CountedEdge {
            from: edge.from % blocks,
            to: edge.to % blocks,
            place: edge.place,
            counter: counter(*next),
        });
        *next += 1;
        self.edges.len() - 1
    }
}

/// Returns whether nothing is subtracted.
pub(super) fn is_sum(terms: &[(Source, i64)]) -> bool {
    terms.iter().all(|(_, factor)| *factor > 0)
}

/// A way from a block to another one, or a block, see [`split`]. The number after that of the last block is the outside.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: usize,
    to: usize,
    place: Place,
}

/// Returns the counts that follow from others, or `None` if it does not pay. `depths` has the loops around each block.
/// `has_registers` means that each block in a loop can have a register. Without them it always pays, and with them only if
/// it saves more than its own counts take.
pub(super) fn derivation(
    function: &PtxFunction<'_>,
    depths: &[usize],
    has_registers: bool,
) -> Option<Derivation> {
    let count = depths.len();
    let is_loopless = depths.iter().all(|depth| *depth == 0);
    if is_loopless || count > MAX_BLOCKS {
        return None;
    }
    let mut edges = split(edges(function), count);
    let depth = |node: usize| match node < 2 * count {
        true => depths[node % count],
        false => 0,
    };
    let runs = |depth: usize| TURNS.pow(depth.min(MAX_DEPTH) as u32);
    let runs_of = |edge: &Edge| runs(depth(edge.from).min(depth(edge.to)));
    // The cost of a count there. One on a detour makes two branches of one.
    let cost = |edge: &Edge| match edge.place {
        Place::Nowhere => u64::MAX,
        Place::Block(block) if depth(block) == 0 => 0,
        Place::Block(block) => runs(depth(block)),
        Place::Behind(_) => runs_of(edge),
        Place::Detour(_) => 3 * runs_of(edge),
    };
    edges.sort_by_key(|edge| std::cmp::Reverse(cost(edge)));
    let (tree, others) = spanning_tree(&edges, 2 * count + 1);
    if others.iter().any(|edge| edge.place == Place::Nowhere) {
        return None;
    }
    let mut found = Derivation::default();
    let mut sources: Vec<Source> = Vec::new();
    for edge in &others {
        sources.push(match edge.place {
            Place::Block(block) => Source::Block(block),
            _ => Source::Edge(found.count(edge, count, runs_of(edge) > 1)),
        });
    }
    let flows = flows(&tree, &others, 2 * count);
    for (edge, flow) in tree.iter().zip(&flows) {
        let Place::Block(block) = edge.place else {
            continue;
        };
        let terms: i64 = flow.values().map(|factor| factor.abs()).sum();
        if depth(block) > 0 && terms <= MAX_TERMS as i64 {
            let sum = flow
                .iter()
                .map(|(other, factor)| (sources[*other], *factor));
            found.blocks.insert(block, sum.collect());
        }
    }
    let saved: u64 = found.blocks.keys().map(|block| runs(depth(*block))).sum();
    let counted = others
        .iter()
        .filter(|edge| !matches!(edge.place, Place::Block(_)));
    let paid: u64 = counted.map(cost).sum();
    let saves_registers = found.blocks.len() >= found.edges.len() + MANY_REGISTERS;
    (saved > paid || saves_registers || !has_registers).then_some(found)
}

/// The ways between the blocks of a function: the numbers of two blocks, or the number after the last one for the outside.
pub(super) fn ways(function: &PtxFunction<'_>) -> Vec<(usize, usize)> {
    let edges = edges(function).into_iter();
    edges.map(|edge| (edge.from, edge.to)).collect()
}

/// The ways between the blocks of a function, each once.
fn edges(function: &PtxFunction<'_>) -> Vec<Edge> {
    let blocks = &function.body.blocks;
    let all = &function.body.statements.all;
    let outside = blocks.spans.len();
    let mut found: Vec<Edge> = Vec::new();
    let mut add = |from: usize, to: usize, place: Place| match found
        .iter_mut()
        .rev()
        .take_while(|edge| edge.from == from)
        .find(|edge| edge.to == to)
    {
        Some(known) => known.place = Place::Nowhere,
        None => found.push(Edge { from, to, place }),
    };
    for (block, span) in blocks.spans.iter().enumerate() {
        let (mut goes_on, mut before) = (true, None);
        let statements = all.iter().enumerate().take(span.last + 1);
        for (number, statement) in statements.skip(span.first) {
            let StatementKind::Instruction(it) = &statement.kind else {
                continue;
            };
            let ways: &[Option<usize>] = blocks.ways.get(&number).map_or(&[], Vec::as_slice);
            let place = match (&it.flow, before) {
                (Flow::Branch { .. }, Some(before)) if !it.is_guarded => Place::Behind(before),
                // A label of an inner scope is unknown where the detour is.
                (Flow::Branch { .. }, _) if statement.scope == 0 => Place::Detour(number),
                _ => Place::Nowhere,
            };
            for way in ways {
                add(block, way.unwrap_or(outside), place);
            }
            if matches!(it.flow, Flow::Return | Flow::Exit | Flow::Trap) {
                add(block, outside, Place::Nowhere);
            }
            goes_on = it.is_guarded || matches!(it.flow, Flow::Next | Flow::Call { .. });
            before = Some(number);
        }
        if goes_on {
            add(block, block + 1, Place::Behind(span.last));
        }
    }
    found.push(Edge {
        from: outside,
        to: 0,
        place: Place::Nowhere,
    });
    found
}

/// Makes two nodes of each block, its start and its end, and an edge between them, which counts in the block. The node after
/// them is the outside.
fn split(edges: Vec<Edge>, count: usize) -> Vec<Edge> {
    let outside = 2 * count;
    let ways = edges.into_iter().map(|edge| Edge {
        from: if edge.from == count {
            outside
        } else {
            count + edge.from
        },
        to: if edge.to == count { outside } else { edge.to },
        ..edge
    });
    let blocks = (0..count).map(|block| Edge {
        from: block,
        to: count + block,
        place: Place::Block(block),
    });
    ways.chain(blocks).collect()
}

/// The edges of a spanning tree, which takes the first ones, and the others (Kruskal).
fn spanning_tree(edges: &[Edge], nodes: usize) -> (Vec<Edge>, Vec<Edge>) {
    let mut parts: Vec<usize> = (0..nodes).collect();
    let root = |parts: &mut Vec<usize>, mut node: usize| {
        while parts[node] != node {
            parts[node] = parts[parts[node]];
            node = parts[node];
        }
        node
    };
    edges.iter().partition(|edge| {
        let (from, to) = (root(&mut parts, edge.from), root(&mut parts, edge.to));
        parts[from] = to;
        from != to
    })
}

/// The flow of each edge of the tree: the numbers of other edges, and a factor for each.
///
/// All edges at a node but one have a known flow, if the nodes are taken from the leaves on, and the flows into a node and
/// out of it are equal.
fn flows(tree: &[Edge], others: &[Edge], outside: usize) -> Vec<BTreeMap<usize, i64>> {
    let nodes = outside + 1;
    let mut at: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (number, edge) in tree.iter().enumerate() {
        at[edge.from].push(number);
        at[edge.to].push(number);
    }
    // The flow out of each node without the flow into it, by the edges that are known so far.
    let mut surplus: Vec<BTreeMap<usize, i64>> = vec![BTreeMap::new(); nodes];
    for (number, edge) in others.iter().enumerate() {
        *surplus[edge.from].entry(number).or_default() += 1;
        *surplus[edge.to].entry(number).or_default() -= 1;
    }
    let mut flows = vec![BTreeMap::new(); tree.len()];
    let mut left: Vec<usize> = at.iter().map(Vec::len).collect();
    let mut is_known = vec![false; tree.len()];
    let mut leaves: Vec<usize> = (0..nodes).filter(|node| left[*node] == 1).collect();
    while let Some(leaf) = leaves.pop() {
        let Some(number) = at[leaf].iter().copied().find(|edge| !is_known[*edge]) else {
            continue;
        };
        is_known[number] = true;
        let edge = tree[number];
        let (other, sign) = match edge.from == leaf {
            true => (edge.to, -1),
            false => (edge.from, 1),
        };
        let mut flow = std::mem::take(&mut surplus[leaf]);
        flow.values_mut().for_each(|factor| *factor *= sign);
        flow.retain(|_, factor| *factor != 0);
        for (source, factor) in &flow {
            // The edge leaves the other node, if it leads to the leaf.
            *surplus[other].entry(*source).or_default() += sign * factor;
        }
        flows[number] = flow;
        left[other] -= 1;
        if left[other] == 1 {
            leaves.push(other);
        }
    }
    flows
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
