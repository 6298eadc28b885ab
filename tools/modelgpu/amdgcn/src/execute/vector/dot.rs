//! Dot products: multiply the elements of two registers in pairs and add the products to a number. The
//! products of floats are exact, and each sum is rounded. AMD's instruction set guides have an order of the sums
//! for bfloat16: the first two products, and then the number.

use modelgpu_isa::{Instruction, Modifiers};

use super::super::value::{Brain, Half, Kind};
use super::super::{Operation, unmodelled};
use super::gather::Gather;
use super::operation::{Dot, VectorOperation};
use super::scatter;
use super::small::{self, BRAIN, Format, HALF};
use crate::error::Fault;
use crate::lanes::{LANES, Words};
use crate::wave::Wave;

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
    ("v_dot2_f32_bf16", dot(Dot::Brains)),
    ("v_dot2c_f32_bf16", dot(Dot::Brains)),
    ("v_dot2_f16_f16", dot(Dot::Short(HALF))),
    ("v_dot2_bf16_bf16", dot(Dot::Short(BRAIN))),
    (
        "v_dot4_f32_fp8_fp8",
        dot(Dot::Eight(small::FP8, small::FP8)),
    ),
    (
        "v_dot4_f32_fp8_bf8",
        dot(Dot::Eight(small::FP8, small::BF8)),
    ),
    (
        "v_dot4_f32_bf8_fp8",
        dot(Dot::Eight(small::BF8, small::FP8)),
    ),
    (
        "v_dot4_f32_bf8_bf8",
        dot(Dot::Eight(small::BF8, small::BF8)),
    ),
];

impl Dot {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let modifiers = instruction.modifiers;
        match self {
            Self::Short(format) => return short(format, instruction, wave),
            Self::Eight(a, b) => return eight([a, b], instruction, wave),
            _ => {}
        }
        let may_negate = matches!(self, Self::Halves | Self::Brains | Self::Mixed(_));
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
            Self::Halves | Self::Brains => (Kind::F16, Kind::F32),
            _ => (Kind::B32, Kind::B32),
        };
        let mut sources = [[0; LANES]; 3];
        for (place, words) in sources.iter_mut().enumerate() {
            // A register holds several elements; a constant is a single one.
            let constant = instruction.src[place].vector_index().is_none();
            if constant && place < 2 && self == Self::Brains {
                return Err(unmodelled(instruction, "a scalar operand"));
            }
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
                Self::Brains => {
                    let number =
                        |word: u32, place: u32| Brain((word >> (16 * place)) as u16).to_f32();
                    let first = number(a, 0) * number(b, 0);
                    let sum = number(a, 1).mul_add(number(b, 1), first);
                    (sum + f32::from_bits(c[lane])).to_bits()
                }
                Self::Short(_) | Self::Eight(..) => 0,
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
        let has_halves = Self::Signed(2) == self || Self::Unsigned(2) == self;
        if !has_halves && !matches!(self, Self::Halves | Self::Brains) {
            return word;
        }
        let half = |select: u8, negate: u8| {
            let half = word >> (16 * (select >> place & 1)) & 0xffff;
            half ^ u32::from(negate >> place & 1) << 15
        };
        half(modifiers.op_sel, modifiers.neg) | half(modifiers.op_sel_hi, modifiers.neg_hi) << 16
    }
}

/// A sum of 16 bits. op_sel selects the half of the register that has the number, and that of the result.
fn short(format: Format, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
    let modifiers = instruction.modifiers;
    let is_plain = modifiers.abs == 0 && modifiers.neg == 0 && modifiers.op_sel & 3 == 0;
    let is_constant = |place: usize| instruction.src[place].vector_index().is_none();
    if !is_plain || modifiers.clamp || modifiers.output != 0 || (0..3).any(is_constant) {
        return Err(unmodelled(instruction, "a modifier or a scalar operand"));
    }
    let gather = Gather::new(instruction, wave)?;
    let mut sources = [[0; LANES]; 3];
    for (place, words) in sources.iter_mut().enumerate() {
        gather.words(place, Kind::B32, words)?;
    }
    let lanes = gather.lanes();
    let [a, b, c] = sources;
    let number = |word: u32, place: u32| format.decode(word >> (16 * place) & 0xffff) as f32;
    let mut results: Words = std::array::from_fn(|lane| {
        let first = number(a[lane], 0) * number(b[lane], 0);
        let sum = number(a[lane], 1).mul_add(number(b[lane], 1), first);
        let sum = sum + number(c[lane], (modifiers.op_sel >> 2 & 1).into());
        format.encode(sum.into())
    });
    scatter::words(instruction, wave, lanes, Kind::B16, &mut results)
}

/// neg_lo and neg_hi of the number take its negation and its absolute value.
fn eight(formats: [Format; 2], instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
    let modifiers = instruction.modifiers;
    let is_constant = |place: usize| instruction.src[place].vector_index().is_none();
    if modifiers.clamp || (modifiers.neg | modifiers.neg_hi) & 3 != 0 || (0..3).any(is_constant) {
        return Err(unmodelled(instruction, "a modifier or a scalar operand"));
    }
    let plain = Instruction {
        modifiers: Modifiers {
            neg: modifiers.neg & 4,
            abs: modifiers.neg_hi & 4,
            ..Modifiers::default()
        },
        ..*instruction
    };
    let gather = Gather::new(&plain, wave)?;
    let mut sources = [[0; LANES]; 3];
    for (place, words) in sources.iter_mut().enumerate() {
        let kind = if place == 2 { Kind::F32 } else { Kind::B32 };
        gather.words(place, kind, words)?;
    }
    let lanes = gather.lanes();
    let [a, b, c] = sources;
    let mut results: Words = std::array::from_fn(|lane| {
        let sum = (0..4).fold(f32::from_bits(c[lane]), |sum, place| {
            let [a, b] = [(a, formats[0]), (b, formats[1])]
                .map(|(words, format)| format.decode(words[lane] >> (8 * place) & 0xff) as f32);
            a.mul_add(b, sum)
        });
        sum.to_bits()
    });
    scatter::words(&plain, wave, lanes, Kind::F32, &mut results)
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
