//! The sine and the cosine of an angle in full turns, and v_trig_preop_f64: parts of 2/pi, from which a program
//! finds the quadrant of a large angle.

use std::f64::consts::TAU;

use super::super::value::{Kind, Value};
use super::super::{Operation, float};
use super::macros::{kinds, vector};
use super::operation::VectorOperation;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[(
    "v_trig_preop_f64",
    vector!(Long, |a: f64, b: u32| -> f64 { part(a, b) }),
)];

/// The first 1201 bits of 2/pi behind the binary point, the highest first.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_0000,
];

/// Bits of a part: as many as a double's fraction has.
const PART: u32 = 53;

/// Part number `part`, of 53 bits, of the bits of 2/pi that matter for an angle. Earlier bits,
/// times the angle, give full turns only. The code follows the pseudocode in the instruction set
/// guides.
fn part(angle: f64, part: u32) -> f64 {
    /// For angles with a smaller exponent, every bit of 2/pi matters.
    const LARGE: i32 = 1077;
    /// From this exponent on the instruction scales the part, so that it does not become denormal.
    const HUGE: i32 = 1968;
    let exponent = float::exponent_field(angle);
    let skipped = (part & 31) * PART + (exponent - LARGE).max(0) as u32;
    let bits = (skipped..skipped + PART).fold(0, |bits, place| bits << 1 | bit(place));
    let scale = if exponent >= HUGE { 128 } else { 0 };
    float::ldexp(bits as f64, scale - (PART + skipped) as i32)
}

fn bit(place: u32) -> u64 {
    let word = TWO_OVER_PI.get(place as usize / 64).copied().unwrap_or(0);
    word << (place % 64) >> 63
}

/// The sine of an angle in full turns. Only the fraction of a turn matters.
#[inline(always)]
pub(super) fn sine(turns: f64) -> f64 {
    let fraction = turns.fract();
    // The sine of -0 is -0.
    if turns == 0.0 {
        return turns;
    }
    quarter(fraction, [0.0, 1.0, 0.0, -1.0]).unwrap_or_else(|| (fraction * TAU).sin())
}

/// The cosine of an angle in full turns.
#[inline(always)]
pub(super) fn cosine(turns: f64) -> f64 {
    let fraction = turns.fract();
    quarter(fraction, [1.0, 0.0, -1.0, 0.0]).unwrap_or_else(|| (fraction * TAU).cos())
}

/// The value for a whole number of quarters of a turn, which a multiple of pi would miss.
#[inline(always)]
fn quarter(fraction: f64, values: [f64; 4]) -> Option<f64> {
    let quarters = 4.0 * fraction;
    (quarters == quarters.trunc()).then(|| values[(quarters as i32 & 3) as usize])
}
