//! 16-bit arithmetic. On these targets a 16-bit result clears the register's high half, unless
//! the high half is selected as its place.

use super::super::value::{Half, Kind, Value};
use super::super::{Operation, float};
use super::{VectorOperation, kinds, vector};
use crate::wave::LANES;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_add_u16",
        vector!(Word, |a: u16, b: u16| -> u16 { a.wrapping_add(b) }),
    ),
    (
        "v_sub_u16",
        vector!(Word, |a: u16, b: u16| -> u16 { a.wrapping_sub(b) }),
    ),
    (
        "v_subrev_u16",
        vector!(Word, |a: u16, b: u16| -> u16 { b.wrapping_sub(a) }),
    ),
    (
        "v_mul_lo_u16",
        vector!(Word, |a: u16, b: u16| -> u16 { a.wrapping_mul(b) }),
    ),
    (
        "v_mad_u16",
        vector!(Word, |a: u16, b: u16, c: u16| -> u16 {
            a.wrapping_mul(b).wrapping_add(c)
        }),
    ),
    (
        "v_mad_legacy_u16",
        vector!(Word, |a: u16, b: u16, c: u16| -> u16 {
            a.wrapping_mul(b).wrapping_add(c)
        }),
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
        "v_add_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            exact(real(a) + real(b))
        }),
    ),
    (
        "v_sub_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            exact(real(a) - real(b))
        }),
    ),
    (
        "v_subrev_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            exact(real(b) - real(a))
        }),
    ),
    (
        "v_mul_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            exact(real(a) * real(b))
        }),
    ),
    (
        "v_max_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            exact(float::max(real(a), real(b)))
        }),
    ),
    (
        "v_min_f16",
        vector!(Word, |a: Half, b: Half| -> Half {
            exact(float::min(real(a), real(b)))
        }),
    ),
];

fn real(half: Half) -> f64 {
    half.to_f32().into()
}

/// Rounds a double that is the exact sum or product of two halves, which single precision
/// represents well enough for the second rounding not to matter: 24 bits are more than twice 11.
fn exact(value: f64) -> Half {
    Half::from_f32(value as f32)
}
