//! Registers and words of memory for the counters of a group.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use modelgpu_isa::{Flow, Generation, Target};

use super::Sharing;
use super::choice::{Choice, Key, Term, Wishes, choose, is_first};
use super::code::{Ins, Scalars, Used, scalars};
use super::encoder::{Encoder, PAIR};
use super::error::Refusal;
use super::flow::{Ratio, Vector, to_sum};
use super::function::Function;
use super::object::Descriptor;
use super::occupancy;
use super::plan::{
    Batch, Borrowed, Counter, Home, KEPT_VALUES, Kind, LAST_VECTORS, ON_THE_WAY, OnTheWay, Plan,
};
use crate::support::counting::Counting;

/// The bits of a scalar register.
const BITS: usize = 32;
/// The vector registers of [`Plan::own_vectors`].
const OWN_VECTORS: u32 = 3;
/// The most counters in whose registers each lane counts itself. Each has a word of memory for each lane.
const MAX_SPREAD: u32 = 32;

/// Functions that share registers.
pub(super) struct Group<'a, 'data> {
    pub(super) target: Target,
    /// The lanes of a wave.
    pub(super) lanes: u16,
    pub(super) functions: &'a [&'a Function<'data>],
    /// The number of their stretches.
    pub(super) stretches: usize,
    /// The descriptors of its kernels.
    pub(super) descriptors: Vec<Descriptor>,
    /// The registers that these, and all that they may call, use.
    pub(super) used: Used,
    /// The registers that its functions themselves use.
    pub(super) own: Used,
    /// A callee may end the wave.
    pub(super) callees_end: bool,
    /// It is one function, whose registers those that it may call have, too.
    pub(super) is_apart: bool,
    /// No other code calls its functions.
    pub(super) is_closed: bool,
    pub(super) counting: Counting,
    pub(super) sharing: Sharing,
}

impl Group<'_, '_> {
    /// Requires registers that a group of this size needs. Its functions need not be decoded yet.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let limits = Limits::new(self, self.sharing == Sharing::Borrowed);
        limits.check_scalars(self)?;
        match !self.is_apart && limits.is_hopeless(self.stretches) {
            true => Err(limits.refused(0)),
            false => Ok(()),
        }
    }

    /// The first of [`ON_THE_WAY`] scalar registers that its functions do not use, and that their waves do not start with.
    fn gap(&self) -> Option<u32> {
        let initial = self.descriptors.iter().map(Descriptor::initial_scalars);
        let initial = initial.max().unwrap_or_default().next_multiple_of(2);
        let end = scalars(self.target);
        let all = (1 << ON_THE_WAY) - 1;
        let mut firsts = (initial..=end - ON_THE_WAY).step_by(2);
        let is_free = |first: &u32| self.own.scalar_set >> first & all == 0;
        firsts.find(|first| !self.own.has_indexed_scalars && is_free(first))
    }
}

/// Scalar registers that are free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    all: Scalars,
    /// Those of them that cost no occupancy.
    cheap: Scalars,
    /// The number after the highest one that was taken.
    pub(super) end: u32,
}

impl Free {
    /// Takes registers in a row, whose first number is a multiple of `alignment`: cheap ones, if there are some, and from the
    /// shortest row that has them.
    pub(super) fn take(&mut self, count: u32, alignment: u32) -> Option<u16> {
        let first =
            row(self.cheap, count, alignment).or_else(|| row(self.all, count, alignment))?;
        let taken = numbers(first..first + count);
        self.all &= !taken;
        self.cheap &= !taken;
        self.end = self.end.max(first + count);
        Some(first as u16)
    }

    /// Takes the registers for use between instructions: a pair, and one that may be anywhere.
    pub(super) fn take_temporaries(&mut self) -> Option<[u16; 3]> {
        let pair = self.take(PAIR.into(), PAIR.into())?;
        Some([pair, pair + 1, self.take(1, 1)?])
    }

    /// Only those that cost no occupancy.
    pub(super) fn cheap(self) -> Self {
        Self {
            all: self.cheap,
            ..self
        }
    }
}

/// The set of these numbers.
fn numbers(range: Range<u32>) -> Scalars {
    range.fold(0, |set, number| set | 1 << number)
}

/// The first of so many numbers in the shortest row of a set that has them.
fn row(set: Scalars, count: u32, alignment: u32) -> Option<u32> {
    let mut found: Option<(u32, u32)> = None;
    let mut start = 0;
    while start < Scalars::BITS && set >> start != 0 {
        start += (set >> start).trailing_zeros();
        let length = (set >> start).trailing_ones();
        let first = start.next_multiple_of(alignment);
        let fits = first + count <= start + length;
        if fits && found.is_none_or(|(shortest, _)| length < shortest) {
            found = Some((length, first));
        }
        start += length;
    }
    found.map(|(_, first)| first)
}

