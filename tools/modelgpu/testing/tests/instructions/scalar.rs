//! Scalar instructions. A loop in assembly feeds every lane's a and b through scalar registers: a
//! in s[20:21], b in s[22:23]. SCC is set in odd lanes. The result goes to s[24:25].

use crate::harness::{Case, Want};
use crate::inputs::integers;

/// The result of an instruction.
enum Left {
    /// In s24.
    Word(u32),
    /// In s[24:25].
    Long(u64),
    /// Only SCC.
    Nothing,
}
use Left::{Long, Nothing, Word};

/// Maps a, b and SCC to the result and, if the instruction writes SCC, the new SCC.
type Run = fn(u64, u64, bool) -> (Left, Option<bool>);

/// The initial values of s24 and s25.
const BEFORE: [u32; 2] = [0x11, 0x22];
const BEFORE64: u64 = 0x22_0000_0011;

fn case(name: &'static str, operands: &str, run: Run) -> Case {
    let body = format!(
        "s_mov_b32 s30, 0
         s_mov_b64 vcc, 4
         1:
         v_readlane_b32 s20, v2, s30
         v_readlane_b32 s21, v3, s30
         v_readlane_b32 s22, v4, s30
         v_readlane_b32 s23, v5, s30
         s_mov_b32 s24, 0x11
         s_mov_b32 s25, 0x22
         s_bitcmp1_b32 s30, 0
         {name} {operands}
         s_cselect_b32 s26, 1, 0
         s_mov_b32 m0, s30
         v_writelane_b32 v10, s24, m0
         v_writelane_b32 v11, s25, m0
         v_writelane_b32 v12, s26, m0
         s_add_u32 s30, s30, 1
         s_cmp_lg_u32 s30, 64
         s_cbranch_scc1 1b"
    );
    Case::new(name, body, integers(), move |all, lane| {
        let before = lane % 2 == 1;
        let (left, scc) = run(all[lane][0], all[lane][1], before);
        let [low, high] = match left {
            Word(word) => [word, BEFORE[1]],
            Long(long) => [long as u32, (long >> 32) as u32],
            Nothing => BEFORE,
        };
        Want::All([low, high, scc.unwrap_or(before).into(), 0x5a5a_5a5a])
    })
}

/// A result whose SCC says that it is not zero.
fn nonzero(result: u32) -> (Left, Option<bool>) {
    (Word(result), Some(result != 0))
}

fn nonzero64(result: u64) -> (Left, Option<bool>) {
    (Long(result), Some(result != 0))
}

fn word(result: u32) -> (Left, Option<bool>) {
    (Word(result), None)
}

fn test(result: bool) -> (Left, Option<bool>) {
    (Nothing, Some(result))
}

/// An exact sum or difference of 32-bit numbers; SCC reports that it does not fit.
fn unsigned(sum: i64) -> (Left, Option<bool>) {
    (Word(sum as u32), Some(!(0..1 << 32).contains(&sum)))
}

fn signed(sum: i64) -> (Left, Option<bool>) {
    (Word(sum as u32), Some(i32::try_from(sum).is_err()))
}

fn low(value: u64) -> i64 {
    i64::from(value as u32)
}

fn slow(value: u64) -> i64 {
    i64::from(value as i32)
}

const TWO: &str = "s24, s20, s22";
const TWO64: &str = "s[24:25], s[20:21], s[22:23]";
const ONE: &str = "s24, s20";
const ONE64: &str = "s[24:25], s[20:21]";
const COMPARED: &str = "s20, s22";

