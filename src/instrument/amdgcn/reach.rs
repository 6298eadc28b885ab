//! The choice of marks: places of which it is noted that a wave or a lane came there, so that this follows for all others.
//!
//! A wave takes a way through the blocks of a function, and a lane one through its stretches. A place needs no mark if each way
//! through it leads to one of some other places behind it, or all ways to it come from some before it, and all ways through
//! these lead through it, too (Agrawal, "Dominators, super blocks, and program coverage", 1994). Places are left out one after
//! the other, those that run most often first.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::choice::{Calls, Key};
use super::flow::{Edge, Flowing, Graph};
use super::function::Function;
use super::lanes::LaneWays;
use super::masks;
use super::plan::Kind;
use crate::instrument::dominators::{DominatorTree, immediate_dominators};

/// The most nodes of a function whose marks are left out: the time may be the square of it.
const MAX_NODES: usize = 1 << 12;
/// The most marks that a place follows from.
const MAX_TERMS: usize = 64;

/// A place that may be marked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) key: Key,
    /// No wave comes there without an active lane.
    pub(super) is_active: bool,
    /// All lanes that may be active there were so when the wave began.
    pub(super) is_bounded: bool,
    /// The loops around it, and around calls of its function.
    pub(super) depth: u32,
    /// The part of all waves that comes there, roughly.
    pub(super) frequency: u32,
}

/// The marks that a stretch follows from: those of its waves, and of its lanes.
pub(super) type StretchMarks = (Vec<Key>, Vec<Key>);

/// The marks of a group before they have registers.
pub(super) struct ChosenMarks {
    pub(super) marks: Vec<Mark>,
    /// By function and stretch.
    pub(super) stretches: Vec<Vec<StretchMarks>>,
    /// The loops around all calls of each function.
    pub(super) depths: Vec<u32>,
}

/// The ways through a graph. The outside is the node after all others.
struct Ways {
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

impl Ways {
    fn new(graph: &Graph) -> Self {
        let (nodes, edges) = graph.ways();
        Self::with(nodes, edges)
    }

    /// The ways between so many nodes.
    fn with(nodes: usize, edges: impl IntoIterator<Item = Edge>) -> Self {
        let mut ways = Self {
            next: vec![Vec::new(); nodes + 1],
            before: vec![Vec::new(); nodes + 1],
        };
        for (from, to) in edges {
            let [from, to] = [from, to].map(|end| end.unwrap_or(nodes));
            ways.next[from].push(to);
            ways.before[to].push(from);
        }
        ways
    }

    fn outside(&self) -> usize {
        self.next.len() - 1
    }

    /// Removes a way that nothing takes.
    fn remove(&mut self, from: usize, to: usize) {
        self.next[from].retain(|next| *next != to);
        self.before[to].retain(|before| *before != from);
    }
}

/// The ways through a graph, and the nodes that these cannot avoid.
struct Forced {
    ways: Ways,
    /// All ways to a node come through some before it, and all from it lead through some behind it.
    before: DominatorTree,
    behind: DominatorTree,
}

impl Forced {
    fn new(ways: Ways) -> Self {
        let outside = ways.outside();
        let before = immediate_dominators(&ways.next, &ways.before, outside);
        let behind = immediate_dominators(&ways.before, &ways.next, outside);
        Self {
            before: DominatorTree::new(&before, outside),
            behind: DominatorTree::new(&behind, outside),
            ways,
        }
    }

