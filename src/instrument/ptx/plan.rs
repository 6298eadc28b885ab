//! The way in which each block of a function is counted, and the places where counts go to memory.
//!
//! | block | way |
//! |---|---|
//! | in no loop | a bit: it runs once at most in a call of the function. Blocks that run together share it |
//! | that each call of the function runs | none: the threads that leave are counted |
//! | of a kernel in which each thread runs all blocks | by the size of a block of threads, by its first thread |
//! | in a loop | a register, or none, if its count follows from others ([`flow`](super::flow)) |
//! | beyond [`MAX_WORDS`] words of bits or [`MAX_NUMBERS`] blocks in loops | one atomic addition for the active threads of a warp, at once |
//!
//! A [`Probe`] is what code adds to in memory. The count of a block is a sum of some of them, which the drain makes.
//!
//! If only the blocks that ran are wanted, words of bits are all that there is ([`flags`](super::flags)).
//!
//! All blocks are counted at once in a function that sets its number of registers (`setmaxnreg`), in one with so many
//! exits and blocks that its flushes would be long, and in one that shall take few registers.
//!
//! Counts wait in registers until the call of the function ends. [`widths`](super::widths) decides how many bits each has.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use std::ops::Range;

use crate::format::ptx::module::PtxFunction;
use crate::format::ptx::statements::{Flow, StatementKind};
use crate::instrument::ptx::flags::{Flag, flags};
use crate::instrument::ptx::flow::{Counter, Derivation, Source, derivation, is_sum};
use crate::instrument::ptx::parting::{Exits, apart, leaves};
use crate::instrument::ptx::registers::register_limit;
use crate::instrument::ptx::widths::{HALF, Room, Slot, Widths};
use crate::support::counting::Counting;

/// The most words of 32 bits for blocks in no loop.
pub(super) const MAX_WORDS: usize = 32;
/// The most blocks in loops with counts in registers.
pub(super) const MAX_NUMBERS: usize = 32;
/// So many blocks in loops have counts in registers, most of them two in each, in a function with more than [`MAX_NUMBERS`],
/// even if there is no room for them.
const MIN_NUMBERS: usize = 16;
/// The most blocks in loops of a function with counts that are differences: each makes the flushes longer.
const MAX_DERIVED: usize = 128;
/// The most counts that all flushes of a function bring to memory.
const MAX_FLUSHED: usize = 1 << 16;
/// The most counts in registers of a function with counts that are differences. The compiler keeps those in memory that have no
/// place: that costs less than an addition in memory for each run of each block.
const MAX_SOURCES: usize = 64;
/// The blocks of a word.
pub(super) const WORD: usize = 32;

/// The way in which a block is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// In the bit with this number.
    Bit(usize),
    /// As each call of the function.
    Call,
    /// As this block, which runs together with it.
    As(usize),
    /// In a register, or half of one: the count has this number.
    Number(usize),
    /// Its count follows from others.
    Derived,
    /// In memory.
    Direct,
    /// Each thread of the kernel runs it, so one thread counts for its block of threads.
    Each,
    /// By a flag that is set there, and stands for other blocks, too. Such plans count nothing.
    Flag(usize),
    /// By the flag of another block, or by one that each call sets.
    Elsewhere,
}

/// A word in each copy of the counters that code of a function adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// The threads with the bit that has the number of this probe.
    Bit,
    /// The threads that call the function.
    Call,
    /// A count that is in a register.
    Register(Source),
    /// The count of a block that is a difference of others. A sum of the drain has no subtractions, so it never goes
    /// down while kernels run.
    Difference(usize),
    /// The runs of a block that adds to it at once.
    Direct,
    /// The threads of the kernel, added by the first one of each block of threads.
    Each,
}

impl Probe {
    /// Returns whether its counts wait until a call of the function ends.
    pub(super) fn is_waiting(self) -> bool {
        !matches!(self, Self::Direct | Self::Each)
    }
}

/// The end of a call of a function: counts go to memory before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit<'text> {
    /// The numbers of the statements that lead here.
    pub(super) from: Vec<usize>,
    /// The block that is counted here, because its own place is left out.
    pub(super) block: Option<usize>,
    /// The instruction that ends the call.
    pub(super) opcode: &'text str,
    /// The statements that may lead here.
    exits: Exits,
}

