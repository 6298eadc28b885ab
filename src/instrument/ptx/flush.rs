//! The code that brings counts from registers to memory.
//!
//! A warp whose lanes all leave together adds for all of them: lane i adds to probe i of 32, so one instruction
//! adds to 32 of them. The bits of the lanes are transposed: then lane i has bit i of all lanes, and counts them. Registers
//! are summed by `redux.sync` from sm_80 on, four at a time if their counts are small, else by five exchanges. Differences of
//! counts are differences of their sums, too. If only some lanes leave, or if one of them has a large count, each lane
//! adds its own: lanes that leave at another time may catch up with them, and then each sum for some lanes had those of others
//! in it (an H100 with driver 580 counted some blocks twice). Bits are an exception: most are equal in
//! all lanes that leave, and each of these lanes adds for a part of them. On others they vote, and ignore the votes of all
//! lanes that do not leave.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use crate::instrument::ptx::flow::{Counter, MAX_TERMS, Source};
use crate::instrument::ptx::plan::{Plan, Probe, WORD, Way, word_of};
use crate::instrument::ptx::unit::Unit;
use crate::instrument::ptx::widths::{HALF, Slot};

/// So many bits of a word are spread over bytes and summed, if the GPU has `redux.sync`.
const MAX_SPREAD: usize = 16;
/// If lanes have different bits, they vote on each, if a word has no more.
const MAX_VOTED: usize = 4;
/// They vote at once, without a look whether their bits are equal, if a word has no more.
const MAX_VOTED_AT_ONCE: usize = 1;
/// The bits of a word that the first lane adds, if lanes share the work. So many lanes share it at most, and the least power of
/// two of them at least.
const PARTS: [(u32, u32); 5] = [
    (2, 0x5555_5555),
    (4, 0x1111_1111),
    (8, 0x0101_0101),
    (16, 0x0001_0001),
    (32, 0x0000_0001),
];
/// The most bits of a count that a warp sums: 32 such counts have 32 bits in all.
const MAX_BITS: u32 = 27;
/// The most bits of a count that others follow from: these have [`MAX_TERMS`] such counts at most.
const MAX_SOURCE_BITS: u32 = MAX_BITS - MAX_TERMS.ilog2();
/// A warp with so many counts in registers looks first whether it can sum four at a time. For fewer, the look takes longer.
const MIN_PACKED: usize = 3;
/// The sums that are made at a time, each in so many bits.
const PACKED: usize = 4;
const PACKED_BITS: u32 = u32::BITS / PACKED as u32;
/// The most bits of a count in such a sum.
const MAX_PACKED_BITS: u32 = PACKED_BITS - WORD.ilog2();
/// The bit of a count of 16 bits that shows that there is little room.
const FULL: u32 = 1 << (HALF - 1);
/// A count that had this bit keeps so much, and no whole warp sums it. A word in local memory has the number of parts of
/// this size that were moved there.
const KEPT: u32 = 1 << KEPT_BITS;
const KEPT_BITS: u32 = HALF - 2;
/// Sets `%rocov_z` to the address of the function's words in local memory. The compiler keeps these in registers if it knows
/// all addresses, so a number that it does not know to be 0 is added. Volatile accesses would keep it from that, too, but
/// threads of a loop with these do not meet again: `zoom` from HeCBench then took 5 times its plain time.
const FIND_HIGH: &str = "mov.u64 %rocov_z, $rocov_high;\n\t\
    mov.u32 %rocov_o, %smid;\n\tshr.u32 %rocov_o, %rocov_o, 24;\n\t\
    mad.wide.u32 %rocov_z, %rocov_o, 4, %rocov_z;\n\t";
/// The bits of the numbers of lanes.
const DISTANCES: [u32; 5] = [16, 8, 4, 2, 1];
/// So many words of bits are counted at a time: while an exchange for one of them is under way, the others are exchanged, too.
const AT_ONCE: usize = 16;
/// How lanes take bytes of a word and of the one that they got from the lane at a distance: those without the bit of the
/// distance in their number, and those with it.
const BYTES: [(u32, u32, u32); 2] = [(16, 0x5410, 0x3276), (8, 0x6240, 0x3715)];
/// The bits that lanes take from the lane at a distance, after a rotation: those without the bit of the distance in their
/// number, and those with it.
const BITS: [(u32, u32, u32); 3] = [
    (4, 0xf0f0_f0f0, 0x0f0f_0f0f),
    (2, 0xcccc_cccc, 0x3333_3333),
    (1, 0xaaaa_aaaa, 0x5555_5555),
];

/// Writes the code for one function.
#[derive(Debug)]
pub(super) struct Flush<'a, 'text> {
    pub(super) unit: &'a Unit,
    pub(super) plan: &'a Plan<'text>,
    /// The number of the function's first probe in the unit.
    pub(super) first: usize,
    /// True if the GPU has `redux.sync`.
    pub(super) has_sums: bool,
    /// True if threads end where the function returns.
    pub(super) is_kernel: bool,
}

impl Flush<'_, '_> {
    /// The distance of a probe from the start of a copy, in bytes.
    fn offset(&self, probe: usize) -> usize {
        8 * (self.first + probe)
    }

    /// Sets `%rocov_a` to the address of the copy for the warp.
    fn base(&self) -> String {
        self.place("%rocov_a", None)
    }

    /// Sets a register to the address of the copy for the warp, or of the probe in it with the number in another register.
    /// `%rocov_t` becomes something else.
    fn place(&self, to: &str, probe: Option<&str>) -> String {
        let mut code = String::new();
        let mut index = probe.unwrap_or("0").to_owned();
        let copies = self.unit.copies();
        if copies > 1 {
            let _ = write!(
                code,
                "mov.u32 %rocov_t, %clock;\n\t\
                 and.b32 %rocov_t, %rocov_t, {};\n\t\
                 mad.lo.u32 %rocov_i, %rocov_t, {}, {index};\n\t",
                copies - 1,
                self.unit.stride() / 8
            );
            index = "%rocov_i".into();
        }
        let name = &self.unit.copies_name;
        let _ = write!(code, "mov.u64 {to}, __rocov_copies_area_{name};\n\t");
        if index != "0" {
            let _ = write!(code, "mad.wide.u32 {to}, {index}, 8, {to};\n\t");
        }
        code
    }

