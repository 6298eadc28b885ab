//! The types that instructions compute with.

use std::ops::RangeInclusive;

use modelgpu_isa::{FloatFormat, Operand, inline_constant};

/// The contents of an operand: its size and, for floating point, its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No operand.
    None,
    B16,
    B32,
    B64,
    /// Like B64, but a literal constant is sign-extended.
    I64,
    F16,
    F32,
    F64,
}

impl Kind {
    pub(crate) const fn is_long(self) -> bool {
        matches!(self, Self::B64 | Self::I64 | Self::F64)
    }

    pub(crate) const fn is_half(self) -> bool {
        matches!(self, Self::B16 | Self::F16)
    }

    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// All bits of a scalar operand.
    pub(crate) const fn all_bits(self) -> u64 {
        if self.is_long() {
            u64::MAX
        } else {
            0xffff_ffff
        }
    }

    /// The bit that the abs and neg modifiers change.
    pub(crate) const fn sign_bit(self) -> u64 {
        match self {
            Self::B16 | Self::F16 => 1 << 15,
            Self::None | Self::B32 | Self::F32 => 1 << 31,
            Self::B64 | Self::I64 | Self::F64 => 1 << 63,
        }
    }

    pub(crate) const fn float_format(self) -> FloatFormat {
        match self {
            Self::B16 | Self::F16 => FloatFormat::Half,
            Self::None | Self::B32 | Self::F32 => FloatFormat::Single,
            Self::B64 | Self::I64 | Self::F64 => FloatFormat::Double,
        }
    }

    /// The float with the bits `bits`, if the kind is a float.
    pub(crate) fn decode_float(self, bits: u64) -> f64 {
        match self {
            Self::F16 => f64::from(Half(bits as u16).to_f32()),
            Self::F64 => f64::from_bits(bits),
            _ => f64::from(f32::from_bits(bits as u32)),
        }
    }

    /// Inverse of [`Kind::decode_float`], rounding to the kind's precision.
    pub(crate) fn encode_float(self, value: f64) -> u64 {
        match self {
            Self::F16 => Half::from_f64(value).0.into(),
            Self::F64 => value.to_bits(),
            _ => (value as f32).to_bits().into(),
        }
    }

    /// The number with the bits `bits`, or zero of the same sign for a denormal one.
    pub(crate) fn flushed(self, bits: u64) -> u64 {
        if self.is_denormal(bits) {
            bits & self.sign_bit()
        } else {
            bits
        }
    }

    /// Returns whether `bits` are a denormal number of this kind.
    pub(crate) fn is_denormal(self, bits: u64) -> bool {
        match self {
            Self::F16 => bits & 0x7c00 == 0 && bits & 0x3ff != 0,
            Self::F32 => f32::from_bits(bits as u32).is_subnormal(),
            Self::F64 => f64::from_bits(bits).is_subnormal(),
            _ => false,
        }
    }
}

/// A type that a register or a pair of them holds.
pub(crate) trait Value: Copy {
    const KIND: Kind;
    /// Reads a value from the low bits.
    fn from_bits(bits: u64) -> Self;
    /// The bits of the value, zero-extended.
    fn to_bits(self) -> u64;
}

macro_rules! integer_value {
    ($($type:ty, $unsigned:ty => $kind:ident;)*) => {$(
        impl Value for $type {
            const KIND: Kind = Kind::$kind;
            fn from_bits(bits: u64) -> Self { bits as $type }
            fn to_bits(self) -> u64 { u64::from(self as $unsigned) }
        }
    )*};
}

integer_value! {
    u16, u16 => B16;
    i16, u16 => B16;
    u32, u32 => B32;
    i32, u32 => B32;
    u64, u64 => B64;
    i64, u64 => I64;
}

impl Value for f32 {
    const KIND: Kind = Kind::F32;
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    fn to_bits(self) -> u64 {
        Self::to_bits(self).into()
    }
}