/// Decides on the counters of a group that passes [`Group::check`]. Its first word in memory is 0. A wave brings
/// its counts to memory after so many `rounds` of a loop.
pub(super) fn plan(group: &Group<'_, '_>, rounds: u32) -> Result<Plan, Refusal> {
    let limits = Limits::new(group, group.sharing == Sharing::Borrowed);
    // No wish of a function that is apart depends on its limits.
    let wishes = Wishes {
        callees_end: group.callees_end,
        is_checked: group.is_apart || limits.has_room_on_the_way(),
        is_apart: group.is_apart,
        is_closed: group.is_closed,
        may_multiply: !group.is_apart,
    };
    let mut choice = choose(group.functions, wishes);
    let mut keys = choice.keys.iter();
    if keys.any(|key| matches!(key.2, Kind::Times(_))) {
        // The factors are in scalar registers, as all other counters.
        let assignment = Assignment::new(group, &choice, &limits);
        if assignment.in_scalars().is_none() {
            let wishes = Wishes {
                may_multiply: false,
                ..wishes
            };
            choice = choose(group.functions, wishes);
        }
    }
    plan_chosen(group, &choice, rounds)
}

/// The plan for these counters.
pub(super) fn plan_chosen(
    group: &Group<'_, '_>,
    choice: &Choice,
    rounds: u32,
) -> Result<Plan, Refusal> {
    let may_borrow = group.sharing == Sharing::Borrowed;
    let limits = Limits::new(group, may_borrow);
    if !group.is_apart {
        return Assignment::new(group, choice, &limits).plan(rounds);
    }
    let plan = |limits: &Limits| match limits.has_room_on_the_way() {
        true => Assignment::new(group, choice, limits).plan(rounds),
        false => Err(limits.refused(choice.keys.len())),
    };
    plan(&limits).or_else(|refusal| match refusal {
        Refusal::Registers { .. } => plan(&Limits::new(group, !may_borrow)),
        _ => Err(refusal),
    })
}

/// The registers of a group: those in use, and those that there are.
pub(super) struct Limits {
    pub(super) used: Used,
    pub(super) scalars: Free,
    /// The free scalar registers may have values of callers.
    borrows_scalars: bool,
    /// The first vector register for counters.
    pub(super) first_vector: u32,
    /// Those from it on may have values of callers.
    borrows_vectors: bool,
    /// The number of vector registers for counters and all before, and those that cost no occupancy.
    vectors: u32,
    pub(super) cheap_vectors: u32,
    is_unified: bool,
    first_accumulator: u32,
}

impl Limits {
    /// `may_borrow`: counters may be in vector registers that other functions use. A kernel has no callers. Others keep
    /// the values of callers in accumulators.
    pub(super) fn new(group: &Group<'_, '_>, may_borrow: bool) -> Self {
        let (target, lanes) = (group.target, group.lanes);
        let is_gfx9 = target.generation() == Generation::Gfx9;
        // All targets of gfx9 whose code can be instrumented have one file for vector registers and accumulators.
        let is_unified = is_gfx9;
        let mut used = group.used;
        let mut first_accumulator = 0;
        for descriptor in &group.descriptors {
            let initial = descriptor.initial_scalars();
            used.scalars = used.scalars.max(initial);
            used.scalar_set |= numbers(0..initial);
            if is_unified {
                first_accumulator = first_accumulator.max(descriptor.first_accumulator());
            }
            if used.has_indexed_vectors {
                let total = descriptor.vectors(target, lanes);
                let plain = match is_unified {
                    true => descriptor.first_accumulator().min(total),
                    false => total,
                };
                used.vectors = used.vectors.max(plain);
                used.accumulators = used.accumulators.max(total - plain);
            }
        }
        used.vectors = used.vectors.max(LAST_VECTORS);
        let known = group.descriptors.iter();
        let known = known.map(|descriptor| descriptor.vectors(target, lanes));
        let known = known.max().unwrap_or_default();
        let mut scalars = free_scalars(target, &used, occupancy::waves(target, lanes, known));
        // Functions that borrow registers are by themselves.
        let is_kernel = !group.descriptors.is_empty();
        let has_room = row(scalars.all, ON_THE_WAY, PAIR.into()).is_some();
        let gap = match group.is_apart && (!has_room || group.sharing == Sharing::Borrowed) {
            true => group.gap(),
            false => None,
        };
        if let Some(gap) = gap {
            // Each one more would cost two instructions at each call.
            scalars = Free {
                all: numbers(gap..gap + ON_THE_WAY),
                cheap: 0,
                end: 0,
            };
        }
        let plain = 256;
        let mut vectors = match is_unified {
            true => plain.min((512 - used.accumulators) & !3),
            false => plain,
        };
        let mut first_vector = used.vectors;
        if may_borrow && !group.own.has_indexed_vectors && (is_kernel || is_unified) {
            first_vector = group.own.vectors.max(LAST_VECTORS);
            if !is_kernel {
                let free = 256 - used.accumulators;
                vectors = used.vectors.min(first_vector + free);
            }
        }
        let most = occupancy::most_vectors(target, lanes, known);
        let mut cheap_vectors = match is_unified {
            true => most.saturating_sub(used.accumulators) & !3,
            false => most,
        };
        if first_vector >= vectors && is_kernel && !group.is_apart && !used.has_indexed_vectors {
            // Those between used ones are all that there are.
            let gap = used.vector_gap(LAST_VECTORS);
            if !gap.is_empty() {
                (first_vector, vectors, cheap_vectors) = (gap.start, gap.end, gap.end);
            }
        }
        Self {
            used,
            scalars,
            borrows_scalars: gap.is_some() && !is_kernel,
            first_vector,
            borrows_vectors: first_vector < used.vectors && !is_kernel,
            vectors,
            cheap_vectors: cheap_vectors.min(vectors),
            is_unified,
            first_accumulator,
        }
    }

