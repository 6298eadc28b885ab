//! Counts that follow from others: as many waves leave a block as enter it, and as many lanes leave a stretch.
//!
//! The stretches of a function and its outside are the nodes of a graph. The counts of nodes are sums over its edges, and the
//! possible flows are a vector space, whose coordinates are the flows on the edges that are not in a spanning tree (Knuth and
//! Stevenson, "Optimal measurement points for program frequency counts", 1973). Counts of nodes are picked, cheapest first, as
//! long as they are independent of the picked ones. The others are sums of these, each with a factor.

use std::collections::{BTreeMap, HashMap};

use modelgpu_isa::{Condition, Flow};

use super::function::Function;
use super::lanes::{LaneEnd, LaneWays};
use super::map::Sum;

/// The most nodes of a function whose counts are derived: elimination takes the cube of it.
const MAX_NODES: usize = 4096;
/// The most terms of a sum. Other counts are picked.
const MAX_TERMS: usize = 64;

/// The nodes and edges of a function. The node that is `None` is the outside.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    nodes: usize,
    /// The nodes whose counts can be picked: the first ones.
    counted: usize,
    edges: Vec<(Option<usize>, Option<usize>)>,
}

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
        let node = |number: usize| nodes[function.stretch_of(number)];
        let mut edges: Vec<(Option<usize>, Option<usize>)> = function
            .entries
            .iter()
            .map(|entry| (None, Some(node(*entry))))
            .collect();
        for stretch in 0..function.stretches.len() {
            let range = function.instructions_of(stretch);
            let own = nodes[stretch];
            let is_next_own = nodes.get(stretch + 1) == Some(&own);
            let Some(last) = range.clone().last() else {
                continue;
            };
            let has_trap = range
                .clone()
                .any(|number| matches!(function.all[number].flow, Flow::Trap));
            if has_trap {
                // Some waves end there.
                edges.push((Some(own), None));
            }
            if is_next_own {
                continue;
            }
            if lane_ways.is_some_and(|ways| ways.stretch(stretch).has_ways) {
                continue;
            }
            let ins = &function.all[last];
            // No lane takes a way that only leads on without lanes.
            let condition = match ins.flow {
                Flow::Branch { condition, .. } => condition,
                _ => None,
            };
            let goal = function.goal(last);
            let goals: Vec<usize> = function
                .following(last)
                .filter(|next| {
                    let is_taken = Some(*next) == goal;
                    match condition {
                        _ if !of_lanes || goal == Some(last + 1) => true,
                        Some(Condition::Execz) => !is_taken,
                        Some(Condition::Execnz) => is_taken,
                        _ => true,
                    }
                })
                .map(node)
                .collect();
            let is_kept = !of_lanes || function.kept_calls.contains_key(&last);
            let is_parted = ins.is_call() && (!is_kept || callees_end)
                || of_lanes && range.clone().any(|number| function.all[number].writes_exec);
            let leaves = matches!(ins.flow, Flow::End | Flow::Indirect)
                && !function.jumps.contains_key(&last);
            if is_parted || leaves || goals.is_empty() {
                edges.push((Some(own), None));
            }
            let from = match is_parted {
                true => None,
                false => Some(own),
            };
            edges.extend(goals.into_iter().map(|goal| (from, Some(goal))));
        }
        let mut all = count;
        if let Some(lane_ways) = lane_ways {
            // Pools are nodes after the stretches.
            let end = |end: LaneEnd| match end {
                LaneEnd::Stretch(stretch) => Some(stretch as usize),
                LaneEnd::Pool(pool) => Some(count + pool as usize),
                LaneEnd::Outside => None,
            };
            let ways = lane_ways.ways.iter();
            edges.extend(ways.map(|(from, to)| (end(*from), end(*to))));
            all += lane_ways.pools as usize;
        }
        if !function.unresolved.is_empty() {
            // Others may jump into the function by an address that is not known.
            for node in 0..count {
                edges.push((None, Some(node)));
                edges.push((Some(node), None));
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

    /// The counts of nodes. They are not known if there are too many.
    pub(super) fn counts(&self) -> Counts {
        let is_large = self.nodes > MAX_NODES;
        Counts {
            counted: self.counted,
            flows: (!is_large).then(|| self.flows()),
        }
    }

    /// The count of each node by the flows on edges that are not in a spanning tree.
    fn flows(&self) -> Vec<Vector> {
        let outside = self.nodes;
        let ends: Vec<(usize, usize)> = self
            .edges
            .iter()
            .map(|(from, to)| (from.unwrap_or(outside), to.unwrap_or(outside)))
            .collect();
        let mut parts: Vec<usize> = (0..=outside).collect();
        let root = |parts: &mut Vec<usize>, mut node: usize| {
            while parts[node] != node {
                parts[node] = parts[parts[node]];
                node = parts[node];
            }
            node
        };
        let mut vectors: Vec<Option<Vector>> = vec![None; ends.len()];
        let mut at: Vec<Vec<(usize, bool)>> = vec![Vec::new(); outside + 1];
        for (number, (from, to)) in ends.iter().enumerate() {
            let (a, b) = (root(&mut parts, *from), root(&mut parts, *to));
            if a == b {
                vectors[number] = Some(Vector::from([(number, Ratio::ONE)]));
            } else {
                parts[a] = b;
            }
            if from != to {
                at[*from].push((number, true));
                at[*to].push((number, false));
            }
        }
        let mut left: Vec<usize> = at
            .iter()
            .map(|edges| {
                edges
                    .iter()
                    .filter(|(edge, _)| vectors[*edge].is_none())
                    .count()
            })
            .collect();
        let mut leaves: Vec<usize> = (0..outside).filter(|node| left[*node] == 1).collect();
        while let Some(leaf) = leaves.pop() {
            let unknown = at[leaf].iter().find(|(edge, _)| vectors[*edge].is_none());
            let Some((unknown, is_out)) = unknown.copied() else {
                continue;
            };
            let mut total = Vector::new();
            for (edge, other_is_out) in &at[leaf] {
                if let Some(vector) = &vectors[*edge] {
                    let sign = match *other_is_out == is_out {
                        true => Ratio::ONE.negative(),
                        false => Ratio::ONE,
                    };
                    add(&mut total, vector, sign);
                }
            }
            vectors[unknown] = Some(total);
            for node in [ends[unknown].0, ends[unknown].1] {
                left[node] -= 1;
                if left[node] == 1 && node != outside {
                    leaves.push(node);
                }
            }
        }
        let mut counts = vec![Vector::new(); self.nodes];
        for (number, (_, to)) in ends.iter().enumerate() {
            if let (Some(count), Some(vector)) = (counts.get_mut(*to), &vectors[number]) {
                add(count, vector, Ratio::ONE);
            }
        }
        counts
    }
}

/// The counts of the nodes of a graph, as flows on edges.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// The nodes whose counts can be picked: the first ones.
    counted: usize,
    /// `None`: there are too many.
    flows: Option<Vec<Vector>>,
}