    /// Prepares for runs that are counted in memory, in registers for the whole call, if the function does that in loops. Or
    /// counts for a block of threads, if each of them runs all blocks.
    pub(super) fn open(&self) -> String {
        if self.plan.ways.contains(&Way::Each) {
            return self.of_each_thread();
        }
        if !self.plan.keeps_place {
            return String::new();
        }
        format!(
            "\n\t.reg .b64 %rocov_place;\n\t.reg .b32 %rocov_lower;\n\t\
             {{\n\t.reg .b32 %rocov_t, %rocov_i;\n\t{}\
             mov.u32 %rocov_lower, %lanemask_lt;\n\t}}",
            self.place("%rocov_place", None)
        )
    }

    /// Adds the number of threads of a block, in its first thread.
    fn of_each_thread(&self) -> String {
        let combined = |code: &mut String, register: &str, operation: &str| {
            let _ = write!(code, "mov.u32 %rocov_t, %{register}.x;\n\t");
            for dimension in ["y", "z"] {
                let _ = write!(
                    code,
                    "mov.u32 %rocov_i, %{register}.{dimension};\n\t\
                     {operation} %rocov_t, %rocov_t, %rocov_i;\n\t"
                );
            }
        };
        let mut code = String::from(
            "\n\t{\n\t.reg .pred %rocov_p;\n\t.reg .b32 %rocov_t, %rocov_i;\n\t\
             .reg .b64 %rocov_a, %rocov_v;\n\t",
        );
        combined(&mut code, "tid", "or.b32");
        code.push_str("setp.ne.u32 %rocov_p, %rocov_t, 0;\n\t@%rocov_p bra $rocov_other;\n\t");
        combined(&mut code, "ntid", "mul.lo.u32");
        let _ = write!(code, "cvt.u64.u32 %rocov_v, %rocov_t;\n\t{}", self.base());
        // The first thread has no lanes below it. An address that is equal in all lanes would make the compiler look for others
        // that add there.
        let _ = write!(
            code,
            "mov.u32 %rocov_t, %lanemask_lt;\n\t\
             mad.wide.u32 %rocov_a, %rocov_t, 8, %rocov_a;\n\t\
             red.global.add.u64 [%rocov_a+{}], %rocov_v;\n$rocov_other:\n\t}}",
            self.offset(0)
        );
        code
    }

    /// Counts one run of a block in memory, for all active lanes. Has no branch, so that it may be anywhere.
    pub(super) fn one(&self, block: usize) -> String {
        let (base, place, lower) = match self.plan.keeps_place {
            true => (String::new(), "%rocov_place", "%rocov_lower"),
            false => (self.base(), "%rocov_a", "%lanemask_lt"),
        };
        format!(
            "{{\n\t.reg .pred %rocov_p;\n\t.reg .b32 %rocov_t, %rocov_i, %rocov_m;\n\t.reg .b64 %rocov_a, %rocov_v;\n\t\
             activemask.b32 %rocov_m;\n\t\
             {base}\
             mov.u32 %rocov_t, {lower};\n\t\
             and.b32 %rocov_t, %rocov_t, %rocov_m;\n\t\
             setp.eq.u32 %rocov_p, %rocov_t, 0;\n\t\
             popc.b32 %rocov_m, %rocov_m;\n\t\
             cvt.u64.u32 %rocov_v, %rocov_m;\n\t\
             @%rocov_p red.global.add.u64 [{place}+{}], %rocov_v;\n\t}}\n\t",
            self.offset(self.plan.sums[block][0])
        )
    }

    /// Each lane adds all its counts, which are zeros then. Has no branch, so that it may be anywhere.
    pub(super) fn each_lane(&self) -> String {
        let mut code = format!(
            "{{\n\t.reg .pred %rocov_p;\n\t.reg .b32 %rocov_t, %rocov_i;\n\t.reg .b64 %rocov_a, %rocov_v, %rocov_w;\n\t{}{}",
            self.base(),
            self.own(Leaving::Alone)
        );
        code.push_str(&self.plan.zeros());
        code.push_str("\n\t");
        code.push_str("}\n\t");
        code
    }

    /// Each lane adds its own counts. Those that leave together add their bits later.
    fn own(&self, leaving: Leaving) -> String {
        let mut code = String::new();
        if let (Leaving::Alone, Some((word, bit))) = (leaving, &self.plan.has_high) {
            let _ = write!(
                code,
                "{FIND_HIGH}and.b32 %rocov_t, {word}, {bit:#x};\n\tsetp.ne.u32 %rocov_q, %rocov_t, 0;\n\t"
            );
        }
        for (number, probe) in self.plan.waiting_probes().iter().enumerate() {
            let offset = self.offset(number);
            let count = match probe {
                Probe::Register(source) => match self.register(*source) {
                    Register::Whole(slot) => self.whole(&mut code, slot, leaving),
                    Register::Bit(_) | Register::One => continue,
                },
                Probe::Difference(block) => {
                    self.derived(&mut code, &self.plan.derivation.blocks[block], leaving)
                }
                Probe::Bit if leaving == Leaving::Alone => {
                    test_bit(&mut code, number);
                    let _ = write!(
                        code,
                        "@%rocov_p red.global.add.u64 [%rocov_a+{offset}], 1;\n\t"
                    );
                    continue;
                }
                Probe::Bit | Probe::Call | Probe::Direct | Probe::Each => continue,
            };
            let add = format!("red.global.add.u64 [%rocov_a+{offset}], {count};\n");
            // Branches keep the compiler from loading several counts at once, which would take registers.
            let _ = match leaving {
                Leaving::WithHigh => write!(
                    code,
                    "setp.eq.u64 %rocov_p, {count}, 0;\n\t\
                     @%rocov_p bra $rocov_zero{number};\n\t\
                     {add}$rocov_zero{number}:\n\t"
                ),
                _ => write!(
                    code,
                    "setp.ne.u64 %rocov_p, {count}, 0;\n\t@%rocov_p {add}\t"
                ),
            };
        }
        code
    }

