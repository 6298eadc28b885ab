//! 16-bit arithmetic. On CDNA a 16-bit result clears the register's high half. Exceptions
//! are a result whose place is the high half, and instructions that keep it
//! (`Modifiers::keeps_half`).

use super::super::value::{Half, Kind, Value};
use super::super::{Operation, float};
use super::macros::{exact, kinds, vector};
use super::operation::VectorOperation;
use super::trigonometry::{cosine, sine};

/// The largest half below 1.
const BELOW_ONE: f64 = 1.0 - 1.0 / 2048.0;

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
    // Multiply-adds that round twice.
    (
        "v_mad_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            multiply_add(a, b, c)
        }),
    ),
    (
        "v_mad_legacy_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            multiply_add(a, b, c)
        }),
    ),
    (
        "v_mac_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            multiply_add(a, b, c)
        }),
    ),
    (
        "v_madmk_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            multiply_add(a, b, c)
        }),
    ),
    (
        "v_madak_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            multiply_add(a, b, c)
        }),
    ),
    (
        "v_fma_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(real(a).mul_add(real(b), real(c)))
        }),
    ),
    (
        "v_fma_legacy_f16",
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
        "v_rsq_f16",
        vector!(Word, |a: Half| -> Half { rounded(1.0 / real(a).sqrt()) }),
    ),
    (
        "v_exp_f16",
        vector!(Word, |a: Half| -> Half { rounded(real(a).exp2()) }),
    ),
    (
        "v_log_f16",
        vector!(Word, |a: Half| -> Half { rounded(real(a).log2()) }),
    ),
    (
        "v_sin_f16",
        vector!(Word, |a: Half| -> Half { rounded(sine(real(a))) }),
    ),
    (
        "v_cos_f16",
        vector!(Word, |a: Half| -> Half { rounded(cosine(real(a))) }),
    ),
    // The result stays below 1 even if the subtraction rounds up to 1. An infinity has no fraction.
    (
        "v_fract_f16",
        vector!(Word, |a: Half| -> Half {
            let fraction = real(a) - real(a).floor();
            rounded(if fraction > BELOW_ONE {
                BELOW_ONE
            } else {
                fraction
            })
        }),
    ),
    (
        "v_frexp_mant_f16",
        vector!(Word, |a: Half| -> Half { rounded(float::frexp(real(a)).0) }),
    ),
    (
        "v_frexp_exp_i16_f16",
        vector!(Word, |a: Half| -> i16 { float::frexp(real(a)).1 as i16 }),
    ),
    (
        "v_ldexp_f16",
        vector!(Word, |a: Half, b: i16| -> Half {
            rounded(float::ldexp(real(a), b.into()))
        }),
    ),
    (
        "v_maxmin_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::min(float::max(real(a), real(b)), real(c)))
        }),
    ),
    (
        "v_minmax_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::max(float::min(real(a), real(b)), real(c)))
        }),
    ),
    (
        "v_minimum_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            rounded(float::minimum(real(a), real(b)))
        }),
    ),
    (
        "v_maximum_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            rounded(float::maximum(real(a), real(b)))
        }),
    ),
    (
        "v_minimum3_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::minimum(float::minimum(real(a), real(b)), real(c)))
        }),
    ),
    (
        "v_maximum3_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::maximum(float::maximum(real(a), real(b)), real(c)))
        }),
    ),
    (
        "v_minimummaximum_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::maximum(float::minimum(real(a), real(b)), real(c)))
        }),
    ),
    (
        "v_maximumminimum_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::minimum(float::maximum(real(a), real(b)), real(c)))
        }),
    ),
    (
        "v_min3_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::min(float::min(real(a), real(b)), real(c)))
        }),
    ),
    (
        "v_max3_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::max(float::max(real(a), real(b)), real(c)))
        }),
    ),
    (
        "v_med3_f16",
        vector!(Word, |a: Half, b: Half, c: Half| -> Half {
            rounded(float::median(real(a), real(b), real(c)))
        }),
    ),
    (
        "v_pack_b32_f16",
        vector!(Word, |a: Half, b: Half| -> u32 {
            u32::from(a.0) | u32::from(b.0) << 16
        }),
    ),
    (
        "v_cvt_pkrtz_f16_f32",
        vector!(Word, |a: f32, b: f32| -> u32 {
            let [low, high] = [a, b].map(|value| Half::truncated(value).0);
            u32::from(low) | u32::from(high) << 16
        }),
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
/// double precision. A fused multiply-add is exact too, unless the addend is so small or so large
/// that it only decides the direction from a number that is no tie.
fn rounded(value: f64) -> Half {
    Half::from_f64(value)
}

fn multiply_add(a: Half, b: Half, c: Half) -> Half {
    rounded(real(rounded(real(a) * real(b))) + real(c))
}
