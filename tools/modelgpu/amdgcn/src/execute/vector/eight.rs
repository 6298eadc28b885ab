//! Floating-point numbers of 8 bits on gfx942 ("fnuz"): a zero of one sign, no infinities, and one
//! NaN, 0x80.

use super::super::value::{Kind, Value};
use super::super::{Operation, float};
use super::{VectorOperation, kinds, vector};
use crate::wave::LANES;

pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    (
        "v_cvt_f32_fp8",
        vector!(Word, |a: u32| -> f32 { FP8.decode(a as u8) }),
    ),
    (
        "v_cvt_f32_bf8",
        vector!(Word, |a: u32| -> f32 { BF8.decode(a as u8) }),
    ),
    (
        "v_cvt_pk_f32_fp8",
        vector!(Long, |a: u32| -> u64 { FP8.decode_two(a) }),
    ),
    (
        "v_cvt_pk_f32_bf8",
        vector!(Long, |a: u32| -> u64 { BF8.decode_two(a) }),
    ),
    (
        "v_cvt_pk_fp8_f32",
        vector!(Word, |a: f32, b: f32| -> u16 { FP8.encode_two(a, b) }),
    ),
    (
        "v_cvt_pk_bf8_f32",
        vector!(Word, |a: f32, b: f32| -> u16 { BF8.encode_two(a, b) }),
    ),
    // The second source is a random number.
    (
        "v_cvt_sr_fp8_f32",
        vector!(Word, |a: f32, b: u32| -> u32 {
            FP8.encode_randomly(a, b).into()
        }),
    ),
    (
        "v_cvt_sr_bf8_f32",
        vector!(Word, |a: f32, b: u32| -> u32 {
            BF8.encode_randomly(a, b).into()
        }),
    ),
];

const NAN: u8 = 0x80;

/// The use of the 7 bits behind the sign.
#[derive(Clone, Copy)]
pub(super) struct Format {
    fraction: u32,
    bias: i32,
}

pub(super) const FP8: Format = Format {
    fraction: 3,
    bias: 8,
};
pub(super) const BF8: Format = Format {
    fraction: 2,
    bias: 16,
};

impl Format {
    pub(super) fn decode(&self, byte: u8) -> f32 {
        if byte == NAN {
            return f32::NAN;
        }
        let exponent = i32::from((byte & 0x7f) >> self.fraction);
        let fraction = i32::from(byte) & ((1 << self.fraction) - 1);
        // Denormal numbers have the exponent of the smallest normal one and no leading 1.
        let leading = if exponent == 0 { 0 } else { 1 << self.fraction };
        let scale = exponent.max(1) - self.bias - self.fraction as i32;
        let magnitude = float::ldexp((leading + fraction).into(), scale) as f32;
        if byte >> 7 == 1 {
            -magnitude
        } else {
            magnitude
        }
    }

    /// Rounds to nearest even. Infinities and numbers that are too large become NaN.
    fn encode(&self, value: f32) -> u8 {
        let magnitude = f64::from(value.abs());
        let exponent = float::frexp(magnitude).1 - 1;
        // The distance between neighbouring numbers.
        let unit = exponent.max(1 - self.bias) - self.fraction as i32;
        let units = float::ldexp(magnitude, -unit).round_ties_even();
        if value.is_nan() {
            return NAN;
        }
        self.pack(unit, units, value.is_sign_negative())
    }

    /// The bits of `units` times 2 to the power `unit`, NaN if that is too large.
    fn pack(&self, unit: i32, units: f64, negative: bool) -> u8 {
        // Counted in units, a normal number has its leading 1 above the fraction. So the addition
        // carries into the exponent.
        let exponent = (unit + self.fraction as i32 + self.bias - 1) << self.fraction;
        let bits = f64::from(exponent) + units;
        if bits > 127.0 {
            return NAN;
        }
        if units == 0.0 {
            return 0;
        }
        bits as u8 | u8::from(negative) << 7
    }

    /// Adds the high bits of a random number below the fraction's last bit, and truncates. In front
    /// of that, a number in the range of denormal ones loses the bits that a normal one lacks.
    fn encode_randomly(&self, value: f32, random: u32) -> u8 {
        if !value.is_finite() {
            return NAN;
        }
        /// Fraction bits of single precision.
        const FRACTION: u32 = 23;
        let dropped = FRACTION - self.fraction;
        let magnitude = f64::from(value.abs());
        let exponent = float::frexp(magnitude).1 - 1;
        let unit = exponent.max(1 - self.bias) - self.fraction as i32;
        let parts = float::ldexp(magnitude, dropped as i32 - unit) as u64;
        let units = (parts + u64::from(random >> (32 - dropped))) >> dropped;
        self.pack(unit, units as f64, value.is_sign_negative())
    }

    fn decode_two(&self, word: u32) -> u64 {
        let [low, high] = [word as u8, (word >> 8) as u8].map(|byte| self.decode(byte).to_bits());
        u64::from(low) | u64::from(high) << 32
    }

    fn encode_two(&self, low: f32, high: f32) -> u16 {
        u16::from(self.encode(low)) | u16::from(self.encode(high)) << 8
    }
}
