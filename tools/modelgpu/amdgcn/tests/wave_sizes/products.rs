//! Products of matrices of 16 rows and columns: Clang's builtins against the plain product. AMD's RDNA 3 and
//! RDNA 4 instruction set guides have the places of the elements in registers. All sums are exact.

use std::path::Path;

use modelgpu_amdgcn::{Argument, Launch, Program};

use crate::common::{arbitrary, compile_hip};

/// Rows of A and columns of B.
const SIZE: usize = 16;

/// A format of elements: its bits, and the value and the bits for an arbitrary number.
#[derive(Clone, Copy)]
struct Format {
    width: usize,
    make: fn(u64) -> (i64, u32),
}

/// Small integers, exact in each format of floats.
fn small(number: u64) -> i64 {
    (number % 9) as i64 - 4
}

const HALF: Format = Format {
    width: 16,
    make: |number| {
        // The halves of 0 to 4.
        const BITS: [u32; 5] = [0, 0x3c00, 0x4000, 0x4200, 0x4400];
        let value = small(number);
        let sign = if value < 0 { 0x8000 } else { 0 };
        (value, BITS[value.unsigned_abs() as usize] | sign)
    },
};
const BRAIN: Format = Format {
    width: 16,
    make: |number| {
        let value = small(number);
        (value, (value as f32).to_bits() >> 16)
    },
};
const SIGNED_BYTE: Format = Format {
    width: 8,
    make: |number| (i64::from(number as i8), number as u32 & 0xff),
};
const BYTE: Format = Format {
    width: 8,
    make: |number| (number as i64 & 0xff, number as u32 & 0xff),
};
const SIGNED_NIBBLE: Format = Format {
    width: 4,
    make: |number| ((number as i64 & 15 ^ 8) - 8, number as u32 & 15),
};
const NIBBLE: Format = Format {
    width: 4,
    make: |number| (number as i64 & 15, number as u32 & 15),
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

    fn addend(self, number: u64) -> i64 {
        match self {
            Self::Clamped => i64::from(i32::MAX) - (number % 1024) as i64,
            _ => (number % 16) as i64 * 16,
        }
    }

    fn bits(self, value: i64) -> u32 {
        match self {
            Self::Single => (value as f32).to_bits(),
            Self::Half | Self::HighHalf => half(value),
            // Ties to even, of a value that a float holds.
            Self::Brain => {
                let bits = (value as f32).to_bits();
                (bits + 0x7fff + (bits >> 16 & 1)) >> 16
            }
            Self::Integer => value as u32,
            Self::Clamped => value.min(i32::MAX.into()) as u32,
        }
    }
}

/// The half of an integer below 2048, which it holds.
fn half(value: i64) -> u32 {
    let sign = if value < 0 { 0x8000 } else { 0 };
    let magnitude = value.unsigned_abs() as u32;
    if magnitude == 0 {
        return sign;
    }
    let exponent = magnitude.ilog2();
    assert!(exponent <= 10, "{value} is too large for this test");
    sign | (exponent + 15) << 10 | magnitude << (10 - exponent) & 0x3ff
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
/// RDNA 3 selects a half of the registers.
const ON_GFX11: Product = ("f16_high", 16, [HALF, HALF], Sum::HighHalf);
const ON_GFX12: Product = ("deep_i4", 32, [SIGNED_NIBBLE, SIGNED_NIBBLE], Sum::Integer);

/// The lanes of a wave and the generation of its processor.
#[derive(Clone, Copy)]
struct Layout {
    lanes: usize,
    is_gfx12: bool,
}

impl Layout {
    /// Bytes of a lane's part of A or B.
    fn factor_bytes(self, depth: usize, format: Format) -> usize {
        let count = if self.is_gfx12 { depth / 2 } else { depth };
        count * format.width / 8
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
            let count = depth / 2;
            return (vec![line + SIZE * (k / count)], k % count);
        }
        let groups = self.lanes / SIZE;
        ((0..groups).map(|group| line + SIZE * group).collect(), k)
    }

    /// The lane of an element of C, and the element's first bit there.
    fn sum_place(self, sum: Sum, row: usize, column: usize) -> (usize, usize) {
        if self.is_gfx12 {
            let width = if sum.is_short() { 16 } else { 32 };
            return (column + SIZE * (row / 8), width * (row % 8));
        }
        let groups = self.lanes / SIZE;
        let high = if sum == Sum::HighHalf { 16 } else { 0 };
        (column + SIZE * (row % groups), 32 * (row / groups) + high)
    }
}