    /// The active lanes add their calls and their bits. Each adds for a part of the bits that all of them or none have set,
    /// and the first of them adds the others.
    fn shared(&self) -> String {
        let bits = self.plan.counted_bits();
        let call = self.probe_of_calls();
        if bits == 0 && call.is_none() {
            return String::new();
        }
        let mut code = String::from(
            "activemask.b32 %rocov_m;\n\t\
             popc.b32 %rocov_u, %rocov_m;\n\t\
             cvt.u64.u32 %rocov_d, %rocov_u;\n\t\
             mov.u32 %rocov_l, %lanemask_lt;\n\t\
             and.b32 %rocov_l, %rocov_l, %rocov_m;\n\t\
             setp.eq.u32 %rocov_r, %rocov_l, 0;\n\t",
        );
        if let Some(call) = call {
            // The first lane has no lanes below it. An address that is equal in all lanes would make the compiler look for
            // others that add there.
            let _ = write!(
                code,
                "mad.wide.u32 %rocov_v, %rocov_l, 8, %rocov_a;\n\t\
                 @%rocov_r red.global.add.u64 [%rocov_v+{}], %rocov_d;\n\t",
                self.offset(call)
            );
        }
        if bits == 0 {
            return code;
        }
        code.push_str(
            "popc.b32 %rocov_l, %rocov_l;\n\t\
             mov.b32 %rocov_y, 1;\n\t\
             mov.b32 %rocov_x, 0xffffffff;\n\t",
        );
        for (lanes, part) in PARTS {
            let _ = write!(
                code,
                "setp.ge.u32 %rocov_p, %rocov_u, {lanes};\n\t\
                 selp.b32 %rocov_y, {lanes}, %rocov_y, %rocov_p;\n\t\
                 selp.b32 %rocov_x, {part:#x}, %rocov_x, %rocov_p;\n\t"
            );
        }
        code.push_str(
            "shl.b32 %rocov_x, %rocov_x, %rocov_l;\n\t\
             setp.lt.u32 %rocov_p, %rocov_l, %rocov_y;\n\t\
             selp.b32 %rocov_x, %rocov_x, 0, %rocov_p;\n\t\
             brev.b32 %rocov_y, %rocov_m;\n\t\
             clz.b32 %rocov_y, %rocov_y;\n\t",
        );
        // All words at first, and then their additions: so no exchange waits for the one before.
        let words = bits.div_ceil(WORD);
        let _ = write!(code, ".reg .b32 %rocov_x<{words}>, %rocov_y<{words}>;\n\t");
        for word in 0..words {
            self.compare_word(&mut code, word);
        }
        for word in 0..words {
            self.share_word(&mut code, word);
        }
        code
    }

    /// The probe of the threads that call the function.
    fn probe_of_calls(&self) -> Option<usize> {
        let mut probes = self.plan.waiting_probes().iter();
        probes.position(|probe| *probe == Probe::Call)
    }

    /// The bits of a word that have probes.
    fn counted_bits(&self, word: usize) -> Range<usize> {
        let first = word * WORD;
        0..self.plan.counted_bits().clamp(first, first + WORD) - first
    }

    /// Sets `%rocov_y` of a word to the bits that differ, and `%rocov_x` of it to the bits that this lane adds of the others.
    /// `%rocov_y` is the number of the first lane, and `%rocov_x` the part of this lane.
    fn compare_word(&self, code: &mut String, word: usize) {
        let all = mask(&self.counted_bits(word));
        let name = word_of(word * WORD);
        // Lanes that catch up may add some to them: they have no votes then.
        code.push_str(&match self.has_sums {
            true => format!(
                "shfl.sync.idx.b32 %rocov_t, {name}, %rocov_y, 31, %rocov_m;\n\t\
                 xor.b32 %rocov_s, %rocov_t, {name};\n\t\
                 redux.sync.or.b32 %rocov_s, %rocov_s, %rocov_m;\n\t\
                 and.b32 %rocov_y{word}, %rocov_s, {all:#x};\n\t"
            ),
            false => format!("mov.b32 %rocov_y{word}, {all:#x};\n\t"),
        });
        let _ = write!(
            code,
            "not.b32 %rocov_c, %rocov_y{word};\n\t\
             and.b32 %rocov_t, {name}, %rocov_c;\n\t\
             and.b32 %rocov_t, %rocov_t, %rocov_x;\n\t\
             and.b32 %rocov_x{word}, %rocov_t, {all:#x};\n\t"
        );
    }

    /// Adds the bits of a word.
    fn share_word(&self, code: &mut String, word: usize) {
        let first = word * WORD;
        let name = word_of(first);
        let offset = self.offset(first);
        let (equal, different) = (format!("%rocov_x{word}"), format!("%rocov_y{word}"));
        let [take_equal, take_different] = [&equal, &different].map(|bits| take_bit(bits));
        let _ = write!(
            code,
            "bra $rocov_equal{word};\n\
             $rocov_equal{word}:\n\t\
             setp.eq.u32 %rocov_p, {equal}, 0;\n\t\
             @%rocov_p bra $rocov_differ{word};\n\t\
             {take_equal}\
             mul.wide.u32 %rocov_v, %rocov_u, 8;\n\t\
             add.u64 %rocov_v, %rocov_v, %rocov_a;\n\t\
             red.global.add.u64 [%rocov_v+{offset}], %rocov_d;\n\t\
             bra $rocov_equal{word};\n\
             $rocov_differ{word}:\n\t\
             setp.eq.u32 %rocov_p, {different}, 0;\n\t\
             @%rocov_p bra $rocov_added{word};\n\t\
             {take_different}\
             and.b32 %rocov_c, %rocov_c, {name};\n\t\
             setp.ne.u32 %rocov_p, %rocov_c, 0;\n\t\
             vote.sync.ballot.b32 %rocov_t, %rocov_p, %rocov_m;\n\t\
             and.b32 %rocov_t, %rocov_t, %rocov_m;\n\t\
             popc.b32 %rocov_t, %rocov_t;\n\t\
             setp.ne.and.u32 %rocov_p, %rocov_t, 0, %rocov_r;\n\t\
             mul.wide.u32 %rocov_v, %rocov_u, 8;\n\t\
             add.u64 %rocov_v, %rocov_v, %rocov_a;\n\t\
             cvt.u64.u32 %rocov_w, %rocov_t;\n\t\
             @%rocov_p red.global.add.u64 [%rocov_v+{offset}], %rocov_w;\n\t\
             bra $rocov_differ{word};\n\
             $rocov_added{word}:\n\t"
        );
    }