/// The plan for a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan<'text> {
    pub(super) ways: Vec<Way>,
    /// The number of words of bits.
    pub(super) words: usize,
    /// The probes: those of bits, others whose counts wait, and those that code adds to at once.
    pub(super) probes: Vec<Probe>,
    /// The probes that the count of each block is the sum of.
    pub(super) sums: Vec<Vec<usize>>,
    /// The bit of each edge that has one. Those without probes come after the others.
    pub(super) edge_bits: Vec<usize>,
    /// The counts that follow from others. All counts that a difference follows from are in registers or bits, or those of calls.
    pub(super) derivation: Derivation,
    pub(super) widths: Widths,
    /// True if the place of the counters is in a register for the whole call, because blocks in loops count in memory.
    pub(super) keeps_place: bool,
    /// The bit that is set if a count has words in local memory: its word, and its mask.
    pub(super) has_high: Option<(String, u32)>,
    /// The flags that show which blocks ran, if nothing is counted. The first ones are bits of the words, and others
    /// are set in memory at once.
    pub(super) flags: Vec<Flag>,
    pub(super) exits: Vec<Exit<'text>>,
    /// The numbers of statements that call a function that may end the threads.
    pub(super) calls: Vec<usize>,
    /// The exit that threads take at the end of the body. `None` if none gets there.
    pub(super) end: Option<usize>,
}

/// The space of the counters of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// True if all blocks are counted in memory at once.
    pub(super) is_memory: bool,
    /// The registers of 32 bits that are free for counters.
    pub(super) room: usize,
    /// The registers of a kernel without counters, if it sets no limit and they are known.
    pub(super) plain: Option<u32>,
}

impl<'text> Plan<'text> {
    pub(super) fn new(
        function: &PtxFunction<'text>,
        ending: &HashSet<&str>,
        counting: Counting,
        space: Space,
    ) -> Self {
        let in_memory = space.is_memory;
        let calls = function
            .instructions()
            .filter(|(_, _, instruction)| match instruction.flow {
                Flow::Call { callee } => may_end(ending, callee),
                _ => false,
            });
        let calls: Vec<usize> = calls.map(|(number, _, _)| number).collect();
        if counting == Counting::Reached {
            return Self::with_flags(function, calls, in_memory);
        }
        let (ways, derivation) = match in_memory {
            true => (
                vec![Way::Direct; function.body.blocks.spans.len()],
                Derivation::default(),
            ),
            false => ways(function, &calls, space.room),
        };
        let mut plan = Plan {
            ways,
            derivation,
            calls,
            ..Self::default()
        };
        plan.find_exits(function);
        plan.find_probes();
        let waiting = plan.waiting_probes().len();
        let flushes = plan.exits.len() + plan.calls.len();
        if waiting.saturating_mul(flushes) > MAX_FLUSHED {
            plan.ways.fill(Way::Direct);
            plan.derivation = Derivation::default();
            plan.find_probes();
        }
        // A function of another module may end its threads, too.
        let calls_others = function
            .instructions()
            .any(|(_, _, instruction)| matches!(instruction.flow, Flow::Call { .. }));
        let is_of_calls = plan.probes == [Probe::Call];
        if function.is_kernel && is_of_calls && !calls_others {
            plan.ways.fill(Way::Each);
            plan.probes = vec![Probe::Each];
            return plan;
        }
        let room = space.room.saturating_sub(plan.words);
        // Those with probes in the order of these, so that four at a time are in two registers.
        let mut slots = Vec::from_iter(plan.slots_in_blocks());
        let order = plan.register_sources();
        let order: Vec<Slot> = order.filter_map(|source| plan.slot_of(source)).collect();
        slots.sort_by_key(|(slot, _)| {
            let place = order.iter().position(|other| other == slot);
            place.unwrap_or(order.len())
        });
        let takes = |bits: usize| {
            let counters = plan.words + (slots.len() * bits).div_ceil(WORD);
            let limit = |plain| register_limit(plain, counters as u32, false);
            space.plain.map(limit)
        };
        let room = Room {
            registers: room,
            is_for_wide: takes(64) == takes(HALF as usize),
        };
        // A call that may end its threads brings the counts of a turn of the loop to memory in the middle.
        let leader = |block| plan.counter_of(block).filter(|_| plan.calls.is_empty());
        plan.widths = Widths::new(function, &slots, leader, room);
        // Registers are few in the others.
        if !in_memory && !sets_registers(function) {
            let depths = depths(function).into_iter().zip(&plan.ways);
            let mut depths = depths.filter(|(_, way)| **way == Way::Direct);
            plan.keeps_place = depths.any(|(depth, _)| depth > 0);
        }
        if !plan.widths.checks.is_empty() {
            plan.has_high = Some(plan.spare_bit());
        }
        plan
    }