fn put(bytes: &mut [u8], bit: usize, width: usize, bits: u32) {
    for place in 0..width {
        bytes[(bit + place) / 8] |= ((bits >> place & 1) as u8) << ((bit + place) % 8);
    }
}

fn check(program: &[u8], layout: Layout, (kernel, depth, formats, sum): Product, what: &str) {
    let numbers = arbitrary(11, 3 * SIZE * 32);
    let (of_factors, addends) = numbers.split_at(2 * SIZE * 32);
    let mut values = [[[0; 32]; SIZE]; 2];
    let mut registers = [Vec::new(), Vec::new()];
    for (factor, format) in formats.into_iter().enumerate() {
        let bytes = layout.factor_bytes(depth, format);
        registers[factor] = vec![0; layout.lanes * bytes];
        for line in 0..SIZE {
            for k in 0..depth {
                let number = of_factors[(factor * SIZE + line) * 32 + k] >> 7;
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
    let bytes = layout.sum_bytes(sum);
    let width = if sum.is_short() { 16 } else { 32 };
    let mut addend = vec![0; layout.lanes * bytes];
    let mut wanted = vec![0; layout.lanes * bytes];
    let mut went_beyond = false;
    for row in 0..SIZE {
        for column in 0..SIZE {
            let c = sum.addend(addends[row * SIZE + column] >> 9);
            let products = (0..depth).map(|k| values[0][row][k] * values[1][column][k]);
            let result = c + products.sum::<i64>();
            went_beyond |= result > i32::MAX.into();
            let (lane, bit) = layout.sum_place(sum, row, column);
            let bit = 8 * lane * bytes + bit;
            put(&mut addend, bit, width, sum.bits(c));
            put(&mut wanted, bit, width, sum.bits(result));
        }
    }
    assert_eq!(
        went_beyond,
        sum == Sum::Clamped,
        "{what}: the test's numbers"
    );
    let mut program = Program::load(program).expect("an object that was just linked");
    let arena = program.arena_mut();
    let [left, right] = [0, 1].map(|factor: usize| arena.allocate(&registers[factor]));
    let addend = arena.allocate(&addend);
    let result = arena.allocate(&vec![0; layout.lanes * bytes]);
    let launch = Launch {
        kernel: kernel.into(),
        grid: [layout.lanes as u32, 1, 1],
        block: [layout.lanes as u32, 1, 1],
        dynamic_lds: 0,
        arguments: [left, right, addend, result]
            .map(Argument::Pointer)
            .to_vec(),
    };
    program
        .launch(&launch)
        .unwrap_or_else(|error| panic!("{what} {kernel}: {error}"));
    let mnemonics = program.executed_mnemonics();
    assert!(
        mnemonics.iter().any(|it| it.starts_with("v_wmma_")),
        "{what} {kernel}: {mnemonics:?}"
    );
    let found = program
        .arena()
        .read(result, wanted.len() as u64)
        .expect("the output");
    assert_eq!(found, wanted, "{what} {kernel}");
}

#[test]
fn products_of_matrices() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let object = directory.path().join("products.co");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wave_sizes/products.hip");
    for (processor, lanes, flags, more) in [
        ("gfx1100", 32, &[][..], ON_GFX11),
        ("gfx1100", 64, &["-mwavefrontsize64", "-DWAVE64"], ON_GFX11),
        ("gfx1201", 32, &[], ON_GFX12),
    ] {
        let bytes = compile_hip(&source, processor, &[&["-O2"], flags].concat(), &object);
        let layout = Layout {
            lanes,
            is_gfx12: processor == "gfx1201",
        };
        for product in ON_BOTH.into_iter().chain([more]) {
            check(&bytes, layout, product, &format!("{processor} wave{lanes}"));
        }
    }
}
