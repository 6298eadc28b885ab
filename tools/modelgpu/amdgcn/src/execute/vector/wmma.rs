//! Matrix products of RDNA: D = A * B + C for matrices of 16 rows and columns that lie across the lanes of a
//! wave. EXEC does not matter.
//!
//! Sources of the layouts: AMD's RDNA 3 and RDNA 4 instruction set guides, "Wave Matrix Multiply Accumulate", and
//! AMD's software of these products (fpsan, amdgcn_swmmac_gfx12.hpp) for sparse ones and for waves of 64. The
//! order in which hardware adds products is not documented; the model adds them in the order of the registers.

use modelgpu_isa::Instruction;

use super::super::value::Kind;
use super::super::{Operation, scalar_source, unmodelled};
use super::operation::{VectorOperation, WaveElement, WaveLayout, WaveMatrix, WaveSum};
use super::product::{self, Decode, FOURS, Line, MOST, Order, Products, Shape};
use super::small::{self, Format, SINGLE};
use crate::error::Fault;
use crate::lanes::{LANES, WaveSize, Words};
use crate::wave::Wave;

/// Rows of A, columns of B.
const SIZE: usize = 16;

const fn product(
    layout: WaveLayout,
    depth: usize,
    element: WaveElement,
    sum: WaveSum,
) -> Operation {
    Operation::Vector(VectorOperation::WaveMatrix(WaveMatrix {
        depth,
        element,
        sum,
        layout,
    }))
}

/// Entries from a name, a depth, and the formats of elements and of sums.
macro_rules! products {
    ($layout:ident, $($name:literal: $depth:literal, $element:expr, $sum:ident;)*) => {
        &[$(($name, product(WaveLayout::$layout, $depth, $element, WaveSum::$sum)),)*]
    };
}

use super::operation::WaveElement::{Brain, Byte, Eight, Half as Halves, Nibble};

/// RDNA 3's products in a layout, and others.
macro_rules! common_products {
    ($layout:ident, $($others:tt)*) => {
        products! {
            $layout,
            "v_wmma_f32_16x16x16_f16": 16, Halves, Single;
            "v_wmma_f32_16x16x16_bf16": 16, Brain, Single;
            "v_wmma_f16_16x16x16_f16": 16, Halves, Half;
            "v_wmma_bf16_16x16x16_bf16": 16, Brain, Brain;
            "v_wmma_i32_16x16x16_iu8": 16, Byte, Integer;
            "v_wmma_i32_16x16x16_iu4": 16, Nibble, Integer;
            $($others)*
        }
    };
}

/// RDNA 3's products.
pub(super) const OPERATIONS: &[(&str, Operation)] = common_products! { Whole, };

/// RDNA 4's, which have other layouts under the names of RDNA 3.
pub(super) const OF_RDNA4: &[(&str, Operation)] = common_products! {
    Split,
    "v_wmma_f32_16x16x16_fp8_fp8": 16, Eight(small::FP8, small::FP8), Single;
    "v_wmma_f32_16x16x16_fp8_bf8": 16, Eight(small::FP8, small::BF8), Single;
    "v_wmma_f32_16x16x16_bf8_fp8": 16, Eight(small::BF8, small::FP8), Single;
    "v_wmma_f32_16x16x16_bf8_bf8": 16, Eight(small::BF8, small::BF8), Single;
    "v_wmma_i32_16x16x32_iu4": 32, Nibble, Integer;
};

