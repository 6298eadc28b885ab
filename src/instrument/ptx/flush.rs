//! The code that brings counts from registers to memory.
//!
//! A warp whose lanes all leave together adds for all of them: lane i adds the sum of block i of 32, so one instruction
//! adds 32 counters. The bits of the lanes are transposed: then lane i has bit i of all lanes, and counts them. Registers
//! are summed one by one, by `redux.sync` from sm_80 on, else by five exchanges. Counts that follow from others follow from their
//! sums, too, so only the others are summed. If only some lanes leave, or if a register of one has a large number, each lane
//! adds its own: lanes that leave at another time may catch up with them, and then each sum for some lanes had those of others
//! in it (an H100 with driver 580 counted some blocks twice).

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::instrument::ptx::flow::{Counter, MAX_TERMS, Source};
use crate::instrument::ptx::plan::{Plan, WORD, Way};
use crate::instrument::ptx::unit::Unit;

/// So many bits of a word are spread over bytes and summed, if the GPU has `redux.sync`.
const MAX_SPREAD: usize = 12;
/// More bits of a word than these are transposed, and fewer are counted one by one.
const MAX_VOTES: usize = 5;
/// The most bits of a count that a warp sums: 32 such counts have 32 bits in all.
const MAX_BITS: u32 = 27;
/// The most bits of a count that others follow from: these have [`MAX_TERMS`] such counts at most.
const MAX_SOURCE_BITS: u32 = MAX_BITS - MAX_TERMS.ilog2();
/// The bits of the numbers of lanes, and for each the bits of a word whose number has it not set.
const SWAPS: [(u32, u32); 5] = [
    (16, 0x0000_ffff),
    (8, 0x00ff_00ff),
    (4, 0x0f0f_0f0f),
    (2, 0x3333_3333),
    (1, 0x5555_5555),
];

/// Writes the code for one function.
#[derive(Debug)]
pub(super) struct Flush<'a, 'text> {
    pub(super) unit: &'a Unit,
    pub(super) plan: &'a Plan<'text>,
    /// The number of the function's first counter in the unit.
    pub(super) first: usize,
    /// True if the GPU has `redux.sync`.
    pub(super) has_sums: bool,
}

impl Flush<'_, '_> {
    /// The distance of a block's counter from the start of a copy, in bytes.
    fn offset(&self, block: usize) -> usize {
        8 * (self.first + block)
    }

    /// Sets `%rocov_a` to the address of the copy for the warp.
    fn base(&self) -> String {
        let Unit { name, .. } = self.unit;
        let mut code = format!("mov.u64 %rocov_a, __rocov_copies_area_{name};\n\t");
        let (sms, parts, stride) = (self.unit.sms(), self.unit.parts(), self.unit.stride());
        let indices = [("smid", sms, parts * stride), ("warpid", parts, stride)];
        for (index, number, distance) in indices.iter().filter(|(_, number, _)| *number > 1) {
            let _ = write!(
                code,
                "mov.u32 %rocov_t, %{index};\n\t\
                 and.b32 %rocov_t, %rocov_t, {};\n\t\
                 mad.wide.u32 %rocov_a, %rocov_t, {distance}, %rocov_a;\n\t",
                number - 1
            );
        }
        code
    }

    /// Counts one run of a block in memory, for all active lanes. Has no branch, so that it may be anywhere.
    pub(super) fn one(&self, block: usize) -> String {
        format!(
            "{{\n\t.reg .pred %rocov_p;\n\t.reg .b32 %rocov_t, %rocov_m;\n\t.reg .b64 %rocov_a, %rocov_v;\n\t\
             activemask.b32 %rocov_m;\n\t\
             {}\
             mov.u32 %rocov_t, %lanemask_lt;\n\t\
             and.b32 %rocov_t, %rocov_t, %rocov_m;\n\t\
             setp.eq.u32 %rocov_p, %rocov_t, 0;\n\t\
             popc.b32 %rocov_m, %rocov_m;\n\t\
             cvt.u64.u32 %rocov_v, %rocov_m;\n\t\
             @%rocov_p red.global.add.u64 [%rocov_a+{}], %rocov_v;\n\t}}\n\t",
            self.base(),
            self.offset(block)
        )
    }

