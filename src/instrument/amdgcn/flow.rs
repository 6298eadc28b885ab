//! Counts that follow from others: as many waves leave a block as enter it, and as many lanes leave a stretch.
//!
//! The stretches of a function and its outside are the nodes of a graph. The counts of nodes are sums over its edges, and the
//! possible flows are a vector space, whose coordinates are the flows on the edges that are not in a spanning tree (Knuth and
//! Stevenson, "Optimal measurement points for program frequency counts", 1973). Counts of nodes are picked, cheapest first, as
//! long as they are independent of the picked ones. The others are sums of these, each with a factor.

use std::ops::Range;

use modelgpu_isa::Flow;

use super::function::Function;
use super::lanes::{LaneEnd, LaneWays};
use super::map::Sum;

/// The most nodes of a function whose counts are derived: elimination takes the cube of it.
const MAX_NODES: usize = 4096;
/// The most terms of a sum. Other counts are picked.
const MAX_TERMS: usize = 64;

/// The nodes at the ends of an edge. One that is `None` is the outside.
pub(super) type Edge = (Option<usize>, Option<usize>);

/// The nodes and edges of a function.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    nodes: usize,
    /// The nodes whose counts can be picked: the first ones.
    counted: usize,
    /// The ends of edges: [`OUTSIDE`], or the number of a node plus 1.
    edges: Vec<(u32, u32)>,
}

/// The end of edges from and to other code.
const OUTSIDE: u32 = 0;

/// The flow through a graph.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flowing<'a> {
    /// The nodes are blocks: stretches are joined to the one before unless they start one.
    Waves,
    /// The nodes are stretches. Lanes have ways of their own.
    Lanes(&'a LaneWays),
}

impl Graph {
    /// The graph of a function; `nodes` has the node of each stretch. A callee may end the wave if `callees_end`.
    pub(super) fn new(
        function: &Function<'_>,
        nodes: &[usize],
        flowing: Flowing<'_>,
        callees_end: bool,
    ) -> Self {
        let lane_ways = match flowing {
            Flowing::Waves => None,
            Flowing::Lanes(ways) => Some(ways),
        };
        let of_lanes = lane_ways.is_some();
        let count = nodes.iter().max().map_or(0, |last| last + 1);
        let end = |node: usize| node as u32 + 1;
        let node = |number: usize| end(nodes[function.stretch_of(number)]);
        let entries = function.entries.iter();
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(3 * function.stretches.len());
        edges.extend(entries.map(|entry| (OUTSIDE, node(*entry))));
        for stretch in 0..function.stretches.len() {
            let range = function.instructions_of(stretch);
            let is_next_own = nodes.get(stretch + 1) == Some(&nodes[stretch]);
            let own = end(nodes[stretch]);
            let Some(last) = range.clone().last() else {
                continue;
            };
            let has_trap = range
                .clone()
                .any(|number| matches!(function.all[number].flow, Flow::Trap));
            if has_trap {
                // Some waves end there.
                edges.push((own, OUTSIDE));
            }
            if is_next_own {
                continue;
            }
            if lane_ways.is_some_and(|ways| ways.stretch(stretch).has_ways) {
                continue;
            }
            let ins = &function.all[last];
            // No lane takes a way that only leads on without lanes.
            let goal = function.goal(last);
            let without_lanes = function.is_taken_without_lanes(last);
            let without_lanes = without_lanes.filter(|_| of_lanes);
            let goals = function.following(last);
            let goals = goals.filter(|next| without_lanes != Some(Some(*next) == goal));
            let is_kept = !of_lanes || function.kept_calls.contains_key(&last);
            let is_parted = ins.is_call() && (!is_kept || callees_end)
                || of_lanes && range.clone().any(|number| function.all[number].writes_exec);
            let leaves = matches!(ins.flow, Flow::End | Flow::Indirect)
                && !function.jumps.contains_key(&last);
            let from = match is_parted {
                true => OUTSIDE,
                false => own,
            };
            let before = edges.len();
            edges.extend(goals.map(|goal| (from, node(goal))));
            if is_parted || leaves || edges.len() == before {
                edges.push((own, OUTSIDE));
            }
        }
        let mut all = count;
        if let Some(lane_ways) = lane_ways {
            // Pools are nodes after the stretches.
            let lane_end = |lane_end: LaneEnd| match lane_end {
                LaneEnd::Stretch(stretch) => end(stretch as usize),
                LaneEnd::Pool(pool) => end(count + pool as usize),
                LaneEnd::Outside => OUTSIDE,
            };
            let ways = lane_ways.ways.iter();
            edges.extend(ways.map(|(from, to)| (lane_end(*from), lane_end(*to))));
            all += lane_ways.pools as usize;
        }
        if !function.unresolved.is_empty() {
            // Others may jump into the function by an address that is not known.
            for node in 0..count {
                edges.push((OUTSIDE, end(node)));
                edges.push((end(node), OUTSIDE));
            }
        }
        edges.sort_unstable();
        edges.dedup();
        Self {
            nodes: all,
            counted: count,
            edges,
        }
    }