impl Value for f64 {
    const KIND: Kind = Kind::F64;
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    fn to_bits(self) -> u64 {
        Self::to_bits(self)
    }
}

/// A half-precision number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Half(pub u16);

impl Value for Half {
    const KIND: Kind = Kind::F16;
    fn from_bits(bits: u64) -> Self {
        Self(bits as u16)
    }
    fn to_bits(self) -> u64 {
        self.0.into()
    }
}

/// A bfloat16: the high half of a number of single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brain(pub u16);

impl Brain {
    /// The value of an operand that is a floating-point constant.
    pub(crate) fn constant(operand: Operand) -> Option<Self> {
        const FLOATS: RangeInclusive<u16> = 240..=248;
        let bits = inline_constant(operand, FloatFormat::Single);
        bits.filter(|_| FLOATS.contains(&operand.0))
            .map(|bits| Self((bits >> 16) as u16))
    }

    /// The nearest one to a number that has more bits than single precision, rounded once.
    pub(crate) fn from_f64(value: f64) -> Self {
        let single = value as f32;
        let is_beyond = f64::from(single).abs() > value.abs();
        let bits = single.to_bits() - u32::from(is_beyond);
        // The lowest bit tells that there are more, so that the number is not a tie.
        let is_inexact = f64::from(single) != value && !value.is_nan();
        Self::nearest(f32::from_bits(bits | u32::from(is_inexact)))
    }

    pub(crate) fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// The nearest one, ties to even. A NaN stays one and becomes quiet.
    pub(crate) fn nearest(value: f32) -> Self {
        let bits = value.to_bits();
        if value.is_nan() {
            return Self((bits >> 16) as u16 | 0x40);
        }
        // The sum carries into the exponent, also from the largest number to infinity.
        Self(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }
}

impl Half {
    pub(crate) fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let exponent = u32::from(self.0 >> 10 & 31);
        let fraction = u32::from(self.0 & 0x3ff);
        let magnitude = match exponent {
            0 => (fraction as f32 / (1 << 24) as f32).to_bits(),
            31 => 0x7f80_0000 | fraction << 13,
            // Re-biased from 15 to 127.
            _ => (exponent + 112) << 23 | fraction << 13,
        };
        f32::from_bits(magnitude | sign)
    }

    /// Rounds toward zero. A number that is too large becomes the largest finite one.
    pub(crate) fn truncated(value: f32) -> Self {
        let nearest = Self::from_f64(value.into());
        // Magnitudes grow with their bits, and the nearest half is the next one at most.
        let beyond = nearest.to_f32().abs() > value.abs();
        Self(nearest.0 - u16::from(beyond))
    }

    /// Rounds to nearest even once. The way through single precision would round twice.
    pub(crate) fn from_f64(value: f64) -> Self {
        const INFINITY: u16 = 0x7c00;
        /// Half-way between the largest finite number and the next power of two.
        const OVERFLOW: f64 = 65520.0;
        /// The fraction bits that a double has beyond those of a half.
        const DROPPED: u32 = 42;
        let bits = value.to_bits();
        let sign = (bits >> 48 & 0x8000) as u16;
        let magnitude = value.abs();
        if value.is_nan() {
            let payload = (bits >> DROPPED & 0x3ff) as u16;
            return Self(sign | INFINITY | 0x200 | payload);
        }
        if magnitude >= OVERFLOW {
            return Self(sign | INFINITY);
        }
        if magnitude < 2f64.powi(-14) {
            let fraction = (magnitude * 2f64.powi(24)).round_ties_even() as u16;
            return Self(sign | fraction);
        }
        // Re-biased from 1023 to 15.
        let rebiased = magnitude.to_bits() - (1008 << 52);
        let odd = rebiased >> DROPPED & 1;
        let rounded = rebiased + ((1 << (DROPPED - 1)) - 1) + odd;
        Self(sign | (rounded >> DROPPED) as u16)
    }
}
