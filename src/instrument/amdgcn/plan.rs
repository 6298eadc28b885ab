//! The counters of functions that share registers, and the registers and words of memory that hold them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::code::Used;
use super::encoder::Encoder;
use super::map::Sum;
use crate::support::counting::Counting;

/// The bytes of a counter or of a mark in memory.
pub(super) const WORD: u64 = 8;

/// The registers that bring counts to memory: an offset, and the 64 bits that are added there.
pub(super) const OFFSET: u16 = 1;
pub(super) const DATA: u16 = 2;
/// The vector registers that these need.
pub(super) const LAST_VECTORS: u32 = 4;
/// The vector registers whose first lanes are kept while a running wave brings its counts to memory.
pub(super) const KEPT_VECTORS: [u16; 3] = [OFFSET, DATA, DATA + 1];
/// The values that are kept: these, and both halves of EXEC.
pub(super) const KEPT_VALUES: u16 = 5;

/// The scalar registers of a function that brings its counts to memory on the way: those for use between instructions, rounded
/// up to a pair, and two pairs of [`OnTheWay`].
pub(super) const ON_THE_WAY: u32 = 8;

/// The subject of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Waves,
    Lanes,
    /// The waves times the lanes of the stretch with this number, which each of them comes to once before. No instruction
    /// counts it.
    Times(usize),
}

/// The place of a counter while the wave runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// A bit of a scalar register.
    Bit(u16, u16),
    /// A scalar register.
    Scalar(u16),
    /// A lane of a vector register.
    Lane(u16, u16),
    /// A vector register, in which each lane counts itself.
    Each(u16),
    /// The product of the counter with this number, and of a scalar register.
    Product(usize, u16),
}

/// A counter of a stretch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    /// The number of the function in its group.
    pub(super) function: usize,
    pub(super) stretch: usize,
    /// The stretch that starts its block.
    pub(super) block: usize,
    pub(super) kind: Kind,
    /// A wave comes there once at most.
    pub(super) is_once: bool,
    /// Each wave of its kernel begins there.
    pub(super) is_first: bool,
    /// It starts at minus the rounds, and its carry brings the counts of the wave to memory.
    pub(super) is_checked: bool,
    pub(super) home: Home,
    /// Each wave of its kernel comes there once before it ends.
    pub(super) is_certain: bool,
    /// It has a value only if this bit of a scalar register is set. The start of its block sets it.
    pub(super) guard: Option<(u16, u16)>,
    /// Each wave of its kernel begins in its block.
    pub(super) is_in_first_block: bool,
    /// The number of its word in memory.
    pub(super) word: u64,
}

/// Counters that are added to memory by one instruction.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// The counters, by lane.
    pub(super) counters: Vec<usize>,
    /// The vector register that holds them. Otherwise scalar ones do.
    pub(super) vector: Option<u16>,
    /// The scalar register of those that are bits. Their numbers are those of their lanes. It has a bit for each other counter
    /// in the first 32 lanes, too: it is set if the counter has a value.
    pub(super) bits: Option<u16>,
    /// The bits are a pair of registers, the second of which is 0.
    pub(super) has_pair: bool,
    /// The first so many are checked.
    pub(super) checked: u16,
    /// The number of its first word in memory.
    pub(super) word: u64,
    /// The sums of counts times the lanes at entry have words, too: after the others.
    pub(super) has_products: bool,
}

/// The registers that a running wave needs to bring its counts to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnTheWay {
    /// A pair of scalar registers for the return address.
    pub(super) back: u16,
    /// A pair for the address of counters.
    pub(super) base: u16,
    /// The first of [`KEPT_VALUES`] places for values.
    pub(super) kept: Home,
}

/// Registers that a function borrows from its callers: it does not use them itself, but other functions do. They have their
/// values back before a call and before it returns.
#[derive(Clone, Debug)]
pub(super) struct Borrowed {
    /// The scalar registers for use on the way: [`ON_THE_WAY`].
    pub(super) scalars: Range<u16>,
    /// The vector register that keeps their values, in its first lanes.
    pub(super) scalars_in: u16,
    /// The vector registers.
    pub(super) vectors: Range<u16>,
    /// The first accumulator that keeps their values.
    pub(super) vectors_in: u16,
}

/// The way of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkWay {
    /// Each active lane stores to the word of memory with this number.
    Store(u64),
    /// The first lane stores there, also if it is not active.
    StoreAlways(u64),
    /// A bit of a scalar register is set.
    Set(u16, u16),
    /// The active lanes are added to a mask in scalar registers.
    Collect(u16),
}

/// A register of bits, which are added to memory when a wave ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkBits {
    pub(super) register: u16,
    /// Those that are set at the start of a kernel, and that of each other function is 0.
    pub(super) first: u32,
    /// The number of its word in memory.
    pub(super) word: u64,
}

/// A mask of lanes that is a bit at the end: the bit is set if it has a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkMask {
    pub(super) register: u16,
    /// The register of the bit, and the bit.
    pub(super) bits: u16,
    pub(super) bit: u16,
}