    /// Finds the probes, and those that each count is the sum of.
    fn find_probes(&mut self) {
        let derived = self.derivation.blocks.values();
        let sums = derived.filter(|terms| is_sum(terms)).flatten();
        let summed: BTreeSet<Source> = sums.map(|(source, _)| *source).collect();
        let bits = self.number_bits(&summed);
        self.probes = vec![Probe::Bit; bits];
        if self.ways.contains(&Way::Call) {
            self.probes.push(Probe::Call);
        }
        let mut of_edges = BTreeMap::new();
        for number in 0..self.derivation.edges.len() {
            let source = Source::Edge(number);
            if summed.contains(&source) {
                let probe = match self.derivation.edges[number].counter {
                    Counter::Bit(bit) => self.edge_bits[bit],
                    Counter::Register(_) => self.add(Probe::Register(source)),
                };
                of_edges.insert(source, probe);
            }
        }
        let count = self.ways.len();
        self.sums = vec![Vec::new(); count];
        for block in 0..count {
            self.sums[block] = vec![match self.ways[block] {
                Way::Bit(bit) => bit,
                Way::Call => bits,
                Way::Number(_) => self.add(Probe::Register(Source::Block(block))),
                _ => continue,
            }];
        }
        for block in 0..count {
            let terms = self.derivation.blocks.get(&block);
            let is_difference = terms.is_some_and(|terms| !is_sum(terms));
            if is_difference && self.ways[block] == Way::Derived {
                self.sums[block] = vec![self.add(Probe::Difference(block))];
            }
        }
        for block in 0..count {
            match self.ways[block] {
                Way::Direct => self.sums[block] = vec![self.add(Probe::Direct)],
                Way::As(first) => self.sums[block] = self.sums[first].clone(),
                _ => {}
            }
        }
        let sums = self.derivation.blocks.iter();
        for (block, terms) in sums.filter(|(_, terms)| is_sum(terms)) {
            let mut probes = Vec::new();
            for (source, factor) in terms {
                let of_source = match source {
                    Source::Block(block) => self.sums[*block].clone(),
                    Source::Edge(_) => vec![of_edges[source]],
                };
                for _ in 0..*factor {
                    probes.extend_from_slice(&of_source);
                }
            }
            self.sums[*block] = probes;
        }
    }

    /// Gives each edge that is counted by a bit one after those of blocks. Returns the number of bits with probes: those of
    /// blocks, and of edges in `summed`, which come before the others.
    fn number_bits(&mut self, summed: &BTreeSet<Source>) -> usize {
        let of_blocks = self.ways.iter().filter(|way| matches!(way, Way::Bit(_)));
        let mut next = of_blocks.count();
        let mut counted = next;
        self.edge_bits = vec![0; self.derivation.bits];
        for is_summed in [true, false] {
            for (number, edge) in self.derivation.edges.iter().enumerate() {
                if let Counter::Bit(bit) = edge.counter
                    && summed.contains(&Source::Edge(number)) == is_summed
                {
                    self.edge_bits[bit] = next;
                    next += 1;
                }
            }
            if is_summed {
                counted = next;
            }
        }
        self.words = next.div_ceil(WORD);
        counted
    }

    /// Adds a probe, and returns its number.
    fn add(&mut self, probe: Probe) -> usize {
        self.probes.push(probe);
        self.probes.len() - 1
    }

    /// The probes whose counts wait: the first ones.
    pub(super) fn waiting_probes(&self) -> &[Probe] {
        let is_waiting = |probe: &Probe| probe.is_waiting();
        &self.probes[..self.probes.partition_point(is_waiting)]
    }

    /// The probes with counts in registers.
    pub(super) fn register_probes(&self) -> Range<usize> {
        let is_register = |probe: &&Probe| matches!(probe, Probe::Register(_));
        let waiting = self.waiting_probes();
        let start = waiting.iter().position(|probe| is_register(&probe));
        let start = start.unwrap_or(waiting.len());
        start..start + waiting[start..].iter().take_while(is_register).count()
    }

    /// The counts in registers that have probes, in the order of these.
    pub(super) fn register_sources(&self) -> impl Iterator<Item = Source> {
        let probes = self.waiting_probes()[self.register_probes()].iter();
        probes.filter_map(|probe| match probe {
            Probe::Register(source) => Some(*source),
            _ => None,
        })
    }