#[rustfmt::skip]
const OPERATIONS: &[(&str, &str, Run)] = &[
    ("s_mov_b32", ONE, |a, _, _| word(a as u32)),
    ("s_mov_b64", ONE64, |a, _, _| (Long(a), None)),
    ("s_movk_i32", "s24, 0x8001", |_, _, _| word(0xffff_8001)),
    ("s_cmov_b32", ONE, |a, _, scc| (if scc { Word(a as u32) } else { Nothing }, None)),
    ("s_cmov_b64", ONE64, |a, _, scc| (if scc { Long(a) } else { Nothing }, None)),
    ("s_cmovk_i32", "s24, 0xfffe", |_, _, scc| (if scc { Word(-2i32 as u32) } else { Nothing }, None)),
    ("s_cselect_b32", TWO, |a, b, scc| word(if scc { a } else { b } as u32)),
    ("s_cselect_b64", TWO64, |a, b, scc| (Long(if scc { a } else { b }), None)),
    ("s_not_b32", ONE, |a, _, _| nonzero(a as u32 ^ u32::MAX)),
    ("s_not_b64", ONE64, |a, _, _| nonzero64(a ^ u64::MAX)),
    ("s_and_b32", TWO, |a, b, _| nonzero((a & b) as u32)),
    ("s_and_b64", TWO64, |a, b, _| nonzero64(a & b)),
    ("s_or_b32", TWO, |a, b, _| nonzero((a | b) as u32)),
    ("s_or_b64", TWO64, |a, b, _| nonzero64(a | b)),
    ("s_xor_b32", TWO, |a, b, _| nonzero((a ^ b) as u32)),
    ("s_xor_b64", TWO64, |a, b, _| nonzero64(a ^ b)),
    ("s_andn2_b32", TWO, |a, b, _| nonzero((a & (b ^ u64::MAX)) as u32)),
    ("s_andn2_b64", TWO64, |a, b, _| nonzero64(a & (b ^ u64::MAX))),
    ("s_orn2_b32", TWO, |a, b, _| nonzero((a | (b ^ u64::MAX)) as u32)),
    ("s_orn2_b64", TWO64, |a, b, _| nonzero64(a | (b ^ u64::MAX))),
    ("s_nand_b32", TWO, |a, b, _| nonzero((a & b) as u32 ^ u32::MAX)),
    ("s_nand_b64", TWO64, |a, b, _| nonzero64((a & b) ^ u64::MAX)),
    ("s_nor_b32", TWO, |a, b, _| nonzero((a | b) as u32 ^ u32::MAX)),
    ("s_nor_b64", TWO64, |a, b, _| nonzero64((a | b) ^ u64::MAX)),
    ("s_xnor_b32", TWO, |a, b, _| nonzero((a ^ b) as u32 ^ u32::MAX)),
    ("s_xnor_b64", TWO64, |a, b, _| nonzero64(a ^ b ^ u64::MAX)),
    ("s_lshl_b32", TWO, |a, b, _| nonzero(((a as u32 as u64) << (b % 32)) as u32)),
    ("s_lshl_b64", "s[24:25], s[20:21], s22", |a, b, _| nonzero64((u128::from(a) << (b % 64)) as u64)),
    ("s_lshr_b32", TWO, |a, b, _| nonzero(a as u32 / (1 << (b % 32)))),
    ("s_lshr_b64", "s[24:25], s[20:21], s22", |a, b, _| nonzero64(a / (1 << (b % 64)))),
    ("s_ashr_i32", TWO, |a, b, _| nonzero(slow(a).div_euclid(1 << (b % 32)) as u32)),
    ("s_ashr_i64", "s[24:25], s[20:21], s22", |a, b, _| nonzero64(i128::from(a as i64).div_euclid(1 << (b % 64)) as u64)),
    ("s_bfm_b32", TWO, |a, b, _| word((((1u64 << (a % 32)) - 1) << (b % 32)) as u32)),
    ("s_bfm_b64", "s[24:25], s20, s22", |a, b, _| (Long((((1u128 << (a % 64)) - 1) << (b % 64)) as u64), None)),
    ("s_bfe_u32", TWO, |a, b, _| nonzero(field(low(a).into(), b % 32, b >> 16 & 127, 32) as u32)),
    ("s_bfe_i32", TWO, |a, b, _| nonzero(signed_field(slow(a).into(), b % 32, b >> 16 & 127, 32) as u32)),
    ("s_bfe_u64", "s[24:25], s[20:21], s22", |a, b, _| nonzero64(field(a.into(), b % 64, b >> 16 & 127, 64) as u64)),
    ("s_bfe_i64", "s[24:25], s[20:21], s22", |a, b, _| nonzero64(signed_field((a as i64).into(), b % 64, b >> 16 & 127, 64) as u64)),
    ("s_bitset0_b32", "s24, s20", |a, _, _| word(BEFORE[0] & (u32::MAX ^ 1 << (a % 32)))),
    ("s_bitset0_b64", "s[24:25], s20", |a, _, _| (Long(BEFORE64 & (u64::MAX ^ 1 << (a % 64))), None)),
    ("s_bitset1_b64", "s[24:25], s20", |a, _, _| (Long(BEFORE64 | 1 << (a % 64)), None)),
    ("s_bitset1_b32", "s24, s20", |a, _, _| word(BEFORE[0] | 1 << (a % 32))),
    ("s_brev_b32", ONE, |a, _, _| word((0..32).fold(0, |r, n| r | (a as u32 >> n & 1) << (31 - n)))),
    ("s_brev_b64", ONE64, |a, _, _| (Long((0..64).fold(0, |r, n| r | (a >> n & 1) << (63 - n))), None)),
    ("s_bcnt0_i32_b32", ONE, |a, _, _| nonzero((0..32).map(|n| !(a >> n) as u32 & 1).sum())),
    ("s_bcnt0_i32_b64", "s24, s[20:21]", |a, _, _| nonzero((0..64).map(|n| !(a >> n) as u32 & 1).sum())),
    ("s_bcnt1_i32_b32", ONE, |a, _, _| nonzero((0..32).map(|n| (a >> n) as u32 & 1).sum())),
    ("s_bcnt1_i32_b64", "s24, s[20:21]", |a, _, _| nonzero((0..64).map(|n| (a >> n) as u32 & 1).sum())),
    ("s_ff0_i32_b32", ONE, |a, _, _| word((0..32).find(|n| a >> n & 1 == 0).unwrap_or(u32::MAX))),
    ("s_ff1_i32_b32", ONE, |a, _, _| word((0..32).find(|n| a >> n & 1 == 1).unwrap_or(u32::MAX))),
    ("s_ff1_i32_b64", "s24, s[20:21]", |a, _, _| word((0..64).find(|n| a >> n & 1 == 1).unwrap_or(u32::MAX))),
    ("s_flbit_i32_b32", ONE, |a, _, _| word((0..32).find(|n| a >> (31 - n) & 1 == 1).unwrap_or(u32::MAX))),
    ("s_flbit_i32_b64", "s24, s[20:21]", |a, _, _| word((0..64).find(|n| a >> (63 - n) & 1 == 1).unwrap_or(u32::MAX))),
    ("s_flbit_i32", ONE, |a, _, _| word((1..32).find(|n| a >> (31 - n) & 1 != a >> 31 & 1).unwrap_or(u32::MAX))),
    ("s_ff0_i32_b64", "s24, s[20:21]", |a, _, _| word((0..64).find(|n| a >> n & 1 == 0).unwrap_or(u32::MAX))),
    ("s_flbit_i32_i64", "s24, s[20:21]", |a, _, _| word((1..64).find(|n| a >> (63 - n) & 1 != a >> 63).unwrap_or(u32::MAX))),
    ("s_wqm_b32", ONE, |a, _, _| nonzero((0..32).map(|n| u32::from(a as u32 >> (n / 4 * 4) & 15 > 0) << n).sum())),
    ("s_wqm_b64", ONE64, |a, _, _| nonzero64((0..64).map(|n| u64::from(a >> (n / 4 * 4) & 15 > 0) << n).sum())),
    ("s_quadmask_b32", ONE, |a, _, _| nonzero((0..8).map(|n| u32::from(a as u32 >> (4 * n) & 15 > 0) << n).sum())),
    ("s_quadmask_b64", ONE64, |a, _, _| nonzero64((0..16).map(|n| u64::from(a >> (4 * n) & 15 > 0) << n).sum())),
    ("s_bitreplicate_b64_b32", "s[24:25], s20", |a, _, _| (Long((0..64).map(|n| (a >> (n / 2) & 1) << n).sum()), None)),
    ("s_sext_i32_i8", ONE, |a, _, _| word(a as i8 as u32)),
    ("s_sext_i32_i16", ONE, |a, _, _| word(a as i16 as u32)),
    ("s_abs_i32", ONE, |a, _, _| nonzero(slow(a).unsigned_abs() as u32)),
    ("s_absdiff_i32", TWO, |a, b, _| nonzero(((slow(a) - slow(b)) as i32).unsigned_abs())),
    ("s_add_u32", TWO, |a, b, _| unsigned(low(a) + low(b))),
    ("s_addc_u32", TWO, |a, b, scc| unsigned(low(a) + low(b) + i64::from(scc))),
    ("s_sub_u32", TWO, |a, b, _| unsigned(low(a) - low(b))),
    ("s_subb_u32", TWO, |a, b, scc| unsigned(low(a) - low(b) - i64::from(scc))),
    ("s_add_i32", TWO, |a, b, _| signed(slow(a) + slow(b))),
    ("s_sub_i32", TWO, |a, b, _| signed(slow(a) - slow(b))),
    ("s_addk_i32", "s24, 0xfff0", |_, _, _| signed(i64::from(BEFORE[0]) - 16)),
    ("s_mulk_i32", "s24, 0xfff0", |_, _, _| word((i64::from(BEFORE[0]) * -16) as u32)),
    ("s_mul_i32", TWO, |a, b, _| word((low(a) as u64).wrapping_mul(low(b) as u64) as u32)),
    ("s_mul_hi_u32", TWO, |a, b, _| word(((low(a) as u128 * low(b) as u128) >> 32) as u32)),
    ("s_mul_hi_i32", TWO, |a, b, _| word((slow(a) * slow(b)).div_euclid(1 << 32) as u32)),
    ("s_lshl1_add_u32", TWO, |a, b, _| unsigned(low(a) * 2 + low(b))),
    ("s_lshl2_add_u32", TWO, |a, b, _| unsigned(low(a) * 4 + low(b))),
    ("s_lshl3_add_u32", TWO, |a, b, _| unsigned(low(a) * 8 + low(b))),
    ("s_lshl4_add_u32", TWO, |a, b, _| unsigned(low(a) * 16 + low(b))),
    ("s_min_u32", TWO, |a, b, _| (Word(low(a).min(low(b)) as u32), Some(low(a) < low(b)))),
    ("s_max_u32", TWO, |a, b, _| (Word(low(a).max(low(b)) as u32), Some(low(a) > low(b)))),
    ("s_min_i32", TWO, |a, b, _| (Word(slow(a).min(slow(b)) as u32), Some(slow(a) < slow(b)))),
    ("s_max_i32", TWO, |a, b, _| (Word(slow(a).max(slow(b)) as u32), Some(slow(a) > slow(b)))),
    ("s_pack_ll_b32_b16", TWO, |a, b, _| word(a as u16 as u32 + 0x1_0000 * (b as u16 as u32))),
    ("s_pack_lh_b32_b16", TWO, |a, b, _| word(a as u16 as u32 + 0x1_0000 * (b as u32 / 0x1_0000))),
    ("s_pack_hh_b32_b16", TWO, |a, b, _| word(a as u32 / 0x1_0000 + 0x1_0000 * (b as u32 / 0x1_0000))),
    ("s_cmp_eq_i32", COMPARED, |a, b, _| test(slow(a) == slow(b))),
    ("s_cmp_lg_i32", COMPARED, |a, b, _| test(slow(a) != slow(b))),
    ("s_cmp_gt_i32", COMPARED, |a, b, _| test(slow(a) > slow(b))),
    ("s_cmp_ge_i32", COMPARED, |a, b, _| test(slow(a) >= slow(b))),
    ("s_cmp_lt_i32", COMPARED, |a, b, _| test(slow(a) < slow(b))),
    ("s_cmp_le_i32", COMPARED, |a, b, _| test(slow(a) <= slow(b))),
    ("s_cmp_eq_u32", COMPARED, |a, b, _| test(low(a) == low(b))),
    ("s_cmp_lg_u32", COMPARED, |a, b, _| test(low(a) != low(b))),
    ("s_cmp_gt_u32", COMPARED, |a, b, _| test(low(a) > low(b))),
    ("s_cmp_ge_u32", COMPARED, |a, b, _| test(low(a) >= low(b))),
    ("s_cmp_lt_u32", COMPARED, |a, b, _| test(low(a) < low(b))),
    ("s_cmp_le_u32", COMPARED, |a, b, _| test(low(a) <= low(b))),
    ("s_cmp_eq_u64", "s[20:21], s[22:23]", |a, b, _| test(a == b)),
    ("s_cmp_lg_u64", "s[20:21], s[22:23]", |a, b, _| test(a != b)),
    ("s_cmpk_eq_i32", "s20, 0x8000", |a, _, _| test(slow(a) == -0x8000)),
    ("s_cmpk_lg_i32", "s20, 0x7fff", |a, _, _| test(slow(a) != 0x7fff)),
    ("s_cmpk_gt_i32", "s20, 0xffff", |a, _, _| test(slow(a) > -1)),
    ("s_cmpk_ge_i32", "s20, 32", |a, _, _| test(slow(a) >= 32)),
    ("s_cmpk_lt_i32", "s20, 0xffff", |a, _, _| test(slow(a) < -1)),
    ("s_cmpk_le_i32", "s20, 31", |a, _, _| test(slow(a) <= 31)),
    ("s_cmpk_eq_u32", "s20, 0xffff", |a, _, _| test(low(a) == 0xffff)),
    ("s_cmpk_lg_u32", "s20, 0x8000", |a, _, _| test(low(a) != 0x8000)),
    ("s_cmpk_gt_u32", "s20, 0xffff", |a, _, _| test(low(a) > 0xffff)),
    ("s_cmpk_ge_u32", "s20, 0xffff", |a, _, _| test(low(a) >= 0xffff)),
    ("s_cmpk_lt_u32", "s20, 0x8000", |a, _, _| test(low(a) < 0x8000)),
    ("s_cmpk_le_u32", "s20, 0x7fff", |a, _, _| test(low(a) <= 0x7fff)),
    ("s_bitcmp0_b32", COMPARED, |a, b, _| test(a & 1 << (b % 32) == 0)),
    ("s_bitcmp1_b32", COMPARED, |a, b, _| test(a & 1 << (b % 32) != 0)),
    ("s_bitcmp0_b64", "s[20:21], s22", |a, b, _| test(a & 1 << (b % 64) == 0)),
    ("s_bitcmp1_b64", "s[20:21], s22", |a, b, _| test(a & 1 << (b % 64) != 0)),
    // Literals in 64-bit operands are zero-extended, or sign-extended for a signed operand.
    ("s_and_b64", "s[24:25], s[20:21], 0x87654321", |a, _, _| nonzero64(a & 0x8765_4321)),
    ("s_ashr_i64", "s[24:25], 0x87654321, 4", |_, _, _| nonzero64(0xffff_ffff_f876_5432)),
    ("s_add_u32", "s24, s20, 0x87654321", |a, _, _| unsigned(low(a) + 0x8765_4321)),
    ("s_mov_b64", "s[24:25], -3", |_, _, _| (Long(-3i64 as u64), None)),
    ("s_mov_b32", "s24, 0.5", |_, _, _| word(0.5f32.to_bits())),
    ("s_mov_b32", "s24, src_scc", |_, _, scc| word(scc.into())),
    ("s_mov_b32", "s24, src_vccz", |_, _, _| word(0)),
    ("s_mov_b32", "s24, src_execz", |_, _, _| word(0)),
    ("s_mov_b64", "s[24:25], src_shared_base", |_, _, _| (Long(1 << 48), None)),
    ("s_mov_b64", "s[24:25], src_private_base", |_, _, _| (Long(2 << 48), None)),
];

