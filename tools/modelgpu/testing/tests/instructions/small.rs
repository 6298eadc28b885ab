//! Floating-point formats of few bits by their definitions: every value, and the nearest ones of a number.

use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

use crate::atomics::f64_to_brain;
use crate::half::{f64_to_half, half_to_f64};

/// A format: its name in mnemonics, the bits of its exponent and of its fraction, and its bias.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    exponent: u32,
    fraction: u32,
    bias: i32,
    special: Special,
}

/// The encodings that are no finite number.
#[derive(Clone, Copy, PartialEq)]
enum Special {
    /// -0 is a NaN.
    MinusZero,
    /// All bits after the sign: a NaN.
    AllOnes,
    /// The last exponent: infinities and NaNs.
    LastExponent,
    None,
}

const fn format(name: &'static str, bits: (u32, u32), bias: i32, special: Special) -> Format {
    Format {
        name,
        exponent: bits.0,
        fraction: bits.1,
        bias,
        special,
    }
}

pub(crate) const FP8_FNUZ: Format = format("fp8", (4, 3), 8, Special::MinusZero);
pub(crate) const BF8_FNUZ: Format = format("bf8", (5, 2), 16, Special::MinusZero);
pub(crate) const FP8: Format = format("fp8", (4, 3), 7, Special::AllOnes);
pub(crate) const BF8: Format = format("bf8", (5, 2), 15, Special::LastExponent);
pub(crate) const FP6: Format = format("fp6", (2, 3), 1, Special::None);
pub(crate) const BF6: Format = format("bf6", (3, 2), 3, Special::None);
pub(crate) const FP4: Format = format("fp4", (2, 1), 1, Special::None);
pub(crate) const HALF: Format = format("f16", (5, 10), 15, Special::LastExponent);
pub(crate) const BRAIN: Format = format("bf16", (8, 7), 127, Special::LastExponent);
pub(crate) const SINGLE: Format = format("f32", (8, 23), 127, Special::LastExponent);