    /// Adds all counts of the active lanes, and ends with `opcode`.
    pub(super) fn at_exit(&self, opcode: &str) -> String {
        let mut code = String::from(
            "{\n\t.reg .pred %rocov_p, %rocov_r, %rocov_large, %rocov_many, %rocov_j<5>;\n\t\
             .reg .b32 %rocov_i, %rocov_t, %rocov_m, %rocov_l, %rocov_c, %rocov_s, %rocov_x, %rocov_y, %rocov_u, %rocov_bit;\n\t\
             .reg .b64 %rocov_a, %rocov_v, %rocov_w, %rocov_d;\n\t",
        );
        let place = format!(
            "mov.u32 %rocov_l, %laneid;\n\t{}",
            self.place("%rocov_a", Some("%rocov_l"))
        );
        if !self.is_kernel {
            code.push_str(".reg .b32 %rocov_here;\n\tactivemask.b32 %rocov_here;\n\t");
        }
        let find_whole = "activemask.b32 %rocov_m;\n\t\
                          setp.ne.s32 %rocov_p, %rocov_m, -1;\n\t\
                          @%rocov_p bra $rocov_part;\n\t";
        // The number of the lane takes long to arrive. A short flush is better without the addition for it
        // if it does not need it.
        let has_large = !self.plan.widths.largest.is_empty();
        code.push_str(&match has_large {
            true => place + find_whole,
            false => find_whole.to_owned() + &place,
        });
        code.push_str("mov.b32 %rocov_bit, 1;\n\tshl.b32 %rocov_bit, %rocov_bit, %rocov_l;\n\t");
        let sources = self.sources();
        let packed = self.packed(&sources);
        let waiting = self.plan.waiting_probes();
        let words = waiting.len().div_ceil(WORD);
        let is_packed =
            has_large && self.has_sums && packed.len() >= MIN_PACKED && words <= AT_ONCE;
        match is_packed {
            true => self.find_more_bits(&mut code, MAX_PACKED_BITS, "%rocov_many"),
            false => self.find_large(&mut code, &sources),
        }
        let sums = waiting.iter().filter(|probe| is_of_sum(**probe)).count();
        if sums > 0 {
            // Each sum and each choice has a register.
            let _ = write!(code, ".reg .b32 %rocov_i<{}>;\n\t", 2 * sums);
        }
        if sums > 0 || self.plan.counted_bits() > MAX_VOTED {
            for (bit, distance) in DISTANCES.iter().rev().enumerate() {
                let _ = write!(
                    code,
                    "and.b32 %rocov_t, %rocov_l, {distance};\n\tsetp.ne.u32 %rocov_j{bit}, %rocov_t, 0;\n\t"
                );
            }
        }
        let _ = write!(code, ".reg .b32 %rocov_e<{words}>;\n\t");
        if !sources.is_empty() {
            let _ = write!(code, ".reg .b32 %rocov_k<{}>;\n\t", sources.len());
        }
        let end = ended(opcode, self.is_kernel, "0xffffffff");
        if is_packed {
            self.find_alike(&mut code);
            self.count_bits(&mut code, 0..words);
            // The bits have been counted until the vote is known.
            code.push_str("@%rocov_many bra.uni $rocov_single;\n\t");
            self.sum_packed(&mut code, &packed, &sources);
            self.add_by_lane(&mut code, 0..words, &sources, Summing::Packed);
            let _ = write!(code, "{end}\n$rocov_single:\n\t");
            self.find_large(&mut code, &sources);
        }
        self.sum_sources(&mut code, &sources);
        if !is_packed {
            self.find_alike(&mut code);
        }
        // The sums do not wait for this vote, and are right if it leads nowhere.
        if has_large {
            code.push_str("@%rocov_large bra $rocov_part;\n\t");
        }
        for first in (0..words).step_by(AT_ONCE) {
            let words = first..words.min(first + AT_ONCE);
            if !is_packed {
                self.count_bits(&mut code, words.clone());
            }
            self.add_by_lane(&mut code, words, &sources, Summing::Single);
        }
        let _ = write!(code, "{end}\n$rocov_part:\n\t");
        code.push_str(&self.base());
        if let Some((word, bit)) = &self.plan.has_high {
            let own = self.own(Leaving::Together);
            let with_high = self.own(Leaving::WithHigh);
            let _ = write!(
                code,
                "and.b32 %rocov_t, {word}, {bit:#x};\n\t\
                 setp.ne.u32 %rocov_q, %rocov_t, 0;\n\t\
                 @%rocov_q bra $rocov_more;\n\t\
                 {own}bra $rocov_bits;\n\
                 $rocov_more:\n\t{FIND_HIGH}{with_high}bra $rocov_bits;\n\
                 $rocov_bits:\n\t"
            );
        } else {
            code.push_str(&self.own(Leaving::Together));
        }
        code.push_str(&self.shared());
        let _ = write!(
            code,
            "{}\n\t}}\n",
            ended(opcode, self.is_kernel, "%rocov_here")
        );
        code
    }

    /// Lane i of a whole warp adds to probe i of the 32 of each word. `%rocov_e` of the word has the count, if that is a bit.
    fn add_by_lane(
        &self,
        code: &mut String,
        words: Range<usize>,
        sources: &[Source],
        summing: Summing,
    ) {
        let waiting = self.plan.waiting_probes();
        let mut next = 0;
        for word in words {
            let first = word * WORD;
            let end = waiting.len().min(first + WORD);
            if let Some(call) = self
                .probe_of_calls()
                .filter(|call| (first..end).contains(call))
            {
                let _ = write!(
                    code,
                    "setp.eq.u32 %rocov_p, %rocov_l, {};\n\t\
                     selp.b32 %rocov_e{word}, {WORD}, %rocov_e{word}, %rocov_p;\n\t",
                    call - first
                );
            }
            let registers = self.plan.register_probes();
            let packed = match summing {
                Summing::Packed => registers.start.max(first)..registers.end.min(end),
                Summing::Single => first..first,
            };
            if !packed.is_empty() {
                choose_packed(code, packed.clone(), registers.start, first, &mut next);
                take(
                    code,
                    word,
                    "%rocov_c",
                    packed.start - first..packed.end - first,
                );
            }
            let is_single = |probe: usize| is_of_sum(waiting[probe]) && !packed.contains(&probe);
            let single = (first..end).filter(|probe| is_single(*probe));
            let start = single.min().unwrap_or(end);
            if let Some(sum) = self.choose(code, first, WORD, start, sources, &mut next) {
                take(code, word, &sum, start - first..end - first);
            }
            let _ = write!(
                code,
                "setp.ne.u32 %rocov_p, %rocov_e{word}, 0;\n\t\
                 cvt.u64.u32 %rocov_d, %rocov_e{word};\n\t\
                 @%rocov_p red.global.add.u64 [%rocov_a+{}], %rocov_d;\n\t",
                self.offset(first)
            );
        }
    }

