//! Integer arithmetic, logic and bit fields.

use super::super::Operation;
use super::super::value::{Kind, Value};
use super::macros::{carry, exact, exact_carry, kinds, vector, wide_sum};
use super::operation::{CarryDirection, VectorOperation};

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_bitop3_b32",
        Operation::Vector(VectorOperation::TruthTable(Kind::B32)),
    ),
    (
        "v_bitop3_b16",
        Operation::Vector(VectorOperation::TruthTable(Kind::B16)),
    ),
    (
        "v_permlane16_swap_b32",
        Operation::Vector(VectorOperation::SwapGroups(16)),
    ),
    (
        "v_permlane32_swap_b32",
        Operation::Vector(VectorOperation::SwapGroups(32)),
    ),
    (
        "v_xor3_b32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a ^ b ^ c }),
    ),
    (
        "v_maxmin_i32",
        vector!(Word, |a: i32, b: i32, c: i32| -> i32 { a.max(b).min(c) }),
    ),
    (
        "v_minmax_i32",
        vector!(Word, |a: i32, b: i32, c: i32| -> i32 { a.min(b).max(c) }),
    ),
    (
        "v_maxmin_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a.max(b).min(c) }),
    ),
    (
        "v_minmax_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a.min(b).max(c) }),
    ),
    (
        "v_and_b16",
        vector!(Word, |a: u16, b: u16| -> u16 { a & b }),
    ),
    ("v_or_b16", vector!(Word, |a: u16, b: u16| -> u16 { a | b })),
    (
        "v_xor_b16",
        vector!(Word, |a: u16, b: u16| -> u16 { a ^ b }),
    ),
    ("v_not_b16", vector!(Word, |a: u16| -> u16 { !a })),
    ("v_mov_b16", vector!(Word, |a: u16| -> u16 { a })),
    (
        "v_cndmask_b16",
        carry!(In, |a: u16, b: u16, selects: bool| -> (u16, bool) {
            (if selects { b } else { a }, false)
        }),
    ),
    ("v_cvt_i32_i16", vector!(Word, |a: i16| -> i32 { a.into() })),
    ("v_cvt_u32_u16", vector!(Word, |a: u16| -> u32 { a.into() })),
    ("v_swap_b16", Operation::Vector(VectorOperation::SwapHalves)),
    (
        "v_movrels_b32",
        Operation::Vector(VectorOperation::MoveRelative { source: true }),
    ),
    (
        "v_movreld_b32",
        Operation::Vector(VectorOperation::MoveRelative { source: false }),
    ),
    // A step of a shift register with feedback (AMD's CDNA4 instruction set guide).
    (
        "v_prng_b32",
        vector!(Word, |a: u32| -> u32 {
            a << 1 ^ if a >> 31 == 1 { 197 } else { 0 }
        }),
    ),
    (
        "v_ashr_pk_i8_i32",
        vector!(Word, |a: i32, b: i32, c: u32| -> u16 {
            let byte = |value: i32| (value >> (c & 31)).clamp(-128, 127) as u8;
            u16::from(byte(a)) | u16::from(byte(b)) << 8
        }),
    ),
    (
        "v_ashr_pk_u8_i32",
        vector!(Word, |a: i32, b: i32, c: u32| -> u16 {
            let byte = |value: i32| (value >> (c & 31)).clamp(0, 255) as u8;
            u16::from(byte(a)) | u16::from(byte(b)) << 8
        }),
    ),
    // Moves. Only the operands' codes tell accumulation registers from others.
    ("v_mov_b32", vector!(Word, |a: u32| -> u32 { a })),
    ("v_mov_b64", vector!(Long, |a: u64| -> u64 { a })),
    ("v_swap_b32", Operation::Vector(VectorOperation::Swap)),
    ("v_accvgpr_read_b32", vector!(Word, |a: u32| -> u32 { a })),
    ("v_accvgpr_write_b32", vector!(Word, |a: u32| -> u32 { a })),
    ("v_accvgpr_mov_b32", vector!(Word, |a: u32| -> u32 { a })),
    (
        "v_cndmask_b32",
        carry!(In, |a: u32, b: u32, chosen: bool| -> (u32, bool) {
            (if chosen { b } else { a }, false)
        }),
    ),
    // Logic.
    ("v_not_b32", vector!(Word, |a: u32| -> u32 { !a })),
    (
        "v_and_b32",
        vector!(Word, |a: u32, b: u32| -> u32 { a & b }),
    ),
    ("v_or_b32", vector!(Word, |a: u32, b: u32| -> u32 { a | b })),
    (
        "v_xor_b32",
        vector!(Word, |a: u32, b: u32| -> u32 { a ^ b }),
    ),
    (
        "v_xnor_b32",
        vector!(Word, |a: u32, b: u32| -> u32 { !(a ^ b) }),
    ),
    (
        "v_and_or_b32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a & b | c }),
    ),
    (
        "v_or3_b32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a | b | c }),
    ),
    (
        "v_bfi_b32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a & b | !a & c }),
    ),
    // Shifts. The amount comes first ("rev"), and only its low bits count.
    (
        "v_lshlrev_b32",
        vector!(Word, |a: u32, b: u32| -> u32 { b << (a & 31) }),
    ),
    (
        "v_lshrrev_b32",
        vector!(Word, |a: u32, b: u32| -> u32 { b >> (a & 31) }),
    ),
    (
        "v_ashrrev_i32",
        vector!(Word, |a: u32, b: i32| -> i32 { b >> (a & 31) }),
    ),
    (
        "v_lshlrev_b64",
        vector!(Long, |a: u32, b: u64| -> u64 { b << (a & 63) }),
    ),
    (
        "v_lshrrev_b64",
        vector!(Long, |a: u32, b: u64| -> u64 { b >> (a & 63) }),
    ),
    (
        "v_ashrrev_i64",
        vector!(Long, |a: u32, b: i64| -> i64 { b >> (a & 63) }),
    ),
    (
        "v_lshl_or_b32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a << (b & 31) | c }),
    ),
    (
        "v_alignbit_b32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            b >> (c & 31) | a << 1 << (31 - (c & 31))
        }),
    ),
    (
        "v_alignbyte_b32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            (join(a, b) >> (8 * (c & 3))) as u32
        }),
    ),
    (
        "v_perm_b32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            permute_bytes(a, b, c)
        }),
    ),
    // Bit fields and counts; a search that finds nothing gives -1.
    (
        "v_bfm_b32",
        vector!(Word, |a: u32, b: u32| -> u32 {
            ((1 << (a & 31)) - 1) << (b & 31)
        }),
    ),
    (
        "v_bfe_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            a >> (b & 31) & ((1u32 << (c & 31)) - 1)
        }),
    ),
    (
        "v_bfe_i32",
        vector!(Word, |a: i32, b: u32, c: u32| -> i32 {
            let width = c & 31;
            if width == 0 {
                0
            } else {
                a >> (b & 31) << (32 - width) >> (32 - width)
            }
        }),
    ),
    (
        "v_bfrev_b32",
        vector!(Word, |a: u32| -> u32 { a.reverse_bits() }),
    ),
    (
        "v_ffbh_u32",
        vector!(Word, |a: u32| -> u32 { found(a.leading_zeros()) }),
    ),
    (
        "v_ffbh_i32",
        vector!(Word, |a: i32| -> u32 {
            found((a ^ a >> 31).leading_zeros())
        }),
    ),
    (
        "v_ffbl_b32",
        vector!(Word, |a: u32| -> u32 { found(a.trailing_zeros()) }),
    ),
    (
        "v_bcnt_u32_b32",
        vector!(Word, |a: u32, b: u32| -> u32 {
            b.wrapping_add(a.count_ones())
        }),
    ),
    // Sums.
    (
        "v_add_u32",
        exact!(|a: u32, b: u32| -> u32 { i64::from(a) + i64::from(b) }),
    ),
    (
        "v_sub_u32",
        exact!(|a: u32, b: u32| -> u32 { i64::from(a) - i64::from(b) }),
    ),
    (
        "v_subrev_u32",
        exact!(|a: u32, b: u32| -> u32 { i64::from(b) - i64::from(a) }),
    ),
    (
        "v_add_i32",
        exact!(|a: i32, b: i32| -> i32 { i64::from(a) + i64::from(b) }),
    ),
    (
        "v_sub_i32",
        exact!(|a: i32, b: i32| -> i32 { i64::from(a) - i64::from(b) }),
    ),
    (
        "v_add3_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            a.wrapping_add(b).wrapping_add(c)
        }),
    ),
    (
        "v_lshl_add_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            (a << (b & 31)).wrapping_add(c)
        }),
    ),
    (
        "v_add_lshl_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            a.wrapping_add(b) << (c & 31)
        }),
    ),
    (
        "v_xad_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 {
            (a ^ b).wrapping_add(c)
        }),
    ),
    (
        "v_lshl_add_u64",
        vector!(Long, |a: u64, b: u32, c: u64| -> u64 {
            (a << (b & 7)).wrapping_add(c)
        }),
    ),
    (
        "v_sad_u32",
        exact!(|a: u32, b: u32, c: u32| -> u32 { i64::from(a.abs_diff(b)) + i64::from(c) }),
    ),
    // Sums with a carry or borrow bit per lane.
    (
        "v_add_co_u32",
        exact_carry!(Out, i64, |a: u32, b: u32, _carry: bool| -> u32 {
            i64::from(a) + i64::from(b)
        }),
    ),
    (
        "v_sub_co_u32",
        exact_carry!(Out, i64, |a: u32, b: u32, _carry: bool| -> u32 {
            i64::from(a) - i64::from(b)
        }),
    ),
    (
        "v_subrev_co_u32",
        exact_carry!(Out, i64, |a: u32, b: u32, _carry: bool| -> u32 {
            i64::from(b) - i64::from(a)
        }),
    ),
    (
        "v_addc_co_u32",
        exact_carry!(InOut, i64, |a: u32, b: u32, carry: bool| -> u32 {
            i64::from(a) + i64::from(b) + i64::from(carry)
        }),
    ),
    (
        "v_subb_co_u32",
        exact_carry!(InOut, i64, |a: u32, b: u32, carry: bool| -> u32 {
            i64::from(a) - i64::from(b) - i64::from(carry)
        }),
    ),
    (
        "v_subbrev_co_u32",
        exact_carry!(InOut, i64, |a: u32, b: u32, carry: bool| -> u32 {
            i64::from(b) - i64::from(a) - i64::from(carry)
        }),
    ),
    // Products.
    (
        "v_mul_lo_u32",
        vector!(Word, |a: u32, b: u32| -> u32 { a.wrapping_mul(b) }),
    ),
    (
        "v_mul_hi_u32",
        vector!(Word, |a: u32, b: u32| -> u32 {
            ((u64::from(a) * u64::from(b)) >> 32) as u32
        }),
    ),
    (
        "v_mul_hi_i32",
        vector!(Word, |a: i32, b: i32| -> i32 {
            ((i64::from(a) * i64::from(b)) >> 32) as i32
        }),
    ),
    (
        "v_mul_u32_u24",
        exact!(|a: u32, b: u32| -> u32 { i64::from(low24(a)) * i64::from(low24(b)) }),
    ),
    (
        "v_mul_hi_u32_u24",
        vector!(Word, |a: u32, b: u32| -> u32 {
            ((u64::from(low24(a)) * u64::from(low24(b))) >> 32) as u32
        }),
    ),
    (
        "v_mul_i32_i24",
        exact!(|a: i32, b: i32| -> i32 { i64::from(signed24(a)) * i64::from(signed24(b)) }),
    ),
    (
        "v_mul_hi_i32_i24",
        vector!(Word, |a: i32, b: i32| -> i32 {
            ((i64::from(signed24(a)) * i64::from(signed24(b))) >> 32) as i32
        }),
    ),
    (
        "v_mad_u32_u24",
        exact!(|a: u32, b: u32, c: u32| -> u32 {
            i64::from(low24(a)) * i64::from(low24(b)) + i64::from(c)
        }),
    ),
    (
        "v_mad_i32_i24",
        exact!(|a: i32, b: i32, c: i32| -> i32 {
            i64::from(signed24(a)) * i64::from(signed24(b)) + i64::from(c)
        }),
    ),
    (
        "v_mad_u32_u16",
        exact!(|a: u16, b: u16, c: u32| -> u32 { i64::from(a) * i64::from(b) + i64::from(c) }),
    ),
    (
        "v_mad_i32_i16",
        exact!(|a: i16, b: i16, c: i32| -> i32 { i64::from(a) * i64::from(b) + i64::from(c) }),
    ),
    (
        "v_mad_u64_u32",
        wide_sum!(|a: u32, b: u32, c: u64| -> (u64, bool, u64) {
            let sum = (u64::from(a) * u64::from(b)).wrapping_add(c);
            (sum, sum < c, u64::MAX)
        }),
    ),
    (
        "v_mad_i64_i32",
        wide_sum!(|a: i32, b: i32, c: i64| -> (i64, bool, i64) {
            let product = i64::from(a) * i64::from(b);
            let sum = product.wrapping_add(c);
            // The sum of two numbers of one sign has the other one.
            let overflows = (product ^ sum) & (c ^ sum) < 0;
            (sum, overflows, if c < 0 { i64::MIN } else { i64::MAX })
        }),
    ),
    // Minimum, maximum, median.
    (
        "v_min_u32",
        vector!(Word, |a: u32, b: u32| -> u32 { a.min(b) }),
    ),
    (
        "v_max_u32",
        vector!(Word, |a: u32, b: u32| -> u32 { a.max(b) }),
    ),
    (
        "v_min_i32",
        vector!(Word, |a: i32, b: i32| -> i32 { a.min(b) }),
    ),
    (
        "v_max_i32",
        vector!(Word, |a: i32, b: i32| -> i32 { a.max(b) }),
    ),
    (
        "v_min3_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a.min(b).min(c) }),
    ),
    (
        "v_max3_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { a.max(b).max(c) }),
    ),
    (
        "v_med3_u32",
        vector!(Word, |a: u32, b: u32, c: u32| -> u32 { median(a, b, c) }),
    ),
    (
        "v_min3_i32",
        vector!(Word, |a: i32, b: i32, c: i32| -> i32 { a.min(b).min(c) }),
    ),
    (
        "v_max3_i32",
        vector!(Word, |a: i32, b: i32, c: i32| -> i32 { a.max(b).max(c) }),
    ),
    (
        "v_med3_i32",
        vector!(Word, |a: i32, b: i32, c: i32| -> i32 { median(a, b, c) }),
    ),
];

fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn low24(value: u32) -> u32 {
    value & 0xff_ffff
}

fn signed24(value: i32) -> i32 {
    value << 8 >> 8
}

fn found(place: u32) -> u32 {
    if place == 32 { u32::MAX } else { place }
}

fn median<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.min(b).max(a.max(b).min(c))
}

/// Each byte of `selectors` selects a result byte: 0 to 7 a byte of `high:low`, 8 to 11 the sign of
/// one of its four halves, 12 zero, larger values all ones.
fn permute_bytes(high: u32, low: u32, selectors: u32) -> u32 {
    let bytes = join(high, low).to_le_bytes();
    let select = |selector: u8| match selector {
        0..=7 => bytes[usize::from(selector)],
        8..=11 => {
            let sign = bytes[2 * usize::from(selector - 8) + 1] >> 7;
            0u8.wrapping_sub(sign)
        }
        12 => 0,
        _ => 0xff,
    };
    u32::from_le_bytes(selectors.to_le_bytes().map(select))
}
