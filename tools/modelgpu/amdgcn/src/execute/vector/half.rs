//! 16-bit arithmetic. On these targets a 16-bit result clears the register's high half, unless
//! the high half is selected as its place, or the instruction is one of those that keep it
//! (`Modifiers::keeps_half`).

use super::super::value::{Half, Kind, Value};
use super::super::{Operation, float};
use super::{VectorOperation, exact, kinds, vector};
use crate::wave::LANES;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_add_u16",
        exact!(|a: u16, b: u16| -> u16 { i64::from(a) + i64::from(b) }),
    ),
    (
        "v_sub_u16",
        exact!(|a: u16, b: u16| -> u16 { i64::from(a) - i64::from(b) }),
    ),
    (
        "v_subrev_u16",
        exact!(|a: u16, b: u16| -> u16 { i64::from(b) - i64::from(a) }),
    ),
    (
        "v_mul_lo_u16",
        vector!(Word, |a: u16, b: u16| -> u16 { a.wrapping_mul(b) }),
    ),
    (
        "v_mad_u16",
        exact!(|a: u16, b: u16, c: u16| -> u16 { i64::from(a) * i64::from(b) + i64::from(c) }),
    ),
    (
        "v_mad_legacy_u16",
        exact!(|a: u16, b: u16, c: u16| -> u16 { i64::from(a) * i64::from(b) + i64::from(c) }),
    ),
    (
        "v_add_i16",
        exact!(|a: i16, b: i16| -> i16 { i64::from(a) + i64::from(b) }),
    ),
    (
        "v_sub_i16",
        exact!(|a: i16, b: i16| -> i16 { i64::from(a) - i64::from(b) }),
    ),
    (
        "v_mad_i16",
        exact!(|a: i16, b: i16, c: i16| -> i16 { i64::from(a) * i64::from(b) + i64::from(c) }),
    ),
    (
        "v_mad_legacy_i16",
        exact!(|a: i16, b: i16, c: i16| -> i16 { i64::from(a) * i64::from(b) + i64::from(c) }),
    ),
    (
        "v_lshlrev_b16",
        vector!(Word, |a: u16, b: u16| -> u16 { b << (a & 15) }),
    ),
    (
        "v_lshrrev_b16",
        vector!(Word, |a: u16, b: u16| -> u16 { b >> (a & 15) }),
    ),
    (
        "v_ashrrev_i16",
        vector!(Word, |a: u16, b: i16| -> i16 { b >> (a & 15) }),
    ),
    (
        "v_min_u16",
        vector!(Word, |a: u16, b: u16| -> u16 { a.min(b) }),
    ),
    (
        "v_max_u16",
        vector!(Word, |a: u16, b: u16| -> u16 { a.max(b) }),
    ),
    (
        "v_min_i16",
        vector!(Word, |a: i16, b: i16| -> i16 { a.min(b) }),
    ),
    (
        "v_max_i16",
        vector!(Word, |a: i16, b: i16| -> i16 { a.max(b) }),
    ),
    (
        "v_min3_i16",
        exact!(|a: i16, b: i16, c: i16| -> i16 { a.min(b).min(c).into() }),
    ),
    (
        "v_max3_i16",
        exact!(|a: i16, b: i16, c: i16| -> i16 { a.max(b).max(c).into() }),
    ),
    (
        "v_med3_i16",
        exact!(|a: i16, b: i16, c: i16| -> i16 { a.min(b).max(a.max(b).min(c)).into() }),
    ),
    (
        "v_min3_u16",
        exact!(|a: u16, b: u16, c: u16| -> u16 { a.min(b).min(c).into() }),
    ),
    (
        "v_max3_u16",
        exact!(|a: u16, b: u16, c: u16| -> u16 { a.max(b).max(c).into() }),
    ),
    (
        "v_med3_u16",
        exact!(|a: u16, b: u16, c: u16| -> u16 { a.min(b).max(a.max(b).min(c)).into() }),
    ),
    (
        "v_add_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            rounded(real(a) + real(b))
        }),
    ),
    (
        "v_sub_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            rounded(real(a) - real(b))
        }),
    ),
    (
        "v_subrev_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            rounded(real(b) - real(a))
        }),
    ),
    (
        "v_mul_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            rounded(real(a) * real(b))
        }),
    ),
    (
        "v_max_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            rounded(float::max(real(a), real(b)))
        }),
    ),
    (
        "v_min_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            rounded(float::min(real(a), real(b)))
        }),
    ),
    (
        "v_fma_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(real(a).mul_add(real(b), real(c)))
        }),
    ),
    (
        "v_trunc_f16",
        vector!(Word, |a: Half| -> Half { rounded(real(a).trunc()) }),
    ),
    (
        "v_floor_f16",
        vector!(Word, |a: Half| -> Half { rounded(real(a).floor()) }),
    ),
    (
        "v_ceil_f16",
        vector!(Word, |a: Half| -> Half { rounded(real(a).ceil()) }),
    ),
    (
        "v_rndne_f16",
        vector!(Word, |a: Half| -> Half {
            rounded(real(a).round_ties_even())
        }),
    ),
    (
        "v_rcp_f16",
        vector!(Word, |a: Half| -> Half { rounded(1.0 / real(a)) }),
    ),
    (
        "v_sqrt_f16",
        vector!(Word, |a: Half| -> Half { rounded(real(a).sqrt()) }),
    ),
    (
        "v_cvt_f16_u16",
        vector!(Word, |a: u16| -> Half { rounded(a.into()) }),
    ),
    (
        "v_cvt_f16_i16",
        vector!(Word, |a: i16| -> Half { rounded(a.into()) }),
    ),
    (
        "v_cvt_u16_f16",
        vector!(Word, |a: Half| -> u16 { real(a) as u16 }),
    ),
    (
        "v_cvt_i16_f16",
        vector!(Word, |a: Half| -> i16 { real(a) as i16 }),
    ),
];

fn real(half: Half) -> f64 {
    half.to_f32().into()
}

/// Rounds the double that an operation on halves gave. Sums and products of halves are exact in
/// double precision, and so are fused multiply-adds, except where the addend is so small or so
/// large that it decides nothing but the direction from a number that is no tie.
fn rounded(value: f64) -> Half {
    Half::from_f64(value)
}