    /// The register that has the sum for its probe in each lane of those that add to one of `size` probes from `first` on by
    /// a sum, and not before `start`. Each step chooses between the halves.
    fn choose(
        &self,
        code: &mut String,
        first: usize,
        size: usize,
        start: usize,
        sources: &[Source],
        next: &mut usize,
    ) -> Option<String> {
        let half = size / 2;
        if half == 0 {
            if first < start {
                return None;
            }
            let sum = match self.plan.waiting_probes().get(first)? {
                Probe::Difference(block) => {
                    add_terms(code, &self.plan.derivation.blocks[block], sources)
                }
                Probe::Register(source) => match position(sources, *source) {
                    Some(summed) => return Some(format!("%rocov_k{summed}")),
                    None => self.sum_of(code, *source),
                },
                Probe::Bit | Probe::Call | Probe::Direct | Probe::Each => return None,
            };
            let name = format!("%rocov_i{next}");
            *next += 1;
            let _ = write!(code, "mov.b32 {name}, {sum};\n\t");
            return Some(name);
        }
        let low = self.choose(code, first, half, start, sources, next);
        let high = self.choose(code, first + half, half, start, sources, next);
        let (Some(low), Some(high)) = (&low, &high) else {
            return low.or(high);
        };
        let level = half.ilog2();
        let name = format!("%rocov_i{next}");
        *next += 1;
        let _ = write!(code, "selp.b32 {name}, {high}, {low}, %rocov_j{level};\n\t");
        Some(name)
    }

    /// Sets `%rocov_r` if not all lanes of a whole warp have equal bits.
    fn find_alike(&self, code: &mut String) {
        let words = 0..self.plan.counted_bits().div_ceil(WORD);
        let words = words.filter(|word| self.counted_bits(*word).len() > MAX_VOTED_AT_ONCE);
        let words: Vec<usize> = words.collect();
        for (number, word) in words.iter().enumerate() {
            let _ = write!(
                code,
                "shfl.sync.idx.b32 %rocov_s, %rocov_b{word}, 0, 31, 0xffffffff;\n\t"
            );
            code.push_str(&match number {
                0 => format!("setp.ne.u32 %rocov_p, %rocov_s, %rocov_b{word};\n\t"),
                _ => format!("setp.ne.or.u32 %rocov_p, %rocov_s, %rocov_b{word}, %rocov_p;\n\t"),
            });
        }
        if !words.is_empty() {
            code.push_str("vote.sync.any.pred %rocov_r, %rocov_p, 0xffffffff;\n\t");
        }
    }

    /// Sets `%rocov_e` of each of these words in lane i of a whole warp to the number of lanes that have bit i of the word, of
    /// those with probes.
    fn count_bits(&self, code: &mut String, words: Range<usize>) {
        let first = words.start;
        let mut compared = Vec::new();
        for word in words {
            let bits = self.counted_bits(word);
            if bits.is_empty() {
                let _ = write!(code, "mov.b32 %rocov_e{word}, 0;\n\t");
            } else if bits.len() <= MAX_VOTED_AT_ONCE {
                vote_on_each(code, word, bits);
            } else {
                compared.push((word, bits));
            }
        }
        if compared.is_empty() {
            return;
        }
        let _ = write!(code, "@%rocov_r bra.uni $rocov_other{first};\n\t");
        for (word, bits) in &compared {
            let all = mask(bits);
            let _ = write!(
                code,
                "and.b32 %rocov_c, %rocov_b{word}, {all:#x};\n\t\
                 shr.u32 %rocov_c, %rocov_c, %rocov_l;\n\t\
                 and.b32 %rocov_c, %rocov_c, 1;\n\t\
                 shl.b32 %rocov_e{word}, %rocov_c, 5;\n\t"
            );
        }
        let _ = write!(
            code,
            "bra.uni $rocov_counted{first};\n$rocov_other{first}:\n\t"
        );
        let mut others = Vec::new();
        for (word, bits) in compared {
            if bits.len() <= MAX_VOTED {
                vote_on_each(code, word, bits);
            } else if self.has_sums && bits.len() <= MAX_SPREAD {
                spread(code, word, bits.len());
            } else {
                others.push((word, mask(&bits)));
            }
        }
        if !others.is_empty() {
            transpose(code, &others);
        }
        let _ = write!(
            code,
            "bra.uni $rocov_counted{first};\n$rocov_counted{first}:\n\t"
        );
    }

    /// The counts that those of [`Probe::Difference`] follow from.
    fn sources(&self) -> Vec<Source> {
        let probes = self.plan.waiting_probes().iter();
        let derived = probes.filter_map(|probe| match probe {
            Probe::Difference(block) => self.plan.derivation.blocks.get(block),
            _ => None,
        });
        let sources: BTreeSet<Source> = derived.flatten().map(|(source, _)| *source).collect();
        sources.into_iter().collect()
    }

    /// Sets `%rocov_k` of each source to its sum over the lanes of a whole warp.
    fn sum_sources(&self, code: &mut String, sources: &[Source]) {
        for (number, source) in sources.iter().enumerate() {
            let sum = self.sum_of(code, *source);
            let _ = write!(code, "mov.b32 %rocov_k{number}, {sum};\n\t");
        }
    }

    /// The counts in registers that can be summed together: those with probes, and then those that only others follow from.
    fn packed(&self, sources: &[Source]) -> Vec<(Source, Slot)> {
        let mut packed: Vec<Source> = self.plan.register_sources().collect();
        let others = sources.iter().filter(|source| !packed.contains(source));
        packed.extend(Vec::from_iter(others.copied()));
        let registers = packed
            .into_iter()
            .filter_map(|source| Some((source, self.plan.slot_of(source)?)));
        registers.collect()
    }

    /// Sets the bytes of each `%rocov_sum` to the sums of [`PACKED`] counts over the lanes of a whole warp, and `%rocov_k` of each
    /// source to its sum.
    fn sum_packed(&self, code: &mut String, packed: &[(Source, Slot)], sources: &[Source]) {
        let _ = write!(
            code,
            ".reg .b32 %rocov_sum<{}>;\n\t",
            packed.len().div_ceil(PACKED)
        );
        for (number, counts) in packed.chunks(PACKED).enumerate() {
            self.pack(code, counts);
            self.sum(code);
            let _ = write!(code, "mov.b32 %rocov_sum{number}, %rocov_t;\n\t");
        }
        for (number, source) in sources.iter().enumerate() {
            let place = packed.iter().position(|(packed, _)| packed == source);
            match place {
                Some(place) => {
                    let _ = write!(
                        code,
                        "bfe.u32 %rocov_k{number}, %rocov_sum{}, {}, {PACKED_BITS};\n\t",
                        place / PACKED,
                        PACKED_BITS * (place % PACKED) as u32
                    );
                }
                None => {
                    let sum = self.sum_of(code, *source);
                    let _ = write!(code, "mov.b32 %rocov_k{number}, {sum};\n\t");
                }
            }
        }
    }

