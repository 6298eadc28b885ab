//! Matrix products: D = A * B + C for one or more blocks of matrices that lie across the lanes of a
//! wave. EXEC does not matter.
//!
//! Sources of the layouts: the register tables of AMD's CDNA2 and CDNA3 instruction set guides and
//! AMD's matrix instruction calculator. A lane group is as many lanes as a block has rows. The order
//! in which hardware adds products is not documented; the model adds them in the order of k and
//! rounds each sum to nearest even.

use std::ops::Range;

use modelgpu_isa::{Instruction, MatrixControl, MatrixScales, Operand};

use super::super::value::Kind;
use super::super::{Operation, float, scalar_source, unmodelled};
use super::operation::MatrixElement::{
    Brain, Byte, Double, Eight, FlushedBrain, FlushedHalf, Half as Halves, NegatedDouble, Scaled,
    Short, Single,
};
use super::operation::{Matrix, MatrixElement, VectorOperation};
use super::product::{self, DEEPEST, Decode, FOURS, Line, Lines, MOST, Order, Products, Shape};
use super::small::{self, Format};
use crate::error::Fault;
use crate::lanes::LANES;
use crate::wave::Wave;

const fn dense(size: usize, depth: usize, blocks: usize, element: MatrixElement) -> Operation {
    Operation::Vector(VectorOperation::Matrix(Matrix {
        size,
        depth,
        blocks,
        element,
        sparse: false,
    }))
}

const fn sparse(size: usize, depth: usize, element: MatrixElement) -> Operation {
    Operation::Vector(VectorOperation::Matrix(Matrix {
        size,
        depth,
        blocks: 1,
        element,
        sparse: true,
    }))
}

/// On gfx90a, names have no number of blocks, and 16-bit formats have no denormal numbers.
const GFX90A: &[(&str, Operation)] = &[
    ("v_mfma_f32_32x32x1f32", dense(32, 1, 2, Single)),
    ("v_mfma_f32_16x16x1f32", dense(16, 1, 4, Single)),
    ("v_mfma_f32_4x4x1f32", dense(4, 1, 16, Single)),
    ("v_mfma_f32_32x32x2f32", dense(32, 2, 1, Single)),
    ("v_mfma_f32_16x16x4f32", dense(16, 4, 1, Single)),
    ("v_mfma_f32_32x32x4f16", dense(32, 4, 2, FlushedHalf)),
    ("v_mfma_f32_16x16x4f16", dense(16, 4, 4, FlushedHalf)),
    ("v_mfma_f32_4x4x4f16", dense(4, 4, 16, FlushedHalf)),
    ("v_mfma_f32_32x32x8f16", dense(32, 8, 1, FlushedHalf)),
    ("v_mfma_f32_16x16x16f16", dense(16, 16, 1, FlushedHalf)),
    ("v_mfma_i32_32x32x4i8", dense(32, 4, 2, Byte)),
    ("v_mfma_i32_16x16x4i8", dense(16, 4, 4, Byte)),
    ("v_mfma_i32_4x4x4i8", dense(4, 4, 16, Byte)),
    ("v_mfma_i32_32x32x8i8", dense(32, 8, 1, Byte)),
    ("v_mfma_i32_16x16x16i8", dense(16, 16, 1, Byte)),
    ("v_mfma_f32_32x32x4bf16_1k", dense(32, 4, 2, FlushedBrain)),
    ("v_mfma_f32_16x16x4bf16_1k", dense(16, 4, 4, FlushedBrain)),
    ("v_mfma_f32_4x4x4bf16_1k", dense(4, 4, 16, FlushedBrain)),
    ("v_mfma_f32_32x32x8bf16_1k", dense(32, 8, 1, FlushedBrain)),
    ("v_mfma_f32_16x16x16bf16_1k", dense(16, 16, 1, FlushedBrain)),
    ("v_mfma_f32_32x32x2bf16", dense(32, 2, 2, FlushedBrain)),
    ("v_mfma_f32_16x16x2bf16", dense(16, 2, 4, FlushedBrain)),
    ("v_mfma_f32_4x4x2bf16", dense(4, 2, 16, FlushedBrain)),
    ("v_mfma_f32_32x32x4bf16", dense(32, 4, 1, FlushedBrain)),
    ("v_mfma_f32_16x16x8bf16", dense(16, 8, 1, FlushedBrain)),
    ("v_mfma_f64_16x16x4f64", dense(16, 4, 1, Double)),
    ("v_mfma_f64_4x4x4f64", dense(4, 4, 4, Double)),
];