    /// Returns whether functions have far more blocks than there are registers for counters: flow saves some two thirds.
    fn is_hopeless(&self, stretches: usize) -> bool {
        const SAVED: usize = 8;
        let spare = self.vectors.saturating_sub(self.first_vector) as usize;
        stretches > SAVED * (32 * spare + Scalars::BITS as usize)
    }

    /// Requires the scalar registers that each group needs.
    fn check_scalars(&self, group: &Group<'_, '_>) -> Result<(), Refusal> {
        let mut free = self.scalars;
        let is_enough = match group.is_apart {
            true => row(free.all, ON_THE_WAY, PAIR.into()).is_some(),
            false => free.take_temporaries().is_some(),
        };
        match is_enough {
            true => Ok(()),
            false => Err(Refusal::Scalars {
                used: self.used.scalars,
                all: scalars(group.target),
            }),
        }
    }

    /// The refusal if so many counters do not fit.
    fn refused(&self, counters: usize) -> Refusal {
        Refusal::Registers {
            counters,
            vectors: self.used.vectors,
            accumulators: self.used.accumulators,
            scalars: self.used.scalars,
        }
    }

    /// The number of the first accumulator, with these registers in all.
    pub(super) fn first_accumulator_behind(&self, total: Used) -> u32 {
        if !self.is_unified {
            return 0;
        }
        let least = total.vectors.next_multiple_of(4);
        let first = self.first_accumulator.max(least);
        match first + total.accumulators > 512 {
            true => least,
            false => first,
        }
    }

    /// There are registers to bring counts to memory while the wave continues.
    pub(super) fn has_room_on_the_way(&self) -> bool {
        let has_scalars = row(self.scalars.all, ON_THE_WAY, PAIR.into()).is_some();
        has_scalars && self.first_vector < self.vectors
    }
}

/// The scalar registers that no function uses, and that waves do not start with. With their vector registers, so many `waves`
/// fit into a SIMD.
fn free_scalars(target: Target, used: &Used, waves: u32) -> Free {
    /// With six others these are six granules of 16: 800 registers are enough for eight waves on a SIMD of gfx9.
    const CHEAP: u32 = 90;
    /// The waves with all scalar registers there.
    const WAVES: u32 = 7;
    let all = scalars(target);
    let mut free = numbers(0..all) & !used.scalar_set;
    if used.has_indexed_scalars {
        free = 0;
    }
    if target.generation() == Generation::Gfx12 {
        // Vector instructions that read one register of a pair cost waits for the other.
        let even = Scalars::MAX / 3;
        let pairs = free & free >> 1 & even;
        free = pairs | pairs << 1;
    }
    let is_limited = target.generation() == Generation::Gfx9 && waves > WAVES;
    let cheap = match is_limited {
        true => CHEAP.max(used.scalars.min(all)),
        false => all,
    };
    Free {
        all: free,
        cheap: free & numbers(0..cheap),
        end: 0,
    }
}

/// The assignment of registers to chosen counters.
struct Assignment<'a, 'data> {
    group: &'a Group<'a, 'data>,
    choice: &'a Choice,
    limits: &'a Limits,
    /// The counters whose counts are multiplied by the lanes at entry.
    products: BTreeSet<Key>,
    /// The counters in whose registers each lane counts itself.
    spread: Vec<Key>,
}

/// Sets the parts of products.
fn set_products(plan: &mut Plan) {
    for number in 0..plan.counters.len() {
        let Counter {
            function,
            stretch,
            kind: Kind::Times(factor),
            ..
        } = plan.counters[number]
        else {
            continue;
        };
        let is_own = |counter: &Counter| {
            counter.kind == Kind::Waves
                && (counter.function, counter.stretch) == (function, stretch)
        };
        let waves = plan.counters.iter().position(is_own);
        let register = plan.factors.get(&(function, factor));
        if let (Some(waves), Some(register)) = (waves, register) {
            plan.counters[number].home = Home::Product(waves, *register);
        }
    }
}

