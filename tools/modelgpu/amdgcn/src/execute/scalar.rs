//! Scalar arithmetic, logic and comparisons: SOP1, SOP2, SOPC, SOPK.

use super::value::{Kind, Value};
use super::{Operation, scalar_source};
use crate::error::Fault;
use crate::isa::{Instruction, Operand};
use crate::wave::Wave;

#[derive(Clone, Copy)]
pub(crate) enum ScalarOperation {
    Compute {
        /// From the sources and SCC to the result and the new SCC.
        run: fn(u64, u64, bool) -> (u64, bool),
        sources: [Kind; 2],
        result: Kind,
        writes_scc: bool,
    },
    /// Writes the result only if SCC is set.
    ConditionalMove(Kind),
    /// Sets or clears one bit of the result register.
    SetBit(bool),
    /// Combines EXEC with the source and writes EXEC; the result is the old or the new EXEC.
    UpdateExec {
        run: fn(u64, u64) -> u64,
        result: ExecResult,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum ExecResult {
    Old,
    New,
}

/// A scalar operation from a closure. `Keep` leaves SCC alone, `Nonzero` sets it when the result
/// is not zero, `Flag` lets the closure say, `Test` has no other result, and `Select` reads it.
macro_rules! scalar {
    (Keep, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, None, $R, false, |a, _b, scc| {
            let $a = <$A as Value>::from_bits(a);
            let result: $R = $body;
            (result.to_bits(), scc)
        })
    };
    (Keep, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, false, |a, b, scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), scc)
        })
    };
    (Nonzero, |$a:ident: $A:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, None, $R, true, |a, _b, _scc| {
            let $a = <$A as Value>::from_bits(a);
            let result: $R = $body;
            (result.to_bits(), result != 0)
        })
    };
    (Nonzero, |$a:ident: $A:ty, $b:ident: $B:ty| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, true, |a, b, _scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), result != 0)
        })
    };
    (Flag, |$a:ident: $A:ty, $b:ident: $B:ty, $scc:ident: bool| -> ($R:ty, bool) $body:block) => {
        scalar!(@ $A, $B, $R, true, |a, b, $scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let (result, flag): ($R, bool) = $body;
            (result.to_bits(), flag)
        })
    };
    (Select, |$a:ident: $A:ty, $b:ident: $B:ty, $scc:ident: bool| -> $R:ty $body:block) => {
        scalar!(@ $A, $B, $R, false, |a, b, $scc| {
            let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
            let result: $R = $body;
            (result.to_bits(), $scc)
        })
    };
    (Test, |$a:ident: $A:ty, $b:ident: $B:ty| -> bool $body:block) => {
        Operation::Scalar(ScalarOperation::Compute {
            run: |a, b, _scc| {
                let ($a, $b) = (<$A as Value>::from_bits(a), <$B as Value>::from_bits(b));
                (0, $body)
            },
            sources: [<$A as Value>::KIND, <$B as Value>::KIND],
            result: Kind::None,
            writes_scc: true,
        })
    };
    (@ $A:ty, None, $R:ty, $writes:literal, $run:expr) => {
        scalar!(@@ <$A as Value>::KIND, Kind::None, $R, $writes, $run)
    };
    (@ $A:ty, $B:ty, $R:ty, $writes:literal, $run:expr) => {
        scalar!(@@ <$A as Value>::KIND, <$B as Value>::KIND, $R, $writes, $run)
    };
    (@@ $a:expr, $b:expr, $R:ty, $writes:literal, $run:expr) => {
        Operation::Scalar(ScalarOperation::Compute {
            run: $run,
            sources: [$a, $b],
            result: <$R as Value>::KIND,
            writes_scc: $writes,
        })
    };
}

/// A sum whose first term is shifted; SCC tells of an overflow of the whole.
macro_rules! shifted_add {
    ($shift:literal) => {
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            let sum = (u64::from(a) << $shift) + u64::from(b);
            (sum as u32, sum >> 32 != 0)
        })
    };
}

