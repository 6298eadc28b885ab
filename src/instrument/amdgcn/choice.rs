//! The choice of counters: those that all other counts of a group follow from.

use std::collections::{BTreeMap, BTreeSet};

use super::flow::{Flowing, Graph, Ratio};
use super::function::Function;
use super::map::Sum;
use super::masks;
use super::plan::Kind;
use crate::support::counting::Counting;

/// A counter before it has a register: the function, the stretch, and what it counts.
pub(super) type Key = (usize, usize, Kind);

/// The sums of the waves and of the lanes of a stretch: terms, each with a factor.
pub(super) type StretchSums = (Vec<(Term, Ratio)>, Vec<(Term, Ratio)>);

/// The counters of a group before they have registers.
pub(super) struct Choice {
    pub(super) keys: Vec<Key>,
    /// Stretches that a branch leads back to, whose waves are counted and checked.
    pub(super) checked: BTreeSet<(usize, usize)>,
    /// For each function and stretch, the sums over keys.
    pub(super) sums: Vec<Vec<StretchSums>>,
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
    pub(super) counting: Counting,
    /// A callee may end the wave.
    pub(super) callees_end: bool,
    /// Each loop has a counter that is checked.
    pub(super) is_checked: bool,
    /// Registers do not outlive calls.
    pub(super) is_apart: bool,
}

/// Chooses the counters of functions.
pub(super) fn choose(functions: &[&Function<'_>], wishes: Wishes) -> Choice {
    let Wishes {
        counting,
        callees_end,
        is_checked,
        is_apart,
    } = wishes;
    let is_exact = counting == Counting::Exact;
    // It only follows from another one that a block ran if both run equally often.
    let is_derived = |sum: &Sum, own: usize| match sum.terms.as_slice() {
        [(other, factor)] if !is_exact => {
            *other != own && u64::try_from(*factor) == Ok(sum.denominator)
        }
        terms => is_exact && terms != [(own, 1)],
    };
    let mut choice = Choice {
        keys: Vec::new(),
        checked: BTreeSet::new(),
        sums: Vec::new(),
    };
    for (number, function) in functions.iter().enumerate() {
        let stretches = &function.stretches;
        // The blocks: each has the number of its first stretch.
        let mut blocks = Vec::new();
        let mut block_of = Vec::with_capacity(stretches.len());
        for (index, stretch) in stretches.iter().enumerate() {
            if stretch.starts_block || blocks.is_empty() {
                blocks.push(index);
            }
            block_of.push(blocks.len() - 1);
        }
        // A function that calls itself is a loop, too.
        let checked = |stretch: usize| {
            let is_entry = !function.is_kernel() && stretch == 0;
            is_exact && is_checked && (stretches[stretch].is_head || is_entry)
        };
        let graph = Graph::new(function, &block_of, Flowing::Waves, callees_end);
        let picked = graph.pick(|block| {
            let stretch = blocks[block];
            (!checked(stretch), stretches[stretch].depth, block)
        });
        let mut waves: Vec<Vec<(Term, Ratio)>> = Vec::with_capacity(blocks.len());
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
            let is_own = !is_derived(sum, block);
            if is_own || checked(stretch) {
                choice.keys.push(key);
            }
            if checked(stretch) {
                choice.checked.insert((number, stretch));
            }
            waves.push(match is_own || checked(stretch) {
                true => vec![own(key)],
                false => sum
                    .terms
                    .iter()
                    .map(|(other, factor)| {
                        let key = (number, blocks[*other], Kind::Waves);
                        let factor = Ratio::new((*factor).into(), sum.denominator.into());
                        (
                            Term {
                                key,
                                is_product: false,
                            },
                            factor.unwrap_or(Ratio::ONE),
                        )
                    })
                    .collect(),
            });
        }
        let ways = masks::find(function);
        let stretch_nodes: Vec<usize> = (0..stretches.len()).collect();
        let graph = Graph::new(function, &stretch_nodes, Flowing::Lanes(&ways), callees_end);
        // Registers for the lanes at entry would have to outlive calls.
        let is_entry =
            |stretch: usize| function.is_kernel() && !is_apart && ways.entry.contains(&stretch);
        let picked = graph.pick(|stretch| {
            let found = &stretches[stretch];
            (
                !is_entry(stretch),
                found.depth,
                !found.starts_block,
                stretch,
            )
        });
        // The lanes at entry times the waves; some lane ran if a wave did.
        let products = |stretch: usize| -> Vec<(Term, Ratio)> {
            let terms = waves[block_of[stretch]].iter();
            let terms = terms.map(|(term, factor)| {
                (
                    Term {
                        is_product: is_exact,
                        ..*term
                    },
                    *factor,
                )
            });
            terms.collect()
        };
        let mut sums = Vec::with_capacity(stretches.len());
        for (stretch, sum) in picked.iter().enumerate() {
            let lanes = if is_entry(stretch) {
                products(stretch)
            } else if let Some(derived) = is_derived(sum, stretch)
                .then(|| derive(number, sum, &is_entry, &products))
                .flatten()
            {
                derived
            } else {
                let key = (number, stretch, Kind::Lanes);
                choice.keys.push(key);
                vec![own(key)]
            };
            sums.push((waves[block_of[stretch]].clone(), lanes));
        }
        choice.sums.push(sums);
    }
    choice.count_entries(functions);
    choice
}

impl Choice {
    /// Lets a counter of lanes stand for the products, if all are of waves that begin. No other needs the lanes at entry then.
    fn count_entries(&mut self, functions: &[&Function<'_>]) {
        let is_first = |key: &Key| {
            let function = functions[key.0];
            let is_once = function.stretches[key.1].depth == 0;
            function.is_kernel() && function.entries.len() == 1 && key.1 == 0 && is_once
        };
        let lanes = |key: Key| (key.0, key.1, Kind::Lanes);
        let mut entries = BTreeSet::new();
        for (term, _) in self.sums.iter().flatten().flat_map(|(_, lanes)| lanes) {
            match term.is_product {
                true if is_first(&term.key) => _ = entries.insert(lanes(term.key)),
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

/// A sum of lanes by counters. `None` if a factor gets too large.
fn derive(
    function: usize,
    sum: &Sum,
    is_entry: &impl Fn(usize) -> bool,
    products: &impl Fn(usize) -> Vec<(Term, Ratio)>,
) -> Option<Vec<(Term, Ratio)>> {
    let mut all: BTreeMap<Term, Ratio> = BTreeMap::new();
    for (stretch, factor) in &sum.terms {
        let factor = Ratio::new((*factor).into(), sum.denominator.into())?;
        let terms = match is_entry(*stretch) {
            true => products(*stretch),
            false => vec![(
                Term {
                    key: (function, *stretch, Kind::Lanes),
                    is_product: false,
                },
                Ratio::ONE,
            )],
        };
        for (term, own) in terms {
            let value = own.times(factor)?;
            let value = match all.get(&term) {
                Some(known) => known.plus(value)?,
                None => value,
            };
            all.insert(term, value);
        }
    }
    Some(all.into_iter().collect())
}