impl Format {
    pub(crate) fn width(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    fn sign(self) -> u32 {
        1 << (self.width() - 1)
    }

    pub(crate) fn value(self, bits: u32) -> f64 {
        match self.name {
            "f32" => return f32::from_bits(bits).into(),
            "bf16" => return f32::from_bits(bits << 16).into(),
            "f16" => return half_to_f64(bits as u16),
            _ => {}
        }
        let bits = bits % (2 * self.sign());
        let (sign, magnitude) = (bits / self.sign(), bits % self.sign());
        let (exponent, fraction) = (magnitude >> self.fraction, magnitude % (1 << self.fraction));
        let part = f64::from(fraction) / f64::from(1 << self.fraction);
        let magnitude = match (self.special, exponent) {
            (Special::MinusZero, 0) if sign == 1 && fraction == 0 => f64::NAN,
            (Special::AllOnes, _) if magnitude == self.sign() - 1 => f64::NAN,
            (Special::LastExponent, last) if last == (1 << self.exponent) - 1 => {
                if fraction == 0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            (_, 0) => part * 2f64.powi(1 - self.bias),
            _ => (1.0 + part) * 2f64.powi(exponent as i32 - self.bias),
        };
        if sign == 1 { -magnitude } else { magnitude }
    }

    /// The bits of the finite magnitudes, which grow with them.
    fn magnitudes(self) -> std::ops::Range<u32> {
        0..(0..self.sign())
            .find(|bits| !self.value(*bits).is_finite())
            .unwrap_or(self.sign())
    }

    /// The magnitude that would follow the largest one.
    fn behind(self) -> f64 {
        let end = self.magnitudes().end;
        2.0 * self.value(end - 1) - self.value(end - 2)
    }

    /// The bits for a number that is not finite or too large.
    fn beyond(self, number: f64) -> u32 {
        let sign = if number.is_sign_negative() {
            self.sign()
        } else {
            0
        };
        match self.special {
            Special::MinusZero => self.sign(),
            Special::LastExponent if !number.is_nan() => sign | self.magnitudes().end,
            // A NaN with all bits set; the largest number of a format without NaNs has them too.
            _ => sign | (self.sign() - 1),
        }
    }

    fn signed(self, bits: u32, number: f64) -> u32 {
        match self.special {
            Special::MinusZero if bits == 0 => 0,
            _ if number.is_sign_negative() => bits | self.sign(),
            _ => bits,
        }
    }

    /// The nearest of all values; of two equally near, the even one. A number that is nearer to the one after
    /// the largest value is too large.
    pub(crate) fn nearest(self, number: f64) -> u32 {
        match self.name {
            // As in AMD's emulation of conversions with a scale (amd_hip_ocp_host.hpp).
            "f32" if number.is_nan() => return 0x7fc0_0000,
            _ if number.is_nan() && self.width() > 8 => return self.sign() - 1,
            "f32" => return (number as f32).to_bits(),
            "f16" => return f64_to_half(number).into(),
            "bf16" => return f64_to_brain(number).into(),
            _ => {}
        }
        let magnitude = number.abs();
        let last = self.magnitudes().end - 1;
        let is_beyond = magnitude >= (self.value(last) + self.behind()) / 2.0;
        if number.is_nan() || is_beyond {
            return self.beyond(number);
        }
        let distance = |bits: &u32| (self.value(*bits) - magnitude).abs();
        let found = self.magnitudes().min_by(|a, b| {
            let even = |bits: &u32| bits % 2;
            distance(a)
                .total_cmp(&distance(b))
                .then(even(a).cmp(&even(b)))
        });
        let bits = self.signed(found.unwrap_or(0), number);
        self.check(number, bits);
        bits
    }

    /// The NaN of 16 bits that the soft float makes of another one.
    pub(crate) fn of_nan(self, nan: f32) -> u32 {
        let single = Single::from_bits(nan.to_bits().into());
        let bits = match self == HALF {
            true => FloatConvert::<Half>::convert(single, &mut false)
                .value
                .to_bits(),
            false => FloatConvert::<BFloat>::convert(single, &mut false)
                .value
                .to_bits(),
        };
        bits as u32
    }

    /// The soft float has two of the formats.
    fn check(self, number: f64, bits: u32) {
        fn soft<F: Float>(number: f64) -> u32
        where
            Double: FloatConvert<F>,
        {
            let double = Double::from_bits(number.to_bits().into());
            let converted: F = double.convert(&mut false).value;
            converted.to_bits() as u32
        }
        if self == FP8 {
            assert_eq!(soft::<Float8E4M3FN>(number), bits, "{number}");
        }
        if self == BF8 {
            assert_eq!(soft::<Float8E5M2>(number), bits, "{number}");
        }
    }

    /// The neighbour of a number of the `source` format that a random number selects. The upper one is as likely
    /// as the number is near to it, but the distance counts only as many bits as a number of the source's
    /// fraction can have.
    pub(crate) fn by_random(self, number: f64, source: Self, random: u32) -> u32 {
        let magnitude = number.abs();
        if !number.is_finite() || magnitude >= self.behind() {
            return self.beyond(number);
        }
        let below = self
            .magnitudes()
            .rfind(|bits| self.value(*bits) <= magnitude)
            .unwrap_or(0);
        let low = self.value(below);
        let high = match below + 1 == self.magnitudes().end {
            true => self.behind(),
            false => self.value(below + 1),
        };
        let steps = f64::from(1 << (source.fraction - self.fraction));
        let part = ((magnitude - low) / (high - low) * steps).floor();
        let chance = (f64::from(random) / 2f64.powi(32) * steps).floor();
        let is_up = part + chance >= steps;
        match is_up && below + 1 == self.magnitudes().end {
            true => self.beyond(number),
            false => self.signed(below + u32::from(is_up), number),
        }
    }
}