const fn old_exec(run: fn(u64, u64) -> u64) -> Operation {
    Operation::Scalar(ScalarOperation::UpdateExec {
        run,
        result: ExecResult::Old,
    })
}

const fn new_exec(run: fn(u64, u64) -> u64) -> Operation {
    Operation::Scalar(ScalarOperation::UpdateExec {
        run,
        result: ExecResult::New,
    })
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    // Moves and selections.
    ("s_mov_b32", scalar!(Keep, |a: u32| -> u32 { a })),
    ("s_mov_b64", scalar!(Keep, |a: u64| -> u64 { a })),
    ("s_movk_i32", scalar!(Keep, |a: u32| -> u32 { a })),
    (
        "s_cmov_b32",
        Operation::Scalar(ScalarOperation::ConditionalMove(Kind::B32)),
    ),
    (
        "s_cmov_b64",
        Operation::Scalar(ScalarOperation::ConditionalMove(Kind::B64)),
    ),
    (
        "s_cmovk_i32",
        Operation::Scalar(ScalarOperation::ConditionalMove(Kind::B32)),
    ),
    (
        "s_cselect_b32",
        scalar!(Select, |a: u32, b: u32, scc: bool| -> u32 {
            if scc { a } else { b }
        }),
    ),
    (
        "s_cselect_b64",
        scalar!(Select, |a: u64, b: u64, scc: bool| -> u64 {
            if scc { a } else { b }
        }),
    ),
    // Logic.
    ("s_not_b32", scalar!(Nonzero, |a: u32| -> u32 { !a })),
    ("s_not_b64", scalar!(Nonzero, |a: u64| -> u64 { !a })),
    (
        "s_and_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a & b }),
    ),
    (
        "s_and_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a & b }),
    ),
    (
        "s_or_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a | b }),
    ),
    (
        "s_or_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a | b }),
    ),
    (
        "s_xor_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a ^ b }),
    ),
    (
        "s_xor_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a ^ b }),
    ),
    (
        "s_andn2_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a & !b }),
    ),
    (
        "s_andn2_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a & !b }),
    ),
    (
        "s_orn2_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a | !b }),
    ),
    (
        "s_orn2_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { a | !b }),
    ),
    (
        "s_nand_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { !(a & b) }),
    ),
    (
        "s_nand_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { !(a & b) }),
    ),
    (
        "s_nor_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { !(a | b) }),
    ),
    (
        "s_nor_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { !(a | b) }),
    ),
    (
        "s_xnor_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { !(a ^ b) }),
    ),
    (
        "s_xnor_b64",
        scalar!(Nonzero, |a: u64, b: u64| -> u64 { !(a ^ b) }),
    ),
    // EXEC masks.
    ("s_and_saveexec_b64", old_exec(|source, exec| source & exec)),
    ("s_or_saveexec_b64", old_exec(|source, exec| source | exec)),
    ("s_xor_saveexec_b64", old_exec(|source, exec| source ^ exec)),
    (
        "s_andn2_saveexec_b64",
        old_exec(|source, exec| source & !exec),
    ),
    (
        "s_orn2_saveexec_b64",
        old_exec(|source, exec| source | !exec),
    ),
    (
        "s_nand_saveexec_b64",
        old_exec(|source, exec| !(source & exec)),
    ),
    (
        "s_nor_saveexec_b64",
        old_exec(|source, exec| !(source | exec)),
    ),
    (
        "s_xnor_saveexec_b64",
        old_exec(|source, exec| !(source ^ exec)),
    ),
    (
        "s_andn1_saveexec_b64",
        old_exec(|source, exec| !source & exec),
    ),
    (
        "s_orn1_saveexec_b64",
        old_exec(|source, exec| !source | exec),
    ),
    (
        "s_andn1_wrexec_b64",
        new_exec(|source, exec| !source & exec),
    ),
    (
        "s_andn2_wrexec_b64",
        new_exec(|source, exec| source & !exec),
    ),
    // Shifts and bit fields. A field's offset is in bits 4:0 (or 5:0), its width in 22:16.
    (
        "s_lshl_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a << (b & 31) }),
    ),
    (
        "s_lshl_b64",
        scalar!(Nonzero, |a: u64, b: u32| -> u64 { a << (b & 63) }),
    ),
    (
        "s_lshr_b32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 { a >> (b & 31) }),
    ),
    (
        "s_lshr_b64",
        scalar!(Nonzero, |a: u64, b: u32| -> u64 { a >> (b & 63) }),
    ),
    (
        "s_ashr_i32",
        scalar!(Nonzero, |a: i32, b: u32| -> i32 { a >> (b & 31) }),
    ),
    (
        "s_ashr_i64",
        scalar!(Nonzero, |a: i64, b: u32| -> i64 { a >> (b & 63) }),
    ),
    (
        "s_bfm_b32",
        scalar!(Keep, |a: u32, b: u32| -> u32 {
            ((1 << (a & 31)) - 1) << (b & 31)
        }),
    ),
    (
        "s_bfm_b64",
        scalar!(Keep, |a: u32, b: u32| -> u64 {
            ((1 << (a & 63)) - 1) << (b & 63)
        }),
    ),
    (
        "s_bfe_u32",
        scalar!(Nonzero, |a: u32, b: u32| -> u32 {
            unsigned_field((a >> (b & 31)).into(), b >> 16 & 127) as u32
        }),
    ),
    (
        "s_bfe_i32",
        scalar!(Nonzero, |a: i32, b: u32| -> i32 {
            signed_field((a >> (b & 31)).into(), b >> 16 & 127) as i32
        }),
    ),
    (
        "s_bfe_u64",
        scalar!(Nonzero, |a: u64, b: u32| -> u64 {
            unsigned_field(a >> (b & 63), b >> 16 & 127)
        }),
    ),
    (
        "s_bfe_i64",
        scalar!(Nonzero, |a: i64, b: u32| -> i64 {
            signed_field(a >> (b & 63), b >> 16 & 127)
        }),
    ),
    (
        "s_bitset0_b32",
        Operation::Scalar(ScalarOperation::SetBit(false)),
    ),
    (
        "s_bitset1_b32",
        Operation::Scalar(ScalarOperation::SetBit(true)),
    ),
    (
        "s_brev_b32",
        scalar!(Keep, |a: u32| -> u32 { a.reverse_bits() }),
    ),
    (
        "s_brev_b64",
        scalar!(Keep, |a: u64| -> u64 { a.reverse_bits() }),
    ),
    // Counting and searching; a search that finds nothing gives -1.
    (
        "s_bcnt0_i32_b32",
        scalar!(Nonzero, |a: u32| -> u32 { a.count_zeros() }),
    ),
    (
        "s_bcnt0_i32_b64",
        scalar!(Nonzero, |a: u64| -> u32 { a.count_zeros() }),
    ),
    (
        "s_bcnt1_i32_b32",
        scalar!(Nonzero, |a: u32| -> u32 { a.count_ones() }),
    ),
    (
        "s_bcnt1_i32_b64",
        scalar!(Nonzero, |a: u64| -> u32 { a.count_ones() }),
    ),
    (
        "s_ff0_i32_b32",
        scalar!(Keep, |a: u32| -> u32 { found(a.trailing_ones(), 32) }),
    ),
    (
        "s_ff1_i32_b32",
        scalar!(Keep, |a: u32| -> u32 { found(a.trailing_zeros(), 32) }),
    ),
    (
        "s_ff1_i32_b64",
        scalar!(Keep, |a: u64| -> u32 { found(a.trailing_zeros(), 64) }),
    ),
    (
        "s_flbit_i32_b32",
        scalar!(Keep, |a: u32| -> u32 { found(a.leading_zeros(), 32) }),
    ),
    (
        "s_flbit_i32_b64",
        scalar!(Keep, |a: u64| -> u32 { found(a.leading_zeros(), 64) }),
    ),
    (
        "s_flbit_i32",
        scalar!(Keep, |a: i32| -> u32 {
            found((a ^ a >> 31).leading_zeros(), 32)
        }),
    ),
    // Arithmetic.
    (
        "s_sext_i32_i8",
        scalar!(Keep, |a: u32| -> i32 { (a as i8).into() }),
    ),
    (
        "s_sext_i32_i16",
        scalar!(Keep, |a: u32| -> i32 { (a as i16).into() }),
    ),
    (
        "s_abs_i32",
        scalar!(Nonzero, |a: i32| -> i32 { a.wrapping_abs() }),
    ),
    (
        "s_absdiff_i32",
        scalar!(Nonzero, |a: i32, b: i32| -> i32 {
            a.wrapping_sub(b).wrapping_abs()
        }),
    ),
    (
        "s_add_u32",
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            a.overflowing_add(b)
        }),
    ),
    (
        "s_addc_u32",
        scalar!(Flag, |a: u32, b: u32, scc: bool| -> (u32, bool) {
            a.carrying_add(b, scc)
        }),
    ),
    (
        "s_sub_u32",
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            a.overflowing_sub(b)
        }),
    ),
    (
        "s_subb_u32",
        scalar!(Flag, |a: u32, b: u32, scc: bool| -> (u32, bool) {
            a.borrowing_sub(b, scc)
        }),
    ),
    (
        "s_add_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            a.overflowing_add(b)
        }),
    ),
    (
        "s_addk_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            a.overflowing_add(b)
        }),
    ),
    (
        "s_sub_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            a.overflowing_sub(b)
        }),
    ),
    (
        "s_mul_i32",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a.wrapping_mul(b) }),
    ),
    (
        "s_mulk_i32",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a.wrapping_mul(b) }),
    ),
    (
        "s_mul_hi_u32",
        scalar!(Keep, |a: u32, b: u32| -> u32 {
            ((u64::from(a) * u64::from(b)) >> 32) as u32
        }),
    ),
    (
        "s_mul_hi_i32",
        scalar!(Keep, |a: i32, b: i32| -> i32 {
            ((i64::from(a) * i64::from(b)) >> 32) as i32
        }),
    ),
    ("s_lshl1_add_u32", shifted_add!(1)),
    ("s_lshl2_add_u32", shifted_add!(2)),
    ("s_lshl3_add_u32", shifted_add!(3)),
    ("s_lshl4_add_u32", shifted_add!(4)),
    // SCC says that the first source was taken.
    (
        "s_min_u32",
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            (a.min(b), a < b)
        }),
    ),
    (
        "s_max_u32",
        scalar!(Flag, |a: u32, b: u32, _scc: bool| -> (u32, bool) {
            (a.max(b), a > b)
        }),
    ),
    (
        "s_min_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            (a.min(b), a < b)
        }),
    ),
    (
        "s_max_i32",
        scalar!(Flag, |a: i32, b: i32, _scc: bool| -> (i32, bool) {
            (a.max(b), a > b)
        }),
    ),
    (
        "s_pack_ll_b32_b16",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a & 0xffff | b << 16 }),
    ),
    (
        "s_pack_lh_b32_b16",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a & 0xffff | b & !0xffff }),
    ),
    (
        "s_pack_hh_b32_b16",
        scalar!(Keep, |a: u32, b: u32| -> u32 { a >> 16 | b & !0xffff }),
    ),
    // Comparisons.
    (
        "s_cmp_eq_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a == b }),
    ),
    (
        "s_cmp_lg_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a != b }),
    ),
    (
        "s_cmp_gt_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a > b }),
    ),
    (
        "s_cmp_ge_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a >= b }),
    ),
    (
        "s_cmp_lt_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a < b }),
    ),
    (
        "s_cmp_le_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a <= b }),
    ),
    (
        "s_cmp_eq_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a == b }),
    ),
    (
        "s_cmp_lg_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a != b }),
    ),
    (
        "s_cmp_gt_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a > b }),
    ),
    (
        "s_cmp_ge_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a >= b }),
    ),
    (
        "s_cmp_lt_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a < b }),
    ),
    (
        "s_cmp_le_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a <= b }),
    ),
    (
        "s_cmp_eq_u64",
        scalar!(Test, |a: u64, b: u64| -> bool { a == b }),
    ),
    (
        "s_cmp_lg_u64",
        scalar!(Test, |a: u64, b: u64| -> bool { a != b }),
    ),
    (
        "s_cmpk_eq_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a == b }),
    ),
    (
        "s_cmpk_lg_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a != b }),
    ),
    (
        "s_cmpk_gt_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a > b }),
    ),
    (
        "s_cmpk_ge_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a >= b }),
    ),
    (
        "s_cmpk_lt_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a < b }),
    ),
    (
        "s_cmpk_le_i32",
        scalar!(Test, |a: i32, b: i32| -> bool { a <= b }),
    ),
    (
        "s_cmpk_eq_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a == b }),
    ),
    (
        "s_cmpk_lg_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a != b }),
    ),
    (
        "s_cmpk_gt_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a > b }),
    ),
    (
        "s_cmpk_ge_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a >= b }),
    ),
    (
        "s_cmpk_lt_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a < b }),
    ),
    (
        "s_cmpk_le_u32",
        scalar!(Test, |a: u32, b: u32| -> bool { a <= b }),
    ),
    (
        "s_bitcmp0_b32",
        scalar!(Test, |a: u32, b: u32| -> bool { a >> (b & 31) & 1 == 0 }),
    ),
    (
        "s_bitcmp1_b32",
        scalar!(Test, |a: u32, b: u32| -> bool { a >> (b & 31) & 1 == 1 }),
    ),
    (
        "s_bitcmp0_b64",
        scalar!(Test, |a: u64, b: u32| -> bool { a >> (b & 63) & 1 == 0 }),
    ),
    (
        "s_bitcmp1_b64",
        scalar!(Test, |a: u64, b: u32| -> bool { a >> (b & 63) & 1 == 1 }),
    ),
];

