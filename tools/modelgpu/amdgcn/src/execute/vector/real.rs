//! Single and double precision arithmetic.
//!
//! The approximate instructions (reciprocal, roots, exponentials, trigonometry) give correctly
//! rounded results if the host's library does. Hardware promises about one unit in the last place,
//! so a program must not depend on more.

use super::super::value::{Kind, Value};
use super::super::{Operation, float};
use super::macros::{kinds, vector};
use super::operation::VectorOperation;
use super::trigonometry::{cosine, sine};

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    // Single precision.
    (
        "v_add_f32",
        vector!(Word, |a: f32, b: f32| -> f32 { a + b }),
    ),
    (
        "v_sub_f32",
        vector!(Word, |a: f32, b: f32| -> f32 { a - b }),
    ),
    (
        "v_subrev_f32",
        vector!(Word, |a: f32, b: f32| -> f32 { b - a }),
    ),
    (
        "v_mul_f32",
        vector!(Word, |a: f32, b: f32| -> f32 { a * b }),
    ),
    (
        "v_mul_legacy_f32",
        // Zero times anything is zero.
        vector!(Word, |a: f32, b: f32| -> f32 {
            if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
        }),
    ),
    (
        "v_mad_legacy_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 {
            if a == 0.0 || b == 0.0 { c } else { a * b + c }
        }),
    ),
    // Multiply-adds that round twice.
    (
        "v_mac_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { a * b + c }),
    ),
    (
        "v_mad_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { a * b + c }),
    ),
    (
        "v_madmk_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { a * b + c }),
    ),
    (
        "v_madak_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { a * b + c }),
    ),
    // Multiply-adds that round once.
    (
        "v_fma_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { fused(a, b, c) }),
    ),
    (
        "v_fmac_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { fused(a, b, c) }),
    ),
    (
        "v_fmamk_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { fused(a, b, c) }),
    ),
    (
        "v_fmaak_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { fused(a, b, c) }),
    ),
    (
        "v_min_f32",
        vector!(Word, |a: f32, b: f32| -> f32 { min(a, b) }),
    ),
    (
        "v_max_f32",
        vector!(Word, |a: f32, b: f32| -> f32 { max(a, b) }),
    ),
    (
        "v_maxmin_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { min(max(a, b), c) }),
    ),
    (
        "v_minmax_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { max(min(a, b), c) }),
    ),
    (
        "v_minimum3_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 {
            float::minimum(float::minimum(a.into(), b.into()), c.into()) as f32
        }),
    ),
    (
        "v_maximum3_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 {
            float::maximum(float::maximum(a.into(), b.into()), c.into()) as f32
        }),
    ),
    (
        "v_minimum_f32",
        vector!(Word, |a: f32, b: f32| -> f32 {
            float::minimum(a.into(), b.into()) as f32
        }),
    ),
    (
        "v_maximum_f32",
        vector!(Word, |a: f32, b: f32| -> f32 {
            float::maximum(a.into(), b.into()) as f32
        }),
    ),
    (
        "v_minimummaximum_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 {
            float::maximum(float::minimum(a.into(), b.into()), c.into()) as f32
        }),
    ),
    (
        "v_maximumminimum_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 {
            float::minimum(float::maximum(a.into(), b.into()), c.into()) as f32
        }),
    ),
    (
        "v_min3_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { min(min(a, b), c) }),
    ),
    (
        "v_max3_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 { max(max(a, b), c) }),
    ),
    (
        "v_med3_f32",
        vector!(Word, |a: f32, b: f32, c: f32| -> f32 {
            if a.is_nan() | b.is_nan() | c.is_nan() {
                min(min(a, b), c)
            } else {
                max(min(a, b), min(max(a, b), c))
            }
        }),
    ),
    ("v_trunc_f32", vector!(Word, |a: f32| -> f32 { a.trunc() })),
    ("v_floor_f32", vector!(Word, |a: f32| -> f32 { a.floor() })),
    ("v_ceil_f32", vector!(Word, |a: f32| -> f32 { a.ceil() })),
    (
        "v_rndne_f32",
        vector!(Word, |a: f32| -> f32 { a.round_ties_even() }),
    ),
    // The result stays below 1 even if the subtraction rounds up to 1. An infinity has no fraction.
    (
        "v_fract_f32",
        vector!(Word, |a: f32| -> f32 {
            let fraction = a - a.floor();
            if fraction < 1.0 {
                fraction
            } else if fraction.is_nan() {
                f32::NAN
            } else {
                f32::from_bits(0x3f7f_ffff)
            }
        }),
    ),
    (
        "v_ldexp_f32",
        vector!(Word, |a: f32, b: i32| -> f32 { scaled(a, b) }),
    ),
    (
        "v_frexp_mant_f32",
        vector!(Word, |a: f32| -> f32 { float::frexp(a.into()).0 as f32 }),
    ),
    (
        "v_frexp_exp_i32_f32",
        vector!(Word, |a: f32| -> i32 { float::frexp(a.into()).1 }),
    ),
    ("v_rcp_f32", vector!(Word, |a: f32| -> f32 { 1.0 / a })),
    (
        "v_rcp_iflag_f32",
        vector!(Word, |a: f32| -> f32 { 1.0 / a }),
    ),
    (
        "v_rsq_f32",
        vector!(Word, |a: f32| -> f32 { (1.0 / f64::from(a).sqrt()) as f32 }),
    ),
    ("v_sqrt_f32", vector!(Word, |a: f32| -> f32 { a.sqrt() })),
    (
        "v_exp_f32",
        vector!(Word, |a: f32| -> f32 { exponential(a) }),
    ),
    ("v_log_f32", vector!(Word, |a: f32| -> f32 { logarithm(a) })),
    (
        "v_exp_legacy_f32",
        vector!(Word, |a: f32| -> f32 { f64::from(a).exp2() as f32 }),
    ),
    (
        "v_log_legacy_f32",
        vector!(Word, |a: f32| -> f32 { f64::from(a).log2() as f32 }),
    ),
    (
        "v_sin_f32",
        vector!(Word, |a: f32| -> f32 { sine(a.into()) as f32 }),
    ),
    (
        "v_cos_f32",
        vector!(Word, |a: f32| -> f32 { cosine(a.into()) as f32 }),
    ),
    // Double precision.
    (
        "v_add_f64",
        vector!(Long, |a: f64, b: f64| -> f64 { a + b }),
    ),
    (
        "v_mul_f64",
        vector!(Long, |a: f64, b: f64| -> f64 { a * b }),
    ),
    (
        "v_fma_f64",
        vector!(Long, |a: f64, b: f64, c: f64| -> f64 { a.mul_add(b, c) }),
    ),
    (
        "v_fmac_f64",
        vector!(Long, |a: f64, b: f64, c: f64| -> f64 { a.mul_add(b, c) }),
    ),
    (
        "v_min_f64",
        vector!(Long, |a: f64, b: f64| -> f64 { float::min(a, b) }),
    ),
    (
        "v_max_f64",
        vector!(Long, |a: f64, b: f64| -> f64 { float::max(a, b) }),
    ),
    (
        "v_minimum_f64",
        vector!(Long, |a: f64, b: f64| -> f64 { float::minimum(a, b) }),
    ),
    (
        "v_maximum_f64",
        vector!(Long, |a: f64, b: f64| -> f64 { float::maximum(a, b) }),
    ),
    ("v_trunc_f64", vector!(Long, |a: f64| -> f64 { a.trunc() })),
    ("v_floor_f64", vector!(Long, |a: f64| -> f64 { a.floor() })),
    ("v_ceil_f64", vector!(Long, |a: f64| -> f64 { a.ceil() })),
    (
        "v_rndne_f64",
        vector!(Long, |a: f64| -> f64 { a.round_ties_even() }),
    ),
    (
        "v_fract_f64",
        vector!(Long, |a: f64| -> f64 {
            let fraction = a - a.floor();
            if fraction < 1.0 {
                fraction
            } else if fraction.is_nan() {
                f64::NAN
            } else {
                f64::from_bits(0x3fef_ffff_ffff_ffff)
            }
        }),
    ),
    (
        "v_ldexp_f64",
        vector!(Long, |a: f64, b: i32| -> f64 { float::ldexp(a, b) }),
    ),
    (
        "v_frexp_mant_f64",
        vector!(Long, |a: f64| -> f64 { float::frexp(a).0 }),
    ),
    (
        "v_frexp_exp_i32_f64",
        vector!(Long, |a: f64| -> i32 { float::frexp(a).1 }),
    ),
    ("v_rcp_f64", vector!(Long, |a: f64| -> f64 { 1.0 / a })),
    (
        "v_rsq_f64",
        vector!(Long, |a: f64| -> f64 { 1.0 / a.sqrt() }),
    ),
    ("v_sqrt_f64", vector!(Long, |a: f64| -> f64 { a.sqrt() })),
];