    /// Each lane adds all its counts, which are zeros then. Has no branch, so that it may be anywhere.
    pub(super) fn each_lane(&self) -> String {
        let mut code = format!(
            "{{\n\t.reg .pred %rocov_p;\n\t.reg .b32 %rocov_t;\n\t.reg .b64 %rocov_a;\n\t{}",
            self.own()
        );
        for number in 0..self.plan.numbers {
            let _ = write!(code, "mov.b64 %rocov_n{number}, 0;\n\t");
        }
        for word in 0..self.plan.words {
            let _ = write!(code, "mov.b32 %rocov_b{word}, 0;\n\t");
        }
        code.push_str("}\n\t");
        code
    }

    /// Each lane adds its own counts.
    fn own(&self) -> String {
        let mut code = self.base();
        for (block, way) in self.plan.ways.iter().enumerate() {
            let offset = self.offset(block);
            match way {
                Way::Number(number) => {
                    let _ = write!(
                        code,
                        "setp.ne.u64 %rocov_p, %rocov_n{number}, 0;\n\t\
                         @%rocov_p red.global.add.u64 [%rocov_a+{offset}], %rocov_n{number};\n\t"
                    );
                }
                Way::Bit => {
                    test_bit(&mut code, &word_of(block), block % WORD);
                    let _ = write!(
                        code,
                        "@%rocov_p red.global.add.u64 [%rocov_a+{offset}], 1;\n\t"
                    );
                }
                Way::Direct | Way::Flag(_) | Way::Elsewhere => {}
            }
        }
        code
    }

    /// Adds all counts of the active lanes, and ends with `opcode`.
    pub(super) fn at_exit(&self, opcode: &str) -> String {
        let mut code = String::from(
            "{\n\t.reg .pred %rocov_p;\n\t\
             .reg .b32 %rocov_t, %rocov_m, %rocov_l, %rocov_c, %rocov_s;\n\t\
             .reg .b64 %rocov_a, %rocov_v, %rocov_w, %rocov_d;\n\t",
        );
        code.push_str(
            "activemask.b32 %rocov_m;\n\t\
             setp.ne.s32 %rocov_p, %rocov_m, -1;\n\t\
             @%rocov_p bra $rocov_part;\n\t",
        );
        self.find_large(&mut code);
        code.push_str(&self.base());
        code.push_str("mov.u32 %rocov_l, %laneid;\n\t");
        let sources = self.sources();
        self.sum_sources(&mut code, &sources);
        for first in (0..self.plan.ways.len()).step_by(WORD) {
            self.add_by_lane(&mut code, first, &sources);
        }
        let _ = write!(code, "{opcode};\n$rocov_part:\n\t");
        self.derive(&mut code);
        let own = self.own();
        let _ = write!(code, "{own}{opcode};\n\t}}\n");
        code
    }