/// The counters of a batch, by lane: those before `bits` are checked, those in `bits` have bits, and others are values.
struct Lanes {
    keys: Vec<Key>,
    homes: Vec<Home>,
    bits: Range<usize>,
    /// The scalar register of the bits, or the first one of a pair.
    register: Option<u16>,
    has_pair: bool,
}

/// The places of all counters in scalar registers.
struct Places {
    /// The first register for values that are kept on the way.
    kept: u16,
    entry_lanes: Option<u16>,
    factors: BTreeMap<(usize, usize), u16>,
    batches: Vec<Lanes>,
    /// The number after the highest register.
    end: u32,
}

/// The most counters of a batch whose bits are in a pair of registers: no bit of the low one is a sign.
const PAIRED: usize = 31;

impl<'a, 'data> Assignment<'a, 'data> {
    fn new(group: &'a Group<'a, 'data>, choice: &'a Choice, limits: &'a Limits) -> Self {
        let sums = choice.sums.iter().flatten();
        let terms = sums.flat_map(|(_, lanes)| lanes.iter().map(|(term, _)| term));
        let products = terms.filter(|term| term.is_product).map(|term| term.key);
        let mut assignment = Self {
            group,
            choice,
            limits,
            products: products.collect(),
            spread: Vec::new(),
        };
        assignment.spread = assignment.spread();
        assignment
    }

    /// The counters of lanes in loops, as far as there are vector registers for them that cost no occupancy: one instruction
    /// counts there, and it keeps SCC.
    fn spread(&self) -> Vec<Key> {
        let (group, limits) = (self.group, self.limits);
        if group.counting != Counting::Exact || group.is_apart || !limits.has_room_on_the_way() {
            return Vec::new();
        }
        // Others may need lanes, too.
        let lanes = (self.choice.keys.len() + usize::from(KEPT_VALUES) + 1)
            .div_ceil(group.lanes.into()) as u32;
        let room = limits.cheap_vectors.saturating_sub(limits.first_vector);
        let room = room.saturating_sub(OWN_VECTORS + lanes).min(MAX_SPREAD);
        let keys = self.choice.keys.iter().copied();
        let mut keys: Vec<Key> = keys
            .filter(|key| key.2 == Kind::Lanes && self.depth(key) > 0)
            .collect();
        keys.sort_by_cached_key(|key| {
            let stretch = &self.group.functions[key.0].stretches[key.1];
            std::cmp::Reverse((self.depth(key), stretch.frequency, *key))
        });
        keys.truncate(room as usize);
        keys
    }

    /// The counters that are in scalar registers, or in lanes.
    fn others(&self) -> impl Iterator<Item = Key> {
        let spread: BTreeSet<Key> = self.spread.iter().copied().collect();
        let keys = self.choice.keys.iter().copied();
        keys.filter(move |key| !spread.contains(key))
    }

    /// The first vector register for lanes.
    fn first_vector(&self) -> u32 {
        match self.spread.len() as u32 {
            0 => self.limits.first_vector,
            count => self.limits.first_vector + OWN_VECTORS + count,
        }
    }

    /// Adds the counters in whose registers each lane counts itself.
    fn add_spread(&self, plan: &mut Plan) {
        let end = self.first_vector() as u16;
        if self.spread.is_empty() {
            return;
        }
        let first = self.limits.first_vector as u16;
        // Pairs start at even numbers.
        plan.own_vectors = Some(match first % 2 {
            0 => [first + 2, first],
            _ => [first, first + 1],
        });
        plan.vectors = first + OWN_VECTORS as u16..end;
        for (key, vector) in self.spread.iter().zip(plan.vectors.clone()) {
            self.add_batch(plan, &[*key], &[Home::Each(vector)]);
        }
    }

    fn depth(&self, key: &Key) -> u32 {
        let stretch = &self.group.functions[key.0].stretches[key.1];
        stretch.depth + self.choice.depths[key.0]
    }

    fn is_checked(&self, key: &Key) -> bool {
        key.2 == Kind::Waves && self.choice.checked.contains(key.0, key.1)
    }

    /// A wave comes there once at most, or it does not matter how often it does.
    fn is_once(&self, key: &Key) -> bool {
        let is_ran = self.group.counting == Counting::Reached && key.2 == Kind::Waves;
        is_ran || self.group.functions[key.0].is_kernel() && self.depth(key) == 0
    }

    /// It can be a bit of a scalar register.
    fn has_bit(&self, key: &Key) -> bool {
        self.is_once(key) && key.2 == Kind::Waves && !self.is_checked(key)
    }

    fn refused(&self) -> Refusal {
        self.limits.refused(self.choice.keys.len())
    }

    /// The stretches whose lanes waves are multiplied by.
    fn factors(&self) -> BTreeSet<(usize, usize)> {
        let keys = self.choice.keys.iter();
        let factors = keys.filter_map(|key| match key.2 {
            Kind::Times(stretch) => Some((key.0, stretch)),
            Kind::Waves | Kind::Lanes => None,
        });
        factors.collect()
    }