/// The low `width` bits; all of them for a width beyond the type's.
fn unsigned_field(value: u64, width: u32) -> u64 {
    match width {
        0 => 0,
        1..64 => value & u64::MAX >> (64 - width),
        _ => value,
    }
}

/// The low `width` bits, sign-extended.
fn signed_field(value: i64, width: u32) -> i64 {
    match width {
        0 => 0,
        1..64 => value << (64 - width) >> (64 - width),
        _ => value,
    }
}

/// The place of a bit that a search found, -1 when it went through the whole operand.
fn found(place: u32, size: u32) -> u32 {
    if place == size { u32::MAX } else { place }
}

impl ScalarOperation {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        match self {
            ScalarOperation::Compute {
                run,
                sources,
                result,
                writes_scc,
            } => {
                let a = scalar_source(instruction, 0, sources[0], wave)?;
                let b = match sources[1] {
                    Kind::None => 0,
                    kind => scalar_source(instruction, 1, kind, wave)?,
                };
                let (value, scc) = run(a, b, wave.scc);
                wave.set_scalar(instruction.dst, result, value);
                if writes_scc {
                    wave.scc = scc;
                }
            }
            ScalarOperation::ConditionalMove(kind) => {
                let value = scalar_source(instruction, 0, kind, wave)?;
                if wave.scc {
                    wave.set_scalar(instruction.dst, kind, value);
                }
            }
            ScalarOperation::SetBit(set) => {
                let place = scalar_source(instruction, 0, Kind::B32, wave)? & 31;
                let others = wave.word(instruction.dst) & !(1 << place);
                wave.set_word(instruction.dst, others | u32::from(set) << place);
            }
            ScalarOperation::UpdateExec { run, result } => {
                let old = wave.exec();
                let new = run(scalar_source(instruction, 0, Kind::B64, wave)?, old);
                let value = match result {
                    ExecResult::Old => old,
                    ExecResult::New => new,
                };
                wave.set_pair(instruction.dst, value);
                wave.set_pair(Operand::EXEC, new);
                wave.scc = new != 0;
            }
        }
        Ok(())
    }
}
