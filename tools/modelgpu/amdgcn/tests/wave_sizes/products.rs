//! Products of matrices of 16 rows and columns: Clang's builtins against the plain product. AMD's RDNA 3 and
//! RDNA 4 instruction set guides have the places of the elements in registers. Most sums are exact. Other cases have
//! numbers of any bits, and expect the sums in the order of k, each of them rounded by the host's fused multiply-add, and
//! the results rounded to 16 bits by a soft-float library.

use std::path::Path;

use modelgpu_amdgcn::{Argument, Launch, Program};
use modelgpu_testing::{arbitrary, compile_hip};
use rustc_apfloat::ieee::{BFloat, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

/// Rows of A and columns of B.
const SIZE: usize = 16;

/// A format of elements: its bits, and the value and the bits for an arbitrary number.
#[derive(Clone, Copy)]
struct Format {
    width: usize,
    make: fn(u64) -> (f64, u32),
}

/// Small integers, exact in each format of floats.
fn small(number: u64) -> f64 {
    f64::from((number % 9) as i32 - 4)
}

const HALF: Format = Format {
    width: 16,
    make: |number| {
        // The halves of 0 to 4.
        const BITS: [u32; 5] = [0, 0x3c00, 0x4000, 0x4200, 0x4400];
        let value = small(number);
        let sign = if value < 0.0 { 0x8000 } else { 0 };
        (value, BITS[value.abs() as usize] | sign)
    },
};
const BRAIN: Format = Format {
    width: 16,
    make: |number| {
        let value = small(number);
        (value, (value as f32).to_bits() >> 16)
    },
};
const FP8: Format = Format {
    width: 8,
    make: |number| eight(number, 3, 7),
};
const BF8: Format = Format {
    width: 8,
    make: |number| eight(number, 2, 15),
};

/// A half of any bits, with few infinities and NaNs.
const ANY_HALF: Format = Format {
    width: 16,
    make: |number| {
        let bits = any_bits(number, 0x7c00);
        let half = Half::from_bits(bits.into());
        let single: Single = half.convert(&mut false).value;
        (f32::from_bits(single.to_bits() as u32).into(), bits)
    },
};
const ANY_BRAIN: Format = Format {
    width: 16,
    make: |number| {
        let bits = any_bits(number, 0x7f80);
        (f32::from_bits(bits << 16).into(), bits)
    },
};

/// 16 bits, which seldom have all bits of an exponent.
fn any_bits(number: u64, exponent: u32) -> u32 {
    let bits = (number >> 8) as u32 & 0xffff;
    let is_special = bits & exponent == exponent && number >> 40 & 7 != 0;
    bits & !if is_special { 0x4000 } else { 0 }
}

/// The OCP's 8 bits for an integer: a fraction of some bits, and the bias.
fn eight(number: u64, fraction: u32, bias: u32) -> (f64, u32) {
    let value = small(number);
    let magnitude = value.abs() as u32;
    let sign = if value < 0.0 { 0x80 } else { 0 };
    if magnitude == 0 {
        return (0.0, sign);
    }
    let exponent = magnitude.ilog2();
    let part = (magnitude << fraction >> exponent) - (1 << fraction);
    (value, sign | (exponent + bias) << fraction | part)
}

const SIGNED_BYTE: Format = Format {
    width: 8,
    make: |number| (f64::from(number as i8), number as u32 & 0xff),
};
const BYTE: Format = Format {
    width: 8,
    make: |number| (f64::from(number as u8), number as u32 & 0xff),
};
const SIGNED_NIBBLE: Format = Format {
    width: 4,
    make: |number| (f64::from((number as i32 & 15 ^ 8) - 8), number as u32 & 15),
};
const NIBBLE: Format = Format {
    width: 4,
    make: |number| (f64::from(number as u32 & 15), number as u32 & 15),
};

/// The elements of C and D. Addends are multiples of 16 below 256.
#[derive(Clone, Copy, PartialEq)]
enum Sum {
    Single,
    Half,
    /// A half, in the high halves of registers.
    HighHalf,
    Brain,
    Integer,
    /// An integer that keeps the largest value instead of going beyond. Addends are near that.
    Clamped,
}

impl Sum {
    fn is_short(self) -> bool {
        matches!(self, Self::Half | Self::HighHalf | Self::Brain)
    }

    fn addend(self, number: u64) -> f64 {
        match self {
            Self::Clamped => f64::from(i32::MAX) - (number % 1024) as f64,
            _ => (number % 16 * 16) as f64,
        }
    }

    /// A sum with one more product.
    fn add(self, sum: f64, a: f64, b: f64) -> f64 {
        match self {
            Self::Integer | Self::Clamped => sum + a * b,
            _ => (a as f32).mul_add(b as f32, sum as f32).into(),
        }
    }

    fn bits(self, value: f64) -> u32 {
        let single = Single::from_bits((value as f32).to_bits().into());
        match self {
            Self::Single => (value as f32).to_bits(),
            Self::Half | Self::HighHalf => {
                let half: Half = single.convert(&mut false).value;
                half.to_bits() as u32
            }
            Self::Brain => {
                let brain: BFloat = single.convert(&mut false).value;
                brain.to_bits() as u32
            }
            Self::Integer => value as i64 as u32,
            Self::Clamped => value.min(i32::MAX.into()) as i64 as u32,
        }
    }

    /// The bits of an element in memory, with one NaN for all.
    fn canonical(self, bits: u32) -> u32 {
        let (infinity, nan) = match self {
            Self::Single => (0x7f80_0000, 0x7fc0_0000),
            Self::Half | Self::HighHalf => (0x7c00, 0x7e00),
            Self::Brain => (0x7f80, 0x7fc0),
            Self::Integer | Self::Clamped => return bits,
        };
        let magnitude = bits & if self.is_short() { 0x7fff } else { 0x7fff_ffff };
        if magnitude > infinity { nan } else { bits }
    }
}

/// A kernel, the columns of A, the formats of A and B, and that of the sums.
type Product = (&'static str, usize, [Format; 2], Sum);

const ON_BOTH: [Product; 8] = [
    ("f32_f16", 16, [HALF, HALF], Sum::Single),
    ("f32_bf16", 16, [BRAIN, BRAIN], Sum::Single),
    ("f16_f16", 16, [HALF, HALF], Sum::Half),
    ("bf16_bf16", 16, [BRAIN, BRAIN], Sum::Brain),
    ("i32_i8", 16, [SIGNED_BYTE, SIGNED_BYTE], Sum::Integer),
    ("i32_u8", 16, [BYTE, SIGNED_BYTE], Sum::Clamped),
    ("i32_i4", 16, [SIGNED_NIBBLE, SIGNED_NIBBLE], Sum::Integer),
    ("i32_u4", 16, [SIGNED_NIBBLE, NIBBLE], Sum::Clamped),
];
const OF_ANY_BITS: [Product; 4] = [
    ("f32_f16", 16, [ANY_HALF, ANY_HALF], Sum::Single),
    ("f32_bf16", 16, [ANY_BRAIN, ANY_BRAIN], Sum::Single),
    ("f16_f16", 16, [ANY_HALF, ANY_HALF], Sum::Half),
    ("bf16_bf16", 16, [ANY_BRAIN, ANY_BRAIN], Sum::Brain),
];
/// RDNA 3 selects a half of the registers.
const ON_GFX11: Product = ("f16_high", 16, [HALF, HALF], Sum::HighHalf);
const ON_GFX12: [Product; 5] = [
    ("deep_i4", 32, [SIGNED_NIBBLE, SIGNED_NIBBLE], Sum::Integer),
    ("fp8_fp8", 16, [FP8, FP8], Sum::Single),
    ("fp8_bf8", 16, [FP8, BF8], Sum::Single),
    ("bf8_fp8", 16, [BF8, FP8], Sum::Single),
    ("bf8_bf8", 16, [BF8, BF8], Sum::Single),
];
/// With the set of places that the instruction selects.
const SPARSE: [(Product, usize); 11] = [
    (("sparse_f32_f16", 32, [HALF, HALF], Sum::Single), 0),
    (("sparse_f32_bf16", 32, [BRAIN, BRAIN], Sum::Single), 0),
    (("sparse_f16_f16", 32, [HALF, HALF], Sum::Half), 0),
    (("sparse_bf16_bf16", 32, [BRAIN, BRAIN], Sum::Brain), 0),
    (("sparse_fp8_fp8", 32, [FP8, FP8], Sum::Single), 0),
    (("sparse_fp8_bf8", 32, [FP8, BF8], Sum::Single), 0),
    (("sparse_bf8_fp8", 32, [BF8, FP8], Sum::Single), 0),
    (("sparse_bf8_bf8", 32, [BF8, BF8], Sum::Single), 0),
    (
        ("sparse_i8", 32, [SIGNED_BYTE, SIGNED_BYTE], Sum::Integer),
        1,
    ),
    (
        (
            "sparse_i4",
            32,
            [SIGNED_NIBBLE, SIGNED_NIBBLE],
            Sum::Integer,
        ),
        0,
    ),
    (
        (
            "sparse_deep_i4",
            64,
            [SIGNED_NIBBLE, SIGNED_NIBBLE],
            Sum::Integer,
        ),
        0,
    ),
];

/// The lanes of a wave and the generation of its processor.
#[derive(Clone, Copy)]
struct Layout {
    lanes: usize,
    is_gfx12: bool,
}

impl Layout {
    /// Bytes of a lane's part of A or B.
    fn factor_bytes(self, depth: usize, format: Format) -> usize {
        // A register at least.
        (depth / self.parts() * format.width / 8).max(4)
    }

    /// The groups of lanes that share a line.
    fn parts(self) -> usize {
        if self.is_gfx12 { self.lanes / SIZE } else { 1 }
    }

    /// Bytes of a lane's part of C.
    fn sum_bytes(self, sum: Sum) -> usize {
        let count = SIZE * SIZE / self.lanes;
        if sum.is_short() && self.is_gfx12 {
            2 * count
        } else {
            4 * count
        }
    }

    /// The lanes that hold an element of a line of A or B, and the element's number there. RDNA 3 has each line
    /// in a lane of each 16.
    fn factor_places(self, depth: usize, line: usize, k: usize) -> (Vec<usize>, usize) {
        if self.is_gfx12 {
            let count = depth / self.parts();
            return (vec![line + SIZE * (k / count)], k % count);
        }
        let groups = self.lanes / SIZE;
        ((0..groups).map(|group| line + SIZE * group).collect(), k)
    }

    /// The lane of an element of C, and the element's first bit there.
    fn sum_place(self, sum: Sum, row: usize, column: usize) -> (usize, usize) {
        if self.is_gfx12 {
            let width = if sum.is_short() { 16 } else { 32 };
            // The upper half of a wave of 64 has the second four of each eight rows.
            return match self.lanes {
                32 => (column + SIZE * (row / 8), width * (row % 8)),
                _ => (
                    column + SIZE * (row / 8) + 32 * (row % 8 / 4),
                    width * (row % 4),
                ),
            };
        }
        let groups = self.lanes / SIZE;
        let high = if sum == Sum::HighHalf { 16 } else { 0 };
        (column + SIZE * (row % groups), 32 * (row / groups) + high)
    }
}

/// Four numbers of a line of a sparse product: the group of lanes that has them, and their number there.
fn four(layout: Layout, format: Format, depth: usize, number: usize) -> (usize, usize) {
    let all = depth / 4;
    match (format.width, layout.lanes) {
        (16, 32) => (number / 2 % 2, 2 * (number / 4) + number % 2),
        (16, _) => (number / 2, number % 2),
        (8, 64) => (2 * (number / 2 % 2) + number / 4, number % 2),
        _ => {
            let each = all / layout.parts();
            (number / each, number % each)
        }
    }
}

fn check_sparse(
    program: &[u8],
    layout: Layout,
    (kernel, depth, formats, sum): Product,
    set: usize,
    what: &str,
) {
    let numbers = arbitrary(13, 3 * SIZE * 64);
    let number = |place: usize| numbers[place] >> 7;
    let bytes = [
        layout.factor_bytes(depth / 2, formats[0]),
        layout.factor_bytes(depth, formats[1]),
    ];
    let mut registers = bytes.map(|bytes| vec![0; layout.lanes * bytes]);
    // The places of another set are different ones.
    let mut indices: Vec<u32> = (0..layout.lanes).map(|lane| number(lane) as u32).collect();
    let mut values = [[[0.0; 64]; SIZE]; 2];
    // The bits of a set are those of the elements that a lane has.
    let bits_of_set = depth / layout.parts();
    for line in 0..SIZE {
        for place in 0..depth / 4 {
            let (group, own) = four(layout, formats[0], depth, place);
            let lane = line + SIZE * group;
            let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
            let kept = pairs[number(SIZE * 64 + line * 64 + place) as usize % 6];
            let shift = set * bits_of_set + 4 * own;
            indices[lane] &= !(15 << shift);
            indices[lane] |= ((kept[0] | kept[1] << 2) as u32) << shift;
            for (which, at) in kept.into_iter().enumerate() {
                let (value, bits) = (formats[0].make)(number(line * 64 + 4 * place + at));
                values[0][line][4 * place + at] = value;
                let bit = 8 * lane * bytes[0] + (2 * own + which) * formats[0].width;
                put(&mut registers[0], bit, formats[0].width, bits);
            }
            let (group, own) = four(layout, formats[1], depth, place);
            let lane = line + SIZE * group;
            for at in 0..4 {
                let (value, bits) =
                    (formats[1].make)(number(2 * SIZE * 64 + line * 64 + 4 * place + at));
                values[1][line][4 * place + at] = value;
                let bit = 8 * lane * bytes[1] + (4 * own + at) * formats[1].width;
                put(&mut registers[1], bit, formats[1].width, bits);
            }
        }
    }
    let indices: Vec<u8> = indices
        .iter()
        .flat_map(|places| places.to_le_bytes())
        .collect();
    let [left, right] = registers;
    finish(
        program,
        layout,
        (kernel, depth, formats, sum),
        (left, right, Some(indices)),
        &values,
        what,
    );
}

fn put(bytes: &mut [u8], bit: usize, width: usize, bits: u32) {
    for place in 0..width {
        bytes[(bit + place) / 8] |= ((bits >> place & 1) as u8) << ((bit + place) % 8);
    }
}

fn check(program: &[u8], layout: Layout, product: Product, what: &str) {
    let (_, depth, formats, _) = product;
    let numbers = arbitrary(11, 2 * SIZE * 32);
    let mut values = [[[0.0; 64]; SIZE]; 2];
    let mut registers = [Vec::new(), Vec::new()];
    for (factor, format) in formats.into_iter().enumerate() {
        let bytes = layout.factor_bytes(depth, format);
        registers[factor] = vec![0; layout.lanes * bytes];
        for line in 0..SIZE {
            for k in 0..depth {
                let number = numbers[(factor * SIZE + line) * 32 + k] >> 7;
                let (value, bits) = (format.make)(number);
                values[factor][line][k] = value;
                let (lanes, place) = layout.factor_places(depth, line, k);
                for lane in lanes {
                    let bit = 8 * lane * bytes + place * format.width;
                    put(&mut registers[factor], bit, format.width, bits);
                }
            }
        }
    }
    let [left, right] = registers;
    finish(program, layout, product, (left, right, None), &values, what);
}

/// Runs a product whose factors are in registers, and compares with the plain product of their values.
fn finish(
    program: &[u8],
    layout: Layout,
    (kernel, depth, _, sum): Product,
    (left, right, indices): (Vec<u8>, Vec<u8>, Option<Vec<u8>>),
    values: &[[[f64; 64]; SIZE]; 2],
    what: &str,
) {
    let addends = arbitrary(12, SIZE * SIZE);
    let bytes = layout.sum_bytes(sum);
    let width = if sum.is_short() { 16 } else { 32 };
    let mut addend = vec![0; layout.lanes * bytes];
    let mut wanted = vec![0; layout.lanes * bytes];
    let mut went_beyond = false;
    for row in 0..SIZE {
        for column in 0..SIZE {
            let c = sum.addend(addends[row * SIZE + column] >> 9);
            let result = (0..depth).fold(c, |result, k| {
                sum.add(result, values[0][row][k], values[1][column][k])
            });
            let is_integer = matches!(sum, Sum::Integer | Sum::Clamped);
            went_beyond |= is_integer && result > i32::MAX.into();
            let (lane, bit) = layout.sum_place(sum, row, column);
            let bit = 8 * lane * bytes + bit;
            put(&mut addend, bit, width, sum.bits(c));
            put(&mut wanted, bit, width, sum.canonical(sum.bits(result)));
        }
    }
    assert_eq!(
        went_beyond,
        sum == Sum::Clamped,
        "{what}: the test's numbers"
    );
    let mut program = Program::load(program).expect("an object that was just linked");
    let arena = program.arena_mut();
    let result = arena.allocate(&vec![0; layout.lanes * bytes]);
    let mut arguments = [&left, &right, &addend]
        .map(|bytes| Argument::Pointer(arena.allocate(bytes)))
        .to_vec();
    arguments.push(Argument::Pointer(result));
    arguments.extend(indices.map(|indices| Argument::Pointer(arena.allocate(&indices))));
    let launch = Launch {
        kernel: kernel.into(),
        grid: [layout.lanes as u32, 1, 1],
        block: [layout.lanes as u32, 1, 1],
        dynamic_lds: 0,
        arguments,
    };
    program
        .launch(&launch)
        .unwrap_or_else(|error| panic!("{what} {kernel}: {error}"));
    let mnemonics = program.executed_mnemonics();
    assert!(
        mnemonics
            .iter()
            .any(|mnemonic| mnemonic.starts_with("v_wmma_") || mnemonic.starts_with("v_swmmac_")),
        "{what} {kernel}: {mnemonics:?}"
    );
    let mut found = program
        .arena()
        .read(result, wanted.len() as u64)
        .expect("the output");
    for element in found.chunks_exact_mut(width / 8) {
        let bits = (0..).step_by(8).zip(element.iter());
        let bits = bits.fold(0, |bits, (shift, byte)| bits | u32::from(*byte) << shift);
        let canonical = sum.canonical(bits).to_le_bytes();
        element.copy_from_slice(&canonical[..width / 8]);
    }
    assert_eq!(found, wanted, "{what} {kernel}");
}

#[test]
fn products_of_matrices() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let object = directory.path().join("products.co");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wave_sizes/products.hip");
    let wave64 = &["-mwavefrontsize64", "-DWAVE64"][..];
    for (processor, lanes, flags) in [
        ("gfx1100", 32, &[][..]),
        ("gfx1100", 64, wave64),
        ("gfx1201", 32, &[]),
        ("gfx1201", 64, wave64),
    ] {
        let bytes = compile_hip(&source, processor, &[&["-O2"], flags].concat(), &object);
        let layout = Layout {
            lanes,
            is_gfx12: processor == "gfx1201",
        };
        let what = format!("{processor} wave{lanes}");
        let own = match layout.is_gfx12 {
            true => &ON_GFX12[..],
            false => &[ON_GFX11],
        };
        for product in ON_BOTH.iter().chain(&OF_ANY_BITS).chain(own) {
            check(&bytes, layout, *product, &what);
        }
        if layout.is_gfx12 {
            for (product, set) in SPARSE {
                check_sparse(&bytes, layout, product, set, &what);
            }
        }
    }
}

/// Lanes read a matrix by rows, and each gets a column.
#[test]
fn loads_of_columns() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let object = directory.path().join("products.co");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wave_sizes/products.hip");
    let bytes = compile_hip(&source, "gfx1201", &["-O2"], &object);
    let input: Vec<u8> = arbitrary(17, 64)
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    for (kernel, width) in [("columns_of_bytes", 1), ("columns_of_halves", 2)] {
        let row = 8 * width;
        let places: Vec<usize> = (0..32).map(|lane| lane ^ 9).collect();
        let wanted: Vec<u8> = (0..32)
            .flat_map(|lane: usize| {
                // The lane that reads the row of an element, and the element's number in it: the instruction's
                // places are those that make a column of 16 rows of two lanes each (bytes), or of 8 rows.
                let from = move |number: usize| match width {
                    1 => (
                        lane / 16 * 16 + [0, 1, 2, 3, 8, 9, 10, 11][number] + lane % 16 / 8 * 4,
                        lane % 8,
                    ),
                    _ => (lane / 8 * 8 + number, lane % 8),
                };
                (0..8).flat_map(move |number| {
                    let (reader, own) = from(number);
                    let first = (reader ^ 9) * row + own * width;
                    first..first + width
                })
            })
            .map(|place| input[place])
            .collect();
        let mut program = Program::load(&bytes).expect("an object that was just linked");
        let arena = program.arena_mut();
        let matrix = arena.allocate(&input);
        let places: Vec<u8> = places
            .iter()
            .flat_map(|place| (*place as u32).to_le_bytes())
            .collect();
        let places = arena.allocate(&places);
        let output = arena.allocate(&vec![0; wanted.len()]);
        let launch = Launch {
            kernel: kernel.into(),
            grid: [32, 1, 1],
            block: [32, 1, 1],
            dynamic_lds: 0,
            arguments: [matrix, places, output].map(Argument::Pointer).to_vec(),
        };
        program
            .launch(&launch)
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
        let found = program.arena().read(output, wanted.len() as u64);
        assert_eq!(found.expect("the output"), wanted, "{kernel}");
    }
}