fn fused(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// The smaller number, without branches; see [`float::min`].
#[inline(always)]
fn min(a: f32, b: f32) -> f32 {
    let chosen = if (a < b) | b.is_nan() & !a.is_nan() {
        a.to_bits()
    } else {
        b.to_bits()
    };
    // Equal numbers differ in the sign of zero at most.
    let chosen = if a == b {
        a.to_bits() | b.to_bits()
    } else {
        chosen
    };
    // The result of two NaNs is a quiet one.
    let quiet = if a.is_nan() & b.is_nan() { 1 << 22 } else { 0 };
    f32::from_bits(chosen | quiet)
}

#[inline(always)]
fn max(a: f32, b: f32) -> f32 {
    -min(-a, -b)
}

/// A number times 2 to the `exponent`, rounded once.
#[inline(always)]
fn scaled(value: f32, exponent: i32) -> f32 {
    // Beyond 400, every number becomes an infinity or zero. Double precision holds the product.
    (f64::from(value) * power(exponent.clamp(-400, 400))) as f32
}

/// 2 to a power of a normal double.
#[inline(always)]
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// 2 to a number: in double precision, by the Taylor series of the fraction, with an error below
/// 2^-50.
#[inline(always)]
fn exponential(value: f32) -> f32 {
    // ln(2)^n / n!, from n = 13 down to 0.
    const SERIES: [f64; 14] = {
        let mut series = [1.0; 14];
        let mut n = 1;
        while n < 14 {
            series[13 - n] = series[14 - n] * std::f64::consts::LN_2 / n as f64;
            n += 1;
        }
        series
    };
    // Beyond these, single precision has only infinity and zero.
    let bounded = f64::from(value).clamp(-200.0, 200.0);
    // Adding and subtracting 1.5 * 2^52 rounds to an integer.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    let shifted = bounded + ROUNDER;
    let whole = shifted.to_bits() as i32;
    let fraction = bounded - (shifted - ROUNDER);
    let mut sum = 0.0;
    for term in SERIES {
        sum = sum * fraction + term;
    }
    let result = (sum * power(whole)) as f32;
    if value.is_nan() {
        value + value
    } else {
        result
    }
}

/// The logarithm to base 2: in double precision, by the series of the inverse hyperbolic tangent,
/// with an error below 2^-50.
#[inline(always)]
fn logarithm(value: f32) -> f32 {
    let wide = f64::from(value);
    let bits = wide.to_bits();
    // The mantissa lies from sqrt(1/2) to sqrt(2).
    const ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
    let shifted = bits.wrapping_sub(ROOT);
    let exponent = (shifted as i64 >> 52) as i32;
    let mantissa = f64::from_bits(bits.wrapping_sub((shifted >> 52) << 52));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    // 1/(2n + 1), from n = 10 down to 0.
    for term in [21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1] {
        sum = sum * square + 1.0 / f64::from(term);
    }
    let result = f64::from(exponent) + 2.0 * std::f64::consts::LOG2_E * s * sum;
    if value == 0.0 {
        f32::NEG_INFINITY
    } else if value < 0.0 {
        f32::NAN
    } else if value.is_nan() | (value == f32::INFINITY) {
        value + value
    } else {
        result as f32
    }
}
