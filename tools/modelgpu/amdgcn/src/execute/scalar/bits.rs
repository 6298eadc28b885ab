//! Scalar shifts, bit fields, counts and searches.

use super::super::Operation;
use super::super::value::{Kind, Value};
use super::operation::{ScalarOperation, scalar};

/// Sets or clears the bit of the result that the operand names.
const fn set_bit(set: bool, result: Kind) -> Operation {
    Operation::Scalar(ScalarOperation::SetBit { set, result })
}

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
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
    ("s_bitset0_b32", set_bit(false, Kind::B32)),
    ("s_bitset0_b64", set_bit(false, Kind::B64)),
    ("s_bitset1_b32", set_bit(true, Kind::B32)),
    ("s_bitset1_b64", set_bit(true, Kind::B64)),
    // Masks of four pixels' lanes: bits of a four, and fours.
    (
        "s_wqm_b32",
        scalar!(Nonzero, |a: u32| -> u32 { whole_fours(a.into()) as u32 }),
    ),
    (
        "s_wqm_b64",
        scalar!(Nonzero, |a: u64| -> u64 { whole_fours(a) }),
    ),
    (
        "s_quadmask_b32",
        scalar!(Nonzero, |a: u32| -> u32 { fours(a.into()) as u32 }),
    ),
    (
        "s_quadmask_b64",
        scalar!(Nonzero, |a: u64| -> u64 { fours(a) }),
    ),
    (
        "s_bitreplicate_b64_b32",
        scalar!(Keep, |a: u32| -> u64 {
            (0..32).fold(0, |bits, place| {
                bits | (u64::from(a >> place & 1) * 3) << (2 * place)
            })
        }),
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
        "s_ff0_i32_b64",
        scalar!(Keep, |a: u64| -> u32 { found(a.trailing_ones(), 64) }),
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
        "s_flbit_i32_i64",
        scalar!(Keep, |a: i64| -> u32 {
            found((a ^ a >> 63).leading_zeros(), 64)
        }),
    ),
    (
        "s_flbit_i32",
        scalar!(Keep, |a: i32| -> u32 {
            found((a ^ a >> 31).leading_zeros(), 32)
        }),
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

/// The position of a bit that a search found; -1 if it found none.
fn found(place: u32, size: u32) -> u32 {
    if place == size { u32::MAX } else { place }
}

/// A bit for each four bits that are not all 0.
fn fours(bits: u64) -> u64 {
    (0..16)
        .filter(|place| bits >> (4 * place) & 15 != 0)
        .fold(0, |mask, place| mask | 1 << place)
}

/// All four bits of each such four.
fn whole_fours(bits: u64) -> u64 {
    (0..16)
        .filter(|place| bits >> (4 * place) & 15 != 0)
        .fold(0, |mask, place| mask | 15 << (4 * place))
}
