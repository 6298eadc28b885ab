//! The choice of counters: those that all other counts of a group follow from.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::flow::{Flowing, Graph, Ratio};
use super::function::{Function, Stretch};
use super::loops::Loops;
use super::map::Sum;
use super::masks;
use super::plan::Kind;

/// A counter before it has a register: the function, the stretch, and what it counts.
pub(super) type Key = (usize, usize, Kind);

/// The sums of the waves and of the lanes of a stretch: terms, each with a factor.
pub(super) type StretchSums = (Rc<Terms>, Terms);

/// Terms, each with a factor, by rising term.
pub(super) type Terms = Vec<(Term, Ratio)>;

/// Stretches whose waves are checked, by function and stretch. Those that are missing are not.
#[derive(Default)]
pub(super) struct CheckedStretches(Vec<Vec<bool>>);

impl CheckedStretches {
    pub(super) fn contains(&self, function: usize, stretch: usize) -> bool {
        let stretches = self.0.get(function);
        stretches.is_some_and(|stretches| stretches.get(stretch) == Some(&true))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().flatten().all(|is_checked| !is_checked)
    }
}

/// The counters of a group before they have registers.
pub(super) struct Choice {
    pub(super) keys: Vec<Key>,
    /// Stretches that a branch leads back to, whose waves are counted and checked.
    pub(super) checked: CheckedStretches,
    /// For each function and stretch, the sums over keys.
    pub(super) sums: Vec<Vec<StretchSums>>,
    /// The loops around all calls of each function.
    pub(super) depths: Vec<u32>,
}

/// A count of a key, or that times the lanes at entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term {
    pub(super) key: Key,
    pub(super) is_product: bool,
}

/// The wishes that a choice follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    /// A callee may end the wave.
    pub(super) callees_end: bool,
    /// Each loop has a counter that is checked.
    pub(super) is_checked: bool,
    /// Registers do not outlive calls.
    pub(super) is_apart: bool,
    /// No other code calls the functions.
    pub(super) is_closed: bool,
    /// There may be products of the waves of a loop and the lanes of a condition before it.
    pub(super) may_multiply: bool,
}