/// `width` bits from `offset` on of a number of `size` bits.
fn field(value: i128, offset: u64, width: u64, size: u32) -> i128 {
    let width = (width as u32).min(size);
    value >> offset & ((1 << width) - 1)
}

fn signed_field(value: i128, offset: u64, width: u64, size: u32) -> i128 {
    let width = (width as u32).min(size);
    if width == 0 {
        return 0;
    }
    let unsigned = field(value, offset, width.into(), size);
    if unsigned >> (width - 1) & 1 == 1 {
        unsigned - (1 << width)
    } else {
        unsigned
    }
}

/// Maps the source and EXEC to the new EXEC.
type Mask = fn(u64, u64) -> u64;

const SAVES: &[(&str, Mask)] = &[
    ("s_and_saveexec_b64", |s, e| s & e),
    ("s_or_saveexec_b64", |s, e| s | e),
    ("s_xor_saveexec_b64", |s, e| s ^ e),
    ("s_andn2_saveexec_b64", |s, e| s & (e ^ u64::MAX)),
    ("s_orn2_saveexec_b64", |s, e| s | (e ^ u64::MAX)),
    ("s_nand_saveexec_b64", |s, e| (s & e) ^ u64::MAX),
    ("s_nor_saveexec_b64", |s, e| (s | e) ^ u64::MAX),
    ("s_xnor_saveexec_b64", |s, e| s ^ e ^ u64::MAX),
    ("s_andn1_saveexec_b64", |s, e| (s ^ u64::MAX) & e),
    ("s_orn1_saveexec_b64", |s, e| (s ^ u64::MAX) | e),
];

