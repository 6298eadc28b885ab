//! Floating-point formats of at most 32 bits: a sign, an exponent and a fraction.
//!
//! Sources: AMD's CDNA3 instruction set guide for the 8-bit formats of gfx942; the OCP's "8-bit Floating
//! Point" and "Microscaling Formats" specifications for those of later targets, which have equal names;
//! AMD's emulation of conversions on the host (amd_hip_ocp_host.hpp of HIP 7.2) for rounding by a random
//! number.

use super::super::float;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the exponent and of the fraction.
    exponent: u32,
    fraction: u32,
    bias: i32,
    special: Special,
}

/// The bits that encode no finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// One NaN where -0 would be. There is one zero.
    MinusZero,
    /// A NaN with all bits set, of each sign.
    AllOnes,
    /// Infinities and NaNs as in IEEE 754. A NaN becomes quiet, and keeps the high bits of its payload.
    Ieee,
    /// Infinities and NaNs as in IEEE 754, but results are the NaN with all bits set.
    LastExponent,
    /// There are none: numbers that are too large become the largest one, and so do NaNs.
    None,
}

use Special::{AllOnes, Ieee, LastExponent, MinusZero};

const fn format(exponent: u32, fraction: u32, bias: i32, special: Special) -> Format {
    Format {
        exponent,
        fraction,
        bias,
        special,
    }
}

/// gfx942's formats ("fnuz").
pub(super) const FP8_FNUZ: Format = format(4, 3, 8, MinusZero);
pub(super) const BF8_FNUZ: Format = format(5, 2, 16, MinusZero);
/// The OCP's.
pub(super) const FP8: Format = format(4, 3, 7, AllOnes);
pub(super) const BF8: Format = format(5, 2, 15, LastExponent);
pub(super) const FP6: Format = format(2, 3, 1, Special::None);
pub(super) const BF6: Format = format(3, 2, 3, Special::None);
pub(super) const FP4: Format = format(2, 1, 1, Special::None);
pub(super) const HALF: Format = format(5, 10, 15, Ieee);
pub(super) const BRAIN: Format = format(8, 7, 127, Ieee);
pub(super) const SINGLE: Format = format(8, 23, 127, Ieee);

impl Format {
    /// The format whose NaNs have all bits set.
    pub(super) const fn with_full_nans(self) -> Self {
        Self {
            special: LastExponent,
            ..self
        }
    }