    /// The number of nodes, and the edges between them.
    pub(super) fn ways(&self) -> (usize, impl Iterator<Item = Edge>) {
        let node = |end: u32| end.checked_sub(1).map(|node| node as usize);
        let edges = self.edges.iter();
        (
            self.nodes,
            edges.map(move |(from, to)| (node(*from), node(*to))),
        )
    }

    /// The counts of nodes. They are not known if there are too many.
    pub(super) fn counts(&self) -> Counts {
        let is_large = self.nodes > MAX_NODES;
        Counts {
            counted: self.counted,
            flows: (!is_large).then(|| self.flows()),
        }
    }

    /// The count of each node by the flows on edges that are not in a spanning tree.
    fn flows(&self) -> Flows {
        let ends = self.nodes + 1;
        let mut parts: Vec<u32> = (0..ends as u32).collect();
        let root = |parts: &mut [u32], mut node: u32| {
            while parts[node as usize] != node {
                parts[node as usize] = parts[parts[node as usize] as usize];
                node = parts[node as usize];
            }
            node
        };
        let mut flows = Flows {
            terms: Vec::with_capacity(4 * self.edges.len()),
            counts: Vec::with_capacity(self.nodes),
        };
        // The flow on each edge.
        let mut known: Vec<Option<Range<u32>>> = vec![None; self.edges.len()];
        // The first edge of each node, and all edges of nodes, one node after the other.
        let mut first = vec![0_u32; ends + 1];
        for (number, (from, to)) in self.edges.iter().enumerate() {
            let (a, b) = (root(&mut parts, *from), root(&mut parts, *to));
            if a == b {
                known[number] = Some(flows.add(&[(number as u32, 1)]));
            } else {
                parts[a as usize] = b;
            }
            if from != to {
                first[*from as usize + 1] += 1;
                first[*to as usize + 1] += 1;
            }
        }
        for end in 0..ends {
            first[end + 1] += first[end];
        }
        let mut next = first.clone();
        let mut at = vec![(0_u32, false); first[ends] as usize];
        // The edges of each node whose flow is not known.
        let mut left = vec![0_u32; ends];
        // The edge of each node that leads to itself.
        let mut own = vec![None; ends];
        for (number, (from, to)) in self.edges.iter().enumerate() {
            if from == to {
                own[*from as usize] = Some(number as u32);
                continue;
            }
            for (end, is_out) in [(*from as usize, true), (*to as usize, false)] {
                at[next[end] as usize] = (number as u32, is_out);
                next[end] += 1;
                left[end] += u32::from(known[number].is_none());
            }
        }
        let mut leaves: Vec<usize> = (1..ends).filter(|node| left[*node] == 1).collect();
        let (mut total, mut spare) = (Vec::new(), Vec::new());
        while let Some(leaf) = leaves.pop() {
            let edges = &at[first[leaf] as usize..first[leaf + 1] as usize];
            let mut unknown = edges.iter();
            let unknown = unknown.find(|(edge, _)| known[*edge as usize].is_none());
            let Some((unknown, is_out)) = unknown.copied() else {
                continue;
            };
            total.clear();
            for (edge, other_is_out) in edges {
                if let Some(flow) = &known[*edge as usize] {
                    let sign = if *other_is_out == is_out { -1 } else { 1 };
                    merge(&total, flows.of(flow), &mut spare, |a, b| {
                        Some(a.unwrap_or_default() + sign * b)
                    });
                    std::mem::swap(&mut total, &mut spare);
                }
            }
            known[unknown as usize] = Some(flows.add(&total));
            let (from, to) = self.edges[unknown as usize];
            for node in [from as usize, to as usize] {
                left[node] -= 1;
                if left[node] == 1 && node != OUTSIDE as usize {
                    leaves.push(node);
                }
            }
        }
        for node in 1..ends {
            let edges = &at[first[node] as usize..first[node + 1] as usize];
            let into = edges.iter().filter(|(_, is_out)| !is_out);
            let into = into.map(|(edge, _)| *edge).chain(own[node]);
            let mut into = into.filter_map(|edge| known[edge as usize].as_ref());
            let Some(one) = into.next() else {
                flows.counts.push(0..0);
                continue;
            };
            let Some(other) = into.next() else {
                flows.counts.push(one.clone());
                continue;
            };
            total.clear();
            total.extend_from_slice(flows.of(one));
            for flow in std::iter::once(other).chain(into) {
                merge(&total, flows.of(flow), &mut spare, |a, b| {
                    Some(a.unwrap_or_default() + b)
                });
                std::mem::swap(&mut total, &mut spare);
            }
            let count = flows.add(&total);
            flows.counts.push(count);
        }
        flows
    }
}

