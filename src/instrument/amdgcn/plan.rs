//! The counters of functions that share registers, and the registers and words of memory that hold them.

use std::collections::{BTreeMap, BTreeSet};

use modelgpu_isa::{Generation, Target};

use super::code::{Used, scalars};
use super::encoder::Encoder;
use super::error::Refusal;
use super::flow::{Flowing, Graph, Ratio, Vector, add, to_sum};
use super::function::{Function, Lanes};
use super::map::Sum;
use super::object::Descriptor;

/// The registers that the last instructions of a wave use: an address, and the 64 bits that are added there.
pub(super) const OFFSET: u16 = 0;
pub(super) const DATA: u16 = 2;
/// The vector registers that these need.
const LAST_VECTORS: u32 = 4;
/// The registers that are kept while a running wave brings its counts to memory: a lane for the first lane of each of v0, v2
/// and v3, and both halves of EXEC.
pub(super) const KEPT_VECTORS: [u16; 3] = [OFFSET, DATA, DATA + 1];
pub(super) const KEPT_LANES: u16 = 5;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Waves,
    Lanes,
}

/// The register of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    Scalar(u16),
    Lane(u16, u16),
}

/// A counter of a stretch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    /// The number of the function in its group.
    pub(super) function: usize,
    pub(super) stretch: usize,
    pub(super) kind: Kind,
    depth: u32,
    /// A wave comes there once at most.
    pub(super) is_once: bool,
    /// It starts at minus the rounds, and its carry brings the counts of the wave to memory.
    pub(super) is_checked: bool,
    pub(super) home: Home,
    /// The number of its word in memory.
    word: u64,
}

/// Counters that are added to memory by one instruction.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// The counters, by lane.
    pub(super) counters: Vec<usize>,
    /// The vector register that holds them, or scalar ones do.
    pub(super) vector: Option<u16>,
    /// The first so many are checked.
    pub(super) checked: u16,
    /// The number of its first word in memory.
    pub(super) word: u64,
    /// The sums of counts times the lanes at entry have words, too: behind the others.
    pub(super) has_products: bool,
}

/// Functions that call each other, or a kernel that calls none: they share registers.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) encoder: Encoder,
    /// The rounds of a loop after which a wave brings its counts to memory.
    pub(super) rounds: u32,
    pub(super) counters: Vec<Counter>,
    pub(super) batches: Vec<Batch>,
    /// Scalar registers for use between instructions: two values, and SCC.
    pub(super) temporaries: [u16; 3],
    /// Two pairs of scalar registers, for a return address and for the address of counters; and a vector register with
    /// lanes for [`KEPT_LANES`], from this lane on. `None`: running waves do not bring their counts to memory.
    pub(super) on_the_way: Option<([u16; 2], u16, u16)>,
    /// The lane with the number of lanes at entry.
    pub(super) entry_lanes: Option<(u16, u16)>,
    /// The vector registers with counters or kept values.
    pub(super) vectors: std::ops::Range<u16>,
    /// The scalar registers with counters.
    pub(super) scalars: std::ops::Range<u16>,
    /// The counts of each stretch of each function: those of waves, and of lanes.
    pub(super) sums: Vec<Vec<(Sum, Sum)>>,
    /// The number of words in memory.
    pub(super) words: u64,
    /// The vector and scalar registers in all, and the accumulators' first number on targets that have them behind.
    pub(super) total: Used,
    pub(super) first_accumulator: u32,
}

/// A counter before it has a register: the function, the stretch, and what it counts.
type Key = (usize, usize, Kind);

/// The counters of a group before they have registers.
struct Choice {
    keys: Vec<Key>,
    /// Stretches that a branch leads back to, whose waves are counted and checked.
    checked: BTreeSet<(usize, usize)>,
    /// For each function and stretch, the sums over keys.
    sums: Vec<Vec<(Vec<(Term, Ratio)>, Vec<(Term, Ratio)>)>>,
}

/// A count of a key, or that times the lanes at entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    key: Key,
    is_product: bool,
}

/// Functions that share registers.
pub(super) struct Group<'a, 'data> {
    pub(super) target: Target,
    /// The lanes of a wave.
    pub(super) lanes: u16,
    pub(super) functions: &'a [&'a Function<'data>],
    /// The descriptors of its kernels.
    pub(super) descriptors: Vec<Descriptor>,
    /// The registers that these, and all that they may call, use.
    pub(super) used: Used,
    /// A callee may end the wave.
    pub(super) callees_end: bool,
}

/// Decides on the counters of a group, whose first word in memory is `first_word`. A wave brings its counts to memory after so
/// many `rounds` of a loop.
pub(super) fn plan(group: &Group<'_, '_>, first_word: u64, rounds: u32) -> Result<Plan, Refusal> {
    let limits = Limits::new(group);
    let choice = choose(
        group.functions,
        group.callees_end,
        limits.has_room_on_the_way(),
    );
    let plan = assign(group, &choice, &limits, first_word)?;
    Ok(Plan { rounds, ..plan })
}