    /// Sets the bytes of `%rocov_t` to counts with few bits.
    fn pack(&self, code: &mut String, counts: &[(Source, Slot)]) {
        let widths = &self.plan.widths;
        let mut registers: Vec<String> =
            counts.iter().map(|(_, slot)| widths.name(*slot)).collect();
        registers.dedup();
        let has_wide = counts.iter().any(|(_, slot)| widths.is_wide(*slot));
        if !has_wide && let [low] | [low, _] = registers.as_slice() {
            let high = registers.last().unwrap_or(low);
            // The second byte of a count with few bits is 0.
            let zeros = 0x1111_u32 << (4 * counts.len());
            let bytes = counts.iter().enumerate().map(|(place, (_, slot))| {
                let is_high = u32::from(widths.name(*slot) != *low);
                (4 * is_high + widths.shift(*slot) / 8) << (4 * place)
            });
            let bytes = bytes.fold(zeros & 0xffff, |all, byte| all | byte);
            let _ = write!(code, "prmt.b32 %rocov_t, {low}, {high}, {bytes:#x};\n\t");
            return;
        }
        code.push_str("mov.b32 %rocov_t, 0;\n\t");
        for (place, (_, slot)) in counts.iter().enumerate() {
            self.low(code, "%rocov_u", *slot);
            let _ = write!(
                code,
                "mad.lo.u32 %rocov_t, %rocov_u, {:#x}, %rocov_t;\n\t",
                1_u32 << (PACKED_BITS * place as u32)
            );
        }
    }

    /// The sum of a count over the lanes of a whole warp: a register, or a number.
    fn sum_of(&self, code: &mut String, source: Source) -> String {
        match self.register(source) {
            Register::Whole(slot) => self.summed(code, slot),
            Register::Bit(bit) => {
                vote(code, bit);
                "%rocov_t".into()
            }
            Register::One => WORD.to_string(),
        }
    }

    /// The register with the sum of a count over the lanes of a whole warp.
    fn summed(&self, code: &mut String, slot: Slot) -> String {
        self.low(code, "%rocov_t", slot);
        self.sum(code);
        "%rocov_t".into()
    }

    /// Sets a register to the low 32 bits of a count.
    fn low(&self, code: &mut String, to: &str, slot: Slot) {
        let widths = &self.plan.widths;
        let name = widths.name(slot);
        let _ = match (widths.is_wide(slot), widths.shift(slot)) {
            (true, _) => write!(code, "cvt.u32.u64 {to}, {name};\n\t"),
            (false, 0) => write!(code, "and.b32 {to}, {name}, {:#x};\n\t", (1 << HALF) - 1),
            (false, shift) => write!(code, "shr.u32 {to}, {name}, {shift};\n\t"),
        };
    }

    /// Sums `%rocov_t` over the lanes of a whole warp.
    fn sum(&self, code: &mut String) {
        if self.has_sums {
            code.push_str("redux.sync.add.u32 %rocov_t, %rocov_t, 0xffffffff;\n\t");
            return;
        }
        for distance in DISTANCES {
            let _ = write!(
                code,
                "shfl.sync.bfly.b32 %rocov_s, %rocov_t, {distance}, 31, 0xffffffff;\n\t\
                 add.u32 %rocov_t, %rocov_t, %rocov_s;\n\t"
            );
        }
    }

    /// The register with a count that follows from others.
    fn derived(&self, code: &mut String, terms: &[(Source, i64)], leaving: Leaving) -> String {
        code.push_str("mov.b64 %rocov_w, 0;\n\t");
        for (source, factor) in terms {
            let term = match self.register(*source) {
                Register::Whole(slot) => self.whole(code, slot, leaving),
                Register::Bit(bit) => {
                    let _ = write!(
                        code,
                        "bfe.u32 %rocov_t, {}, {}, 1;\n\tcvt.u64.u32 %rocov_v, %rocov_t;\n\t",
                        word_of(bit),
                        bit % WORD
                    );
                    "%rocov_v".into()
                }
                Register::One => "1".into(),
            };
            let operation = if *factor > 0 { "add" } else { "sub" };
            for _ in 0..factor.unsigned_abs() {
                let _ = write!(code, "{operation}.u64 %rocov_w, %rocov_w, {term};\n\t");
            }
        }
        "%rocov_w".into()
    }

    /// The register of 64 bits with a count that the thread has in a register, and in its local memory.
    fn whole(&self, code: &mut String, slot: Slot, leaving: Leaving) -> String {
        let widths = &self.plan.widths;
        let name = widths.name(slot);
        if widths.is_wide(slot) {
            return name;
        }
        self.low(code, "%rocov_t", slot);
        code.push_str("cvt.u64.u32 %rocov_v, %rocov_t;\n\t");
        let guard = match leaving {
            Leaving::Together => return "%rocov_v".into(),
            Leaving::WithHigh => "",
            Leaving::Alone => "@%rocov_q ",
        };
        if let Some(high) = widths.high(slot) {
            let _ = write!(
                code,
                "{guard}ld.local.u32 %rocov_t, {high};\n\t\
                 {guard}mad.wide.u32 %rocov_v, %rocov_t, {KEPT:#x}, %rocov_v;\n\t"
            );
        }
        "%rocov_v".into()
    }

    /// Leads threads with a count that has little room to code that makes some, at the head of a loop.
    pub(super) fn check(&self, head: usize) -> String {
        let Some(slots) = self.plan.widths.tested.get(&head) else {
            return String::new();
        };
        let mut code = self.any_bits(slots, FULL, "%rocov_o");
        let _ = write!(
            code,
            "setp.ne.u32 %rocov_q, %rocov_o, 0;\n\t\
             @%rocov_q bra $rocov_full{head};\n$rocov_room{head}:\n\t"
        );
        code
    }

    /// Sets a register to a number that is not 0 if one of these counts of 16 bits has one of these bits.
    fn any_bits(&self, slots: &[Slot], bits: u32, to: &str) -> String {
        let mut masks: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (register, mask) in self.plan.widths.masks(slots, bits) {
            masks.entry(mask).or_default().push(register);
        }
        let mut code = String::new();
        for (number, (mask, registers)) in masks.iter().enumerate() {
            let part = if number == 0 { to } else { "%rocov_h" };
            let _ = write!(code, "mov.b32 {part}, %rocov_n{};\n\t", registers[0]);
            for register in &registers[1..] {
                let _ = write!(code, "or.b32 {part}, {part}, %rocov_n{register};\n\t");
            }
            let _ = write!(code, "and.b32 {part}, {part}, {mask:#x};\n\t");
            if number > 0 {
                let _ = write!(code, "or.b32 {to}, {to}, {part};\n\t");
            }
        }
        code
    }