impl Counts {
    /// For each node, the first one that must have the same count.
    pub(super) fn same(&self) -> Vec<usize> {
        let mut firsts: HashMap<&Vector, usize> = HashMap::new();
        let first = |node: usize| match &self.flows {
            Some(flows) => *firsts.entry(&flows[node]).or_insert(node),
            None => node,
        };
        (0..self.counted).map(first).collect()
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
        order.sort_by_key(|node| cost(*node));
        let mut rows: HashMap<usize, (Vector, Vector)> = HashMap::new();
        let mut sums: Vec<Sum> = (0..self.counted).map(own).collect();
        for node in order {
            // `value` is what is left of the node's count; the rest is `made` of picked counts.
            let (mut value, mut made) = (flows[node].clone(), Vector::new());
            let is_derived = loop {
                let Some(pivot) = value.keys().next().copied() else {
                    break true;
                };
                let Some((row, how)) = rows.get(&pivot) else {
                    break false;
                };
                let factor = value[&pivot];
                let is_exact = add(&mut value, row, factor.negative())
                    && add(&mut made, how, factor)
                    && made.len() <= MAX_TERMS;
                if !is_exact {
                    // It gets a counter, which no other count follows from.
                    value.clear();
                    made.clear();
                    break false;
                }
            };
            if is_derived {
                if let Some(sum) = to_sum(&made) {
                    sums[node] = sum;
                }
                continue;
            }
            let Some((pivot, scale)) = value.iter().next().map(|(key, value)| (*key, *value))
            else {
                continue;
            };
            // The row is what is left, scaled to 1 at the pivot; it is the node's count without what it is made of.
            let Some(inverse) = scale.inverse() else {
                continue;
            };
            let mut row = Vector::new();
            let mut how = Vector::from([(node, Ratio::ONE)]);
            let is_exact = add(&mut how, &made, Ratio::ONE.negative());
            let mut scaled = Vector::new();
            if is_exact && add(&mut row, &value, inverse) && add(&mut scaled, &how, inverse) {
                rows.insert(pivot, (row, scaled));
            }
        }
        sums
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

    /// A whole number.
    fn whole(numerator: i64) -> Self {
        Self {
            numerator,
            denominator: 1,
        }
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        // Nearly all are whole.
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

/// Factors by number, none of which is 0.
pub(super) type Vector = BTreeMap<usize, Ratio>;

/// Adds `vector` times `factor` to `goal`. Returns false if a number gets too large.
pub(super) fn add(goal: &mut Vector, vector: &Vector, factor: Ratio) -> bool {
    for (number, value) in vector {
        let Some(value) = value.times(factor) else {
            return false;
        };
        let sum = match goal.get(number) {
            Some(known) => known.plus(value),
            None => Some(value),
        };
        match sum {
            Some(Ratio { numerator: 0, .. }) => _ = goal.remove(number),
            Some(sum) => _ = goal.insert(*number, sum),
            None => return false,
        }
    }
    true
}

/// A vector with one denominator. `None` if a number gets too large.
pub(super) fn to_sum(vector: &Vector) -> Option<Sum> {
    let mut denominator = 1_i64;
    for ratio in vector.values() {
        let common = Ratio::new(denominator.into(), ratio.denominator.into())?;
        denominator = common.numerator.checked_mul(ratio.denominator)?;
    }
    let terms = vector.iter().map(|(number, ratio)| {
        let factor = ratio
            .numerator
            .checked_mul(denominator / ratio.denominator)?;
        Some((*number, factor))
    });
    Some(Sum {
        denominator: denominator.cast_unsigned(),
        terms: terms.collect::<Option<_>>()?,
    })
}