    /// The scalar registers for use between instructions, and the others. If a wave brings its counts to memory on the way, they
    /// are the first of [`ON_THE_WAY`].
    fn first_scalars(&self) -> Option<([u16; 3], Free)> {
        let mut free = self.limits.scalars;
        let temporaries = match self.limits.has_room_on_the_way() {
            true => {
                let first = free.take(ON_THE_WAY, PAIR.into())?;
                // On RDNA 4, vector instructions that read one register of a pair cost waits for the other.
                [first, first + 2, first + 3]
            }
            false => free.take_temporaries()?,
        };
        Some((temporaries, free))
    }

    /// The plan: with counters in scalar registers alone, if there are enough that cost no occupancy: then, a wave neither needs to
    /// set vector registers at its start, nor more of them.
    fn plan(&self, rounds: u32) -> Result<Plan, Refusal> {
        let (limits, group) = (self.limits, self.group);
        let is_on_the_way = limits.has_room_on_the_way();
        let (temporaries, mut free) = self.first_scalars().ok_or_else(|| self.refused())?;
        let first = temporaries[0];
        let mut plan = Plan {
            encoder: Encoder::new(group.target, group.lanes),
            rounds,
            is_apart: group.is_apart,
            counting: group.counting,
            counters: Vec::new(),
            batches: Vec::new(),
            temporaries,
            on_the_way: None,
            borrowed: None,
            marks: None,
            factors: BTreeMap::new(),
            entry_lanes: None,
            vectors: limits.first_vector as u16..limits.first_vector as u16,
            own_vectors: None,
            sums: Vec::new(),
            words: 0,
            total: limits.used,
            first_accumulator: 0,
        };
        self.add_spread(&mut plan);
        let kept = match self.in_scalars() {
            Some(Places {
                kept,
                entry_lanes,
                factors,
                batches,
                end,
            }) => {
                plan.entry_lanes = entry_lanes.map(Home::Scalar);
                plan.factors = factors;
                for lanes in batches {
                    self.add_scalars(&mut plan, &lanes);
                }
                set_products(&mut plan);
                free.end = end;
                Home::Scalar(kept)
            }
            None => self.add_mixed(&mut plan, &mut free, is_on_the_way)?,
        };
        if is_on_the_way {
            plan.on_the_way = Some(OnTheWay {
                back: first + 4,
                base: first + 6,
                kept,
            });
        }
        plan.total.scalars = plan.total.scalars.max(free.end);
        plan.total.vectors = limits.used.vectors.max(plan.vectors.end.into());
        if limits.borrows_scalars || limits.borrows_vectors {
            // This one must be free, as vector registers go to accumulators with the help of scalar ones.
            let vector = plan.total.vectors;
            let count = match limits.borrows_vectors {
                true => plan.vectors.len() as u32,
                false => 0,
            };
            plan.total.vectors += 1;
            plan.total.accumulators += count;
            if plan.total.vectors > 256 || plan.total.accumulators > 256 {
                return Err(self.refused());
            }
            plan.borrowed = Some(Borrowed {
                scalars: first..first + ON_THE_WAY as u16,
                scalars_in: vector as u16,
                vectors: plan.vectors.start..plan.vectors.start + count as u16,
                vectors_in: limits.used.accumulators as u16,
            });
        }
        plan.first_accumulator = limits.first_accumulator_behind(plan.total);
        plan.sums = self.sums(&plan).ok_or_else(|| self.refused())?;
        Ok(plan)
    }

    /// The places of all counters, if there are enough scalar registers for them that cost no occupancy.
    fn in_scalars(&self) -> Option<Places> {
        let lanes = usize::from(self.group.lanes);
        let keys = || self.others();
        let has_bit = |key: &Key| self.has_bit(key);
        let mut checked: Vec<Key> = keys().filter(|key| self.is_checked(key)).collect();
        let mut bits: Vec<Key> = keys().filter(has_bit).collect();
        let mut values: Vec<Key> = keys()
            .filter(|key| !has_bit(key) && !self.is_checked(key))
            .collect();
        if checked.len() + values.len() > self.limits.scalars.cheap.count_ones() as usize {
            return None;
        }
        let (_, free) = self.first_scalars()?;
        let mut free = free.cheap();
        // A wave that continues uses them in vector instructions, too.
        let kept = match self.limits.has_room_on_the_way() {
            true => free.take(
                u32::from(KEPT_VALUES).next_multiple_of(PAIR.into()),
                PAIR.into(),
            )?,
            false => 0,
        };
        let mut batches = Vec::new();
        while checked.len() + bits.len() + values.len() > 0 {
            let mut batch: Vec<Key> = checked.drain(..checked.len().min(lanes)).collect();
            let start = batch.len();
            let room = BITS.saturating_sub(start).min(bits.len());
            batch.extend(bits.drain(..room));
            let end = batch.len();
            let room = (lanes - end).min(values.len());
            batch.extend(values.drain(..room));
            // With a pair, one instruction activates the lanes.
            let has_pair = lanes > BITS && batch.len() <= PAIRED && end > start;
            let register = match (end > start, has_pair) {
                (false, _) => None,
                (true, false) => Some(free.take(1, 1)?),
                (true, true) => Some(free.take(PAIR.into(), PAIR.into())?),
            };
            batches.push(Lanes {
                homes: self.homes(
                    &batch,
                    register.map(|register| (start..end, register)),
                    &mut free,
                )?,
                keys: batch,
                bits: start..end,
                register,
                has_pair,
            });
        }
        let entry_lanes = match self.products.is_empty() {
            true => None,
            false => Some(free.take(1, 1)?),
        };
        let mut factors = BTreeMap::new();
        for place in self.factors() {
            factors.insert(place, free.take(1, 1)?);
        }
        Some(Places {
            kept,
            entry_lanes,
            factors,
            batches,
            end: free.end,
        })
    }