    /// The code that makes room: it moves all of a count but [`KEPT`] and what fits under it to local memory.
    pub(super) fn make_room(&self) -> String {
        let widths = &self.plan.widths;
        let mut code = String::new();
        let Some((word, bit)) = &self.plan.has_high else {
            return code;
        };
        for (head, slots) in &widths.checks {
            let _ = write!(
                code,
                "$rocov_full{head}:\n\t{FIND_HIGH}\
                 and.b32 %rocov_o, {word}, {bit:#x};\n\t\
                 setp.eq.u32 %rocov_q, %rocov_o, 0;\n\t\
                 or.b32 {word}, {word}, {bit:#x};\n\t"
            );
            for high in widths.checked.iter().filter_map(|slot| widths.high(*slot)) {
                let _ = write!(code, "@%rocov_q st.local.u32 {high}, 0;\n\t");
            }
            // Branches keep the compiler from doing several at once, which would take registers.
            for (place, slot) in slots.iter().enumerate() {
                let (name, high) = (widths.name(*slot), widths.high(*slot));
                let high = high.unwrap_or_default();
                let next = format!("$rocov_next{head}_{place}");
                let shift = KEPT_BITS + widths.shift(*slot);
                let _ = write!(
                    code,
                    "and.b32 %rocov_o, {name}, {:#x};\n\t\
                     setp.eq.u32 %rocov_q, %rocov_o, 0;\n\t\
                     @%rocov_q bra {next};\n\t\
                     ld.local.u32 %rocov_h, {high};\n\t\
                     bfe.u32 %rocov_o, {name}, {shift}, {};\n\t\
                     sub.u32 %rocov_o, %rocov_o, 1;\n\t\
                     add.u32 %rocov_h, %rocov_h, %rocov_o;\n\t\
                     st.local.u32 {high}, %rocov_h;\n\t\
                     shl.b32 %rocov_o, %rocov_o, {shift};\n\t\
                     sub.u32 {name}, {name}, %rocov_o;\n{next}:\n\t",
                    FULL << widths.shift(*slot),
                    HALF - KEPT_BITS
                );
            }
            let _ = writeln!(code, "bra $rocov_room{head};");
        }
        code
    }

    /// The place of a count of the thread.
    fn register(&self, source: Source) -> Register {
        match source {
            Source::Block(block) => match self.plan.ways[block] {
                Way::Number(number) => Register::Whole(Slot::Block(number)),
                Way::As(other) => self.register(Source::Block(other)),
                Way::Bit(bit) => Register::Bit(bit),
                _ => Register::One,
            },
            Source::Edge(edge) => match self.plan.derivation.edges[edge].counter {
                Counter::Register(number) => Register::Whole(Slot::Edge(number)),
                Counter::Bit(number) => Register::Bit(self.plan.edge_bits[number]),
            },
        }
    }

    /// Sets `%rocov_large` if a count of a lane has more bits than a sum takes. The code for some lanes takes numbers of any
    /// size.
    fn find_large(&self, code: &mut String, sources: &[Source]) {
        let most = match sources.is_empty() {
            true => MAX_BITS,
            false => MAX_SOURCE_BITS,
        };
        self.find_more_bits(code, most, "%rocov_large");
    }

    /// Sets a predicate in a whole warp if a count of a lane has more bits than these.
    fn find_more_bits(&self, code: &mut String, bits: u32, found: &str) {
        let most = 1_u32 << bits;
        let slots = &self.plan.widths.largest;
        let (wide, narrow): (Vec<Slot>, Vec<Slot>) = slots
            .iter()
            .copied()
            .partition(|slot| self.plan.widths.is_wide(*slot));
        if slots.is_empty() {
            return;
        }
        if !narrow.is_empty() {
            // A whole warp sums no count that was moved.
            let bits = u32::MAX << bits.min(KEPT_BITS) & ((1 << HALF) - 1);
            code.push_str(&self.any_bits(&narrow, bits, "%rocov_t"));
            code.push_str("setp.ne.u32 %rocov_p, %rocov_t, 0;\n\t");
        }
        if !wide.is_empty() {
            code.push_str("mov.b64 %rocov_v, 0;\n\t");
            for slot in &wide {
                let name = self.plan.widths.name(*slot);
                let _ = write!(code, "or.b64 %rocov_v, %rocov_v, {name};\n\t");
            }
            code.push_str(&match narrow.is_empty() {
                true => format!("setp.ge.u64 %rocov_p, %rocov_v, {most:#x};\n\t"),
                false => format!("setp.ge.or.u64 %rocov_p, %rocov_v, {most:#x}, %rocov_p;\n\t"),
            });
        }
        let _ = write!(
            code,
            "vote.sync.any.pred {found}, %rocov_p, 0xffffffff;\n\t"
        );
    }
}

/// How a whole warp sums counts in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Summing {
    /// One at a time.
    Single,
    /// [`PACKED`] at a time: all have few bits in all lanes.
    Packed,
}

/// How lanes that are not a whole warp bring their counts to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// None has counts in local memory. They add their bits later.
    Together,
    /// Each has counts in local memory. They add their bits later.
    WithHigh,
    /// Each by itself, without branches.
    Alone,
}

/// The place of a count of a thread.
enum Register {
    /// A register, or half of one.
    Whole(Slot),
    /// The bit with this number.
    Bit(usize),
    /// Nowhere: each call counts one.
    One,
}

/// Returns whether a probe gets a sum over a warp that is made by itself.
fn is_of_sum(probe: Probe) -> bool {
    matches!(probe, Probe::Register(_) | Probe::Difference(_))
}

/// The end of a call, for these lanes. In a function, they meet before it: the compiler lets those return first that have nothing
/// to add, and the caller would go on with each of these parts of a warp by itself.
pub(super) fn ended(opcode: &str, is_kernel: bool, lanes: &str) -> String {
    match opcode.split('.').next() {
        Some("ret") if !is_kernel => format!("bar.warp.sync {lanes};\n\t{opcode};"),
        _ => format!("{opcode};"),
    }
}