pub(super) const SPARSE: &[(&str, Operation)] = products! {
    Sparse,
    "v_swmmac_f32_16x16x32_f16": 32, Halves, Single;
    "v_swmmac_f32_16x16x32_bf16": 32, Brain, Single;
    "v_swmmac_f16_16x16x32_f16": 32, Halves, Half;
    "v_swmmac_bf16_16x16x32_bf16": 32, Brain, Brain;
    "v_swmmac_f32_16x16x32_fp8_fp8": 32, Eight(small::FP8, small::FP8), Single;
    "v_swmmac_f32_16x16x32_fp8_bf8": 32, Eight(small::FP8, small::BF8), Single;
    "v_swmmac_f32_16x16x32_bf8_fp8": 32, Eight(small::BF8, small::FP8), Single;
    "v_swmmac_f32_16x16x32_bf8_bf8": 32, Eight(small::BF8, small::BF8), Single;
    "v_swmmac_i32_16x16x32_iu8": 32, Byte, Integer;
    "v_swmmac_i32_16x16x32_iu4": 32, Nibble, Integer;
    "v_swmmac_i32_16x16x64_iu4": 64, Nibble, Integer;
};

/// The numbers of C that a lane of a wave of 32 has.
const SUMS: usize = 8;

/// The elements of C or D, row by row, in as many registers as they fill.
type Sums = [Words; SIZE * SIZE / LANES];