/// gfx908 has denormal numbers of 16 bits: according to PyTorch's notes on numerical accuracy, only gfx90a treats them
/// as zero.
pub(super) const GFX908: &[(&str, Operation)] = &[
    ("v_mfma_f32_32x32x4f16", dense(32, 4, 2, Halves)),
    ("v_mfma_f32_16x16x4f16", dense(16, 4, 4, Halves)),
    ("v_mfma_f32_4x4x4f16", dense(4, 4, 16, Halves)),
    ("v_mfma_f32_32x32x8f16", dense(32, 8, 1, Halves)),
    ("v_mfma_f32_16x16x16f16", dense(16, 16, 1, Halves)),
    ("v_mfma_f32_32x32x2bf16", dense(32, 2, 2, Brain)),
    ("v_mfma_f32_16x16x2bf16", dense(16, 2, 4, Brain)),
    ("v_mfma_f32_4x4x2bf16", dense(4, 2, 16, Brain)),
    ("v_mfma_f32_32x32x4bf16", dense(32, 4, 1, Brain)),
    ("v_mfma_f32_16x16x8bf16", dense(16, 8, 1, Brain)),
];

const GFX942: &[(&str, Operation)] = &[
    ("v_mfma_f32_16x16x8_xf32", dense(16, 8, 1, Short)),
    ("v_mfma_f32_32x32x4_xf32", dense(32, 4, 1, Short)),
    ("v_mfma_f32_32x32x1_2b_f32", dense(32, 1, 2, Single)),
    ("v_mfma_f32_16x16x1_4b_f32", dense(16, 1, 4, Single)),
    ("v_mfma_f32_4x4x1_16b_f32", dense(4, 1, 16, Single)),
    ("v_mfma_f32_32x32x2_f32", dense(32, 2, 1, Single)),
    ("v_mfma_f32_16x16x4_f32", dense(16, 4, 1, Single)),
    ("v_mfma_f32_32x32x4_2b_f16", dense(32, 4, 2, Halves)),
    ("v_mfma_f32_16x16x4_4b_f16", dense(16, 4, 4, Halves)),
    ("v_mfma_f32_4x4x4_16b_f16", dense(4, 4, 16, Halves)),
    ("v_mfma_f32_32x32x8_f16", dense(32, 8, 1, Halves)),
    ("v_mfma_f32_16x16x16_f16", dense(16, 16, 1, Halves)),
    ("v_mfma_i32_32x32x4_2b_i8", dense(32, 4, 2, Byte)),
    ("v_mfma_i32_16x16x4_4b_i8", dense(16, 4, 4, Byte)),
    ("v_mfma_i32_4x4x4_16b_i8", dense(4, 4, 16, Byte)),
    ("v_mfma_i32_32x32x16_i8", dense(32, 16, 1, Byte)),
    ("v_mfma_i32_16x16x32_i8", dense(16, 32, 1, Byte)),
    ("v_mfma_f32_32x32x4_2b_bf16", dense(32, 4, 2, Brain)),
    ("v_mfma_f32_16x16x4_4b_bf16", dense(16, 4, 4, Brain)),
    ("v_mfma_f32_4x4x4_16b_bf16", dense(4, 4, 16, Brain)),
    ("v_mfma_f32_32x32x8_bf16", dense(32, 8, 1, Brain)),
    ("v_mfma_f32_16x16x16_bf16", dense(16, 16, 1, Brain)),
    ("v_mfma_f64_16x16x4_f64", dense(16, 4, 1, NegatedDouble)),
    ("v_mfma_f64_4x4x4_4b_f64", dense(4, 4, 4, NegatedDouble)),
    ("v_smfmac_f32_16x16x32_f16", sparse(16, 32, Halves)),
    ("v_smfmac_f32_32x32x16_f16", sparse(32, 16, Halves)),
    ("v_smfmac_f32_16x16x32_bf16", sparse(16, 32, Brain)),
    ("v_smfmac_f32_32x32x16_bf16", sparse(32, 16, Brain)),
    ("v_smfmac_i32_16x16x64_i8", sparse(16, 64, Byte)),
    ("v_smfmac_i32_32x32x32_i8", sparse(32, 32, Byte)),
];