    /// Lane i of a whole warp adds for block `first` + i.
    fn add_by_lane(&self, code: &mut String, first: usize, sources: &[Source]) {
        let end = self.plan.ways.len().min(first + WORD);
        let ways = &self.plan.ways[first..end];
        if ways.iter().all(|way| *way == Way::Direct) {
            return;
        }
        self.count_bits(code, first, ways);
        for (lane, way) in ways.iter().enumerate() {
            if let Way::Number(number) = way {
                let block = first + lane;
                let sum = match self.plan.derivation.blocks.get(&block) {
                    Some(terms) => add_terms(code, terms, sources),
                    None => match position(sources, Source::Block(block)) {
                        Some(summed) => format!("%rocov_k{summed}"),
                        None => self.summed(code, &format!("%rocov_n{number}")),
                    },
                };
                let _ = write!(
                    code,
                    "setp.eq.u32 %rocov_p, %rocov_l, {lane};\n\t\
                     selp.b32 %rocov_c, {sum}, %rocov_c, %rocov_p;\n\t"
                );
            }
        }
        code.push_str("cvt.u64.u32 %rocov_d, %rocov_c;\n\t");
        let _ = write!(
            code,
            "setp.ne.u64 %rocov_p, %rocov_d, 0;\n\t\
             mul.wide.u32 %rocov_w, %rocov_l, 8;\n\t\
             add.u64 %rocov_w, %rocov_w, %rocov_a;\n\t\
             @%rocov_p red.global.add.u64 [%rocov_w+{}], %rocov_d;\n\t",
            self.offset(first)
        );
    }

    /// Sets `%rocov_c` in lane i of a whole warp to the number of lanes that have the bit of block `first` + i.
    fn count_bits(&self, code: &mut String, first: usize, ways: &[Way]) {
        let bits = ways.iter().filter(|way| **way == Way::Bit).count();
        let end = ways
            .iter()
            .rposition(|way| *way == Way::Bit)
            .map_or(0, |last| last + 1);
        if bits > 0 && self.has_sums && end <= MAX_SPREAD {
            spread(code, first / WORD, end);
            return;
        }
        if bits > MAX_VOTES {
            transpose(code, first / WORD);
            return;
        }
        code.push_str("mov.b32 %rocov_c, 0;\n\t");
        for lane in (0..end).filter(|lane| ways[*lane] == Way::Bit) {
            vote(code, &word_of(first), lane);
            let _ = write!(
                code,
                "setp.eq.u32 %rocov_p, %rocov_l, {lane};\n\t\
                 selp.b32 %rocov_c, %rocov_t, %rocov_c, %rocov_p;\n\t"
            );
        }
    }

    /// The counts that others follow from.
    fn sources(&self) -> Vec<Source> {
        let terms = self.plan.derivation.blocks.values().flatten();
        let sources: BTreeSet<Source> = terms.map(|(source, _)| *source).collect();
        sources.into_iter().collect()
    }

    /// Sets `%rocov_k` of each source to its sum over the lanes of a whole warp.
    fn sum_sources(&self, code: &mut String, sources: &[Source]) {
        if sources.is_empty() {
            return;
        }
        let _ = write!(code, ".reg .b32 %rocov_k<{}>;\n\t", sources.len());
        for (number, source) in sources.iter().enumerate() {
            let sum = match self.register(*source) {
                Register::Whole(register) => self.summed(code, &register),
                Register::Bit(word, bit) => {
                    vote(code, &word, bit);
                    "%rocov_t".into()
                }
            };
            let _ = write!(code, "mov.b32 %rocov_k{number}, {sum};\n\t");
        }
    }

    /// The register with the sum of a register of 64 bits over the lanes of a whole warp.
    fn summed(&self, code: &mut String, register: &str) -> String {
        let _ = write!(code, "cvt.u32.u64 %rocov_t, {register};\n\t");
        self.sum(code);
        "%rocov_t".into()
    }

    /// Sums `%rocov_t` over the lanes of a whole warp.
    fn sum(&self, code: &mut String) {
        if self.has_sums {
            code.push_str("redux.sync.add.u32 %rocov_t, %rocov_t, 0xffffffff;\n\t");
            return;
        }
        for (distance, _) in SWAPS {
            let _ = write!(
                code,
                "shfl.sync.bfly.b32 %rocov_s, %rocov_t, {distance}, 31, 0xffffffff;\n\t\
                 add.u32 %rocov_t, %rocov_t, %rocov_s;\n\t"
            );
        }
    }

