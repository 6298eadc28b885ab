//! Dot products: multiply the elements of two registers in pairs and add the products to a 32-bit
//! number.

use super::super::value::{Half, Kind};
use super::super::{Operation, unmodelled};
use super::gather::Gather;
use super::{VectorOperation, scatter};
use crate::error::Fault;
use crate::isa::{Instruction, Modifiers};
use crate::wave::{LANES, Wave, Words};

/// The elements of the registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dot {
    /// Two halves; the sum is in single precision.
    Halves,
    /// Two, four or eight integers of 16, 8 or 4 bits.
    Signed(u32),
    Unsigned(u32),
    /// Four or eight integers. The modifier that negates other sources tells that a source has signs.
    Mixed(u32),
}

const fn dot(elements: Dot) -> Operation {
    Operation::Vector(VectorOperation::Dot(elements))
}

/// The forms with a "c" add to their result register.
pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("v_dot2_f32_f16", dot(Dot::Halves)),
    ("v_dot2c_f32_f16", dot(Dot::Halves)),
    ("v_dot2_i32_i16", dot(Dot::Signed(2))),
    ("v_dot2c_i32_i16", dot(Dot::Signed(2))),
    ("v_dot2_u32_u16", dot(Dot::Unsigned(2))),
    ("v_dot4_i32_i8", dot(Dot::Signed(4))),
    ("v_dot4c_i32_i8", dot(Dot::Signed(4))),
    ("v_dot4_u32_u8", dot(Dot::Unsigned(4))),
    ("v_dot8_i32_i4", dot(Dot::Signed(8))),
    ("v_dot8c_i32_i4", dot(Dot::Signed(8))),
    ("v_dot8_u32_u4", dot(Dot::Unsigned(8))),
    ("v_dot4_i32_iu8", dot(Dot::Mixed(4))),
    ("v_dot8_i32_iu4", dot(Dot::Mixed(8))),
];

impl Dot {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let modifiers = instruction.modifiers;
        let may_negate = matches!(self, Self::Halves | Self::Mixed(_));
        if modifiers.abs != 0 || !may_negate && (modifiers.neg | modifiers.neg_hi) != 0 {
            return Err(unmodelled(instruction, "a source modifier"));
        }
        // This code selects and negates halves, so it reads the sources unchanged.
        let plain = Instruction {
            modifiers: Modifiers::default(),
            ..*instruction
        };
        let gather = Gather::new(&plain, wave)?;
        let (element, sum) = match self {
            Self::Halves => (Kind::F16, Kind::F32),
            _ => (Kind::B32, Kind::B32),
        };
        let mut sources = [[0; LANES]; 3];
        for (place, words) in sources.iter_mut().enumerate() {
            // A register holds several elements; a constant is a single one.
            let constant = instruction.src[place].vector_index().is_none();
            let kind = match place {
                2 => sum,
                _ if constant => element,
                _ => Kind::B32,
            };
            match kind {
                Kind::F16 => gather.raw(place, kind, words)?,
                _ => gather.words(place, kind, words)?,
            }
        }
        let lanes = gather.lanes();
        let [a, b, c] = sources;
        let mut results: Words = std::array::from_fn(|lane| {
            let [a, b] = [(a[lane], 0), (b[lane], 1)]
                .map(|(word, place)| self.arrange(word, place, modifiers));
            match self {
                Self::Halves => halves(a, b, c[lane]),
                Self::Signed(count) => {
                    let exact = products(a, b, count, [signed; 2]) + i64::from(c[lane] as i32);
                    limited(exact, modifiers)
                }
                Self::Mixed(count) => {
                    let elements = [0, 1].map(|place| match modifiers.neg >> place & 1 {
                        1 => signed as Element,
                        _ => unsigned,
                    });
                    let exact = products(a, b, count, elements) + i64::from(c[lane] as i32);
                    limited(exact, modifiers)
                }
                Self::Unsigned(count) => {
                    let exact = products(a, b, count, [unsigned; 2]) + i64::from(c[lane]);
                    (if modifiers.clamp {
                        exact.min(u32::MAX.into())
                    } else {
                        exact
                    }) as u32
                }
            }
        });
        let output = Instruction {
            modifiers: Modifiers {
                clamp: modifiers.clamp,
                ..Modifiers::default()
            },
            ..*instruction
        };
        scatter::words(&output, wave, lanes, sum, &mut results)
    }

    /// The halves of a source for the first and the second product, in this order, with the signs
    /// that the instruction selects. Smaller elements have no selection.
    fn arrange(self, word: u32, place: u8, modifiers: Modifiers) -> u32 {
        if !matches!(self, Self::Halves | Self::Signed(2) | Self::Unsigned(2)) {
            return word;
        }
        let half = |select: u8, negate: u8| {
            let half = word >> (16 * (select >> place & 1)) & 0xffff;
            half ^ u32::from(negate >> place & 1) << 15
        };
        half(modifiers.op_sel, modifiers.neg) | half(modifiers.op_sel_hi, modifiers.neg_hi) << 16
    }
}

/// Single-precision denormals count as zero in every mode, as sources and as results. Products of
/// halves are exact; each sum is rounded.
fn halves(a: u32, b: u32, addend: u32) -> u32 {
    let flushed = |bits: u32| f32::from_bits(Kind::F32.flushed(bits.into()) as u32);
    let half = |word: u32, place: u32| Half((word >> (16 * place)) as u16).to_f32();
    (0..2)
        .rev()
        .fold(flushed(addend), |sum, place| {
            flushed(half(a, place).mul_add(half(b, place), sum).to_bits())
        })
        .to_bits()
}

/// The signed sum; with the clamp modifier, its limit if it has too many bits.
fn limited(exact: i64, modifiers: Modifiers) -> u32 {
    (if modifiers.clamp {
        exact.clamp(i32::MIN.into(), i32::MAX.into())
    } else {
        exact
    }) as u32
}

/// Reads an element of a word by its place and its number of bits.
type Element = fn(u32, u32, u32) -> i64;

fn products(a: u32, b: u32, count: u32, [of_a, of_b]: [Element; 2]) -> i64 {
    (0..count)
        .map(|place| of_a(a, place, 32 / count) * of_b(b, place, 32 / count))
        .sum()
}

fn signed(word: u32, place: u32, bits: u32) -> i64 {
    ((word << (32 - bits * (place + 1))) as i32 >> (32 - bits)).into()
}

fn unsigned(word: u32, place: u32, bits: u32) -> i64 {
    (word << (32 - bits * (place + 1)) >> (32 - bits)).into()
}