/// The registers of a group: those in use, and those that there are.
struct Limits {
    used: Used,
    /// The number of scalar registers that there are, and that cost no occupancy.
    scalars: u32,
    cheap_scalars: u32,
    /// The number of vector registers that there are.
    vectors: u32,
    is_unified: bool,
    first_accumulator: u32,
}

impl Limits {
    fn new(group: &Group<'_, '_>) -> Self {
        let (target, lanes) = (group.target, group.lanes);
        let is_gfx9 = target.generation() == Generation::Gfx9;
        // All modelled targets of gfx9 have one file for vector registers and accumulators.
        let is_unified = is_gfx9;
        let mut used = group.used;
        let mut first_accumulator = 0;
        for descriptor in &group.descriptors {
            used.scalars = used.scalars.max(descriptor.initial_scalars());
            if is_unified {
                first_accumulator = first_accumulator.max(descriptor.first_accumulator());
            }
            if used.is_relative {
                let total = descriptor.vectors(target, lanes);
                let plain = match is_unified {
                    true => descriptor.first_accumulator().min(total),
                    false => total,
                };
                used.vectors = used.vectors.max(plain);
                used.accumulators = used.accumulators.max(total - plain);
                used.scalars = scalars(target);
            }
        }
        used.vectors = used.vectors.max(LAST_VECTORS);
        let scalars = scalars(target);
        let plain = 256;
        let vectors = match is_unified {
            true => plain.min((512 - used.accumulators) & !3),
            false => plain,
        };
        Self {
            used,
            scalars,
            // 94 scalar registers and six others: eight waves fit on a SIMD of gfx9.
            cheap_scalars: if is_gfx9 { 94 } else { scalars },
            vectors,
            is_unified,
            first_accumulator,
        }
    }

    /// The first scalar register that is free, and even.
    fn first_scalar(&self) -> u32 {
        self.used.scalars.next_multiple_of(2)
    }

    /// There are registers to bring counts to memory while the wave goes on.
    fn has_room_on_the_way(&self) -> bool {
        self.first_scalar() + 8 <= self.scalars && self.used.vectors < self.vectors
    }
}