    /// Sets the registers of blocks that are not counted to the sums of the counts that theirs follow from.
    fn derive(&self, code: &mut String) {
        for (block, terms) in &self.plan.derivation.blocks {
            let Way::Number(number) = self.plan.ways[*block] else {
                continue;
            };
            let _ = write!(code, "mov.b64 %rocov_n{number}, 0;\n\t");
            for (source, factor) in terms {
                let term = self.term(code, *source);
                let operation = if *factor > 0 { "add" } else { "sub" };
                for _ in 0..factor.unsigned_abs() {
                    let _ = write!(
                        code,
                        "{operation}.u64 %rocov_n{number}, %rocov_n{number}, {term};\n\t"
                    );
                }
            }
        }
    }

    /// The register with a count of the thread.
    fn term(&self, code: &mut String, source: Source) -> String {
        match self.register(source) {
            Register::Whole(register) => register,
            Register::Bit(word, bit) => {
                let _ = write!(
                    code,
                    "bfe.u32 %rocov_t, {word}, {bit}, 1;\n\tcvt.u64.u32 %rocov_v, %rocov_t;\n\t"
                );
                "%rocov_v".into()
            }
        }
    }

    /// The place of a count of the thread.
    fn register(&self, source: Source) -> Register {
        let bit = |letter: char, bit: usize| {
            Register::Bit(format!("%rocov_{letter}{}", bit / WORD), bit % WORD)
        };
        match source {
            Source::Block(block) => match self.plan.ways[block] {
                Way::Number(number) => Register::Whole(format!("%rocov_n{number}")),
                _ => bit('b', block),
            },
            Source::Edge(edge) => match self.plan.derivation.edges[edge].counter {
                Counter::Register(number) => Register::Whole(format!("%rocov_f{number}")),
                Counter::Bit(number) => bit('e', number),
            },
        }
    }

    /// Leads to the code for some lanes, which takes numbers of any size, if a register of one has more bits than a sum takes.
    fn find_large(&self, code: &mut String) {
        let derivation = &self.plan.derivation;
        let counted = self.plan.ways.iter().enumerate();
        let numbers = counted.filter_map(|(block, way)| match way {
            Way::Number(number) if !derivation.blocks.contains_key(&block) => {
                Some(format!("%rocov_n{number}"))
            }
            _ => None,
        });
        let edges = (0..derivation.registers).map(|number| format!("%rocov_f{number}"));
        let registers: Vec<String> = numbers.chain(edges).collect();
        if registers.is_empty() {
            return;
        }
        let most = match derivation.blocks.is_empty() {
            true => MAX_BITS,
            false => MAX_SOURCE_BITS,
        };
        code.push_str("mov.b64 %rocov_v, 0;\n\t");
        for register in registers {
            let _ = write!(code, "or.b64 %rocov_v, %rocov_v, {register};\n\t");
        }
        let _ = write!(
            code,
            "setp.ge.u64 %rocov_p, %rocov_v, {:#x};\n\t\
             vote.sync.any.pred %rocov_p, %rocov_p, 0xffffffff;\n\t\
             @%rocov_p bra $rocov_part;\n\t",
            1_u64 << most
        );
    }
}

/// The place of a count of a thread.
enum Register {
    /// A register of 64 bits.
    Whole(String),
    /// A bit of a register of 32 bits.
    Bit(String, usize),
}

fn position(sources: &[Source], source: Source) -> Option<usize> {
    sources.binary_search(&source).ok()
}

/// Sets `%rocov_t` to a sum of the sums of sources, and returns its name. It has 32 bits, as all differences on the way to it.
fn add_terms(code: &mut String, terms: &[(Source, i64)], sources: &[Source]) -> String {
    code.push_str("mov.b32 %rocov_t, 0;\n\t");
    for (source, factor) in terms {
        let operation = if *factor > 0 { "add" } else { "sub" };
        let summed = position(sources, *source).unwrap_or_default();
        for _ in 0..factor.unsigned_abs() {
            let _ = write!(
                code,
                "{operation}.u32 %rocov_t, %rocov_t, %rocov_k{summed};\n\t"
            );
        }
    }
    "%rocov_t".into()
}