    /// The homes of a batch of counters in scalar registers, some of which are bits of a register.
    fn homes(
        &self,
        keys: &[Key],
        bits: Option<(Range<usize>, u16)>,
        free: &mut Free,
    ) -> Option<Vec<Home>> {
        let lanes = bits.as_ref().map_or(0..0, |(lanes, _)| lanes.clone());
        let guarded = self.guarded(keys, lanes.clone());
        // One instruction sets two to 0 that are a pair.
        let starts_at_0 = |lane: &usize| {
            let key = &keys[*lane];
            let is_set = self.is_certain(key) && self.choice.checked.is_empty();
            let has_start = self.is_checked(key) || self.is_first(key) || is_set;
            let is_own = !lanes.contains(lane) && !matches!(key.2, Kind::Times(_));
            is_own && !has_start && !guarded.contains(lane)
        };
        let at_0: Vec<usize> = (0..keys.len()).filter(starts_at_0).collect();
        let mut paired = BTreeMap::new();
        for pair in at_0.as_chunks::<2>().0 {
            let has_pair = row(free.cheap, PAIR.into(), PAIR.into()).is_some();
            if let Some(first) = has_pair.then(|| free.take(PAIR.into(), PAIR.into())) {
                let first = first?;
                paired.extend([(pair[0], first), (pair[1], first + 1)]);
            }
        }
        let home = |(lane, key): (usize, &Key)| match (&bits, paired.get(&lane)) {
            (Some((lanes, register)), _) if lanes.contains(&lane) => {
                Some(Home::Bit(*register, lane as u16))
            }
            // Its parts may not have registers yet.
            _ if matches!(key.2, Kind::Times(_)) => Some(Home::Product(0, 0)),
            (_, Some(register)) => Some(Home::Scalar(*register)),
            (_, None) => free.take(1, 1).map(Home::Scalar),
        };
        keys.iter().enumerate().map(home).collect()
    }

    /// Adds a batch of counters in scalar registers.
    fn add_scalars(&self, plan: &mut Plan, lanes: &Lanes) {
        let bits = lanes.register;
        let start = plan.counters.len();
        self.add_batch(plan, &lanes.keys, &lanes.homes);
        if let Some(batch) = plan.batches.last_mut() {
            batch.bits = bits;
            batch.has_pair = lanes.has_pair;
        }
        // The lanes of a stretch have a value if the bit of its waves is set.
        let Some(bits) = bits else {
            return;
        };
        let guarded = self.guarded(&lanes.keys, lanes.bits.clone());
        for (counter, lane) in plan.counters[start..].iter_mut().zip(0..) {
            if guarded.contains(&usize::from(lane)) {
                counter.guard = Some((bits, lane));
            }
        }
    }

    /// The lanes of a batch whose values the bits of their blocks guard: those in `bits` are bits.
    fn guarded(&self, keys: &[Key], bits: Range<usize>) -> BTreeSet<usize> {
        let marked: BTreeSet<(usize, usize)> = keys[bits]
            .iter()
            .map(|(function, stretch, _)| (*function, *stretch))
            .collect();
        if self.group.counting != Counting::Exact {
            return BTreeSet::new();
        }
        let is_guarded = |key: &Key| {
            let block = self.block(key);
            let is_value = key.2 == Kind::Lanes && self.is_once(key) && !self.is_first(key);
            // Between the bit and the value, no other code may bring counts to memory.
            let function = self.group.functions[key.0];
            let first = |stretch: usize| function.stretches[stretch].first;
            let between = &function.all[first(block)..first(key.1)];
            let is_whole = |ins: &Ins| !ins.is_call() && !matches!(ins.flow, Flow::Trap);
            is_value && marked.contains(&(key.0, block)) && between.iter().all(is_whole)
        };
        let lanes = keys.iter().enumerate().take(BITS);
        let lanes = lanes.filter(|(_, key)| is_guarded(key));
        lanes.map(|(lane, _)| lane).collect()
    }