    /// All bits of a number.
    pub(super) const fn width(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    pub(super) const fn sign_bit(self) -> u32 {
        1 << (self.exponent + self.fraction)
    }

    pub(super) fn decode(self, bits: u32) -> f64 {
        let sign = bits & self.sign_bit();
        let magnitude = bits & (self.sign_bit() - 1);
        let exponent = magnitude >> self.fraction;
        let fraction = magnitude & ((1 << self.fraction) - 1);
        let value = match self.special {
            MinusZero if sign != 0 && magnitude == 0 => f64::NAN,
            AllOnes if magnitude == self.sign_bit() - 1 => f64::NAN,
            Ieee | LastExponent if exponent == (1 << self.exponent) - 1 => match fraction {
                0 => f64::INFINITY,
                _ => f64::NAN,
            },
            _ => {
                // Denormal numbers have the exponent of the smallest normal one and no leading 1.
                let leading = u32::from(exponent != 0) << self.fraction;
                let unit = exponent.max(1) as i32 - self.bias - self.fraction as i32;
                float::ldexp((leading + fraction).into(), unit)
            }
        };
        if sign != 0 { -value } else { value }
    }

    /// [`Format::decode`] for numbers of at most 8 bits, whose values single precision has.
    #[inline(always)]
    pub(super) fn decoder(self) -> SmallDecoder {
        const NONE: u32 = u32::MAX;
        let all = self.sign_bit() - 1;
        let last_exponent = all >> self.fraction << self.fraction;
        let (nan, largest, infinity) = match self.special {
            MinusZero => (self.sign_bit(), all, NONE),
            AllOnes => (NONE, all - 1, NONE),
            Ieee | LastExponent => (NONE, last_exponent, last_exponent),
            Special::None => (NONE, all, NONE),
        };
        let unit = SINGLE.bias + 1 - self.bias - self.fraction as i32;
        SmallDecoder {
            all,
            sign: self.sign_bit(),
            sign_shift: SINGLE.width() - self.width(),
            normal: 1 << self.fraction,
            shift: SINGLE.fraction - self.fraction,
            rebias: ((SINGLE.bias - self.bias) as u32) << SINGLE.fraction,
            unit: f32::from_bits((unit as u32) << SINGLE.fraction),
            nan,
            largest,
            infinity,
        }
    }

    /// Rounds to nearest even.
    pub(super) fn encode(self, value: f64) -> u32 {
        self.round(value, |magnitude, unit| {
            float::ldexp(magnitude, -unit).round_ties_even() as u64
        })
    }

    /// Adds the high bits of a random number below the fraction's last bit, and truncates. In front
    /// of that, a number in the range of denormal ones loses the bits that a normal one of the `source`
    /// format lacks.
    pub(super) fn encode_randomly(self, value: f64, source: Self, random: u32) -> u32 {
        let dropped = source.fraction - self.fraction;
        self.round(value, |magnitude, unit| {
            let parts = float::ldexp(magnitude, dropped as i32 - unit) as u64;
            (parts + (u64::from(random) >> (32 - dropped))) >> dropped
        })
    }

    /// The bits of a value, of which `count` gives the magnitude in units of 2 to a power, rounded.
    fn round(self, value: f64, count: impl FnOnce(f64, i32) -> u64) -> u32 {
        let sign = u32::from(value.is_sign_negative()) * self.sign_bit();
        if value.is_nan() {
            return self.nan(sign, value);
        }
        if value.is_infinite() {
            return self.beyond(sign);
        }
        let magnitude = value.abs();
        let exponent = float::frexp(magnitude).1 - 1;
        // The distance between neighbouring numbers.
        let unit = exponent.max(1 - self.bias) - self.fraction as i32;
        let units = count(magnitude, unit);
        // Counted in units, a normal number has its leading 1 above the fraction. So the addition
        // carries into the exponent.
        let lowest = (unit + self.fraction as i32 + self.bias - 1) as u64;
        let bits = (lowest << self.fraction) + units;
        if units == 0 {
            return match self.special {
                MinusZero => 0,
                _ => sign,
            };
        }
        if bits > u64::from(self.largest()) {
            return self.beyond(sign);
        }
        sign | bits as u32
    }

    /// The bits of the largest finite number.
    fn largest(self) -> u32 {
        let all = self.sign_bit() - 1;
        match self.special {
            MinusZero | Special::None => all,
            AllOnes => all - 1,
            Ieee | LastExponent => all - (1 << self.fraction),
        }
    }

    fn nan(self, sign: u32, value: f64) -> u32 {
        match self.special {
            MinusZero => self.sign_bit(),
            Ieee => {
                let payload = value.to_bits() << 12 >> (64 - self.fraction);
                sign | self.infinity() | 1 << (self.fraction - 1) | payload as u32
            }
            _ => sign | (self.sign_bit() - 1),
        }
    }

    /// The bits for a number that is too large.
    fn beyond(self, sign: u32) -> u32 {
        match self.special {
            MinusZero | AllOnes => self.nan(sign, f64::NAN),
            Ieee | LastExponent | Special::None => sign | self.infinity(),
        }
    }

    fn infinity(self) -> u32 {
        match self.special {
            Ieee | LastExponent => self.largest() + 1,
            _ => self.largest(),
        }
    }
}

/// Decodes small numbers without branches on their bits, so that a loop over lanes becomes vector code.
#[derive(Clone, Copy)]
pub(super) struct SmallDecoder {
    all: u32,
    sign: u32,
    /// From the sign's place to that of single precision.
    sign_shift: u32,
    /// The smallest magnitude of a normal number.
    normal: u32,
    shift: u32,
    /// The difference of the biases, as an exponent of single precision.
    rebias: u32,
    /// The smallest denormal number.
    unit: f32,
    /// The bits of a single NaN.
    nan: u32,
    /// The largest magnitude of a number or an infinity. Those above it are NaNs.
    largest: u32,
    infinity: u32,
}

impl SmallDecoder {
    #[inline(always)]
    pub(super) fn decode(self, bits: u32) -> f32 {
        let magnitude = bits & self.all;
        let normal = (magnitude << self.shift) + self.rebias;
        let denormal = (magnitude as i32 as f32 * self.unit).to_bits();
        let is_normal = magnitude >= self.normal;
        let value = if is_normal { normal } else { denormal };
        let is_infinite = magnitude == self.infinity;
        let value = if is_infinite {
            f32::INFINITY.to_bits()
        } else {
            value
        };
        let is_nan = (magnitude > self.largest) | (bits == self.nan);
        let value = if is_nan { f32::NAN.to_bits() } else { value };
        f32::from_bits(value | (bits & self.sign) << self.sign_shift)
    }
}
