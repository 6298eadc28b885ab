//! The plan of a group that only notes where waves and lanes came: registers and words of memory for its marks.
//!
//! A mark is a store to a word of its own, where the active lanes write what is not 0: outside of loops in a kernel, if all of
//! its marks are there and few, or if its lanes may be none. Any other mark is a bit of a scalar register, and one atomic
//! operation brings 32 of them to memory when the wave ends.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use modelgpu_isa::Flow;

use super::choice::{CheckedStretches, Choice, Key, Term, is_first};
use super::encoder::{Encoder, MAX_OFFSET, PAIR};
use super::error::Refusal;
use super::flow::Ratio;
use super::function::Function;
use super::map::Sum;
use super::plan::{
    Home, KEPT_VALUES, Kind, MarkBits, MarkMask, MarkPlan, MarkWay, ON_THE_WAY, OnTheWay, Plan,
    WORD,
};
use super::reach::{ChosenMarks, Mark, reach};
use super::registers::{Free, Group, Limits, plan_chosen};

/// The bits of a scalar register.
const BITS: usize = 32;
/// The most marks that are stores: their offsets are constants.
const MAX_STORES: usize = (MAX_OFFSET as u64 / WORD) as usize;
/// The most stores of a wave, roughly: others are bits.
const MAX_STORED: f64 = 6.0;
/// The instructions that bits take at the start and the end of a wave, besides those of stores.
const FOR_BITS: f64 = 4.0;
/// The waves that [`Mark::frequency`] is a part of.
const ALL_WAVES: f64 = (1 << 24) as f64;

/// Decides on the marks of a group that passes [`Group::check`]. Its first word in memory is 0.
pub(super) fn plan(group: &Group<'_, '_>, rounds: u32) -> Result<Plan, Refusal> {
    let chosen = reach(
        group.functions,
        group.callees_end,
        group.is_apart,
        group.is_closed,
    );
    let marked = match group.is_apart {
        true => None,
        false => Marking::new(group, &chosen).plan(rounds),
    };
    if let Some(plan) = marked {
        return Ok(plan);
    }
    let mut plan = plan_chosen(group, &counters(&chosen), rounds)?;
    for sum in plan.sums.iter_mut().flatten() {
        for sum in [&mut sum.0, &mut sum.1] {
            sum.denominator = 0;
            sum.terms.iter_mut().for_each(|(_, bits)| *bits = -1);
        }
    }
    Ok(plan)
}

/// Counters instead of marks, for functions that bring them to memory before each call.
fn counters(reach: &ChosenMarks) -> Choice {
    let own = |key: &Key| {
        let term = Term {
            key: *key,
            is_product: false,
        };
        (term, Ratio::ONE)
    };
    let terms = |keys: &Vec<Key>| keys.iter().map(own).collect();
    let sums = reach.stretches.iter().map(|stretches| {
        let sums = stretches.iter();
        sums.map(|(waves, lanes)| (Rc::new(terms(waves)), terms(lanes)))
            .collect()
    });
    Choice {
        keys: reach.marks.iter().map(|mark| mark.key).collect(),
        checked: CheckedStretches::default(),
        sums: sums.collect(),
        depths: reach.depths.clone(),
    }
}

/// Returns whether a stretch ends with a branch that waves without an active lane take, and does nothing else with EXEC.
fn is_branch_of_empty(function: &Function<'_>, stretch: usize) -> bool {
    let last = function.instructions_of(stretch).last();
    last.is_some_and(|last| function.is_taken_without_lanes(last) == Some(true))
}

/// The assignment of registers and words to marks.
struct Marking<'a, 'data> {
    group: &'a Group<'a, 'data>,
    reach: &'a ChosenMarks,
    limits: Limits,
}

impl<'a, 'data> Marking<'a, 'data> {
    fn new(group: &'a Group<'a, 'data>, reach: &'a ChosenMarks) -> Self {
        Self {
            group,
            reach,
            limits: Limits::new(group, false),
        }
    }

    /// Each wave of the group begins there. A group that is not closed may have several kernels.
    fn is_first(&self, mark: &Mark) -> bool {
        let functions = self.group.functions;
        let is_start = mark.is_active && mark.depth == 0;
        is_start && self.group.is_closed && is_first(functions, mark.key.0, mark.key.1)
    }

    /// It can be a store: other code neither comes there nor has the registers of the address.
    fn can_be_stored(&self, mark: &Mark) -> bool {
        mark.depth == 0 && self.group.is_closed
    }

    /// It is about the lanes of a place where waves may come without any, and not about those behind a branch.
    fn needs_lanes(&self, mark: &Mark) -> bool {
        let function = self.group.functions[mark.key.0];
        mark.key.2 == Kind::Lanes && !is_branch_of_empty(function, mark.key.1)
    }

    /// The marks that are stores.
    fn stored(&self) -> BTreeSet<Key> {
        let marks = &self.reach.marks;
        let all = marks.iter().all(|mark| self.can_be_stored(mark));
        let part = |mark: &Mark| f64::from(mark.frequency) / ALL_WAVES;
        // The instructions that a store takes more than a bit.
        let more = |mark: &Mark| match mark.key.2 == Kind::Waves && !mark.is_active {
            true => 3.0 * part(mark),
            false => f64::from(u8::from(self.is_first(mark))),
        };
        let is_cheap = marks.iter().map(more).sum::<f64>() <= FOR_BITS
            && marks.iter().map(part).sum::<f64>() <= MAX_STORED;
        let is_stored =
            |mark: &&Mark| all && is_cheap || self.can_be_stored(mark) && self.needs_lanes(mark);
        let stored = marks.iter().filter(is_stored);
        stored.take(MAX_STORES).map(|mark| mark.key).collect()
    }