/// Sets `%rocov_t` to the number of lanes of a whole warp that have a bit of a word.
fn vote(code: &mut String, word: &str, bit: usize) {
    test_bit(code, word, bit);
    code.push_str(
        "vote.sync.ballot.b32 %rocov_t, %rocov_p, 0xffffffff;\n\t\
         popc.b32 %rocov_t, %rocov_t;\n\t",
    );
}

/// The word with the bit of a block.
fn word_of(block: usize) -> String {
    format!("%rocov_b{}", block / WORD)
}

/// Sets `%rocov_p` to a bit of a word.
fn test_bit(code: &mut String, word: &str, bit: usize) {
    let _ = write!(
        code,
        "and.b32 %rocov_t, {word}, {:#x};\n\tsetp.ne.u32 %rocov_p, %rocov_t, 0;\n\t",
        1_u32 << bit
    );
}

/// Sets `%rocov_c` in lane i to the number of lanes that have bit i of the word, for the first `end` bits, and to 0 in the
/// other lanes.
///
/// One multiplication spreads four bits over the bytes of a word, and one instruction sums the bytes over the warp.
fn spread(code: &mut String, word: usize, end: usize) {
    for first in (0..end).step_by(4) {
        let _ = write!(
            code,
            "shr.u32 %rocov_t, %rocov_b{word}, {first};\n\t\
             and.b32 %rocov_t, %rocov_t, 0xf;\n\t\
             mul.lo.u32 %rocov_t, %rocov_t, 0x204081;\n\t\
             and.b32 %rocov_t, %rocov_t, 0x1010101;\n\t\
             redux.sync.add.u32 %rocov_t, %rocov_t, 0xffffffff;\n\t\
             setp.ge.u32 %rocov_p, %rocov_l, {first};\n\t"
        );
        code.push_str(match first {
            0 => "mov.b32 %rocov_c, %rocov_t;\n\t",
            _ => "selp.b32 %rocov_c, %rocov_t, %rocov_c, %rocov_p;\n\t",
        });
    }
    let _ = write!(
        code,
        "and.b32 %rocov_t, %rocov_l, 3;\n\t\
         shl.b32 %rocov_t, %rocov_t, 3;\n\t\
         shr.u32 %rocov_c, %rocov_c, %rocov_t;\n\t\
         and.b32 %rocov_c, %rocov_c, 0xff;\n\t\
         setp.lt.u32 %rocov_p, %rocov_l, {end};\n\t\
         selp.b32 %rocov_c, %rocov_c, 0, %rocov_p;\n\t"
    );
}

/// Sets `%rocov_c` in lane i to the number of lanes that have bit i of the word.
///
/// Each step exchanges the halves of the matrix of lanes and bits whose numbers differ in one bit (Warren, "Hacker's
/// Delight", 7-3).
fn transpose(code: &mut String, word: usize) {
    let _ = write!(code, "mov.b32 %rocov_c, %rocov_b{word};\n\t");
    for (bit, low) in SWAPS {
        let _ = write!(
            code,
            "shfl.sync.bfly.b32 %rocov_t, %rocov_c, {bit}, 31, 0xffffffff;\n\t\
             and.b32 %rocov_s, %rocov_l, {bit};\n\t\
             setp.ne.u32 %rocov_p, %rocov_s, 0;\n\t\
             @%rocov_p shr.u32 %rocov_t, %rocov_t, {bit};\n\t\
             @!%rocov_p shl.b32 %rocov_t, %rocov_t, {bit};\n\t\
             selp.b32 %rocov_s, {low:#x}, {:#x}, %rocov_p;\n\t\
             lop3.b32 %rocov_c, %rocov_t, %rocov_s, %rocov_c, 0xe2;\n\t",
            !low
        );
    }
    code.push_str("popc.b32 %rocov_c, %rocov_c;\n\t");
}