/// Chooses the counters of functions.
fn choose(functions: &[&Function<'_>], callees_end: bool, is_checked: bool) -> Choice {
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
            is_checked && (stretches[stretch].is_head || is_entry)
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
            let is_own = sum.terms == [(block, 1)];
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
        let stretch_nodes: Vec<usize> = (0..stretches.len()).collect();
        let graph = Graph::new(function, &stretch_nodes, Flowing::Lanes, callees_end);
        let is_entry = |stretch: usize| stretches[stretch].lanes == Lanes::Entry;
        let picked = graph.pick(|stretch| {
            let found = &stretches[stretch];
            (
                !is_entry(stretch),
                found.depth,
                !found.starts_block,
                stretch,
            )
        });
        // The lanes at entry times the waves.
        let products = |stretch: usize| -> Vec<(Term, Ratio)> {
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
            let lanes = if is_entry(stretch) {
                products(stretch)
            } else if let Some(derived) = (sum.terms != [(stretch, 1)])
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
    choice
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

/// Gives each counter a register and a word.
fn assign(
    group: &Group<'_, '_>,
    choice: &Choice,
    limits: &Limits,
    first_word: u64,
) -> Result<Plan, Refusal> {
    let (lanes, functions) = (group.lanes, group.functions);
    let used = limits.used;
    let refused = || Refusal::Registers {
        counters: choice.keys.len(),
        vectors: used.vectors,
        accumulators: used.accumulators,
        scalars: used.scalars,
    };
    let first = limits.first_scalar();
    let is_on_the_way = limits.has_room_on_the_way();
    let behind = first + if is_on_the_way { 8 } else { 3 };
    if behind > limits.scalars {
        return Err(refused());
    }
    let depth = |key: &Key| functions[key.0].stretches[key.1].depth;
    let is_checked = |key: &Key| key.2 == Kind::Waves && choice.checked.contains(&(key.0, key.1));
    let spare_scalars = limits.scalars - behind;
    let cheap = limits
        .cheap_scalars
        .saturating_sub(behind)
        .min(spare_scalars) as usize;
    let products: BTreeSet<Key> = choice
        .sums
        .iter()
        .flatten()
        .flat_map(|(_, lanes)| lanes.iter().map(|(term, _)| term))
        .filter(|term| term.is_product)
        .map(|term| term.key)
        .collect();
    let needs_products = !products.is_empty();
    let reserved = if is_on_the_way { KEPT_LANES } else { 0 } + u16::from(needs_products);
    let spare_vectors = (limits.vectors - used.vectors.min(limits.vectors)) as usize;
    let room = (usize::from(lanes) * spare_vectors).saturating_sub(reserved.into());
    // Those in loops live in scalar registers: deeper ones first, and of these the checked ones.
    let mut order: Vec<Key> = choice.keys.clone();
    order.sort_by_key(|key| (std::cmp::Reverse(depth(key)), !is_checked(key), *key));
    let looping = order.iter().filter(|key| depth(key) > 0).count();
    let mut hot = looping.min(cheap);
    if order.len() - hot > room {
        hot = order.len() - room;
        if hot > spare_scalars as usize {
            return Err(refused());
        }
    }
    let (hot, cold) = order.split_at(hot);
    let sorted = |keys: &[Key]| {
        let mut keys = keys.to_vec();
        keys.sort_by_key(|key| (!is_checked(key), key.2, *key));
        keys
    };
    let (hot, cold) = (sorted(hot), sorted(cold));
    let first_vector = used.vectors as u16;
    let first_hot = behind as u16;
    let encoder = Encoder::new(group.target, lanes);
    let mut counters = Vec::new();
    let mut batches = Vec::new();
    let mut word = first_word;
    let mut next_vector = first_vector;
    let mut add_batch = |keys: &[Key], homes: &dyn Fn(usize) -> Home, vector: Option<u16>| {
        let batch = Batch {
            counters: (counters.len()..counters.len() + keys.len()).collect(),
            vector,
            checked: keys.iter().filter(|key| is_checked(key)).count() as u16,
            word,
            has_products: keys.iter().any(|key| products.contains(key)),
        };
        for (lane, key) in keys.iter().enumerate() {
            let home = homes(lane);
            let function = functions[key.0];
            let is_once = function.is_kernel() && depth(key) == 0 && matches!(home, Home::Lane(..));
            counters.push(Counter {
                function: key.0,
                stretch: key.1,
                kind: key.2,
                depth: depth(key),
                is_once,
                is_checked: is_checked(key),
                home,
                word: word + lane as u64,
            });
        }
        word += u64::from(lanes) * if batch.has_products { 2 } else { 1 };
        batches.push(batch);
    };
    // The first vector register has the kept values in its last lanes.
    let first_room = usize::from(lanes - reserved);
    let mut rest = cold.as_slice();
    let mut room = first_room;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(room));
        let vector = next_vector;
        add_batch(now, &|lane| Home::Lane(vector, lane as u16), Some(vector));
        next_vector += 1;
        rest = later;
        room = usize::from(lanes);
    }
    if reserved > 0 && next_vector == first_vector {
        if limits.vectors <= used.vectors {
            return Err(refused());
        }
        next_vector += 1;
    }
    for (number, keys) in hot.chunks(lanes.into()).enumerate() {
        let start = first_hot + (number * usize::from(lanes)) as u16;
        add_batch(keys, &|lane| Home::Scalar(start + lane as u16), None);
    }
    let words: BTreeMap<Key, (u64, u64)> = batches
        .iter()
        .flat_map(|batch| {
            batch.counters.iter().map(|number| {
                let counter: &Counter = &counters[*number];
                let key = (counter.function, counter.stretch, counter.kind);
                (key, (counter.word, counter.word + u64::from(lanes)))
            })
        })
        .collect();
    let sums = choice.sums.iter().map(|function| {
        let sums = function.iter().map(|(waves, lanes)| {
            let to_words = |terms: &[(Term, Ratio)]| {
                let mut vector = Vector::new();
                for (term, factor) in terms {
                    let (plain, product) = words[&term.key];
                    let word = if term.is_product { product } else { plain };
                    let own = Vector::from([(word as usize, Ratio::ONE)]);
                    if !add(&mut vector, &own, *factor) {
                        return None;
                    }
                }
                to_sum(&vector)
            };
            Some((to_words(waves)?, to_words(lanes)?))
        });
        sums.collect::<Option<Vec<_>>>()
    });
    let sums = sums.collect::<Option<Vec<_>>>().ok_or_else(refused)?;
    let [t, u, scc] = [first, first + 1, first + 2].map(|number| number as u16);
    let kept = lanes - KEPT_LANES;
    let scalars = first_hot..first_hot + hot.len() as u16;
    let total_vectors = u32::from(next_vector);
    let mut first_accumulator = 0;
    if limits.is_unified {
        let least = total_vectors.next_multiple_of(4);
        first_accumulator = limits.first_accumulator.max(least);
        if first_accumulator + used.accumulators > 512 {
            first_accumulator = least;
        }
    }
    Ok(Plan {
        encoder,
        rounds: 0,
        counters,
        batches,
        temporaries: [t, u, scc],
        on_the_way: is_on_the_way.then_some(([t + 4, t + 6], first_vector, kept)),
        entry_lanes: needs_products.then_some((first_vector, lanes - reserved)),
        vectors: first_vector..next_vector,
        total: Used {
            scalars: u32::from(scalars.end).max(behind),
            vectors: total_vectors,
            ..used
        },
        scalars,
        sums,
        words: word - first_word,
        first_accumulator,
    })
}