    /// The stretch that starts the block of a counter.
    fn block(&self, key: &Key) -> usize {
        let stretches = &self.group.functions[key.0].stretches[..=key.1];
        let start = stretches.iter().rposition(|stretch| stretch.starts_block);
        start.unwrap_or_default()
    }

    /// Each wave of its kernel begins there.
    fn is_first(&self, key: &Key) -> bool {
        self.is_once(key) && !self.is_checked(key) && is_first(self.group.functions, key.0, key.1)
    }

    /// Each wave of its kernel comes there once before it ends.
    fn is_certain(&self, key: &Key) -> bool {
        let sums = &self.choice.sums[key.0];
        let is_once = self.is_once(key) && is_first(self.group.functions, key.0, 0);
        is_once && !sums.is_empty() && sums[key.1].0 == sums[0].0
    }

    /// Adds a batch of counters with these homes.
    fn add_batch(&self, plan: &mut Plan, keys: &[Key], homes: &[Home]) {
        let lanes = u64::from(self.group.lanes);
        let word = plan.words;
        let start = plan.counters.len();
        let batch = Batch {
            counters: (start..start + keys.len()).collect(),
            vector: match homes.first() {
                Some(Home::Lane(vector, _) | Home::Each(vector)) => Some(*vector),
                _ => None,
            },
            bits: None,
            has_pair: false,
            checked: keys.iter().filter(|key| self.is_checked(key)).count() as u16,
            word,
            has_products: keys.iter().any(|key| self.products.contains(key)),
        };
        for ((key, home), lane) in keys.iter().zip(homes).zip(0..) {
            let is_checked = self.is_checked(key);
            let is_once = self.is_once(key) && !is_checked;
            plan.counters.push(Counter {
                function: key.0,
                stretch: key.1,
                block: self.block(key),
                kind: key.2,
                is_once,
                is_first: self.is_first(key),
                is_checked,
                home: *home,
                is_certain: self.is_certain(key),
                guard: None,
                is_in_first_block: is_first(self.group.functions, key.0, self.block(key)),
                word: word + lane,
            });
        }
        plan.words += lanes * if batch.has_products { 2 } else { 1 };
        plan.batches.push(batch);
    }