    /// The number of bits with probes.
    pub(super) fn counted_bits(&self) -> usize {
        self.probes.partition_point(|probe| *probe == Probe::Bit)
    }

    /// The count in a register that is that of a block at the end, and up to one less or more before.
    fn counter_of(&self, block: usize) -> Option<Slot> {
        let source = match self.derivation.blocks.get(&block).map(Vec::as_slice) {
            Some([(source, 1)]) => *source,
            Some(_) => return None,
            None => Source::Block(block),
        };
        self.slot_of(source)
    }

    /// The register that a count is in, or shares. `None` if it is in none.
    pub(super) fn slot_of(&self, source: Source) -> Option<Slot> {
        match source {
            Source::Block(block) => match self.ways[block] {
                Way::Number(number) => Some(Slot::Block(number)),
                _ => None,
            },
            Source::Edge(edge) => match self.derivation.edges[edge].counter {
                Counter::Register(number) => Some(Slot::Edge(number)),
                Counter::Bit(_) => None,
            },
        }
    }

    /// The counts in registers, each with its block, twice, or the blocks before and after its edge.
    pub(super) fn slots_in_blocks(&self) -> impl Iterator<Item = (Slot, [usize; 2])> {
        let of_blocks = self.ways.iter().enumerate();
        let of_blocks = of_blocks.filter_map(|(block, way)| match way {
            Way::Number(number) => Some((Slot::Block(*number), [block; 2])),
            _ => None,
        });
        let of_edges = self.derivation.edges.iter();
        let of_edges = of_edges.filter_map(|edge| match edge.counter {
            Counter::Register(number) => Some((Slot::Edge(number), [edge.from, edge.to])),
            Counter::Bit(_) => None,
        });
        of_blocks.chain(of_edges)
    }

    /// The code that increments a count in a register.
    pub(super) fn incremented(&self, slot: Slot) -> String {
        let bits = if self.widths.is_wide(slot) { 64 } else { 32 };
        let name = self.widths.name(slot);
        let one = 1_u32 << self.widths.shift(slot);
        format!("add.u{bits} {name}, {name}, {one:#x};\n\t")
    }

    /// The declarations of all registers, and of local memory.
    pub(super) fn declarations(&self) -> String {
        let mut code = String::new();
        if self.words > 0 {
            let _ = write!(code, "\n\t.reg .b32 %rocov_b<{}>;", self.words);
        }
        for (name, bits) in self.widths.registers() {
            let _ = write!(code, "\n\t.reg .b{bits} {name};");
        }
        if self.has_high.is_some() {
            let bytes = 4 * self.widths.checked.len();
            let _ = write!(
                code,
                "\n\t.reg .pred %rocov_q;\n\t.reg .b32 %rocov_o, %rocov_h;\n\t\
                 .reg .b64 %rocov_z;\n\t\
                 .local .align 4 .b8 $rocov_high[{bytes}];"
            );
        }
        code
    }

    /// The code that sets all registers to zero.
    pub(super) fn zeros(&self) -> String {
        let mut code = String::new();
        for word in 0..self.words {
            let _ = write!(code, "\n\tmov.b32 %rocov_b{word}, 0;");
        }
        for (name, bits) in self.widths.registers() {
            let _ = write!(code, "\n\tmov.b{bits} {name}, 0;");
        }
        code
    }

    /// A bit that no count uses.
    fn spare_bit(&mut self) -> (String, u32) {
        let edges = self.edge_bits.iter().map(|bit| bit + 1);
        let bit = edges.max().unwrap_or_default().max(self.counted_bits());
        self.words = self.words.max(bit / WORD + 1);
        (word_of(bit), 1 << (bit % WORD))
    }

    /// The plan of a function that only records which blocks ran.
    fn with_flags(function: &PtxFunction<'text>, calls: Vec<usize>, in_memory: bool) -> Self {
        let depths = depths(function);
        let mut flags = flags(function, &depths, &calls);
        // The first flag is that of all calls.
        if let Some(others) = flags
            .get_mut(1..)
            .filter(|others| others.len() >= MAX_WORDS * WORD)
        {
            others.sort_by_key(|flag| std::cmp::Reverse(flag.at.map(|at| depths[at])));
        }
        let mut plan = Plan {
            ways: vec![Way::Elsewhere; depths.len()],
            flags,
            calls,
            ..Self::default()
        };
        plan.find_exits(function);
        let flushes = plan.exits.len() + plan.calls.len();
        let is_long = depths.len().saturating_mul(flushes) > MAX_FLUSHED;
        let in_words = match in_memory || is_long || sets_registers(function) {
            true => 0,
            false => plan.flags.len().min(MAX_WORDS * WORD),
        };
        plan.words = in_words.div_ceil(WORD);
        for (number, flag) in plan.flags.iter_mut().enumerate() {
            match flag.at {
                _ if number >= in_words => plan.ways[*flag.at.get_or_insert(0)] = Way::Direct,
                Some(at) => plan.ways[at] = Way::Flag(number),
                None => {}
            }
        }
        plan
    }

