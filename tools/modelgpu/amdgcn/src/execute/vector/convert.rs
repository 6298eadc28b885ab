//! Conversions. From a float to an integer they truncate, saturate, and turn NaN into 0.

use super::super::Operation;
use super::super::value::{Brain, Half, Kind, Value};
use super::macros::{kinds, vector};
use super::operation::VectorOperation;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("v_cvt_f32_u32", vector!(Word, |a: u32| -> f32 { a as f32 })),
    ("v_cvt_f32_i32", vector!(Word, |a: i32| -> f32 { a as f32 })),
    ("v_cvt_u32_f32", vector!(Word, |a: f32| -> u32 { a as u32 })),
    ("v_cvt_i32_f32", vector!(Word, |a: f32| -> i32 { a as i32 })),
    ("v_cvt_f64_u32", vector!(Long, |a: u32| -> f64 { a.into() })),
    ("v_cvt_f64_i32", vector!(Long, |a: i32| -> f64 { a.into() })),
    ("v_cvt_u32_f64", vector!(Long, |a: f64| -> u32 { a as u32 })),
    ("v_cvt_i32_f64", vector!(Long, |a: f64| -> i32 { a as i32 })),
    ("v_cvt_f64_f32", vector!(Long, |a: f32| -> f64 { a.into() })),
    ("v_cvt_f32_f64", vector!(Long, |a: f64| -> f32 { a as f32 })),
    (
        "v_cvt_f32_f16",
        vector!(Word, |a: Half| -> f32 { a.to_f32() }),
    ),
    (
        "v_cvt_f16_f32",
        vector!(Word, |a: f32| -> Half { Half::from_f64(a.into()) }),
    ),
    (
        "v_cvt_pk_f16_f32",
        vector!(Word, |a: f32, b: f32| -> u32 {
            pair([a, b].map(|value| Half::from_f64(value.into()).0))
        }),
    ),
    (
        "v_cvt_f32_bf16",
        vector!(Word, |a: u16| -> f32 { Brain(a).to_f32() }),
    ),
    (
        "v_cvt_pk_bf16_f32",
        vector!(Word, |a: f32, b: f32| -> u32 {
            pair([a, b].map(|value| Brain::nearest(value).0))
        }),
    ),
    // NaN becomes the limit of its sign, unlike in other conversions.
    (
        "v_cvt_rpi_i32_f32",
        vector!(Word, |a: f32| -> i32 {
            whole((f64::from(a) + 0.5).floor(), a)
        }),
    ),
    (
        "v_cvt_flr_i32_f32",
        vector!(Word, |a: f32| -> i32 { whole(f64::from(a).floor(), a) }),
    ),
    (
        "v_cvt_off_f32_i4",
        vector!(Word, |a: i32| -> f32 { (a << 28 >> 28) as f32 / 16.0 }),
    ),
    // Normalized numbers: 1 is the largest integer. They round to nearest even.
    (
        "v_cvt_norm_i16_f16",
        vector!(Word, |a: Half| -> i16 { signed_norm(a.to_f32()) }),
    ),
    (
        "v_cvt_norm_u16_f16",
        vector!(Word, |a: Half| -> u16 { unsigned_norm(a.to_f32()) }),
    ),
    (
        "v_cvt_pknorm_i16_f16",
        vector!(Word, |a: Half, b: Half| -> u32 {
            pair([a, b].map(|half| signed_norm(half.to_f32()) as u16))
        }),
    ),
    (
        "v_cvt_pknorm_u16_f16",
        vector!(Word, |a: Half, b: Half| -> u32 {
            pair([a, b].map(|half| unsigned_norm(half.to_f32())))
        }),
    ),
    (
        "v_cvt_pknorm_i16_f32",
        vector!(Word, |a: f32, b: f32| -> u32 {
            pair([a, b].map(|value| signed_norm(value) as u16))
        }),
    ),
    (
        "v_cvt_pknorm_u16_f32",
        vector!(Word, |a: f32, b: f32| -> u32 {
            pair([a, b].map(unsigned_norm))
        }),
    ),
    // RDNA's, which Clang has for plain conversions: towards zero, and to the limits of the type.
    (
        "v_cvt_pk_u16_f32",
        vector!(Word, |a: f32, b: f32| -> u32 {
            pair([a, b].map(|value| value as u16))
        }),
    ),
    (
        "v_cvt_pk_i16_f32",
        vector!(Word, |a: f32, b: f32| -> u32 {
            pair([a, b].map(|value| value as i16 as u16))
        }),
    ),
    (
        "v_cvt_pk_u16_u32",
        vector!(Word, |a: u32, b: u32| -> u32 {
            pair([a, b].map(|value| value.min(0xffff) as u16))
        }),
    ),
    (
        "v_cvt_pk_i16_i32",
        vector!(Word, |a: i32, b: i32| -> u32 {
            pair([a, b].map(|value| value.clamp(i16::MIN.into(), i16::MAX.into()) as u16))
        }),
    ),
    (
        "v_cvt_f32_ubyte0",
        vector!(Word, |a: u32| -> f32 { byte(a, 0) }),
    ),
    (
        "v_cvt_f32_ubyte1",
        vector!(Word, |a: u32| -> f32 { byte(a, 1) }),
    ),
    (
        "v_cvt_f32_ubyte2",
        vector!(Word, |a: u32| -> f32 { byte(a, 2) }),
    ),
    (
        "v_cvt_f32_ubyte3",
        vector!(Word, |a: u32| -> f32 { byte(a, 3) }),
    ),
];

fn byte(word: u32, place: usize) -> f32 {
    word.to_le_bytes()[place].into()
}

/// Saturates a rounded number. `number` is the number before the rounding.
fn whole(rounded: f64, number: f32) -> i32 {
    match (number.is_nan(), number.is_sign_negative()) {
        (false, _) => rounded as i32,
        (true, false) => i32::MAX,
        (true, true) => i32::MIN,
    }
}

fn signed_norm(value: f32) -> i16 {
    (f64::from(value).clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16
}

fn unsigned_norm(value: f32) -> u16 {
    (f64::from(value).clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16
}

fn pair([low, high]: [u16; 2]) -> u32 {
    u32::from(low) | u32::from(high) << 16
}