    /// Adds all counters: those in loops in scalar registers, as far as these cost no occupancy, and others in lanes of vector
    /// registers. Returns the place of kept values.
    fn add_mixed(
        &self,
        plan: &mut Plan,
        free: &mut Free,
        is_on_the_way: bool,
    ) -> Result<Home, Refusal> {
        let limits = self.limits;
        let lanes = self.group.lanes;
        let spare_scalars = free.all.count_ones();
        let cheap = free.cheap.count_ones() as usize;
        let has_products = !self.products.is_empty();
        let reserved = if is_on_the_way { KEPT_VALUES } else { 0 } + u16::from(has_products);
        let first_vector = self.first_vector();
        let spare_vectors = limits.vectors.saturating_sub(first_vector) as usize;
        let room = (usize::from(lanes) * spare_vectors).saturating_sub(reserved.into());
        // Deeper ones first, and of these the checked ones.
        let mut order: Vec<Key> = self.others().collect();
        order.sort_by_cached_key(|key| {
            let depth = std::cmp::Reverse(self.depth(key));
            (depth, !self.is_checked(key), *key)
        });
        let looping = order.iter().filter(|key| self.depth(key) > 0).count();
        let mut hot = looping.min(cheap);
        // Counters beyond the vector registers that cost no occupancy are in scalar ones, as far as these cost none: first
        // those that are bits.
        let cheap_vectors = limits.cheap_vectors.saturating_sub(first_vector) as usize;
        let cheap_room = (usize::from(lanes) * cheap_vectors).saturating_sub(reserved.into());
        let mut bits = Vec::new();
        if cheap_vectors > 0 {
            let beyond = (order.len() - hot).saturating_sub(cheap_room);
            let mut rest = order.split_off(hot);
            bits = rest
                .extract_if(.., |key| self.has_bit(key))
                .take(beyond.min(BITS * (cheap - hot)))
                .collect();
            order.append(&mut rest);
            let beyond = (order.len() - hot).saturating_sub(cheap_room);
            hot += beyond.min(cheap - hot - bits.len().div_ceil(BITS));
        }
        let bit_registers = bits.len().div_ceil(BITS);
        if order.len() - hot > room {
            hot = order.len() - room;
            if hot + bit_registers > spare_scalars as usize {
                return Err(self.refused());
            }
        }
        let (hot, cold) = order.split_at(hot);
        let sorted = |keys: &[Key]| {
            let mut keys = keys.to_vec();
            keys.sort_by_cached_key(|key| (!self.is_checked(key), key.2, *key));
            keys
        };
        let (hot, cold) = (sorted(hot), sorted(cold));
        // The first vector register has the kept values in its last lanes.
        let first = first_vector as u16;
        let mut vector = first;
        let mut rest = cold.as_slice();
        let mut room = usize::from(lanes - reserved);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(room));
            let homes: Vec<Home> = (0..now.len() as u16)
                .map(|lane| Home::Lane(vector, lane))
                .collect();
            self.add_batch(plan, now, &homes);
            vector += 1;
            rest = later;
            room = usize::from(lanes);
        }
        if reserved > 0 && vector == first {
            vector += 1;
        }
        if u32::from(vector) > limits.vectors {
            return Err(self.refused());
        }
        plan.vectors = match self.spread.is_empty() {
            true => first..vector,
            false => plan.vectors.start..vector,
        };
        let batches = hot.chunks(lanes.into()).map(|keys| (keys, false));
        for (keys, are_bits) in batches.chain(bits.chunks(BITS).map(|keys| (keys, true))) {
            let register = match are_bits {
                true => Some(free.take(1, 1).ok_or_else(|| self.refused())?),
                false => None,
            };
            let range = 0..if are_bits { keys.len() } else { 0 };
            let homes = self.homes(
                keys,
                register.map(|register| (range.clone(), register)),
                free,
            );
            let lanes = Lanes {
                homes: homes.ok_or_else(|| self.refused())?,
                keys: keys.to_vec(),
                bits: range,
                register,
                has_pair: false,
            };
            self.add_scalars(plan, &lanes);
        }
        plan.entry_lanes = has_products.then_some(Home::Lane(first, lanes - reserved));
        Ok(Home::Lane(first, lanes - KEPT_VALUES))
    }

    /// The sums over words of memory. `None` if a factor gets too large.
    fn sums(&self, plan: &Plan) -> Option<Vec<Vec<(super::map::Sum, super::map::Sum)>>> {
        let lanes = u64::from(self.group.lanes);
        // The words of waves and lanes by function and stretch, and those of products.
        let functions = self.group.functions.iter();
        let stretches = functions.map(|function| vec![[0; 2]; function.stretches.len()]);
        let mut words: Vec<Vec<[u64; 2]>> = stretches.collect();
        let mut products: BTreeMap<Key, u64> = BTreeMap::new();
        for counter in &plan.counters {
            let place = &mut words[counter.function][counter.stretch];
            match counter.kind {
                Kind::Waves => place[0] = counter.word,
                Kind::Lanes => place[1] = counter.word,
                Kind::Times(_) => {
                    let key = (counter.function, counter.stretch, counter.kind);
                    products.insert(key, counter.word);
                }
            }
        }
        let word = |key: &Key| match key.2 {
            Kind::Waves => words[key.0][key.1][0],
            Kind::Lanes => words[key.0][key.1][1],
            Kind::Times(_) => products[key],
        };
        let to_words = |terms: &[(Term, Ratio)]| {
            // Each term has a word of its own.
            let terms = terms.iter().filter(|(_, factor)| !factor.is_zero());
            let terms = terms.map(|(term, factor)| {
                let plain = word(&term.key);
                let word = match term.is_product {
                    true => plain + lanes,
                    false => plain,
                };
                Some((u32::try_from(word).ok()?, *factor))
            });
            let mut vector: Vector = terms.collect::<Option<_>>()?;
            vector.sort_unstable_by_key(|(word, _)| *word);
            to_sum(&vector)
        };
        let functions = self.choice.sums.iter().map(|function| {
            let sums = function
                .iter()
                .map(|(waves, lanes)| Some((to_words(waves)?, to_words(lanes)?)));
            sums.collect::<Option<Vec<_>>>()
        });
        functions.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_from_the_shortest_row_that_costs_no_occupancy() {
        // Rows of 3, 2 and 8 registers, and one of 16 that costs occupancy.
        let cheap = numbers(3..6) | numbers(9..11) | numbers(20..28);
        let mut free = Free {
            all: cheap | numbers(90..106),
            cheap,
            end: 0,
        };
        assert_eq!(free.take(2, 2), Some(4));
        assert_eq!(free.take(1, 1), Some(3));
        assert_eq!(free.take(2, 2), Some(20), "9 is odd");
        assert_eq!(free.take(2, 1), Some(9));
        assert_eq!((free.end, free.cheap), (22, numbers(22..28)));
        assert_eq!(free.take(8, 2), Some(90), "only 6 are cheap");
        assert_eq!(free.end, 98);
        assert_eq!(free.cheap().take(8, 2), None);
    }

    #[test]
    fn a_pair_and_any_other_register_are_enough_between_instructions() {
        let apart = numbers(10..12) | numbers(63..64) | numbers(91..92);
        let mut free = Free {
            all: apart,
            cheap: apart,
            end: 0,
        };
        assert_eq!(free.take_temporaries(), Some([10, 11, 63]));
        assert_eq!(free.all, numbers(91..92));
        // 63 and 64 are no pair.
        let mut free = Free {
            all: numbers(63..65) | numbers(91..92),
            ..free
        };
        assert_eq!(free.take_temporaries(), None);
    }
}
