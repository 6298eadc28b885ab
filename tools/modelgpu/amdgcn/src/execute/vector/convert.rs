//! Conversions. From a float to an integer they truncate, saturate, and turn NaN into 0.

use super::super::Operation;
use super::super::value::{Half, Kind, Value};
use super::{VectorOperation, kinds, vector};
use crate::wave::LANES;

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