/// The count of each node, as a sum of flows on edges.
#[derive(Clone, Debug)]
struct Flows {
    /// The terms of all counts: the number of an edge and a factor that is not 0, by rising number.
    terms: Vec<(u32, i32)>,
    counts: Vec<Range<u32>>,
}

impl Flows {
    fn add(&mut self, terms: &[(u32, i32)]) -> Range<u32> {
        let start = self.terms.len() as u32;
        self.terms.extend_from_slice(terms);
        start..self.terms.len() as u32
    }

    fn of(&self, range: &Range<u32>) -> &[(u32, i32)] {
        &self.terms[range.start as usize..range.end as usize]
    }

    fn count(&self, node: usize) -> &[(u32, i32)] {
        self.of(&self.counts[node])
    }
}

/// The counts of the nodes of a graph, as flows on edges.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// The nodes whose counts can be picked: the first ones.
    counted: usize,
    /// `None`: there are too many.
    flows: Option<Flows>,
}

impl Counts {
    /// For each node, the first one that must have the same count.
    pub(super) fn same(&self) -> Vec<usize> {
        let mut firsts: Vec<usize> = (0..self.counted).collect();
        let Some(flows) = &self.flows else {
            return firsts;
        };
        let mut order = firsts.clone();
        order.sort_by_key(|node| flows.count(*node));
        for nodes in order.chunk_by(|one, other| flows.count(*one) == flows.count(*other)) {
            nodes.iter().for_each(|node| firsts[*node] = nodes[0]);
        }
        firsts
    }

