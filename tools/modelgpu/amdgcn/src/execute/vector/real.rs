//! Single and double precision arithmetic.
//!
//! The approximate instructions (reciprocal, roots, exponentials, trigonometry) give correctly
//! rounded results if the host's library does. Hardware promises about one unit in the last place,
//! so a program must not depend on more.

use super::super::value::{Kind, Value};
use super::super::{Operation, float};
use super::{VectorOperation, kinds, vector};
use crate::wave::LANES;

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
            float::median(a.into(), b.into(), c.into()) as f32
        }),
    ),
    ("v_trunc_f32", vector!(Word, |a: f32| -> f32 { a.trunc() })),
    ("v_floor_f32", vector!(Word, |a: f32| -> f32 { a.floor() })),
    ("v_ceil_f32", vector!(Word, |a: f32| -> f32 { a.ceil() })),
    (
        "v_rndne_f32",
        vector!(Word, |a: f32| -> f32 { a.round_ties_even() }),
    ),
    // The result stays below 1 even if the subtraction rounds up to 1. For a NaN, LLVM gives NaN.
    (
        "v_fract_f32",
        vector!(Word, |a: f32| -> f32 {
            if a.is_nan() {
                a
            } else {
                min(a - a.floor(), f32::from_bits(0x3f7f_ffff))
            }
        }),
    ),
    (
        "v_ldexp_f32",
        vector!(Word, |a: f32, b: i32| -> f32 {
            float::ldexp(a.into(), b) as f32
        }),
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
        vector!(Word, |a: f32| -> f32 { f64::from(a).exp2() as f32 }),
    ),
    (
        "v_log_f32",
        vector!(Word, |a: f32| -> f32 { f64::from(a).log2() as f32 }),
    ),
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
        vector!(Word, |a: f32| -> f32 { turn(a).sin() as f32 }),
    ),
    (
        "v_cos_f32",
        vector!(Word, |a: f32| -> f32 { turn(a).cos() as f32 }),
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
            if a.is_nan() {
                a
            } else {
                float::min(a - a.floor(), f64::from_bits(0x3fef_ffff_ffff_ffff))
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

fn min(a: f32, b: f32) -> f32 {
    float::min(a.into(), b.into()) as f32
}

fn max(a: f32, b: f32) -> f32 {
    float::max(a.into(), b.into()) as f32
}

/// The hardware counts angles in full turns.
fn turn(angle: f32) -> f64 {
    f64::from(angle) * std::f64::consts::TAU
}