const WRITES: &[(&str, Mask)] = &[
    ("s_andn1_wrexec_b64", |s, e| (s ^ u64::MAX) & e),
    ("s_andn2_wrexec_b64", |s, e| s & (e ^ u64::MAX)),
];

/// EXEC is lane 5's a, the source its b; all lanes hold the results.
fn exec_case(name: &'static str, run: Mask, saves: bool) -> Case {
    let body = format!(
        "v_readlane_b32 s20, v2, 5
         v_readlane_b32 s21, v3, 5
         v_readlane_b32 s22, v4, 5
         v_readlane_b32 s23, v5, 5
         s_mov_b64 exec, s[20:21]
         {name} s[24:25], s[22:23]
         s_mov_b64 s[26:27], exec
         s_mov_b64 exec, -1
         v_mov_b32 v10, s24
         v_mov_b32 v11, s25
         v_mov_b32 v12, s26
         v_mov_b32 v13, s27"
    );
    Case::new(name, body, integers(), move |all, _| {
        let [exec, source, ..] = all[5];
        let new = run(source, exec);
        let told = if saves { exec } else { new };
        Want::All([
            told as u32,
            (told >> 32) as u32,
            new as u32,
            (new >> 32) as u32,
        ])
    })
}

pub(crate) fn cases() -> Vec<Case> {
    let computed = OPERATIONS
        .iter()
        .map(|(name, operands, run)| case(name, operands, *run));
    let saves = SAVES.iter().map(|(name, run)| exec_case(name, *run, true));
    let writes = WRITES
        .iter()
        .map(|(name, run)| exec_case(name, *run, false));
    computed.chain(saves).chain(writes).collect()
}