/// Products of 8-bit floats: the shapes, and the formats of both factors.
macro_rules! of_eight {
    ($fp8:ident, $bf8:ident, $($shape:literal: $kind:ident($size:literal, $depth:literal $(, $blocks:literal)?);)*) => {
        &[$(
            (concat!($shape, "_bf8_bf8"), $kind($size, $depth $(, $blocks)?, Eight(small::$bf8, small::$bf8))),
            (concat!($shape, "_bf8_fp8"), $kind($size, $depth $(, $blocks)?, Eight(small::$bf8, small::$fp8))),
            (concat!($shape, "_fp8_bf8"), $kind($size, $depth $(, $blocks)?, Eight(small::$fp8, small::$bf8))),
            (concat!($shape, "_fp8_fp8"), $kind($size, $depth $(, $blocks)?, Eight(small::$fp8, small::$fp8))),
        )*]
    };
}

/// gfx942's formats.
const OF_FNUZ: &[(&str, Operation)] = of_eight! {
    FP8_FNUZ, BF8_FNUZ,
    "v_mfma_f32_16x16x32": dense(16, 32, 1);
    "v_mfma_f32_32x32x16": dense(32, 16, 1);
    "v_smfmac_f32_16x16x64": sparse(16, 64);
    "v_smfmac_f32_32x32x32": sparse(32, 32);
};

/// gfx950's.
pub(super) const OF_OCP: &[(&str, Operation)] = of_eight! {
    FP8, BF8,
    "v_mfma_f32_16x16x32": dense(16, 32, 1);
    "v_mfma_f32_32x32x16": dense(32, 16, 1);
    "v_smfmac_f32_16x16x64": sparse(16, 64);
    "v_smfmac_f32_32x32x32": sparse(32, 32);
    "v_smfmac_f32_16x16x128": sparse(16, 128);
    "v_smfmac_f32_32x32x64": sparse(32, 64);
};

/// gfx950 also has most of gfx942's.
const GFX950: &[(&str, Operation)] = &[
    ("v_mfma_f32_16x16x32_f16", dense(16, 32, 1, Halves)),
    ("v_mfma_f32_32x32x16_f16", dense(32, 16, 1, Halves)),
    ("v_mfma_f32_16x16x32_bf16", dense(16, 32, 1, Brain)),
    ("v_mfma_f32_32x32x16_bf16", dense(32, 16, 1, Brain)),
    ("v_mfma_i32_16x16x64_i8", dense(16, 64, 1, Byte)),
    ("v_mfma_i32_32x32x32_i8", dense(32, 32, 1, Byte)),
    ("v_smfmac_f32_16x16x64_f16", sparse(16, 64, Halves)),
    ("v_smfmac_f32_32x32x32_f16", sparse(32, 32, Halves)),
    ("v_smfmac_f32_16x16x64_bf16", sparse(16, 64, Brain)),
    ("v_smfmac_f32_32x32x32_bf16", sparse(32, 32, Brain)),
    ("v_smfmac_i32_16x16x128_i8", sparse(16, 128, Byte)),
    ("v_smfmac_i32_32x32x64_i8", sparse(32, 64, Byte)),
    ("v_mfma_f32_16x16x128_f8f6f4", dense(16, 128, 1, Scaled)),
    ("v_mfma_f32_32x32x64_f8f6f4", dense(32, 64, 1, Scaled)),
    (
        "v_mfma_scale_f32_16x16x128_f8f6f4",
        dense(16, 128, 1, Scaled),
    ),
    ("v_mfma_scale_f32_32x32x64_f8f6f4", dense(32, 64, 1, Scaled)),
];

pub(super) const TABLES: [super::super::Table; 4] = [GFX90A, GFX942, OF_FNUZ, GFX950];