    /// The first of the stops on all ways from a node. `None` if a way leads past them.
    fn first_stops(
        edges: &[Vec<usize>],
        start: usize,
        is_stop: impl Fn(usize) -> bool,
    ) -> Option<BTreeSet<usize>> {
        let outside = edges.len() - 1;
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            for next in edges[node].iter().copied() {
                if next == outside {
                    return None;
                }
                if is_stop(next) {
                    found.insert(next);
                } else if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        Some(found)
    }

    /// Nodes that a node follows from: those among the `marked` ones whose ways all lead through it.
    fn implying(&self, node: usize, is_marked: impl Fn(usize) -> bool) -> Option<BTreeSet<usize>> {
        let is_stop = |other: usize| {
            let is_forced =
                || self.before.dominates(node, other) || self.behind.dominates(node, other);
            other != node && is_marked(other) && is_forced()
        };
        // Nothing comes to a node if no way leads there.
        let before = Self::first_stops(&self.ways.before, node, is_stop);
        let behind = Self::first_stops(&self.ways.next, node, is_stop);
        let behind = behind.filter(|stops| !stops.is_empty());
        let found = before.into_iter().chain(behind);
        found.min_by_key(BTreeSet::len)
    }
}

/// The places of a function, and those that have no mark. The waves of a block, and the lanes of its stretches in which some lane
/// is always active, have one place. It has the number of the block. The lanes of others have those after.
struct Places {
    /// The place of the lanes of each stretch.
    of_lanes: Vec<usize>,
    block_of: Vec<usize>,
    /// The places that each one follows from. `None`: it has a mark.
    follows: Vec<Option<BTreeSet<usize>>>,
    /// Those without a mark, in the order in which it was left out: they follow from later ones and from marks.
    left_out: Vec<usize>,
}

impl Places {
    /// Leaves out the mark of a place that follows from others.
    fn leave_out(&mut self, place: usize, others: BTreeSet<usize>) {
        self.follows[place] = Some(others);
        self.left_out.push(place);
    }