/// Sets `%rocov_c` to its sum in the lane of each of these probes, which are among those of the lanes from the one of `first` on.
/// The first byte of `%rocov_sum0` has the sum for the probe `origin`, and the others those for the next ones.
fn choose_packed(
    code: &mut String,
    probes: Range<usize>,
    origin: usize,
    first: usize,
    next: &mut usize,
) {
    let groups = (probes.start - origin) / PACKED..(probes.end - origin).div_ceil(PACKED);
    let _ = write!(
        code,
        "add.u32 %rocov_u, %rocov_l, {:#x};\n\t",
        (first as u32).wrapping_sub(origin as u32)
    );
    let mut groups = Vec::from_iter(groups.map(|group| (group, format!("%rocov_sum{group}"))));
    let mut distance = PACKED;
    while groups.len() > 1 {
        let _ = write!(
            code,
            "and.b32 %rocov_t, %rocov_u, {distance:#x};\n\tsetp.ne.u32 %rocov_p, %rocov_t, 0;\n\t"
        );
        let mut halved: Vec<(usize, String)> = Vec::new();
        for (group, high) in groups {
            match halved.last_mut() {
                Some((half, low)) if *half == group / 2 => {
                    let name = format!("%rocov_i{next}");
                    *next += 1;
                    let _ = write!(code, "selp.b32 {name}, {high}, {low}, %rocov_p;\n\t");
                    *low = name;
                }
                _ => halved.push((group / 2, high)),
            }
        }
        groups = halved;
        distance *= 2;
    }
    // The byte of the lane, and three zeros.
    let _ = write!(
        code,
        "and.b32 %rocov_s, %rocov_u, {:#x};\n\t\
         or.b32 %rocov_s, %rocov_s, 0x4440;\n\t\
         prmt.b32 %rocov_c, {}, 0, %rocov_s;\n\t",
        PACKED - 1,
        groups[0].1
    );
}

/// Sets `%rocov_e` of a word to a sum in these lanes.
fn take(code: &mut String, word: usize, sum: &str, lanes: Range<usize>) {
    is_of_lanes(code, mask(&lanes));
    let _ = write!(
        code,
        "selp.b32 %rocov_e{word}, {sum}, %rocov_e{word}, %rocov_p;\n\t"
    );
}

/// The word with these bits.
fn mask(bits: &Range<usize>) -> u32 {
    bits.clone().fold(0, |all, bit| all | 1 << bit)
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

/// Counts each of these bits of a word by a vote: sets `%rocov_e` of the word in lane i to the number of lanes that have bit i.
fn vote_on_each(code: &mut String, word: usize, bits: Range<usize>) {
    code.push_str("mov.b32 %rocov_c, 0;\n\t");
    for bit in bits {
        ballot(code, word * WORD + bit);
        let _ = write!(
            code,
            "setp.eq.u32 %rocov_p, %rocov_l, {bit};\n\t\
             selp.b32 %rocov_c, %rocov_t, %rocov_c, %rocov_p;\n\t"
        );
    }
    let _ = write!(code, "popc.b32 %rocov_e{word}, %rocov_c;\n\t");
}

/// Sets `%rocov_t` to the number of lanes of a whole warp that have a bit.
fn vote(code: &mut String, bit: usize) {
    ballot(code, bit);
    code.push_str("popc.b32 %rocov_t, %rocov_t;\n\t");
}

/// Sets `%rocov_t` to the lanes of a whole warp that have a bit.
fn ballot(code: &mut String, bit: usize) {
    test_bit(code, bit);
    code.push_str("vote.sync.ballot.b32 %rocov_t, %rocov_p, 0xffffffff;\n\t");
}

/// Sets `%rocov_p` in these lanes. `%rocov_bit` is the bit of the lane.
fn is_of_lanes(code: &mut String, lanes: u32) {
    let _ = write!(
        code,
        "and.b32 %rocov_t, %rocov_bit, {lanes:#x};\n\t\
         setp.ne.u32 %rocov_p, %rocov_t, 0;\n\t"
    );
}

/// Sets `%rocov_p` to a bit.
fn test_bit(code: &mut String, bit: usize) {
    let _ = write!(
        code,
        "and.b32 %rocov_t, {}, {:#x};\n\tsetp.ne.u32 %rocov_p, %rocov_t, 0;\n\t",
        word_of(bit),
        1_u32 << (bit % WORD)
    );
}

/// Takes the highest bit out of a register that is not 0: `%rocov_u` is its number, and `%rocov_c` has it alone.
fn take_bit(register: &str) -> String {
    format!(
        "bfind.u32 %rocov_u, {register};\n\t\
         mov.b32 %rocov_c, 1;\n\t\
         shl.b32 %rocov_c, %rocov_c, %rocov_u;\n\t\
         xor.b32 {register}, {register}, %rocov_c;\n\t"
    )
}

/// Sets `%rocov_e` of a word in lane i to the number of lanes that have bit i of the word, for the first `end` bits, and to 0 in
/// the other lanes.
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
         selp.b32 %rocov_e{word}, %rocov_c, 0, %rocov_p;\n\t"
    );
}

/// Sets `%rocov_e` of each word in lane i to the number of lanes that have bit i of the word, for the bits in its mask.
///
/// Each step exchanges the halves of the matrix of lanes and bits whose numbers differ in one bit (Warren, "Hacker's
/// Delight", 7-3). `%rocov_j` says which bits the number of the lane has.
fn transpose(code: &mut String, words: &[(usize, u32)]) {
    for (word, all) in words {
        let _ = write!(
            code,
            "and.b32 %rocov_e{word}, %rocov_b{word}, {all:#x};\n\t"
        );
    }
    let mut exchange = |distance: u32, chosen: String, merged: &dyn Fn(&str) -> String| {
        code.push_str(&chosen);
        for (word, _) in words {
            let count = format!("%rocov_e{word}");
            let _ = write!(
                code,
                "shfl.sync.bfly.b32 %rocov_t, {count}, {distance}, 31, 0xffffffff;\n\t{}",
                merged(&count)
            );
        }
    };
    for (distance, low, high) in BYTES {
        let chosen = format!(
            "selp.b32 %rocov_s, {high:#x}, {low:#x}, %rocov_j{};\n\t",
            distance.ilog2()
        );
        exchange(distance, chosen, &|count| {
            format!("prmt.b32 {count}, {count}, %rocov_t, %rocov_s;\n\t")
        });
    }
    for (distance, low, high) in BITS {
        let bit = distance.ilog2();
        let chosen = format!(
            "selp.b32 %rocov_s, {high:#x}, {low:#x}, %rocov_j{bit};\n\t\
             selp.b32 %rocov_u, {}, {distance}, %rocov_j{bit};\n\t",
            u32::BITS - distance
        );
        exchange(distance, chosen, &|count| {
            format!(
                "shf.l.wrap.b32 %rocov_t, %rocov_t, %rocov_t, %rocov_u;\n\t\
                 lop3.b32 {count}, %rocov_t, %rocov_s, {count}, 0xe2;\n\t"
            )
        });
    }
    for (word, _) in words {
        let _ = write!(code, "popc.b32 %rocov_e{word}, %rocov_e{word};\n\t");
    }
}
