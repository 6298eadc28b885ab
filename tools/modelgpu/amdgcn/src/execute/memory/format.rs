//! Formats of elements in typed buffers.
//!
//! Sources: AMD's CDNA3 and RDNA3 instruction set guides, "Buffer Data Formats" and "Buffer Image Formats", for
//! the numbers; AMD's emulator
//! rocjitsu (ROCm/rocm-systems) for the order of packed components and for roundings; IEC 61966-2-1 for sRGB.

use modelgpu_isa::BufferFormat;

use super::super::value::Half;

/// An element: up to four components, the first in the low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Bits of each component; 0 for one that the format lacks.
    widths: [u8; 4],
    number: Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    UnsignedNorm,
    SignedNorm,
    UnsignedScaled,
    SignedScaled,
    Unsigned,
    Signed,
    Float,
    /// Three components of sRGB, and one in equal steps from 0 to 1.
    Srgb,
}

/// RDNA's formats from 1 on: a DATA_FORMAT, and each NUM_FORMAT that it has.
const JOINED: &[(u8, &[u8])] = &[
    (1, &[0, 1, 2, 3, 4, 5]),
    (2, &[0, 1, 2, 3, 4, 5, 7]),
    (3, &[0, 1, 2, 3, 4, 5]),
    (4, &[4, 5, 7]),
    (5, &[0, 1, 2, 3, 4, 5, 7]),
    (6, &[7]),
    (7, &[7]),
    (8, &[0, 1, 4, 5]),
    (9, &[0, 1, 2, 3, 4, 5]),
    (10, &[0, 1, 2, 3, 4, 5]),
    (11, &[4, 5, 7]),
    (12, &[0, 1, 2, 3, 4, 5, 7]),
    (13, &[4, 5, 7]),
    (14, &[4, 5, 7]),
];

/// Components in registers have 32 bits, or 16.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Full,
    Half,
}

impl Format {
    /// The format of an instruction or a resource; `None` for a number that the model lacks.
    pub(super) fn from_buffer(format: BufferFormat) -> Option<Self> {
        match format {
            BufferFormat::Split(data, number) => Self::new(data, number),
            BufferFormat::Joined(0) => Self::new(0, 0),
            BufferFormat::Joined(code) => {
                let mut first = 1;
                JOINED.iter().find_map(|(data, numbers)| {
                    let place = usize::from(code).checked_sub(first)?;
                    first += numbers.len();
                    Self::new(*data, *numbers.get(place)?)
                })
            }
        }
    }

    /// The format of an image, which also may be one of sRGB.
    pub(super) fn from_image(format: BufferFormat) -> Option<Self> {
        match format {
            BufferFormat::Split(10, 9) | BufferFormat::Joined(66) => Some(Self {
                widths: [8; 4],
                number: Number::Srgb,
            }),
            other => Self::from_buffer(other),
        }
    }

    /// The format of DATA_FORMAT and NUM_FORMAT. Returns `None` for a reserved number, and a format
    /// without components for the invalid one.
    pub(super) fn new(data: u8, number: u8) -> Option<Self> {
        let widths = match data {
            0 => [0; 4],
            1 => [8, 0, 0, 0],
            2 => [16, 0, 0, 0],
            3 => [8, 8, 0, 0],
            4 => [32, 0, 0, 0],
            5 => [16, 16, 0, 0],
            6 => [11, 11, 10, 0],
            7 => [10, 11, 11, 0],
            8 => [2, 10, 10, 10],
            9 => [10, 10, 10, 2],
            10 => [8; 4],
            11 => [32, 32, 0, 0],
            12 => [16; 4],
            13 => [32, 32, 32, 0],
            14 => [32; 4],
            _ => return None,
        };
        let number = match number {
            0 => Number::UnsignedNorm,
            1 => Number::SignedNorm,
            2 => Number::UnsignedScaled,
            3 => Number::SignedScaled,
            4 => Number::Unsigned,
            5 => Number::Signed,
            7 => Number::Float,
            _ => return None,
        };
        Some(Self { widths, number })
    }

    /// Bytes of an element; 0 for the invalid format.
    pub(super) fn size(self) -> u32 {
        self.widths
            .iter()
            .map(|width| u32::from(*width))
            .sum::<u32>()
            / 8
    }

    /// Returns whether registers hold floats.
    pub(super) fn has_floats(self) -> bool {
        !matches!(self.number, Number::Unsigned | Number::Signed)
    }