    /// Lets each place follow from marks only. It gets one itself if these are too many.
    fn resolve(&mut self) {
        while let Some(place) = self.left_out.pop() {
            let Some(others) = self.follows[place].take() else {
                continue;
            };
            let mut marks = BTreeSet::new();
            for other in others {
                match &self.follows[other] {
                    Some(follows) => marks.extend(follows),
                    None => _ = marks.insert(other),
                }
            }
            self.follows[place] = (marks.len() <= MAX_TERMS).then_some(marks);
        }
    }
}

/// Chooses the marks of functions.
pub(super) fn reach(
    functions: &[&Function<'_>],
    callees_end: bool,
    is_apart: bool,
    is_closed: bool,
) -> ChosenMarks {
    let calls = Calls::new(functions, is_apart);
    let mut found = ChosenMarks {
        marks: Vec::new(),
        stretches: vec![Vec::new(); functions.len()],
        depths: calls.depths.clone(),
    };
    // The lanes of each function.
    let mut lanes: Vec<Option<LaneWays>> = vec![None; functions.len()];
    for number in calls.order.iter().copied() {
        let function = functions[number];
        let entry = match is_closed {
            true => marks_of_entry(&calls, functions, number, &found.stretches),
            false => None,
        };
        let mut callers = calls.callers[number].iter();
        let is_active = |(caller, call): &(usize, usize)| {
            let stretch = functions[*caller].stretch_of(*call);
            lanes[*caller]
                .as_ref()
                .is_some_and(|ways| ways.stretch(stretch).is_active)
        };
        let begins_active = function.is_kernel() || entry.is_some() && callers.all(is_active);
        let ways = masks::find_active(function, callees_end, begins_active);
        let depth = calls.depths[number];
        found.add(function, number, depth, entry, &ways, callees_end);
        lanes[number] = Some(ways);
    }
    found
}

impl ChosenMarks {
    /// Adds the marks of a function. Its start may follow from others.
    fn add(
        &mut self,
        function: &Function<'_>,
        number: usize,
        depth: u32,
        entry: Option<StretchMarks>,
        ways: &LaneWays,
        callees_end: bool,
    ) {
        let stretches = &function.stretches;
        let (starts, block_of) = function.blocks();
        let blocks = starts.len();
        let of_lanes = (0..stretches.len()).map(|stretch| match ways.stretch(stretch).is_active {
            true => block_of[stretch],
            false => blocks + stretch,
        });
        let of_lanes: Vec<usize> = of_lanes.collect();
        let count = blocks + stretches.len();
        // The stretches whose lanes are at a place.
        let mut active: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (stretch, place) in of_lanes.iter().enumerate() {
            active[*place].push(stretch);
        }
        let numbers: Vec<usize> = (0..stretches.len()).collect();
        let graph = Graph::new(function, &block_of, Flowing::Waves, callees_end);
        let mut of_waves = Ways::new(&graph);
        for stretch in (0..stretches.len()).filter(|stretch| ways.stretch(*stretch).is_active) {
            if let Some(goal) = untaken(function, stretch) {
                let goal = block_of[function.stretch_of(goal)];
                of_waves.remove(block_of[stretch], goal);
            }
        }
        let of_waves = Forced::new(of_waves);
        let graph = Graph::new(function, &numbers, Flowing::Lanes(ways), callees_end);
        let through_stretches = Forced::new(Ways::new(&graph));
        let is_place = |place: usize| place < blocks || !active[place].is_empty();
        // The stretch where a mark would be, and what it costs.
        let stretch_of = |place: usize| {
            active[place]
                .first()
                .copied()
                .unwrap_or_else(|| starts[place])
        };
        let first_lanes = of_lanes[0];
        let is_known = |place: usize| entry.is_some() && [0, first_lanes].contains(&place);
        let is_kernel_start = function.is_kernel() && stretches[0].depth == 0;
        let cost = |place: usize| {
            let stretch = &stretches[stretch_of(place)];
            let has_lanes = place < blocks && !active[place].is_empty();
            let is_first = is_kernel_start && place == 0;
            (
                !is_known(place),
                // It costs least together with others.
                !is_first,
                stretch.depth,
                stretch.frequency,
                // Others need more than a bit.
                !has_lanes,
            )
        };
        let mut order: Vec<usize> = (0..count).filter(|place| is_place(*place)).collect();
        order.sort_by_key(|place| Reverse((cost(*place), *place)));
        let mut places = Places {
            of_lanes,
            block_of,
            follows: vec![None; count],
            left_out: Vec::new(),
        };
        if count <= MAX_NODES {
            for place in order.iter().copied().filter(|place| !is_known(*place)) {
                let is_marked = |other: usize| other != place && places.follows[other].is_none();
                let by_waves = (place < blocks)
                    .then(|| of_waves.implying(place, is_marked))
                    .flatten();
                let mut others = by_waves;
                for stretch in &active[place] {
                    let of_lanes = &places.of_lanes;
                    let is_marked = |other: usize| {
                        let other = of_lanes.get(other).copied();
                        other.is_some_and(|other| other != place && places.follows[other].is_none())
                    };
                    let by_lanes = through_stretches.implying(*stretch, is_marked);
                    let by_lanes = by_lanes.map(|stretches| {
                        stretches
                            .into_iter()
                            .map(|stretch| of_lanes[stretch])
                            .collect::<BTreeSet<usize>>()
                    });
                    others = match (others, by_lanes) {
                        (Some(one), Some(other)) if other.len() < one.len() => Some(other),
                        (None, other) => other,
                        (one, _) => one,
                    };
                }
                if let Some(others) = others {
                    places.leave_out(place, others);
                }
            }
        }
        places.resolve();
        let key = |place: usize| {
            let kind = if place < blocks {
                Kind::Waves
            } else {
                Kind::Lanes
            };
            (number, stretch_of(place), kind)
        };
        order.sort_unstable();
        for place in order {
            if places.follows[place].is_some() || is_known(place) {
                continue;
            }
            let stretch = stretch_of(place);
            let frequency = stretches[stretch].frequency;
            self.marks.push(Mark {
                key: key(place),
                is_active: ways.stretch(stretch).is_active,
                is_bounded: ways.stretch(stretch).is_bounded,
                depth: depth + stretches[stretch].depth,
                frequency,
            });
        }
        let keys = |place: usize| -> Vec<Key> {
            let own = BTreeSet::from([place]);
            let follows = places.follows[place].as_ref().unwrap_or(&own);
            let mut keys = BTreeSet::new();
            for other in follows {
                match &entry {
                    Some((waves, _)) if *other == 0 => keys.extend(waves),
                    Some((_, lanes)) if is_known(*other) => keys.extend(lanes),
                    _ => _ = keys.insert(key(*other)),
                }
            }
            keys.into_iter().collect()
        };
        let numbers = 0..stretches.len();
        let all = numbers.map(|stretch| {
            (
                keys(places.block_of[stretch]),
                keys(places.of_lanes[stretch]),
            )
        });
        self.stretches[number] = all.collect();
    }
}

/// The goal of a branch at the end of a stretch that only waves without an active lane take, or the instruction after one that
/// they do not take.
fn untaken(function: &Function<'_>, stretch: usize) -> Option<usize> {
    let range = function.instructions_of(stretch);
    let last = range.last()?;
    let goal = function.goal(last)?;
    match function.is_taken_without_lanes(last)? {
        true => Some(goal),
        false => (last + 1 < function.all.len()).then_some(last + 1),
    }
}

/// The marks that the start of a function follows from, by those of its callers, which are known.
fn marks_of_entry(
    calls: &Calls,
    functions: &[&Function<'_>],
    number: usize,
    stretches: &[Vec<StretchMarks>],
) -> Option<StretchMarks> {
    if functions[number].comes_back() {
        return None;
    }
    let (mut waves, mut lanes) = (BTreeSet::new(), BTreeSet::new());
    for (caller, call) in &calls.callers[number] {
        let stretch = functions[*caller].stretch_of(*call);
        let (of_waves, of_lanes) = stretches[*caller].get(stretch)?;
        waves.extend(of_waves);
        lanes.extend(of_lanes);
    }
    let is_known = !waves.is_empty() && waves.len().max(lanes.len()) <= MAX_TERMS;
    is_known.then(|| (waves.into_iter().collect(), lanes.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nodes that one follows from, with these edges.
    fn implying(edges: &[Edge], node: usize, marked: &[usize]) -> Option<Vec<usize>> {
        let forced = Forced::new(Ways::with(5, edges.iter().copied()));
        let found = forced.implying(node, |other| marked.contains(&other));
        found.map(|found| found.into_iter().collect())
    }

    const CONDITION: [Edge; 6] = [
        (None, Some(0)),
        (Some(0), Some(1)),
        (Some(0), Some(2)),
        (Some(1), Some(3)),
        (Some(2), Some(3)),
        (Some(3), None),
    ];

    #[test]
    fn both_sides_of_a_condition_are_enough() {
        for node in [0, 3] {
            assert_eq!(implying(&CONDITION, node, &[1, 2]), Some(vec![1, 2]));
            assert_eq!(implying(&CONDITION, node, &[1]), None);
        }
        assert_eq!(implying(&CONDITION, 3, &[0]), Some(vec![0]));
        assert_eq!(implying(&CONDITION, 1, &[0, 2, 3]), None);
    }

    #[test]
    fn a_loop_follows_from_the_code_before_it() {
        let edges = [
            (None, Some(0)),
            (Some(0), Some(1)),
            (Some(1), Some(1)),
            (Some(1), Some(2)),
            (Some(2), None),
        ];
        assert_eq!(implying(&edges, 1, &[0]), Some(vec![0]));
        assert_eq!(implying(&edges, 1, &[2]), Some(vec![2]));
        // A wave may never leave it.
        let endless = &edges[..3];
        assert_eq!(implying(endless, 0, &[]), None);
        assert_eq!(implying(endless, 0, &[1]), Some(vec![1]));
    }

    #[test]
    fn code_that_no_way_leads_to_needs_no_mark() {
        let mut edges = CONDITION.to_vec();
        edges.push((Some(4), Some(3)));
        assert_eq!(implying(&edges, 4, &[]), Some(vec![]));
        assert_eq!(implying(&edges, 0, &[1, 2]), Some(vec![1, 2]));
    }

    #[test]
    fn marks_that_are_left_out_are_those_of_others() {
        let mut places = Places {
            of_lanes: Vec::new(),
            block_of: Vec::new(),
            follows: vec![None; 4],
            left_out: Vec::new(),
        };
        places.leave_out(0, BTreeSet::from([1, 2]));
        places.leave_out(1, BTreeSet::from([3]));
        places.resolve();
        let follows = [Some(BTreeSet::from([2, 3])), Some(BTreeSet::from([3]))];
        assert_eq!(places.follows[..2], follows);
    }
}