/// The marks of the places that waves or lanes come to.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkPlan {
    /// A pair of scalar registers with an address, and the vector register with the distance from it to the first word: a kernel
    /// sets them at its start.
    pub(super) pointer: Option<(u16, u16)>,
    /// Lanes may be active at a mark that are not so at the start.
    pub(super) activates_all: bool,
    /// The first word in memory.
    pub(super) word: u64,
    pub(super) bits: Vec<MarkBits>,
    pub(super) masks: Vec<MarkMask>,
    /// By the numbers of the function and the stretch.
    pub(super) at_stretches: BTreeMap<(usize, usize), Vec<MarkWay>>,
    /// Behind a branch that is not taken, at the end of a stretch.
    pub(super) behind_branches: BTreeMap<(usize, usize), Vec<MarkWay>>,
}

/// The counters of a group, and their registers.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) encoder: Encoder,
    /// The rounds of a loop after which a wave brings its counts to memory.
    pub(super) rounds: u32,
    /// The function shares its registers with functions that it may call: it brings its counts to memory before a call and
    /// before it returns.
    pub(super) is_apart: bool,
    /// With [`Counting::Reached`], a counter of lanes has a value that is not 0 if some lane ran.
    pub(super) counting: Counting,
    pub(super) counters: Vec<Counter>,
    pub(super) batches: Vec<Batch>,
    /// Scalar registers for use between instructions: two values, and SCC. The second one may be in a pair with the first, so
    /// that the first and the register after it are of use as a pair only where the second is not.
    pub(super) temporaries: [u16; 3],
    /// `None`: running waves do not bring their counts to memory.
    pub(super) on_the_way: Option<OnTheWay>,
    pub(super) borrowed: Option<Borrowed>,
    /// The marks, if there are these instead of counters.
    pub(super) marks: Option<MarkPlan>,
    /// The scalar registers of the numbers of lanes that waves are multiplied by, by function and stretch.
    pub(super) factors: BTreeMap<(usize, usize), u16>,
    /// The place of the number of lanes at entry.
    pub(super) entry_lanes: Option<Home>,
    /// The vector registers with counters or kept values.
    pub(super) vectors: Range<u16>,
    /// Vector registers that only the code that brings counts to memory uses: for an offset and a pair of values.
    pub(super) own_vectors: Option<[u16; 2]>,
    /// The counts of each stretch of each function: those of waves, and of lanes.
    pub(super) sums: Vec<Vec<(Sum, Sum)>>,
    /// The number of words in memory.
    pub(super) words: u64,
    /// The vector and scalar registers in all.
    pub(super) total: Used,
    /// The number of the first accumulator, on targets that have them after vector registers.
    pub(super) first_accumulator: u32,
}

impl Batch {
    /// It is one counter, and each lane of the register counts itself.
    pub(super) fn is_spread(&self, plan: &Plan) -> bool {
        let first = self.counters.first();
        first.is_some_and(|number| matches!(plan.counters[*number].home, Home::Each(_)))
    }
}

impl Plan {
    /// The first words of counters that are the sums of their lanes, with the numbers of these.
    pub(super) fn spread(&self) -> impl Iterator<Item = (u64, u64)> {
        let spread = self.batches.iter().filter(|batch| batch.is_spread(self));
        spread.map(|batch| (batch.word, self.encoder.lanes.into()))
    }

    /// Moves its words in memory: the first one was 0, and has this number now.
    pub(super) fn move_words(&mut self, first: u64) {
        for counter in &mut self.counters {
            counter.word += first;
        }
        for batch in &mut self.batches {
            batch.word += first;
        }
        if let Some(marks) = &mut self.marks {
            marks.word += first;
            marks.bits.iter_mut().for_each(|bits| bits.word += first);
            let ways = marks.at_stretches.values_mut();
            let ways = ways.chain(marks.behind_branches.values_mut());
            for way in ways.flatten() {
                if let MarkWay::Store(word) | MarkWay::StoreAlways(word) = way {
                    *word += first;
                }
            }
        }
        for (waves, lanes) in self.sums.iter_mut().flatten() {
            for (word, _) in waves.terms.iter_mut().chain(&mut lanes.terms) {
                *word += first as usize;
            }
        }
    }

    /// Some counters or kept values are lanes of vector registers.
    pub(super) fn has_lanes(&self) -> bool {
        self.vectors.len() > self.spread().count()
    }

    /// Forgets all that only the copies of functions need.
    pub(super) fn forget_counters(&mut self) {
        self.counters = Vec::new();
        self.batches = Vec::new();
        self.factors = BTreeMap::new();
        self.marks = None;
    }

    /// The bits of a batch that are set at the start: those of counters that have a value, and of the waves that begin in this
    /// function.
    pub(super) fn first_bits(&self, batch: &Batch, beginning: Option<usize>) -> u32 {
        let lanes = batch.counters.iter().zip(0..u32::BITS);
        let set = lanes.filter(|(number, _)| {
            let counter = &self.counters[**number];
            match counter.home {
                Home::Bit(..) => counter.is_first && Some(counter.function) == beginning,
                _ => {
                    let is_begun = Some(counter.function) == beginning;
                    counter.guard.is_none() || counter.is_in_first_block && is_begun
                }
            }
        });
        set.fold(0, |all, (_, lane)| all | 1_u32 << lane)
    }
}