/// The formats that a field of an instruction selects.
const SELECTED: [Format; 5] = [small::FP8, small::BF8, small::FP6, small::BF6, small::FP4];

/// The numbers of a row or a column that have one scale.
const SCALED_BY_ONE: usize = 32;

/// The first lane of each four rows of C and D, for blocks of 16 and 32 rows. Blocks of 4 lie side by side.
static OF_16: [u16; FOURS] = fours(16);
static OF_32: [u16; FOURS] = fours(32);
static DOUBLES: [u16; FOURS] = [0, 128, 256, 384, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The lane of the first column of each four rows, counted from the first register on. The rows of all blocks are
/// counted. Four rows lie in four registers; the next four are in the next group of lanes. Doubles have them in four
/// groups of lanes.
const fn fours(size: usize) -> [u16; FOURS] {
    let mut lanes = [0; FOURS];
    let mut number = 0;
    while number < FOURS {
        let (block, four) = (number / (size / 4), number % (size / 4));
        let groups = LANES / size;
        let register = 4 * (four / groups) + size * size / LANES * block;
        lanes[number] = (register * LANES + size * (four % groups)) as u16;
        number += 1;
    }
    lanes
}

/// The way to decode a factor.
#[derive(Clone, Copy)]
struct Decoder<T> {
    run: Decode<T>,
    format: Format,
}

impl<T> Decoder<T> {
    const fn new(run: Decode<T>, format: Format) -> Self {
        Self { run, format }
    }
}

/// The factors of a product, with the places of the numbers of a sparse A.
struct Factors<T, const COUNT: usize> {
    a: Lines<T, COUNT>,
    b: Lines<T, COUNT>,
    places: Lines<u8, COUNT>,
}

impl Matrix {
    pub(super) fn execute(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        self.check(instruction)?;
        let both = |run| [Decoder::new(run, small::SINGLE); 2];
        match self.element {
            Single => self.numbers(instruction, wave, both(product::SINGLES), product::FUSED),
            Short => self.numbers(instruction, wave, both(product::SHORTENED), product::FUSED),
            Halves => self.numbers(instruction, wave, both(product::HALVES), product::OF_EXACT),
            Brain => self.numbers(instruction, wave, both(product::BRAINS), product::FUSED),
            Eight(a, b) => {
                let decoders = [a, b].map(|format| Decoder::new(product::PACKED, format));
                self.numbers(instruction, wave, decoders, product::OF_EXACT)
            }
            FlushedHalf => {
                let decoders = both(product::FLUSHED_HALVES);
                self.numbers(instruction, wave, decoders, product::OF_EXACT)
            }
            FlushedBrain => {
                let decoders = both(product::FLUSHED_BRAINS);
                self.numbers(instruction, wave, decoders, product::FUSED)
            }
            Byte => {
                let decoders = [Decoder::new(product::SIGNED_BYTES, small::SINGLE); 2];
                self.numbers(instruction, wave, decoders, product::OF_INTEGERS)
            }
            Scaled => self.scaled(instruction, wave),
            Double | NegatedDouble => self.doubles(instruction, wave),
        }
    }

    /// Refuses modifiers that the instruction lacks.
    fn check(self, instruction: &Instruction) -> Result<(), Fault> {
        let MatrixControl {
            broadcast,
            block,
            lanes,
            ..
        } = instruction.matrix;
        if let Scaled = self.element {
            // These fields select the formats.
            return [broadcast, lanes]
                .iter()
                .all(|format| usize::from(*format) < SELECTED.len())
                .then_some(())
                .ok_or_else(|| unmodelled(instruction, "this cbsz or blgp"));
        }
        let copies = 1usize << broadcast;
        // A sparse instruction selects a set of places with these fields.
        if !self.sparse && (copies > self.blocks || usize::from(block) >= copies) {
            return Err(unmodelled(instruction, "this cbsz and abid"));
        }
        let moves_lanes = !self.sparse
            && match self.element {
                Single | Halves | Brain | FlushedHalf | FlushedBrain | NegatedDouble => true,
                // gfx942's large shapes have none.
                Byte => self.depth * self.size <= 256,
                _ => false,
            };
        if lanes != 0 && !moves_lanes {
            return Err(unmodelled(instruction, "blgp"));
        }
        Ok(())
    }

    /// Multiplies numbers of at most 32 bits.
    fn numbers<T: Copy + Default>(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        decoders: [Decoder<T>; 2],
        products: Products<T>,
    ) -> Result<(), Fault> {
        // Most instructions have few numbers for each lane.
        const FEW: usize = 4;
        match self.depth / self.groups() {
            1 => self.some_numbers::<T, 1>(instruction, wave, decoders, products),
            ..=FEW => self.some_numbers::<T, FEW>(instruction, wave, decoders, products),
            _ => self.some_numbers::<T, MOST>(instruction, wave, decoders, products),
        }
    }

    fn some_numbers<T: Copy + Default, const COUNT: usize>(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        decoders: [Decoder<T>; 2],
        products: Products<T>,
    ) -> Result<(), Fault> {
        let Some(result) = instruction.dst.vector_index() else {
            return Ok(());
        };
        let MatrixControl {
            broadcast,
            block,
            lanes,
            ..
        } = instruction.matrix;
        let per_lane = self.depth / self.groups();
        let count = if self.sparse { per_lane / 2 } else { per_lane };
        let mut factors = Factors {
            a: Lines([[T::default(); LANES]; COUNT]),
            b: Lines([[T::default(); LANES]; COUNT]),
            places: Lines([[0; LANES]; COUNT]),
        };
        let lines = [&mut factors.a.0[..count], &mut factors.b.0[..per_lane]];
        for ((lines, decoder), source) in lines.into_iter().zip(decoders).zip(instruction.src) {
            decode(source, decoder, self.width(), lines, wave);
        }
        if self.sparse {
            self.find_places(instruction, wave, &mut factors.places.0[..count]);
        } else {
            if broadcast != 0 {
                for line in &mut factors.a.0[..count] {
                    *line = std::array::from_fn(|lane| {
                        let target = lane / self.size % self.blocks;
                        let source = target >> broadcast << broadcast | usize::from(block);
                        line[lane + self.size * source - self.size * target]
                    });
                }
            }
            if lanes != 0 {
                for line in &mut factors.b.0[..per_lane] {
                    *line = std::array::from_fn(|lane| line[source_lane(lanes, lane)]);
                }
            }
        }
        let shape = self.shape();
        let flushes = matches!(self.element, FlushedHalf | FlushedBrain);
        let kind = match self.element {
            Byte => Kind::B32,
            _ => Kind::F32,
        };
        let registers = self.size * self.size * self.blocks / LANES;
        let mut addend = self.addend(instruction, wave, kind, registers)?;
        let sums = result..result + registers;
        let have_denormals = product::HAVE_DENORMALS.for_wave(wave);
        if flushes && have_denormals.call(&wave.vectors[addend..addend + registers]) {
            addend = copied(addend, sums.clone(), wave);
            product::flush(&mut wave.vectors[sums.clone()]);
        }
        let places = match self.sparse {
            true => factors.places.0.as_flattened(),
            false => &[],
        };
        let numbers = (
            factors.a.0.as_flattened(),
            factors.b.0.as_flattened(),
            places,
        );
        let products = products.for_wave(wave);
        products.call(&shape, numbers, [addend, result], &mut wave.vectors);
        if flushes && have_denormals.call(&wave.vectors[sums.clone()]) {
            product::flush(&mut wave.vectors[sums]);
        }
        Ok(())
    }

    /// The place of each number of a sparse A among its four: two bits of Src2, of which an instruction uses a set.
    fn find_places(self, instruction: &Instruction, wave: &Wave, places: &mut [Line<u8>]) {
        let MatrixControl {
            broadcast, block, ..
        } = instruction.matrix;
        let set_bits = self.depth / self.groups();
        let set = if broadcast == 0 {
            usize::from(block) % (32 / set_bits)
        } else {
            0
        };
        let Some(words) = wave.vector(instruction.src[2]) else {
            return;
        };
        for (number, places) in places.iter_mut().enumerate() {
            let shift = set * set_bits + 2 * number;
            *places = words.map(|word| (word >> shift & 3) as u8);
        }
    }

    fn doubles(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let Some(result) = instruction.dst.vector_index() else {
            return Ok(());
        };
        let signs = match self.element {
            NegatedDouble => instruction.matrix.lanes,
            _ => 0,
        };
        let sign = |place: u8| u64::from(signs >> place & 1) << 63;
        let mut factors = Lines([[0.0; LANES]; 2]);
        for (place, line) in factors.0.iter_mut().enumerate() {
            let index = instruction.src[place].vector_index();
            if let Some(words) = index.and_then(|index| wave.vectors[index..].first_chunk()) {
                let decode = product::DOUBLES.for_wave(wave);
                decode.call(words, sign(place as u8), line);
            }
        }
        let registers = 2 * self.size * self.size * self.blocks / LANES;
        let is_negated = sign(2) != 0;
        let mut addend = self.addend(instruction, wave, Kind::F64, registers)?;
        if is_negated {
            addend = copied(addend, result..result + registers, wave);
            for high in wave.vectors[result..result + registers]
                .iter_mut()
                .skip(1)
                .step_by(2)
            {
                *high = high.map(|word| word ^ (sign(2) >> 32) as u32);
            }
        }
        let products = product::OF_DOUBLES.for_wave(wave);
        let shape = self.shape();
        let [a, b] = &factors.0;
        products.call(&shape, (a, b, &[]), [addend, result], &mut wave.vectors);
        Ok(())
    }

    fn scaled(self, instruction: &Instruction, wave: &mut Wave) -> Result<(), Fault> {
        let Some(result) = instruction.dst.vector_index() else {
            return Ok(());
        };
        let MatrixControl {
            broadcast,
            lanes,
            scales,
            ..
        } = instruction.matrix;
        let formats = [broadcast, lanes].map(|format| SELECTED[usize::from(format)]);
        let mut lines = [[[0f32; LANES]; MOST]; 2];
        for ((lines, format), source) in lines.iter_mut().zip(formats).zip(instruction.src) {
            let decoder = Decoder::new(product::PACKED, format);
            decode(source, decoder, format.width() as usize, lines, wave);
        }
        // Row by row of A and column by column of B, one behind the other.
        let shape = Shape {
            order: Order::of_rows(self.size),
            ..self.shape()
        };
        let registers = self.size * self.size / LANES;
        let addend = self.addend(instruction, wave, Kind::F32, registers)?;
        let Some(scales) = scales else {
            // Products of these formats, and so their sums with a number, need no more than single precision.
            let mut numbers = [[0f32; LANES * MOST]; 2];
            for (source, numbers) in numbers.iter_mut().enumerate() {
                let numbers = numbers.chunks_exact_mut(self.size);
                for (k, numbers) in numbers.enumerate().take(self.depth) {
                    numbers.copy_from_slice(self.selected(&lines[source], formats[source], k));
                }
            }
            let products = product::OF_EXACT;
            self.multiply_parts(&shape, &numbers, [addend, result], products, wave);
            return Ok(());
        };
        let mut numbers = [[0f64; LANES * MOST]; 2];
        for (source, numbers) in numbers.iter_mut().enumerate() {
            let powers = self.scales(scales, source, wave);
            let numbers = numbers.chunks_exact_mut(self.size);
            for (k, numbers) in numbers.enumerate().take(self.depth) {
                let line = self.selected(&lines[source], formats[source], k);
                let powers = &powers[self.size * (k / SCALED_BY_ONE)..][..self.size];
                for ((number, value), power) in numbers.iter_mut().zip(line).zip(powers) {
                    *number = f64::from(*value) * power;
                }
            }
        }
        let products = product::OF_SCALED;
        self.multiply_parts(&shape, &numbers, [addend, result], products, wave);
        Ok(())
    }

    /// Multiplies as many numbers of each row as the loops take, and then the next ones.
    fn multiply_parts<T>(
        self,
        shape: &Shape,
        [a, b]: &[[T; LANES * MOST]; 2],
        [addend, result]: [usize; 2],
        products: Products<T>,
        wave: &mut Wave,
    ) {
        let products = products.for_wave(wave);
        for first in (0..self.depth).step_by(DEEPEST) {
            let [a, b] = [a, b].map(|numbers| &numbers[first * self.size..]);
            let from = if first == 0 { addend } else { result };
            products.call(shape, (a, b, &[]), [from, result], &mut wave.vectors);
        }
    }

    /// The numbers of all rows of A, or columns of B, at a place. A lane has 32 consecutive numbers; if they have 8
    /// bits, it has 16 of each half.
    fn selected(self, lines: &[Line<f32>; MOST], format: Format, k: usize) -> &[f32] {
        let groups = self.groups();
        let together = if format.width() == 8 { 16 } else { 32 };
        let group = k / together % groups;
        let number = k % together + k / (together * groups) * together;
        &lines[number][self.size * group..][..self.size]
    }

    /// The powers of two that the lanes hold, each for a group of numbers of a row of A or of a column of B.
    fn scales(self, scales: MatrixScales, source: usize, wave: &Wave) -> Line<f64> {
        let byte = 8 * scales.bytes[source];
        std::array::from_fn(
            |lane| match (wave.lane(scales.sources[source], lane) >> byte) as u8 {
                u8::MAX => f64::NAN,
                exponent => float::ldexp(1.0, i32::from(exponent) - 127),
            },
        )
    }

    /// The number of groups of lanes that share the depth of a block.
    const fn groups(self) -> usize {
        LANES / (self.size * self.blocks)
    }

    /// The bits of an element of at most 32 bits.
    fn width(self) -> usize {
        match self.element {
            Single | Short => 32,
            Halves | Brain | FlushedHalf | FlushedBrain => 16,
            Eight(..) | Scaled | Byte => 8,
            Double | NegatedDouble => 64,
        }
    }

    /// The shape of a product without modifiers.
    #[inline(always)]
    fn shape(self) -> Shape {
        let (fours, distance) = match (self.width(), self.size) {
            (64, _) => (&DOUBLES, self.size),
            (_, 16) => (&OF_16, LANES),
            _ => (&OF_32, LANES),
        };
        let groups = self.groups();
        let per_lane = self.depth / groups;
        let count = if self.sparse { per_lane / 2 } else { per_lane };
        Shape {
            size: self.size,
            blocks: self.blocks,
            fours,
            distance,
            order: Order::of_groups(groups, count, self.size * self.blocks, self.sparse),
        }
    }

    /// The first register of C. It is that of D if C is a constant or overlaps D: D then holds a copy.
    fn addend(
        self,
        instruction: &Instruction,
        wave: &mut Wave,
        kind: Kind,
        registers: usize,
    ) -> Result<usize, Fault> {
        let Some(result) = instruction.dst.vector_index() else {
            return Ok(0);
        };
        if self.sparse {
            return Ok(result);
        }
        let Some(index) = instruction.src[2].vector_index() else {
            let constant = scalar_source(instruction, 2, kind, wave)?;
            let halves = [constant as u32, (constant >> 32) as u32];
            let is_long = usize::from(kind.is_long());
            let words = wave.vectors[result..result + registers].iter_mut();
            for (number, word) in words.enumerate() {
                word.fill(halves[number & is_long]);
            }
            return Ok(result);
        };
        if index.abs_diff(result) < registers {
            return Ok(copied(index, result..result + registers, wave));
        }
        Ok(index)
    }
}

/// Copies C to D, and returns the first register of D.
fn copied(from: usize, to: Range<usize>, wave: &mut Wave) -> usize {
    if from != to.start {
        wave.vectors.copy_within(from..from + to.len(), to.start);
    }
    to.start
}

/// Decodes the numbers of a factor; zeros if the operand is not a vector register.
fn decode<T>(
    source: Operand,
    decoder: Decoder<T>,
    width: usize,
    lines: &mut [Line<T>],
    wave: &Wave,
) {
    if let Some(index) = source.vector_index() {
        let run = decoder.run.for_wave(wave);
        run.call(&wave.vectors[index..], decoder.format, [0, width], lines);
    }
}

/// The lane whose part of B a lane multiplies with.
fn source_lane(pattern: u8, lane: usize) -> usize {
    match pattern {
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % LANES,
        4..=7 => lane % 16 + 16 * usize::from(pattern - 4),
        _ => lane,
    }
}