/// The first lane of each four rows of [`Sums`].
static ROWS: [u16; FOURS] = [0, 64, 128, 192, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl WaveElement {
    const fn width(self) -> usize {
        match self {
            Self::Half | Self::Brain => 16,
            Self::Eight(..) | Self::Byte => 8,
            Self::Nibble => 4,
        }
    }
}

/// The numbers of A and B in the registers of a lane, and the places of those of a sparse A among four of B. They lie
/// on boundaries of the host's vectors.
#[repr(align(64))]
struct Factors<T> {
    numbers: [[Line<T>; MOST]; 2],
    places: [Line<u8>; MOST],
}

impl WaveMatrix {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        if self.sum == WaveSum::Integer {
            return self.integers(instruction, wave);
        }
        // Bits for A, B and C: the signs of elements with even and with odd numbers. For C in single
        // precision, the second bit takes the absolute value.
        let (even, odd) = (instruction.modifiers.neg, instruction.modifiers.neg_hi);
        let has_packed_signs = (even | odd) >> 2 & 1 == 1 && self.sum != WaveSum::Single;
        if has_packed_signs || instruction.modifiers.clamp {
            return Err(unmodelled(instruction, "this modifier of the addend"));
        }
        let decoders = match self.element {
            WaveElement::Eight(a, b) => [a, b].map(|format| (product::PACKED, format)),
            WaveElement::Brain => [(product::BRAINS, SINGLE); 2],
            _ => [(product::HALVES, SINGLE); 2],
        };
        let mut factors = self.factors(decoders, instruction, wave);
        for (source, lines) in factors.numbers.iter_mut().enumerate() {
            for (number, line) in lines.iter_mut().enumerate() {
                let signs = if number.is_multiple_of(2) { even } else { odd };
                if signs >> source & 1 == 1 {
                    *line = line.map(|number| -number);
                }
            }
        }
        let mut sums = self.addends(instruction, wave)?;
        for word in sums.as_flattened_mut() {
            let sign = u32::from(even >> 2 & 1) << 31;
            *word = *word & !(u32::from(odd >> 2 & 1) << 31) ^ sign;
        }
        // The products of bfloat16 go beyond single precision; those of other formats are exact there.
        let products = match self.element {
            WaveElement::Brain => product::FUSED,
            _ => product::OF_EXACT,
        };
        self.multiply(&factors, &mut sums, products, wave);
        self.write(instruction, &sums, wave);
        Ok(())
    }

    /// The sign bits of A and B say that their numbers have a sign.
    fn integers(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let decoders = [0, 1].map(|source| {
            let is_signed = instruction.modifiers.neg >> source & 1 == 1;
            let run = match (self.element, is_signed) {
                (WaveElement::Nibble, true) => product::SIGNED_NIBBLES,
                (WaveElement::Nibble, false) => product::UNSIGNED_NIBBLES,
                (_, true) => product::SIGNED_BYTES,
                (_, false) => product::UNSIGNED_BYTES,
            };
            (run, SINGLE)
        });
        let factors = self.factors(decoders, instruction, wave);
        let addends = self.addends(instruction, wave)?;
        // The sums of products are exact.
        let mut sums = [[0; LANES]; SIZE * SIZE / LANES];
        self.multiply(&factors, &mut sums, product::OF_INTEGERS, wave);
        let addends = addends.as_flattened().iter();
        for (sum, addend) in sums.as_flattened_mut().iter_mut().zip(addends) {
            *sum = match instruction.modifiers.clamp {
                true => (*sum as i32).saturating_add(*addend as i32) as u32,
                false => sum.wrapping_add(*addend),
            };
        }
        self.write(instruction, &sums, wave);
        Ok(())
    }

    /// The groups of 16 lanes that share each line of A and B. On RDNA 3, the lanes of each 16 have the lines of
    /// the first 16.
    fn groups(self, wave: &Wave) -> usize {
        match self.layout {
            WaveLayout::Whole => 1,
            WaveLayout::Split | WaveLayout::Sparse => wave.size.lanes() / SIZE,
        }
    }

    fn factors<T: Copy + Default>(
        self,
        decoders: [(Decode<T>, Format); 2],
        instruction: &Instruction,
        wave: &Wave,
    ) -> Factors<T> {
        let mut factors = Factors {
            numbers: [[[T::default(); LANES]; MOST]; 2],
            places: [[0; LANES]; MOST],
        };
        let per_lane = self.depth / self.groups(wave);
        let mut kept = per_lane;
        if self.layout == WaveLayout::Sparse {
            kept = per_lane / 2;
            // Two bits for each element of A. The instruction selects a set of them in the register.
            let set = usize::from(instruction.modifiers.op_sel & 3) % (16 / kept);
            let words = wave.vector(instruction.src[2]);
            for (number, places) in factors.places.iter_mut().enumerate().take(kept) {
                let shift = 2 * (kept * set + number);
                *places = words.map_or([0; LANES], |words| {
                    words.map(|word| (word >> shift & 3) as u8)
                });
            }
        }
        let counts = [kept, per_lane];
        for (source, (run, format)) in decoders.into_iter().enumerate() {
            let Some(index) = instruction.src[source].vector_index() else {
                continue;
            };
            let lines = &mut factors.numbers[source][..counts[source]];
            let bits = [0, self.element.width()];
            run.for_wave(wave)
                .call(&wave.vectors[index..], format, bits, lines);
        }
        factors
    }

    fn multiply<T: Copy>(
        self,
        factors: &Factors<T>,
        sums: &mut Sums,
        products: Products<T>,
        wave: &Wave,
    ) {
        let groups = self.groups(wave);
        let is_sparse = self.layout == WaveLayout::Sparse;
        let count = self.depth / groups / if is_sparse { 2 } else { 1 };
        let shape = Shape {
            size: SIZE,
            blocks: 1,
            fours: &ROWS,
            distance: SIZE,
            order: Order::of_groups(groups, count, SIZE, is_sparse),
        };
        let places = match is_sparse {
            true => factors.places.as_flattened(),
            false => &[],
        };
        let [a, b] = &factors.numbers;
        let numbers = (a.as_flattened(), b.as_flattened(), places);
        products.for_wave(wave).call(&shape, numbers, [0; 2], sums);
    }

    /// The first bit of C and D in the first register, and the distance of the elements of a lane. On RDNA 3, a
    /// register has one element of 16 bits, in a half that op_sel selects.
    fn bits(self, instruction: &Instruction) -> [usize; 2] {
        let is_short = matches!(self.sum, WaveSum::Half | WaveSum::Brain);
        let half = usize::from(instruction.modifiers.op_sel >> 2 & 1);
        match self.layout {
            _ if !is_short => [0, 32],
            WaveLayout::Whole => [16 * half, 32],
            WaveLayout::Split | WaveLayout::Sparse => [0, 16],
        }
    }

    /// The place of a row of C and D: the number of the lanes' elements, and the lane of the first column. On RDNA 3,
    /// the rows go round the groups of 16 lanes. On RDNA 4, a group of lanes has consecutive rows: eight, or four in a
    /// wave of 64, whose second half has the rows behind those of the first one.
    fn place(self, row: usize, wave: &Wave) -> (usize, usize) {
        let (number, group) = match (self.layout, wave.size) {
            (WaveLayout::Whole, size) => {
                let groups = size.lanes() / SIZE;
                (row / groups, row % groups)
            }
            (_, WaveSize::Wave32) => (row % 8, row / 8),
            (_, WaveSize::Wave64) => (row % 4, row / 8 + 2 * (row % 8 / 4)),
        };
        (number, SIZE * group)
    }

    /// C in the format of sums: integers, or floats of single precision.
    fn addends(self, instruction: &Instruction, wave: &Wave) -> Result<Sums, Fault> {
        let operand = match self.layout {
            WaveLayout::Sparse => instruction.dst,
            WaveLayout::Whole | WaveLayout::Split => instruction.src[2],
        };
        let (kind, decode) = match self.sum {
            WaveSum::Single => (Kind::F32, product::SINGLES),
            WaveSum::Integer => (Kind::B32, product::SINGLES),
            WaveSum::Half => (Kind::F16, product::HALVES),
            WaveSum::Brain => (Kind::F16, product::BRAINS),
        };
        let mut lines = [[0f32; LANES]; SUMS];
        let count = SIZE * SIZE / wave.size.lanes();
        let elements = &mut lines[..count];
        let decode = decode.for_wave(wave);
        match operand.vector_index() {
            Some(index) => {
                let bits = self.bits(instruction);
                decode.call(&wave.vectors[index..], SINGLE, bits, elements);
            }
            None if self.sum == WaveSum::Brain => {
                return Err(unmodelled(instruction, "a constant addend"));
            }
            None => {
                let constant = scalar_source(instruction, 2, kind, wave)?;
                let words = [[constant as u32; LANES]];
                decode.call(&words, SINGLE, [0, 0], elements);
            }
        }
        let mut sums = [[0; LANES]; SIZE * SIZE / LANES];
        let rows = sums.as_flattened_mut().as_chunks_mut::<SIZE>().0;
        for (row, numbers) in rows.iter_mut().enumerate() {
            let (number, first) = self.place(row, wave);
            let line = &lines[number][first..][..SIZE];
            for (number, value) in numbers.iter_mut().zip(line) {
                *number = value.to_bits();
            }
        }
        Ok(sums)
    }

    /// Writes D. A result of 16 bits keeps the other half of its register.
    fn write(self, instruction: &Instruction, sums: &Sums, wave: &mut Wave) {
        let Some(index) = instruction.dst.vector_index() else {
            return;
        };
        let mut lines = [[0; LANES]; SUMS];
        for (row, numbers) in sums.as_flattened().as_chunks::<SIZE>().0.iter().enumerate() {
            let (number, first) = self.place(row, wave);
            lines[number][first..][..SIZE].copy_from_slice(numbers);
        }
        let lanes = wave.size.lanes();
        let sums = &lines[..SIZE * SIZE / lanes];
        let encode = match self.sum {
            WaveSum::Half => product::TO_HALVES,
            WaveSum::Brain => product::TO_BRAINS,
            WaveSum::Single | WaveSum::Integer => {
                for (words, sums) in wave.vectors[index..].iter_mut().zip(sums) {
                    words[..lanes].copy_from_slice(&sums[..lanes]);
                }
                return;
            }
        };
        let encode = encode.for_wave(wave);
        encode.call(sums, self.bits(instruction), &mut wave.vectors[index..]);
    }
}