    /// The count of each node, as a sum of the counts of picked nodes: those whose sum is themselves. `cost` orders the nodes.
    pub(super) fn pick<C: Ord>(&self, cost: impl Fn(usize) -> C) -> Vec<Sum> {
        let own = |node: usize| Sum {
            denominator: 1,
            terms: vec![(node, 1)],
        };
        let Some(flows) = &self.flows else {
            return (0..self.counted).map(own).collect();
        };
        let mut order: Vec<usize> = (0..self.counted).collect();
        order.sort_by_cached_key(|node| cost(*node));
        let mut rows = Rows::default();
        let mut sums: Vec<Option<Sum>> = vec![None; self.counted];
        // `value` is what is left of a node's count; the rest is `made` of picked counts.
        let (mut value, mut made, mut spare) = (Vector::new(), Vector::new(), Vector::new());
        for node in order {
            value.clear();
            let terms = flows.count(node).iter();
            value.extend(terms.map(|(edge, factor)| (*edge, Ratio::whole((*factor).into()))));
            made.clear();
            let is_derived = loop {
                let Some((pivot, factor)) = value.first().copied() else {
                    break true;
                };
                let Some((row, how)) = rows.get(pivot) else {
                    break false;
                };
                let is_exact = add(&mut value, row, factor.negative(), &mut spare)
                    && add(&mut made, how, factor, &mut spare)
                    && made.len() <= MAX_TERMS;
                if !is_exact {
                    // It gets a counter, which no other count follows from.
                    value.clear();
                    made.clear();
                    break false;
                }
            };
            if is_derived {
                sums[node] = to_sum(&made);
                continue;
            }
            let Some((pivot, scale)) = value.first().copied() else {
                continue;
            };
            // The row is what is left, scaled to 1 at the pivot; it is the node's count without what it is made of.
            let Some(inverse) = scale.inverse() else {
                continue;
            };
            let mut how = vec![(node as u32, Ratio::ONE)];
            let is_exact = add(&mut how, &made, Ratio::ONE.negative(), &mut spare)
                && scale_by(&mut how, inverse)
                && scale_by(&mut value, inverse);
            if is_exact {
                rows.insert(pivot, &value, &how);
            }
        }
        let sums = sums.into_iter().enumerate();
        sums.map(|(node, sum)| sum.unwrap_or_else(|| own(node)))
            .collect()
    }
}

/// The counts that are picked: what is left of each, and what it is made of.
#[derive(Clone, Debug, Default)]
struct Rows {
    /// The terms of all rows, one after the other.
    terms: Vector,
    /// By the number of the first edge: the start of its row, that of what it is made of, and the end of this.
    places: Vec<[u32; 3]>,
}

impl Rows {
    fn get(&self, pivot: u32) -> Option<(Part<'_>, Part<'_>)> {
        let [start, how, end] = self.places.get(pivot as usize)?.map(|place| place as usize);
        (start < how).then(|| (&self.terms[start..how], &self.terms[how..end]))
    }

    fn insert(&mut self, pivot: u32, row: Part<'_>, how: Part<'_>) {
        let pivot = pivot as usize;
        if pivot >= self.places.len() {
            self.places.resize(pivot + 1, [0; 3]);
        }
        let start = self.terms.len();
        self.terms.extend_from_slice(row);
        self.terms.extend_from_slice(how);
        let how = start + row.len();
        self.places[pivot] = [start, how, self.terms.len()].map(|place| place as u32);
    }
}

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ratio {
    numerator: i64,
    /// At least 1.
    denominator: i64,
}