    /// The bits of the number 1 in a register.
    pub(super) fn one(self, precision: Precision) -> u32 {
        match (self.has_floats(), precision) {
            (false, _) => 1,
            (true, Precision::Full) => 1f32.to_bits(),
            (true, Precision::Half) => Half::from_f64(1.0).0.into(),
        }
    }

    /// The components of an element as registers hold them; 0 for one that the format lacks.
    pub(super) fn decode(self, element: u128, precision: Precision) -> [u32; 4] {
        let mut bit = 0;
        let mut place = 0;
        self.widths.map(|width| {
            let bits = (element >> bit) as u32 & mask(width);
            bit += width;
            place += 1;
            if width == 0 {
                return 0;
            }
            let component = match (self.number, place) {
                (Number::Srgb, 4) => Number::UnsignedNorm.decode(bits, width),
                (number, _) => number.decode(bits, width),
            };
            if precision == Precision::Full || !self.has_floats() {
                return component;
            }
            let value = f32::from_bits(component);
            // Only single precision is truncated.
            let half = if self.number == Number::Float && width == 32 {
                Half::truncated(value)
            } else {
                Half::from_f64(value.into())
            };
            half.0.into()
        })
    }

    /// The element with these components. Returns `None` for a format to which the model has no
    /// conversion.
    pub(super) fn encode(self, components: [u32; 4], precision: Precision) -> Option<u128> {
        let (mut element, mut bit) = (0, 0);
        for (width, component) in self.widths.into_iter().zip(components) {
            if width != 0 {
                let bits = self.encode_component(component, width, precision)?;
                element |= u128::from(bits & mask(width)) << bit;
                bit += width;
            }
        }
        Some(element)
    }

    fn encode_component(self, component: u32, width: u8, precision: Precision) -> Option<u32> {
        if !self.has_floats() {
            return Some(match (precision, self.number) {
                (Precision::Half, Number::Signed) => component as i16 as u32,
                _ => component,
            });
        }
        let value = match precision {
            Precision::Full => f32::from_bits(component),
            Precision::Half => Half(component as u16).to_f32(),
        };
        let number = if value.is_nan() {
            0.0
        } else {
            f64::from(value)
        };
        let (unsigned, signed) = (f64::from(mask(width)), f64::from(mask(width - 1)));
        Some(match (self.number, width) {
            (Number::Float, 32) => value.to_bits(),
            (Number::Float, 16) => Half::from_f64(value.into()).0.into(),
            (Number::UnsignedNorm, _) => {
                (number.clamp(0.0, 1.0) * unsigned).round_ties_even() as u32
            }
            (Number::SignedNorm, _) => {
                (number.clamp(-1.0, 1.0) * signed).round_ties_even() as i32 as u32
            }
            (Number::UnsignedScaled, _) => number.clamp(0.0, unsigned) as u32,
            (Number::SignedScaled, _) => number.clamp(-signed - 1.0, signed) as i32 as u32,
            _ => return None,
        })
    }
}

impl Number {
    /// A component as a register holds it.
    fn decode(self, bits: u32, width: u8) -> u32 {
        let unused = 32 - u32::from(width);
        let signed = (bits << unused) as i32 >> unused;
        let part = || f64::from(bits) / f64::from(mask(width));
        let value = match self {
            Self::Unsigned => return bits,
            Self::Signed => return signed as u32,
            Self::Float => return small_float(bits, width),
            Self::UnsignedNorm => part(),
            Self::SignedNorm => (f64::from(signed) / f64::from(mask(width - 1))).max(-1.0),
            Self::UnsignedScaled => bits.into(),
            Self::SignedScaled => signed.into(),
            Self::Srgb if part() <= 0.04045 => part() / 12.92,
            Self::Srgb => ((part() + 0.055) / 1.055).powf(2.4),
        };
        (value as f32).to_bits()
    }
}

fn mask(width: u8) -> u32 {
    u32::MAX.checked_shr(32 - u32::from(width)).unwrap_or(0)
}

/// Single precision from 32, 16, 11 or 10 bits. The last two have no sign, and an exponent like that
/// of a half.
fn small_float(bits: u32, width: u8) -> u32 {
    match width {
        32 => bits,
        16 => Half(bits as u16).to_f32().to_bits(),
        _ => {
            let fraction = u32::from(width) - 5;
            Half((bits << (10 - fraction)) as u16).to_f32().to_bits()
        }
    }
}

/// Bytes of a number in memory, the lowest first.
pub(super) fn chunks(size: u32) -> impl Iterator<Item = (u32, u32)> {
    // At most a dword at once: hardware checks the range of each.
    (0..size)
        .step_by(4)
        .map(move |start| (start, (size - start).min(4)))
}