    /// The flags in words.
    pub(super) fn waiting_flags(&self) -> &[Flag] {
        &self.flags[..self.flags.len().min(self.words * WORD)]
    }

    /// The registers of 32 bits that all counters of a thread take.
    pub(super) fn registers(&self) -> u32 {
        let registers = self.widths.registers();
        // There are at most MAX_SOURCES and MAX_WORDS, and few edges.
        registers.map(|(_, bits)| bits / u32::BITS).sum::<u32>() + self.words as u32
    }

    /// Returns whether nothing waits until a call of the function ends.
    pub(super) fn is_direct(&self) -> bool {
        self.words == 0 && self.waiting_probes().is_empty()
    }

    /// All threads leave by one exit, where the compiler brings them together, but for those that others may wait for.
    fn find_exits(&mut self, function: &PtxFunction<'text>) {
        let apart = apart(function);
        let blocks = &function.body.blocks;
        for (number, _, instruction) in function.instructions() {
            match instruction.flow {
                Flow::Return | Flow::Exit if !is_unreachable(function, number) => {
                    let exits = apart.get(&number).copied().unwrap_or_default();
                    self.add_exit(exits, number, None, instruction.opcode);
                }
                Flow::Branch { .. } => {
                    let Some((exits, target)) = apart.get(&number).zip(blocks.targets.get(&number))
                    else {
                        continue;
                    };
                    // If the return there belongs to the same exit, the branch leads to it as before.
                    let of_target = apart.get(&blocks.spans[*target].last);
                    let stays = *exits != Exits::Alone && of_target == Some(exits);
                    if let Some(opcode) = leaves(function, *target).filter(|_| !stays) {
                        // An exit counts the edges of all statements that lead to it.
                        let is_alone = self.derivation.detour_of(number).is_some();
                        let exits = if is_alone { Exits::Alone } else { *exits };
                        self.add_exit(exits, number, Some(*target), opcode);
                    }
                }
                _ => {}
            }
        }
        let last = function.body.blocks.spans.last().map(|span| span.last);
        let is_over = last.is_some_and(|last| {
            let StatementKind::Instruction(it) = &function.body.statements.all[last].kind else {
                return false;
            };
            let goes_on = matches!(it.flow, Flow::Next | Flow::Call { .. });
            !goes_on && !it.is_guarded
        });
        if !is_over || blocks.reaches_end {
            self.end = Some(self.exits.len());
            self.exits.push(Exit {
                from: Vec::new(),
                block: None,
                opcode: "ret",
                exits: Exits::Alone,
            });
        }
    }

    fn add_exit(&mut self, exits: Exits, number: usize, block: Option<usize>, opcode: &'text str) {
        let is_shared = |exit: &&mut Exit<'_>| {
            exits != Exits::Alone
                && exit.exits == exits
                && (exit.block, exit.opcode) == (block, opcode)
        };
        match self.exits.iter_mut().find(is_shared) {
            Some(exit) => exit.from.push(number),
            None => self.exits.push(Exit {
                from: vec![number],
                block,
                opcode,
                exits,
            }),
        }
    }
}

/// The word with a bit.
pub(super) fn word_of(bit: usize) -> String {
    format!("%rocov_b{}", bit / WORD)
}