impl Ratio {
    pub(super) const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    pub(super) fn new(numerator: i128, denominator: i128) -> Option<Self> {
        // Nearly all are whole.
        if denominator == 1 {
            return i64::try_from(numerator).ok().map(Self::whole);
        }
        let (mut a, mut b) = (numerator.unsigned_abs(), denominator.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = i128::try_from(a).ok()?.max(1) * denominator.signum();
        Some(Self {
            numerator: i64::try_from(numerator / divisor).ok()?,
            denominator: i64::try_from(denominator / divisor).ok()?,
        })
    }

    fn negative(self) -> Self {
        Self {
            numerator: -self.numerator,
            ..self
        }
    }

    fn inverse(self) -> Option<Self> {
        Self::new(self.denominator.into(), self.numerator.into())
    }

    pub(super) fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// A whole number.
    fn whole(numerator: i64) -> Self {
        Self {
            numerator,
            denominator: 1,
        }
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        if self.denominator == 1 && other.denominator == 1 {
            return self.numerator.checked_mul(other.numerator).map(Self::whole);
        }
        let numerator = i128::from(self.numerator) * i128::from(other.numerator);
        Self::new(
            numerator,
            i128::from(self.denominator) * i128::from(other.denominator),
        )
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        if self.denominator == 1 && other.denominator == 1 {
            return self.numerator.checked_add(other.numerator).map(Self::whole);
        }
        let (a, b) = (i128::from(self.numerator), i128::from(self.denominator));
        let (c, d) = (i128::from(other.numerator), i128::from(other.denominator));
        Self::new(a * d + c * b, b * d)
    }
}

/// Numbers with a factor that is not 0, by rising number.
pub(super) type Vector = Vec<(u32, Ratio)>;

/// A vector elsewhere in memory.
type Part<'a> = &'a [(u32, Ratio)];

/// A factor that may be left out if it is 0.
trait Factor: Copy {
    fn is_nothing(self) -> bool;
}

impl Factor for i32 {
    fn is_nothing(self) -> bool {
        self == 0
    }
}

impl Factor for Ratio {
    fn is_nothing(self) -> bool {
        self.is_zero()
    }
}

/// Sets `goal` to the sum of two vectors. `sum` adds a factor of the second one to one of the first one, if this has the number.
/// Returns false if a number gets too large.
fn merge<T: Factor>(
    one: &[(u32, T)],
    other: &[(u32, T)],
    goal: &mut Vec<(u32, T)>,
    sum: impl Fn(Option<T>, T) -> Option<T>,
) -> bool {
    goal.clear();
    let mut rest = one;
    for (number, factor) in other {
        let before = rest.iter().take_while(|(own, _)| own < number).count();
        let (earlier, later) = rest.split_at(before);
        goal.extend_from_slice(earlier);
        let known = later.first().filter(|(own, _)| own == number);
        rest = &later[usize::from(known.is_some())..];
        let Some(sum) = sum(known.map(|(_, known)| *known), *factor) else {
            return false;
        };
        if !sum.is_nothing() {
            goal.push((*number, sum));
        }
    }
    goal.extend_from_slice(rest);
    true
}

/// Adds `vector` times `factor` to `goal`, with the help of the memory of another one. Returns false if a number gets too large.
fn add(goal: &mut Vector, vector: Part<'_>, factor: Ratio, spare: &mut Vector) -> bool {
    let is_exact = merge(goal, vector, spare, |known, value| {
        let value = value.times(factor)?;
        known.map_or(Some(value), |known| known.plus(value))
    });
    std::mem::swap(goal, spare);
    is_exact
}

/// Multiplies a vector. Returns false if a number gets too large.
fn scale_by(vector: &mut Vector, factor: Ratio) -> bool {
    for (_, value) in vector {
        match value.times(factor) {
            Some(product) => *value = product,
            None => return false,
        }
    }
    true
}

/// A vector with one denominator. `None` if a number gets too large.
pub(super) fn to_sum(vector: Part<'_>) -> Option<Sum> {
    let mut denominator = 1_i64;
    let fractions = vector.iter().map(|(_, ratio)| ratio.denominator);
    for own in fractions.filter(|own| *own != 1) {
        let common = Ratio::new(denominator.into(), own.into())?;
        denominator = common.numerator.checked_mul(own)?;
    }
    let terms = vector.iter().map(|(number, ratio)| {
        let factor = ratio
            .numerator
            .checked_mul(denominator / ratio.denominator)?;
        Some((*number as usize, factor))
    });
    Some(Sum {
        denominator: denominator.cast_unsigned(),
        terms: terms.collect::<Option<_>>()?,
    })
}
