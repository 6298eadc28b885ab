//! The code that brings counts from registers to memory.
//!
//! A warp whose lanes all leave together adds for all of them: lane i adds the sum of block i of 32, so one instruction
//! adds 32 counters. The bits of the lanes are transposed: then lane i has bit i of all lanes, and counts them. Registers
//! are summed one by one, by `redux.sync` from sm_80 on, else by five exchanges. If only some lanes leave, or if a register of
//! one has a large number, each lane adds its own: lanes that leave at another time may catch up with them, and then each
//! sum for some lanes had those of others in it (an H100 with driver 580 counted some blocks twice).

use std::fmt::Write;

use crate::format::ptx::flow::{Counter, Source};
use crate::format::ptx::plan::{Plan, WORD, Way};
use crate::format::ptx::records::Unit;

/// So many bits of a word are spread over bytes and summed, if the GPU has `redux.sync`.
const MAX_SPREAD: usize = 12;
/// More bits of a word than these are transposed, and fewer are counted one by one.
const MAX_VOTES: usize = 5;
/// The most bits of a count that a warp sums: 32 such counts have 32 bits in all.
const MAX_BITS: u32 = 27;
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
    pub(super) fn of_lanes(&self) -> String {
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
                    self.test_bit(&mut code, block);
                    let _ = write!(
                        code,
                        "@%rocov_p red.global.add.u64 [%rocov_a+{offset}], 1;\n\t"
                    );
                }
                Way::Direct => {}
            }
        }
        code
    }

    /// Sets `%rocov_p` to the bit of a block.
    fn test_bit(&self, code: &mut String, block: usize) {
        let _ = write!(
            code,
            "and.b32 %rocov_t, %rocov_b{}, {:#x};\n\tsetp.ne.u32 %rocov_p, %rocov_t, 0;\n\t",
            block / WORD,
            1_u32 << (block % WORD)
        );
    }

    /// Adds all counts of the active lanes, and ends with `opcode`.
    pub(super) fn at_exit(&self, opcode: &str) -> String {
        let mut code = String::from(
            "{\n\t.reg .pred %rocov_p;\n\t\
             .reg .b32 %rocov_t, %rocov_m, %rocov_l, %rocov_c, %rocov_s;\n\t\
             .reg .b64 %rocov_a, %rocov_v, %rocov_w, %rocov_d;\n\t",
        );
        self.derive(&mut code);
        code.push_str(
            "activemask.b32 %rocov_m;\n\t\
             setp.ne.s32 %rocov_p, %rocov_m, -1;\n\t\
             @%rocov_p bra $rocov_part;\n\t",
        );
        self.find_large(&mut code);
        code.push_str(&self.base());
        code.push_str("mov.u32 %rocov_l, %laneid;\n\t");
        for first in (0..self.plan.ways.len()).step_by(WORD) {
            self.add_by_lane(&mut code, first);
        }
        let own = self.own();
        let _ = write!(code, "{opcode};\n$rocov_part:\n\t{own}{opcode};\n\t}}\n");
        code
    }

    /// Lane i of a whole warp adds for block `first` + i.
    fn add_by_lane(&self, code: &mut String, first: usize) {
        let end = self.plan.ways.len().min(first + WORD);
        let ways = &self.plan.ways[first..end];
        if ways.iter().all(|way| *way == Way::Direct) {
            return;
        }
        self.count_bits(code, first, ways);
        for (lane, way) in ways.iter().enumerate() {
            if let Way::Number(number) = way {
                let _ = write!(code, "cvt.u32.u64 %rocov_t, %rocov_n{number};\n\t");
                self.sum(code);
                let _ = write!(
                    code,
                    "setp.eq.u32 %rocov_p, %rocov_l, {lane};\n\t\
                     selp.b32 %rocov_c, %rocov_t, %rocov_c, %rocov_p;\n\t"
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
            self.vote(code, first + lane);
            let _ = write!(
                code,
                "setp.eq.u32 %rocov_p, %rocov_l, {lane};\n\t\
                 selp.b32 %rocov_c, %rocov_t, %rocov_c, %rocov_p;\n\t"
            );
        }
    }

    /// Sets `%rocov_t` to the number of lanes of a whole warp that have the bit of a block.
    fn vote(&self, code: &mut String, block: usize) {
        self.test_bit(code, block);
        code.push_str(
            "vote.sync.ballot.b32 %rocov_t, %rocov_p, 0xffffffff;\n\t\
             popc.b32 %rocov_t, %rocov_t;\n\t",
        );
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
        let (word, bit) = match source {
            Source::Block(block) => match self.plan.ways[block] {
                Way::Number(number) => return format!("%rocov_n{number}"),
                Way::Bit | Way::Direct => (format!("%rocov_b{}", block / WORD), block % WORD),
            },
            Source::Edge(edge) => match self.plan.derivation.edges[edge].counter {
                Counter::Register(number) => return format!("%rocov_f{number}"),
                Counter::Bit(bit) => (format!("%rocov_e{}", bit / WORD), bit % WORD),
            },
        };
        let _ = write!(
            code,
            "bfe.u32 %rocov_t, {word}, {bit}, 1;\n\tcvt.u64.u32 %rocov_v, %rocov_t;\n\t"
        );
        "%rocov_v".into()
    }

    /// Leads to the code for some lanes, which takes numbers of any size, if a register of one has more than
    /// [`MAX_BITS`] bits.
    fn find_large(&self, code: &mut String) {
        if self.plan.numbers == 0 {
            return;
        }
        code.push_str("mov.b64 %rocov_v, 0;\n\t");
        for number in 0..self.plan.numbers {
            let _ = write!(code, "or.b64 %rocov_v, %rocov_v, %rocov_n{number};\n\t");
        }
        let _ = write!(
            code,
            "setp.ge.u64 %rocov_p, %rocov_v, {:#x};\n\t\
             vote.sync.any.pred %rocov_p, %rocov_p, 0xffffffff;\n\t\
             @%rocov_p bra $rocov_part;\n\t",
            1_u64 << MAX_BITS
        );
    }
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