/// The way of each block, and the counts that follow from others. A thread that brings its counts to memory on its way, and
/// continues, has not left the block that it is in: then none follow. `calls` are those that may end the threads.
fn ways(function: &PtxFunction<'_>, calls: &[usize], room: usize) -> (Vec<Way>, Derivation) {
    let may_derive = calls.is_empty();
    let count = function.body.blocks.spans.len();
    if sets_registers(function) {
        return (vec![Way::Direct; count], Derivation::default());
    }
    let depths = depths(function);
    let mut ways = vec![Way::Direct; count];
    let mut bits = 0;
    for flag in flags(function, &depths, calls) {
        let blocks = flag.blocks.iter().copied();
        let blocks: Vec<usize> = blocks.filter(|block| depths[*block] == 0).collect();
        let Some((first, others)) = blocks.split_first() else {
            continue;
        };
        if flag.at.is_none() && calls.is_empty() {
            blocks.iter().for_each(|block| ways[*block] = Way::Call);
        } else if bits < MAX_WORDS * WORD {
            ways[*first] = Way::Bit(bits);
            others
                .iter()
                .for_each(|block| ways[*block] = Way::As(*first));
            bits += 1;
        }
    }
    let in_loops: Vec<usize> = (0..count).filter(|block| depths[*block] > 0).collect();
    let mut derivation = Some(count)
        .filter(|count| may_derive && *count <= MAX_WORDS * WORD)
        .and_then(|_| derivation(function, &depths, in_loops.len() <= MAX_NUMBERS))
        .unwrap_or_default();
    let sources = in_loops.len() - derivation.blocks.len() + derivation.registers;
    let has_all = in_loops.len() <= MAX_DERIVED && sources <= MAX_SOURCES;
    if !has_all {
        derivation.keep_sums();
    }
    let is_derived = |block: &usize| derivation.blocks.contains_key(block);
    let (derived, mut counted): (Vec<usize>, Vec<usize>) =
        in_loops.into_iter().partition(is_derived);
    derived.iter().for_each(|block| ways[*block] = Way::Derived);
    // If not all have registers, those of the others stay in memory for some time at best. Most share a register with another.
    if counted.len() > MAX_NUMBERS && (derived.is_empty() || !has_all) {
        // The innermost ones run most often.
        counted.sort_by_key(|block| std::cmp::Reverse(depths[*block]));
        counted.truncate(room.saturating_mul(2).clamp(MIN_NUMBERS, MAX_NUMBERS));
        counted.sort_unstable();
    }
    for (number, block) in counted.into_iter().enumerate() {
        ways[block] = Way::Number(number);
    }
    (ways, derivation)
}

/// Returns whether a function sets its number of registers.
fn sets_registers(function: &PtxFunction<'_>) -> bool {
    function
        .instructions()
        .any(|(_, _, instruction)| instruction.name() == "setmaxnreg")
}

/// The number of loops around each block.
fn depths(function: &PtxFunction<'_>) -> Vec<usize> {
    let blocks = &function.body.blocks;
    let count = blocks.spans.len();
    let mut begin = vec![0_usize; count + 1];
    let mut end = vec![0_usize; count + 1];
    for it in &blocks.loops {
        begin[it.head] += 1;
        end[it.last + 1] += 1;
    }
    let mut depth = 0_usize;
    let depths = (0..count).map(|block| {
        depth = depth + begin[block] - end[block];
        depth
    });
    depths.collect()
}

/// Returns whether the statement is a block right after a `trap`, and no branch leads to it. clang writes `exit` there.
fn is_unreachable(function: &PtxFunction<'_>, number: usize) -> bool {
    let blocks = &function.body.blocks;
    let block = blocks.spans.partition_point(|span| span.first < number);
    let begins = blocks
        .spans
        .get(block)
        .is_some_and(|span| span.first == number);
    let before = block.checked_sub(1).map(|before| blocks.spans[before].last);
    let traps = before.is_some_and(|before| {
        matches!(
            &function.body.statements.all[before].kind,
            StatementKind::Instruction(it) if matches!(it.flow, Flow::Trap) && !it.is_guarded
        )
    });
    begins && traps && !blocks.reached.contains(&block)
}

/// The functions of a module that may end their threads: those with `exit`, and their callers.
pub(super) fn ending<'text>(functions: &[PtxFunction<'text>]) -> HashSet<&'text str> {
    let mut ending: HashSet<&'text str> = HashSet::new();
    loop {
        let before = ending.len();
        for function in functions.iter().filter(|function| !function.is_kernel) {
            let ends =
                function
                    .instructions()
                    .any(|(number, _, instruction)| match instruction.flow {
                        Flow::Exit => !is_unreachable(function, number),
                        Flow::Call { callee } => may_end(&ending, callee),
                        _ => false,
                    });
            if ends {
                ending.insert(function.symbol);
            }
        }
        if ending.len() == before {
            return ending;
        }
    }
}

/// Returns whether a call may end its threads. A register may be any of the functions.
fn may_end(ending: &HashSet<&str>, callee: &str) -> bool {
    ending.contains(callee) || callee.starts_with('%') && !ending.is_empty()
}