    /// The plan, if there are enough registers.
    fn plan(&self, rounds: u32) -> Option<Plan> {
        let (group, limits) = (self.group, &self.limits);
        let encoder = Encoder::new(group.target, group.lanes);
        let mut free = limits.scalars;
        let traps = group.functions.iter().any(|function| {
            let mut all = function.all.iter();
            all.any(|ins| matches!(ins.flow, Flow::Trap))
        });
        let (temporaries, on_the_way) = match traps && limits.has_room_on_the_way() {
            true => self.on_the_way(&mut free)?,
            false => (free.take_temporaries()?, None),
        };
        let has_vector = limits.first_vector < limits.cheap_vectors;
        let mut stored = match has_vector {
            true => self.stored(),
            false => BTreeSet::new(),
        };
        let mut pointer = None;
        if !stored.is_empty() {
            let base = free.cheap().take(PAIR.into(), PAIR.into());
            match base {
                Some(_) => {
                    let base = free.take(PAIR.into(), PAIR.into())?;
                    pointer = Some((base, limits.first_vector as u16));
                }
                None => stored.clear(),
            }
        }
        let mut marks = MarkPlan {
            pointer,
            ..MarkPlan::default()
        };
        // The word of each mark, and its bits there.
        let mut places: BTreeMap<Key, (u64, i64)> = BTreeMap::new();
        let mut words = 0;
        // The marks that are bits.
        let mut marked = 0;
        for mark in &self.reach.marks {
            let place = (mark.key.0, mark.key.1);
            let mut way = None;
            let is_behind = mark.key.2 == Kind::Lanes && !self.needs_lanes(mark);
            if stored.contains(&mark.key) {
                let word = words;
                words += 1;
                places.insert(mark.key, (word, -1));
                let is_always = mark.key.2 == Kind::Waves && !mark.is_active;
                way = Some(match is_always {
                    true => MarkWay::StoreAlways(word),
                    false => MarkWay::Store(word),
                });
                marks.activates_all |= !mark.is_bounded;
                marks.at_stretches.entry(place).or_default().extend(way);
                continue;
            }
            let bit = marked % BITS;
            marked += 1;
            if bit == 0 {
                marks.bits.push(MarkBits {
                    register: free.take(1, 1)?,
                    first: 0,
                    word: 0,
                });
            }
            let bits = marks.bits.last_mut()?;
            let (register, bit) = (bits.register, bit as u16);
            // The words of bits follow those of stores.
            places.insert(mark.key, (marks.bits.len() as u64 - 1, 1 << bit));
            let bits = marks.bits.last_mut()?;
            if self.is_first(mark) {
                bits.first |= 1 << bit;
            } else if mark.key.2 == Kind::Lanes && !is_behind {
                let count = if group.lanes == 64 { PAIR.into() } else { 1 };
                let mask = free.take(count, count)?;
                marks.masks.push(MarkMask {
                    register: mask,
                    bits: register,
                    bit,
                });
                way = Some(MarkWay::Collect(mask));
            } else {
                way = Some(MarkWay::Set(register, bit));
            }
            let ways = match is_behind {
                true => &mut marks.behind_branches,
                false => &mut marks.at_stretches,
            };
            ways.entry(place).or_default().extend(way);
        }
        for (bits, word) in marks.bits.iter_mut().zip(words..) {
            bits.word = word;
        }
        for (key, (word, bits)) in &mut places {
            if !stored.contains(key) && *bits > 0 {
                *word += words;
            }
        }
        words += marks.bits.len() as u64;
        let own_end = pointer.map_or(0, |(_, vector)| u32::from(vector) + 1);
        let mut total = limits.used;
        total.scalars = total.scalars.max(free.end);
        total.vectors = total.vectors.max(own_end);
        let first = limits.first_vector as u16;
        Some(Plan {
            encoder,
            rounds,
            is_apart: false,
            counting: group.counting,
            counters: Vec::new(),
            batches: Vec::new(),
            temporaries,
            on_the_way: on_the_way.filter(|_| !marks.bits.is_empty()),
            borrowed: None,
            marks: Some(marks),
            factors: BTreeMap::new(),
            entry_lanes: None,
            vectors: first..first,
            own_vectors: None,
            sums: self.sums(&places),
            words,
            total,
            first_accumulator: limits.first_accumulator_behind(total),
        })
    }

    /// The registers for a wave that brings its bits to memory on the way.
    fn on_the_way(&self, free: &mut Free) -> Option<([u16; 3], Option<OnTheWay>)> {
        let first = free.take(ON_THE_WAY, PAIR.into())?;
        let kept = u32::from(KEPT_VALUES).next_multiple_of(PAIR.into());
        let kept = free.take(kept, PAIR.into())?;
        let on_the_way = OnTheWay {
            back: first + 4,
            base: first + 6,
            kept: Home::Scalar(kept),
        };
        Some(([first, first + 2, first + 3], Some(on_the_way)))
    }

    /// The marks that each stretch follows from, as bits of words.
    fn sums(&self, places: &BTreeMap<Key, (u64, i64)>) -> Vec<Vec<(Sum, Sum)>> {
        let sum = |keys: &Vec<Key>| {
            let mut words: BTreeMap<u64, i64> = BTreeMap::new();
            for (word, bits) in keys.iter().filter_map(|key| places.get(key)) {
                *words.entry(*word).or_default() |= bits;
            }
            let terms = words.into_iter().map(|(word, bits)| (word as usize, bits));
            Sum {
                denominator: 0,
                terms: terms.collect(),
            }
        };
        let functions = self.reach.stretches.iter();
        functions
            .map(|stretches| {
                let sums = stretches.iter();
                sums.map(|(waves, lanes)| (sum(waves), sum(lanes)))
                    .collect()
            })
            .collect()
    }
}