/// Chooses the counters of functions.
pub(super) fn choose(functions: &[&Function<'_>], wishes: Wishes) -> Choice {
    let Wishes {
        callees_end,
        is_checked,
        is_apart,
        is_closed,
        may_multiply,
    } = wishes;
    let is_derived = |sum: &Sum, own: usize| sum.terms.as_slice() != [(own, 1)];
    let calls = Calls::new(functions, is_apart);
    let mut choice = Choice {
        keys: Vec::new(),
        checked: CheckedStretches(vec![Vec::new(); functions.len()]),
        sums: vec![Vec::new(); functions.len()],
        depths: calls.depths.clone(),
    };
    for number in calls.order.iter().copied() {
        let function = functions[number];
        let entry = match is_closed {
            true => calls.entry(functions, number, &choice.sums),
            false => None,
        };
        let is_known = |stretch: usize| stretch == 0 && entry.is_some();
        let stretches = &function.stretches;
        choice.checked.0[number] = vec![false; stretches.len()];
        let (blocks, block_of) = function.blocks();
        // A function that calls itself is a loop, too.
        let checked = |stretch: usize| {
            let is_entry = calls.may_recur[number] && stretch == 0;
            is_checked && (stretches[stretch].is_head || is_entry)
        };
        let graph = Graph::new(function, &block_of, Flowing::Waves, callees_end);
        let counts = graph.counts();
        // Blocks that run equally often are equally deep and frequent, whatever the estimates are.
        let same = counts.same();
        let mut estimates = vec![(u32::MAX, u32::MAX); blocks.len()];
        for (stretch, first) in blocks.iter().zip(&same) {
            let Stretch {
                depth, frequency, ..
            } = stretches[*stretch];
            estimates[*first] = estimates[*first].min((depth, frequency));
        }
        let estimate = |block: usize| estimates[same[block]];
        let picked = counts.pick(|block| {
            let stretch = blocks[block];
            let is_first = is_first(functions, number, stretch);
            (
                !is_first && !is_known(stretch),
                !checked(stretch),
                estimate(block),
                block,
            )
        });
        let mut waves: Vec<Rc<Terms>> = Vec::with_capacity(blocks.len());
        let own = |key: Key| {
            (
                Term {
                    key,
                    is_product: false,
                },
                Ratio::ONE,
            )
        };
        for (block, sum) in picked.iter().enumerate() {
            let stretch = blocks[block];
            let key = (number, stretch, Kind::Waves);
            let terms = |block: usize, sum: &mut SumOfTerms| match &entry {
                Some((waves, _)) if block == 0 => sum.add(waves),
                _ => sum.add(&[own((number, blocks[block], Kind::Waves))]),
            };
            let is_checked = checked(stretch);
            let derived = match !is_checked && (is_known(stretch) || is_derived(sum, block)) {
                true => derive(sum, &terms),
                false => None,
            };
            waves.push(Rc::new(derived.unwrap_or_else(|| {
                choice.keys.push(key);
                vec![own(key)]
            })));
            if is_checked {
                choice.checked.0[number][stretch] = true;
            }
        }
        let ways = masks::find(function, callees_end);
        let stretch_nodes: Vec<usize> = (0..stretches.len()).collect();
        let graph = Graph::new(function, &stretch_nodes, Flowing::Lanes(&ways), callees_end);
        // Registers for the lanes at entry would have to outlive calls.
        let is_entry = |stretch: usize| {
            function.is_kernel() && !is_apart && ways.stretch(stretch).are_of_entry
        };
        // The waves of a loop times the lanes that all its rounds have.
        let multiplied = |stretch: usize| -> Option<Terms> {
            let behind = ways.stretch(stretch).behind? as usize;
            let is_once = stretches.get(behind)?.depth == 0;
            let is_wanted = may_multiply && !is_apart && function.is_kernel();
            let terms = &waves[block_of[stretch]];
            let is_looping = |(term, _): &(Term, Ratio)| stretches[term.key.1].depth > 0;
            let is_useful = stretches[stretch].depth > 0 && terms.iter().all(is_looping);
            let terms = terms.iter().map(|(term, factor)| {
                let key = (number, term.key.1, Kind::Times(behind));
                (own(key).0, *factor)
            });
            (is_once && is_wanted && is_useful).then(|| terms.collect())
        };
        let multiplied: Vec<Option<Terms>> = (0..stretches.len()).map(multiplied).collect();
        let picked = graph.counts().pick(|stretch| {
            let found = &stretches[stretch];
            (
                !is_entry(stretch) && !is_known(stretch) && multiplied[stretch].is_none(),
                estimate(block_of[stretch]),
                // Counters change SCC.
                function.is_scc_live.get(found.first) == Some(&true),
                // The bit of the block's waves is set with it.
                !found.starts_block,
                stretch,
            )
        });
        // The lanes at entry times the waves.
        let products = |stretch: usize| -> Terms {
            let terms = waves[block_of[stretch]].iter();
            let terms = terms.map(|(term, factor)| {
                (
                    Term {
                        is_product: true,
                        ..*term
                    },
                    *factor,
                )
            });
            terms.collect()
        };
        let mut sums = Vec::with_capacity(stretches.len());
        for (stretch, sum) in picked.iter().enumerate() {
            let terms = |stretch: usize, sum: &mut SumOfTerms| match &entry {
                _ if is_entry(stretch) => sum.add(&products(stretch)),
                Some((_, lanes)) if stretch == 0 => sum.add(lanes),
                _ => match &multiplied[stretch] {
                    Some(terms) => sum.add(terms),
                    None => sum.add(&[own((number, stretch, Kind::Lanes))]),
                },
            };
            let is_given = is_entry(stretch) || is_known(stretch);
            let is_free = is_given || multiplied[stretch].is_some() || is_derived(sum, stretch);
            let lanes = if is_entry(stretch) {
                products(stretch)
            } else if let Some(derived) = is_free.then(|| derive(sum, &terms)).flatten() {
                derived
            } else {
                let key = (number, stretch, Kind::Lanes);
                choice.keys.push(key);
                vec![own(key)]
            };
            sums.push((waves[block_of[stretch]].clone(), lanes));
        }
        choice.sums[number] = sums;
    }
    choice.count_entries(functions);
    let terms = choice.sums.iter().flatten().flat_map(|(_, lanes)| lanes);
    let keys = terms.map(|(term, _)| term.key);
    let products: BTreeSet<Key> = keys.filter(|key| matches!(key.2, Kind::Times(_))).collect();
    choice.keys.extend(products);
    choice
}

impl Choice {
    /// Lets a counter of lanes stand for the products, if all are of waves that begin. No other needs the lanes at entry then.
    fn count_entries(&mut self, functions: &[&Function<'_>]) {
        let lanes = |key: Key| (key.0, key.1, Kind::Lanes);
        let mut entries = BTreeSet::new();
        for (term, _) in self.sums.iter().flatten().flat_map(|(_, lanes)| lanes) {
            match term.is_product {
                true if is_first(functions, term.key.0, term.key.1) => {
                    _ = entries.insert(lanes(term.key))
                }
                true => return,
                false => {}
            }
        }
        let sums = self.sums.iter_mut().flatten();
        for (term, _) in sums.flat_map(|(_, lanes)| lanes.iter_mut()) {
            if term.is_product {
                *term = Term {
                    key: lanes(term.key),
                    is_product: false,
                };
            }
        }
        self.keys.extend(entries);
    }
}

/// Returns whether each wave of a kernel begins at a stretch, and does not come back.
pub(super) fn is_first(functions: &[&Function<'_>], function: usize, stretch: usize) -> bool {
    let function = functions[function];
    let is_once = function.stretches[stretch].depth == 0;
    function.is_kernel() && function.entries.len() == 1 && stretch == 0 && is_once
}

/// A sum by counters: `terms` adds those of a node. `None` if a factor gets too large.
fn derive(sum: &Sum, terms: &impl Fn(usize, &mut SumOfTerms) -> Option<()>) -> Option<Terms> {
    let mut all = SumOfTerms::default();
    for (node, factor) in &sum.terms {
        all.factor = Ratio::new((*factor).into(), sum.denominator.into())?;
        terms(*node, &mut all)?;
    }
    all.finish()
}

/// A sum of terms.
struct SumOfTerms {
    all: Terms,
    /// That of all terms that come next.
    factor: Ratio,
}

impl Default for SumOfTerms {
    fn default() -> Self {
        Self {
            all: Terms::new(),
            factor: Ratio::ONE,
        }
    }
}

impl SumOfTerms {
    /// Adds terms. `None` if a factor gets too large.
    fn add(&mut self, terms: &[(Term, Ratio)]) -> Option<()> {
        for (term, own) in terms {
            self.all.push((*term, own.times(self.factor)?));
        }
        Some(())
    }

    /// The sum. `None` if a factor gets too large.
    fn finish(self) -> Option<Terms> {
        let mut all = self.all;
        if all.is_sorted_by(|(one, _), (other, _)| one < other) {
            return Some(all);
        }
        all.sort_by_key(|(term, _)| *term);
        let mut sum = Terms::with_capacity(all.len());
        for (term, factor) in all {
            match sum.last_mut() {
                Some((last, known)) if *last == term => *known = known.plus(factor)?,
                _ => sum.push((term, factor)),
            }
        }
        Some(sum)
    }
}

/// The calls among the functions of a group.
pub(super) struct Calls {
    /// The calls of each function: those that call it, and the numbers of the instructions.
    pub(super) callers: Vec<Vec<(usize, usize)>>,
    /// A call of the function may lead to another one, before it returns.
    may_recur: Vec<bool>,
    /// The functions, callers first.
    pub(super) order: Vec<usize>,
    /// The loops around all calls of each function.
    pub(super) depths: Vec<u32>,
}

impl Calls {
    pub(super) fn new(functions: &[&Function<'_>], is_apart: bool) -> Self {
        let count = functions.len();
        let numbers: BTreeMap<u64, usize> = functions
            .iter()
            .enumerate()
            .map(|(number, function)| (function.code.address, number))
            .collect();
        let mut found = Self {
            callers: vec![Vec::new(); count],
            may_recur: vec![false; count],
            order: (0..count).collect(),
            depths: vec![0; count],
        };
        if is_apart {
            // Its counts are in memory before each call.
            return found;
        }
        let mut callees: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut is_known = true;
        for (number, function) in functions.iter().enumerate() {
            let calls = function.all.iter().enumerate();
            for (call, _) in calls.filter(|(_, ins)| ins.is_call()) {
                let goal = function.callees.get(&call);
                match goal.and_then(|goal| numbers.get(goal)) {
                    Some(callee) => {
                        callees[number].push(*callee);
                        found.callers[*callee].push((number, call));
                    }
                    None => is_known = false,
                }
            }
        }
        if !is_known {
            let devices = functions.iter().map(|function| !function.is_kernel());
            found.may_recur = devices.collect();
            found.depths = found
                .may_recur
                .iter()
                .map(|calls| u32::from(*calls))
                .collect();
            found.callers = vec![Vec::new(); count];
            return found;
        }
        let circles = Loops::find(&callees, &[], &vec![false; count]);
        found.may_recur = circles.heads;
        let is_circle = |number: &usize| circles.depths[*number] > 0;
        // Those of circles come last.
        let mut open: Vec<usize> = found.callers.iter().map(Vec::len).collect();
        let mut ready: Vec<usize> = (0..count).filter(|number| open[*number] == 0).collect();
        found.order.clear();
        while let Some(number) = ready.pop() {
            found.order.push(number);
            for callee in &callees[number] {
                open[*callee] -= 1;
                if open[*callee] == 0 {
                    ready.push(*callee);
                }
            }
        }
        found
            .order
            .extend((0..count).filter(|number| open[*number] > 0));
        for number in found.order.clone() {
            let calls = found.callers[number].iter().map(|(caller, call)| {
                let caller_function = functions[*caller];
                let stretch = caller_function.stretch_of(*call);
                found.depths[*caller] + caller_function.stretches[stretch].depth
            });
            // A wave may come to any function more than once.
            let least = u32::from(!functions[number].is_kernel());
            let depth = calls.max().unwrap_or_default() + u32::from(is_circle(&number));
            found.depths[number] = depth.max(least);
        }
        found
    }

    /// The waves and lanes that enter a function, by the counts of its callers, which are known.
    fn entry(
        &self,
        functions: &[&Function<'_>],
        number: usize,
        sums: &[Vec<StretchSums>],
    ) -> Option<StretchSums> {
        /// More would make the sums of the function long.
        const MAX_TERMS: usize = 16;
        let function = functions[number];
        let (mut waves, mut lanes) = (SumOfTerms::default(), SumOfTerms::default());
        for (caller, call) in &self.callers[number] {
            let stretch = functions[*caller].stretch_of(*call);
            let (of_waves, of_lanes) = sums[*caller].get(stretch)?;
            waves.add(of_waves)?;
            lanes.add(of_lanes)?;
        }
        let (waves, lanes) = (waves.finish()?, lanes.finish()?);
        let is_branch_goal = function.comes_back();
        let is_long = waves.len().max(lanes.len()) > MAX_TERMS;
        let is_known = !self.callers[number].is_empty() && !is_branch_goal && !is_long;
        is_known.then(|| (Rc::new(waves), lanes))
    }
}
