//! Matrix products. Each case makes whole matrices, puts their elements into registers by the
//! layout tables of AMD's instruction set guides, and expects the plain product of the matrices,
//! computed in double precision or with 64-bit integers. The elements are such that every sum is
//! exact in the result's format. So the order of additions, which is not documented, has no effect. Other cases have
//! numbers of any bits, and expect the sums in the order of k, each of them rounded by the host's fused multiply-add.
//!
//! The tables agree with AMD's matrix instruction calculator for every element of every instruction.

use modelgpu_amdgcn::Target;

use crate::half::{f64_to_half, half_to_f64};
use crate::harness::{Case, Inputs, LANES, Want, memory_byte};
use crate::small;

const GFX908: &[Target] = &[Target::Gfx908];
const GFX90A: &[Target] = &[Target::Gfx90a];
/// gfx942 and its successor.
const GFX942: &[Target] = &[Target::Gfx942, Target::Gfx950];
const GFX950: &[Target] = &[Target::Gfx950];

/// The format of elements: its name in mnemonics, its bits, and an element's bits and its value, made
/// from a random number.
#[derive(Clone, Copy)]
struct Format {
    bits: usize,
    make: fn(u64) -> (u64, f64),
}

/// Multiples of a quarter from -8 to 8.
fn quarters(random: u64) -> f64 {
    f64::from((random % 65) as i32 - 32) / 4.0
}

const SINGLE: Format = Format {
    bits: 32,
    make: |random| {
        let value = quarters(random);
        ((value as f32).to_bits().into(), value)
    },
};
/// The other bits decide the rounding: up from an odd multiple and from beyond the middle.
const SHORT: Format = Format {
    bits: 32,
    make: |random| {
        let value = f64::from((random % 32) as i32 + 32);
        // The last bit that counts is worth 1/32.
        let (more, rounded) = [
            (0.0, value),
            (0.015, value),
            (0.016, value + 1.0 / 32.0),
            (1.0 / 64.0, value),
            (3.0 / 64.0, value + 1.0 / 16.0),
        ][(random >> 8) as usize % 5];
        (((value + more) as f32).to_bits().into(), rounded)
    },
};
const HALF: Format = Format {
    bits: 16,
    make: |random| {
        let value = quarters(random);
        (f64_to_half(value).into(), value)
    },
};
const BRAIN: Format = Format {
    bits: 16,
    make: |random| {
        let value = quarters(random);
        (u64::from((value as f32).to_bits() >> 16), value)
    },
};
const BYTE: Format = Format {
    bits: 8,
    make: |random| (random & 0xff, f64::from(random as u8 as i8)),
};
const DOUBLE: Format = Format {
    bits: 64,
    make: |random| {
        let value = ((random >> 16) as i32 >> 8) as f64 / 256.0;
        (value.to_bits(), value)
    },
};
/// A sign, an exponent from 2 below the bias to 3 above it, and a fraction. The OCP's formats have lower biases.
const FP8_FNUZ: Format = Format {
    bits: 8,
    make: |random| eight(random, 3, 8),
};
const BF8_FNUZ: Format = Format {
    bits: 8,
    make: |random| eight(random, 2, 16),
};
const FP8: Format = Format {
    bits: 8,
    make: |random| eight(random, 3, 7),
};
const BF8: Format = Format {
    bits: 8,
    make: |random| eight(random, 2, 15),
};

/// Numbers of any bits: mostly of similar magnitudes, sometimes extremes, zeros, denormal numbers, infinities and NaNs.
const ANY_SINGLE: Format = Format {
    bits: 32,
    make: |random| {
        let bits = any_bits(random, 8, 23) as u32;
        (bits.into(), f32::from_bits(bits).into())
    },
};
const ANY_HALF: Format = Format {
    bits: 16,
    make: |random| {
        let bits = any_bits(random, 5, 10);
        (bits, half_to_f64(bits as u16))
    },
};
const ANY_BRAIN: Format = Format {
    bits: 16,
    make: |random| {
        let bits = any_bits(random, 8, 7);
        (bits, f32::from_bits((bits as u32) << 16).into())
    },
};
const ANY_DOUBLE: Format = Format {
    bits: 64,
    make: |random| {
        let bits = any_bits(random, 11, 52);
        (bits, f64::from_bits(bits))
    },
};
const ANY_FP8_FNUZ: Format = Format {
    bits: 8,
    make: |random| (random & 0xff, small::FP8_FNUZ.value(random as u32 & 0xff)),
};
const ANY_BF8_FNUZ: Format = Format {
    bits: 8,
    make: |random| (random & 0xff, small::BF8_FNUZ.value(random as u32 & 0xff)),
};
const ANY_FP8: Format = Format {
    bits: 8,
    make: |random| (random & 0xff, small::FP8.value(random as u32 & 0xff)),
};
/// NaNs and infinities would be a twentieth of all, and in almost every sum.
const ANY_BF8: Format = Format {
    bits: 8,
    make: |random| {
        let is_special = random >> 8 & 0xff == 0;
        let bits = if is_special {
            random & 0xff
        } else {
            random & 0xbf
        };
        (bits, small::BF8.value(bits as u32))
    },
};

fn any_bits(random: u64, exponent: u32, fraction: u32) -> u64 {
    let sign = (random & 1) << (exponent + fraction);
    let part = random >> 1 & ((1 << fraction) - 1);
    let last = (1 << exponent) - 1;
    let middle = last / 2;
    let field = match random >> 54 {
        // An infinity for each 512 numbers, and a NaN.
        0 => return sign | last << fraction,
        1 => return sign | last << fraction | part | 1,
        2..32 => return sign,
        32..64 => 0,
        64..80 => random >> 32 & last.min(middle + middle / 2),
        other => middle - 8.min(middle / 2) + other % 16.min(middle),
    };
    sign | field << fraction | part
}

fn eight(random: u64, width: u32, bias: u64) -> (u64, f64) {
    let (negative, exponent) = (random & 1, random >> 1 & 7);
    let fraction = random >> 4 & ((1 << width) - 1);
    if exponent >= 6 {
        return (0, 0.0);
    }
    let bits = negative << 7 | (bias - 2 + exponent) << width | fraction;
    let magnitude =
        (1.0 + fraction as f64 / f64::from(1 << width)) * 2f64.powi(exponent as i32 - 2);
    (bits, if negative == 1 { -magnitude } else { magnitude })
}

/// An instruction's shape and formats.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    targets: &'static [Target],
    size: usize,
    depth: usize,
    blocks: usize,
    formats: [Format; 2],
    sparse: bool,
    /// The numbers have any bits.
    is_any: bool,
}

/// The kind of numbers in C and D.
#[derive(Clone, Copy, PartialEq)]
enum Sum {
    Single,
    Integer,
    Double,
}

impl Shape {
    fn sum(self) -> Sum {
        match self.formats[0].bits {
            64 => Sum::Double,
            8 if self.name.contains("_i32_") => Sum::Integer,
            _ => Sum::Single,
        }
    }

    /// The registers of C and D.
    fn registers(self) -> usize {
        let doubled = if self.sum() == Sum::Double { 2 } else { 1 };
        self.size * self.size * self.blocks / LANES * doubled
    }

    /// The register that B begins at: A has the ones in front of it.
    fn second(self) -> usize {
        if self.depth * self.size * self.blocks / LANES * self.formats[0].bits > 64 && !self.sparse
        {
            6
        } else {
            4
        }
    }

    /// The lane that has element [line][k] of a block of A, or [k][line] of B, and its number there.
    fn source(self, block: usize, line: usize, k: usize) -> (usize, usize) {
        let per_lane = self.depth * self.size * self.blocks / LANES;
        (
            line + self.size * block + self.size * self.blocks * (k / per_lane),
            k % per_lane,
        )
    }

    /// The block, row and column that a register of D has in a lane.
    fn result(self, register: usize, lane: usize) -> (usize, usize, usize) {
        match (self.sum(), self.size) {
            (Sum::Double, 4) => (lane / 4 % 4, lane / 16, lane % 4),
            (Sum::Double, _) => (0, 4 * (register / 2) + lane / 16, lane % 16),
            (_, 4) => (lane / 4, register, lane % 4),
            (_, 16) => (register / 4, 4 * (lane / 16) + register % 4, lane % 16),
            _ => {
                let row = 8 * (register % 16 / 4) + 4 * (lane / 32) + register % 4;
                (register / 16, row, lane % 32)
            }
        }
    }
}

/// Repeatable numbers for elements.
fn random(seed: u64, block: usize, line: usize, k: usize) -> u64 {
    let place = (block * 64 + line) * 128 + k;
    let mut mixed = (place as u64 + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 29
}

/// The modifiers of a case.
#[derive(Clone, Copy, Default)]
struct Modifiers {
    cbsz: usize,
    abid: usize,
    blgp: usize,
    accumulates: bool,
}

/// The places of the two numbers among four, for a sparse row.
fn pair_of_places(random: u64) -> [usize; 2] {
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]][random as usize % 6]
}

/// The lane of B that a lane's products use.
fn moved(blgp: usize, lane: usize) -> usize {
    match blgp {
        1 if lane >= 32 => lane - 32,
        2 if lane < 32 => lane + 32,
        3 if lane >= 48 => lane - 48,
        3 => lane + 16,
        4 => lane % 16,
        5 => 16 + lane % 16,
        6 => 32 + lane % 16,
        7 => 48 + lane % 16,
        _ => lane,
    }
}

/// Stands for a number that a sparse row lacks, if the numbers have any bits: infinity or NaN in B must not count.
const LACKING: f64 = f64::from_bits(0x7ff8_0000_dead_beef);

/// The registers of A (v2 and v3), B (v4 to v7) and the places of a sparse A (v8), and the matrices
/// A and B in them as D sees them.
struct Matrices {
    inputs: Inputs,
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Matrices {
    fn new(shape: Shape, modifiers: Modifiers) -> Self {
        let Shape {
            size,
            depth,
            blocks,
            formats,
            ..
        } = shape;
        let index = |block: usize, line: usize, k: usize| (block * size + line) * depth + k;
        let mut inputs: Inputs = [[0; 4]; LANES];
        let second = (shape.second() - 2) / 2;
        let mut put = |first: usize, lane: usize, number: usize, format: Format, bits: u64| {
            let bit = number * format.bits;
            inputs[lane][first + bit / 64] |= bits << (bit % 64);
        };
        // As the registers have them, before the modifiers move blocks and lanes.
        let lacking = if shape.is_any { LACKING } else { 0.0 };
        let mut a = vec![lacking; blocks * size * depth];
        let mut b = vec![0.0; LANES * depth];
        for block in 0..blocks {
            for line in 0..size {
                for k in 0..depth {
                    let (lane, number) = shape.source(block, line, k);
                    let (bits, value) = (formats[1].make)(random(2, block, line, k));
                    put(second, lane, number, formats[1], bits);
                    b[lane * depth + number] = value;
                    let (bits, value) = (formats[0].make)(random(1, block, line, k));
                    if !shape.sparse {
                        put(0, lane, number, formats[0], bits);
                        a[index(block, line, k)] = value;
                        continue;
                    }
                    let places = pair_of_places(random(3, block, line, k / 4));
                    if let Some(which) = places.iter().position(|place| *place == k % 4) {
                        let kept = number / 4 * 2 + which;
                        put(0, lane, kept, formats[0], bits);
                        a[index(block, line, k)] = value;
                        // The set of places that the instruction uses.
                        let sets = formats[0].bits / 4;
                        let set = if modifiers.cbsz == 0 {
                            modifiers.abid % sets
                        } else {
                            0
                        };
                        let place = set * (32 / sets) + 2 * kept;
                        inputs_place(&mut put, lane, place, k % 4);
                    }
                }
            }
        }
        let shared = |block: usize| {
            if shape.sparse {
                return block;
            }
            let group = 1 << modifiers.cbsz;
            block / group * group + modifiers.abid
        };
        let mut seen_a = vec![0.0; a.len()];
        let mut seen_b = vec![0.0; a.len()];
        for block in 0..blocks {
            for line in 0..size {
                for k in 0..depth {
                    seen_a[index(block, line, k)] = a[index(shared(block), line, k)];
                    let (lane, number) = shape.source(block, line, k);
                    seen_b[index(block, line, k)] = b[moved(modifiers.blgp, lane) * depth + number];
                }
            }
        }
        Self {
            inputs,
            a: seen_a,
            b: seen_b,
        }
    }
}

/// Puts the place of a number into v8.
fn inputs_place(
    put: &mut impl FnMut(usize, usize, usize, Format, u64),
    lane: usize,
    bit: usize,
    place: usize,
) {
    let bits = Format {
        bits: 2,
        make: |_| (0, 0.0),
    };
    put(3, lane, bit / 2, bits, place as u64);
}

/// C in a register: small numbers that differ.
fn addend(register: usize, lane: usize) -> u32 {
    (3 * lane + 5 * register) as u32
}

fn range(file: char, first: usize, count: usize) -> String {
    match count {
        1 => format!("{file}{first}"),
        _ => format!("{file}[{first}:{}]", first + count - 1),
    }
}

/// The registers that C and D begin at.
const SUMS: usize = 16;

/// Makes C, and copies A and B if the case has them in accumulation registers.
fn setup(shape: Shape, accumulates: bool) -> String {
    let mut body = String::new();
    let (step, convert) = match shape.sum() {
        Sum::Single => (1, "v_cvt_f32_u32"),
        Sum::Integer => (1, "v_mov_b32"),
        Sum::Double => (2, "v_cvt_f64_u32"),
    };
    for register in (0..shape.registers()).step_by(step) {
        let target = range('v', SUMS + register, step);
        body += &format!(
            "v_mul_u32_u24 v15, 3, v0
             v_add_u32 v15, {}, v15
             {convert} {target}, v15\n",
            5 * register
        );
    }
    if accumulates {
        for register in (2..10).chain(SUMS..SUMS + shape.registers()) {
            body += &format!("v_accvgpr_write_b32 a{register}, v{register}\n");
        }
    }
    body
}

/// The cases of a shape with modifiers: one for each four registers of D. `constant` is C, if it is
/// no register.
fn product(shape: Shape, modifiers: Modifiers, constant: Option<f64>) -> Vec<Case> {
    let Modifiers {
        cbsz,
        abid,
        blgp,
        accumulates,
    } = modifiers;
    let factors = if accumulates { 'a' } else { 'v' };
    // gfx908 has C and D in accumulation registers only.
    let accumulates = accumulates || shape.targets == GFX908;
    let Matrices { inputs, a, b } = Matrices::new(shape, modifiers);
    let file = if accumulates { 'a' } else { 'v' };
    let per_lane = shape.depth * shape.size * shape.blocks / LANES;
    let count = |format: Format, numbers: usize| numbers * format.bits / 32;
    let kept = if shape.sparse { per_lane / 2 } else { per_lane };
    let sums = range(file, SUMS, shape.registers());
    let third = match (shape.sparse, constant) {
        (true, _) => "v8".to_owned(),
        (_, Some(value)) if shape.sum() == Sum::Integer => format!("{value}"),
        (_, Some(value)) => format!("{value:?}"),
        _ => sums.clone(),
    };
    let mut instruction = format!(
        "{} {sums}, {}, {}, {third}",
        shape.name,
        range(factors, 2, count(shape.formats[0], kept)),
        range(factors, shape.second(), count(shape.formats[1], per_lane)),
    );
    for (name, value) in [("cbsz", cbsz), ("abid", abid), ("blgp", blgp)] {
        if value != 0 {
            instruction += &format!(" {name}:{value}");
        }
    }
    // EXEC does not matter.
    let head = format!(
        "{}s_mov_b64 exec, 0x50\n{instruction}\ns_nop 15\ns_mov_b64 exec, -1\n",
        setup(shape, accumulates)
    );
    let (a, b) = (std::rc::Rc::new(a), std::rc::Rc::new(b));
    let (all_a, all_b) = (std::rc::Rc::clone(&a), std::rc::Rc::clone(&b));
    let sum = move |register: usize, lane: usize| {
        let (a, b) = (&all_a, &all_b);
        let (block, row, column) = shape.result(register, lane);
        let c = constant.unwrap_or_else(|| addend(register, lane).into());
        (0..shape.depth).fold(c, |sum, k| {
            let a = a[(block * shape.size + row) * shape.depth + k];
            let b = b[(block * shape.size + column) * shape.depth + k];
            sum + a * b
        })
    };
    // gfx90a has no denormal numbers of 16 bits, nor in sums of their products.
    let flushes = shape.targets == GFX90A && shape.formats[0].bits == 16;
    let flushed = move |value: f64, smallest: f64| match flushes && value.abs() < smallest {
        true => 0f64.copysign(value),
        false => value,
    };
    let smallest = match shape.name.contains("bf16") {
        true => f32::MIN_POSITIVE.into(),
        false => 2f64.powi(-14),
    };
    let word = move |register: usize, lane: usize| match shape.sum() {
        Sum::Single if shape.is_any => {
            let (block, row, column) = shape.result(register, lane);
            let c = f64::from(addend(register, lane)) as f32;
            let sum = (0..shape.depth).fold(c, |sum, k| {
                let a = a[(block * shape.size + row) * shape.depth + k];
                let b = b[(block * shape.size + column) * shape.depth + k];
                // A sparse row has no product of a number that it lacks.
                if shape.sparse && a.to_bits() == LACKING.to_bits() {
                    return sum;
                }
                let [a, b] = [a, b].map(|number| flushed(number, smallest) as f32);
                a.mul_add(b, sum)
            });
            (flushed(sum.into(), f32::MIN_POSITIVE.into()) as f32).to_bits()
        }
        Sum::Double if shape.is_any => {
            let (block, row, column) = shape.result(register / 2 * 2, lane);
            let c = f64::from(addend(register / 2 * 2, lane));
            let sum = (0..shape.depth).fold(c, |sum, k| {
                let a = a[(block * shape.size + row) * shape.depth + k];
                a.mul_add(b[(block * shape.size + column) * shape.depth + k], sum)
            });
            (sum.to_bits() >> (register % 2 * 32)) as u32
        }
        Sum::Single => (sum(register, lane) as f32).to_bits(),
        Sum::Integer => sum(register, lane) as i64 as u32,
        Sum::Double => {
            let bits = sum(register / 2 * 2, lane).to_bits();
            (bits >> (register % 2 * 32)) as u32
        }
    };
    let word = std::rc::Rc::new(word);
    (0..shape.registers())
        .step_by(4)
        .map(|first| {
            let left = (shape.registers() - first).min(4);
            let mut body = head.clone();
            for place in 0..left {
                let (target, source) = (10 + place, SUMS + first + place);
                body += &match accumulates {
                    true => format!("v_accvgpr_read_b32 v{target}, a{source}\n"),
                    false => format!("v_mov_b32 v{target}, v{source}\n"),
                };
            }
            let word = std::rc::Rc::clone(&word);
            Case::new(shape.name, body, inputs, move |_, lane| {
                let words = std::array::from_fn(|place| match place < left {
                    true => word(first + place, lane),
                    false => 0x5a5a_5a5a,
                });
                match shape.sum() {
                    Sum::Single => Want::Singles(words),
                    Sum::Double => Want::Doubles(words),
                    Sum::Integer => Want::All(words),
                }
            })
            .only(shape.targets)
        })
        .collect()
}

const fn shape(
    name: &'static str,
    targets: &'static [Target],
    [size, depth, blocks]: [usize; 3],
    formats: [Format; 2],
) -> Shape {
    Shape {
        name,
        targets,
        size,
        depth,
        blocks,
        formats,
        sparse: false,
        is_any: false,
    }
}

const fn sparse(name: &'static str, [size, depth]: [usize; 2], formats: [Format; 2]) -> Shape {
    Shape {
        name,
        targets: GFX942,
        size,
        depth,
        blocks: 1,
        formats,
        sparse: true,
        is_any: false,
    }
}

/// The instructions that can share blocks of A or move lanes of B: for each, the names on gfx90a and
/// on gfx942, the shape, and the format.
const MOVING: &[(&str, &str, [usize; 3], Format)] = &[
    (
        "v_mfma_f32_32x32x1f32",
        "v_mfma_f32_32x32x1_2b_f32",
        [32, 1, 2],
        SINGLE,
    ),
    (
        "v_mfma_f32_16x16x1f32",
        "v_mfma_f32_16x16x1_4b_f32",
        [16, 1, 4],
        SINGLE,
    ),
    (
        "v_mfma_f32_4x4x1f32",
        "v_mfma_f32_4x4x1_16b_f32",
        [4, 1, 16],
        SINGLE,
    ),
    (
        "v_mfma_f32_32x32x2f32",
        "v_mfma_f32_32x32x2_f32",
        [32, 2, 1],
        SINGLE,
    ),
    (
        "v_mfma_f32_16x16x4f32",
        "v_mfma_f32_16x16x4_f32",
        [16, 4, 1],
        SINGLE,
    ),
    (
        "v_mfma_f32_32x32x4f16",
        "v_mfma_f32_32x32x4_2b_f16",
        [32, 4, 2],
        HALF,
    ),
    (
        "v_mfma_f32_16x16x4f16",
        "v_mfma_f32_16x16x4_4b_f16",
        [16, 4, 4],
        HALF,
    ),
    (
        "v_mfma_f32_4x4x4f16",
        "v_mfma_f32_4x4x4_16b_f16",
        [4, 4, 16],
        HALF,
    ),
    (
        "v_mfma_f32_32x32x8f16",
        "v_mfma_f32_32x32x8_f16",
        [32, 8, 1],
        HALF,
    ),
    (
        "v_mfma_f32_16x16x16f16",
        "v_mfma_f32_16x16x16_f16",
        [16, 16, 1],
        HALF,
    ),
    (
        "v_mfma_i32_32x32x4i8",
        "v_mfma_i32_32x32x4_2b_i8",
        [32, 4, 2],
        BYTE,
    ),
    (
        "v_mfma_i32_16x16x4i8",
        "v_mfma_i32_16x16x4_4b_i8",
        [16, 4, 4],
        BYTE,
    ),
    (
        "v_mfma_i32_4x4x4i8",
        "v_mfma_i32_4x4x4_16b_i8",
        [4, 4, 16],
        BYTE,
    ),
    ("v_mfma_i32_32x32x8i8", "", [32, 8, 1], BYTE),
    ("v_mfma_i32_16x16x16i8", "", [16, 16, 1], BYTE),
    (
        "v_mfma_f32_32x32x4bf16_1k",
        "v_mfma_f32_32x32x4_2b_bf16",
        [32, 4, 2],
        BRAIN,
    ),
    (
        "v_mfma_f32_16x16x4bf16_1k",
        "v_mfma_f32_16x16x4_4b_bf16",
        [16, 4, 4],
        BRAIN,
    ),
    (
        "v_mfma_f32_4x4x4bf16_1k",
        "v_mfma_f32_4x4x4_16b_bf16",
        [4, 4, 16],
        BRAIN,
    ),
    (
        "v_mfma_f32_32x32x8bf16_1k",
        "v_mfma_f32_32x32x8_bf16",
        [32, 8, 1],
        BRAIN,
    ),
    (
        "v_mfma_f32_16x16x16bf16_1k",
        "v_mfma_f32_16x16x16_bf16",
        [16, 16, 1],
        BRAIN,
    ),
    ("", "v_mfma_f32_16x16x32_f16", [16, 32, 1], HALF),
    ("", "v_mfma_f32_32x32x16_f16", [32, 16, 1], HALF),
    ("", "v_mfma_f32_16x16x32_bf16", [16, 32, 1], BRAIN),
    ("", "v_mfma_f32_32x32x16_bf16", [32, 16, 1], BRAIN),
    ("v_mfma_f32_32x32x2bf16", "", [32, 2, 2], BRAIN),
    ("v_mfma_f32_16x16x2bf16", "", [16, 2, 4], BRAIN),
    ("v_mfma_f32_4x4x2bf16", "", [4, 2, 16], BRAIN),
    ("v_mfma_f32_32x32x4bf16", "", [32, 4, 1], BRAIN),
    ("v_mfma_f32_16x16x8bf16", "", [16, 8, 1], BRAIN),
];

const FIXED: &[Shape] = &[
    shape(
        "v_mfma_f64_16x16x4f64",
        GFX90A,
        [16, 4, 1],
        [DOUBLE, DOUBLE],
    ),
    shape("v_mfma_f64_4x4x4f64", GFX90A, [4, 4, 4], [DOUBLE, DOUBLE]),
    shape(
        "v_mfma_f64_16x16x4_f64",
        GFX942,
        [16, 4, 1],
        [DOUBLE, DOUBLE],
    ),
    shape(
        "v_mfma_f64_4x4x4_4b_f64",
        GFX942,
        [4, 4, 4],
        [DOUBLE, DOUBLE],
    ),
    shape(
        "v_mfma_f32_16x16x8_xf32",
        GFX942,
        [16, 8, 1],
        [SHORT, SINGLE],
    ),
    shape(
        "v_mfma_f32_16x16x8_xf32",
        GFX942,
        [16, 8, 1],
        [SINGLE, SHORT],
    ),
    shape(
        "v_mfma_f32_32x32x4_xf32",
        GFX942,
        [32, 4, 1],
        [SHORT, SINGLE],
    ),
    shape(
        "v_mfma_f32_32x32x4_xf32",
        GFX942,
        [32, 4, 1],
        [SINGLE, SHORT],
    ),
    shape("v_mfma_i32_16x16x64_i8", GFX942, [16, 64, 1], [BYTE, BYTE]),
    shape("v_mfma_i32_32x32x32_i8", GFX942, [32, 32, 1], [BYTE, BYTE]),
    shape("v_mfma_i32_32x32x16_i8", GFX942, [32, 16, 1], [BYTE, BYTE]),
    shape("v_mfma_i32_16x16x32_i8", GFX942, [16, 32, 1], [BYTE, BYTE]),
    sparse("v_smfmac_f32_16x16x32_f16", [16, 32], [HALF, HALF]),
    sparse("v_smfmac_f32_32x32x16_f16", [32, 16], [HALF, HALF]),
    sparse("v_smfmac_f32_16x16x32_bf16", [16, 32], [BRAIN, BRAIN]),
    sparse("v_smfmac_f32_32x32x16_bf16", [32, 16], [BRAIN, BRAIN]),
    sparse("v_smfmac_i32_16x16x64_i8", [16, 64], [BYTE, BYTE]),
    sparse("v_smfmac_i32_32x32x32_i8", [32, 32], [BYTE, BYTE]),
];

/// Products of numbers of 8 bits, with the formats that a target has.
fn of_eight() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (targets, formats) in [
        (
            &[Target::Gfx942][..],
            [("fp8", FP8_FNUZ), ("bf8", BF8_FNUZ)],
        ),
        (GFX950, [("fp8", FP8), ("bf8", BF8)]),
    ] {
        for (first, a) in formats {
            for (second, b) in formats {
                let name =
                    |stem: &str| -> &'static str { format!("{stem}_{first}_{second}").leak() };
                for (stem, sizes) in [
                    ("v_mfma_f32_16x16x32", [16, 32, 1]),
                    ("v_mfma_f32_32x32x16", [32, 16, 1]),
                ] {
                    shapes.push(shape(name(stem), targets, sizes, [a, b]));
                }
                for (stem, sizes) in [
                    ("v_smfmac_f32_16x16x64", [16, 64]),
                    ("v_smfmac_f32_32x32x32", [32, 32]),
                ] {
                    shapes.push(Shape {
                        targets,
                        ..sparse(name(stem), sizes, [a, b])
                    });
                }
            }
        }
    }
    shapes
}

pub(crate) fn cases() -> Vec<Case> {
    let plain = Modifiers::default();
    let mut cases = Vec::new();
    for (number, (gfx90a, gfx942, sizes, format)) in MOVING.iter().copied().enumerate() {
        for (name, targets) in [(gfx90a, GFX908), (gfx90a, GFX90A), (gfx942, GFX942)] {
            if name.is_empty() {
                continue;
            }
            let shape = shape(name, targets, sizes, [format; 2]);
            cases.extend(product(shape, plain, None));
            // Each instruction has a pattern, and each pattern has several instructions.
            let blgp = Modifiers {
                blgp: number % 7 + 1,
                accumulates: true,
                ..plain
            };
            cases.extend(product(shape, blgp, None));
            let most = shape.blocks.trailing_zeros() as usize;
            for cbsz in 1..=most {
                let broadcast = Modifiers {
                    cbsz,
                    abid: (number + 1) % (1 << cbsz),
                    ..plain
                };
                cases.extend(product(shape, broadcast, None));
            }
        }
    }
    for (number, shape) in FIXED.iter().copied().chain(of_eight()).enumerate() {
        cases.extend(product(shape, plain, None));
        let others = Modifiers {
            accumulates: true,
            cbsz: if shape.sparse { number % 2 } else { 0 },
            abid: if shape.sparse { number % 4 } else { 0 },
            ..plain
        };
        cases.extend(product(shape, others, None));
        if shape.sparse {
            for abid in 1..4 {
                cases.extend(product(shape, Modifiers { abid, ..plain }, None));
            }
        }
    }
    // Constants.
    for (name, targets, sizes, format, constant) in [
        ("v_mfma_f32_4x4x1f32", GFX908, [4, 1, 16], SINGLE, 1.0),
        ("v_mfma_f32_4x4x1f32", GFX90A, [4, 1, 16], SINGLE, 1.0),
        ("v_mfma_i32_4x4x4i8", GFX90A, [4, 4, 16], BYTE, 7.0),
        ("v_mfma_f64_4x4x4f64", GFX90A, [4, 4, 4], DOUBLE, 4.0),
    ] {
        let shape = shape(name, targets, sizes, [format; 2]);
        cases.extend(product(shape, plain, Some(constant)));
    }
    cases.extend(of_any_bits());
    cases.extend(numbers());
    cases.extend(long_sparse());
    cases.extend(scaled());
    cases
}

/// Products of numbers of any bits.
fn of_any_bits() -> Vec<Case> {
    let mut shapes = Vec::new();
    for (gfx90a, gfx942, sizes, format) in MOVING.iter().copied() {
        let format = match format.bits {
            32 => ANY_SINGLE,
            8 => continue,
            _ if gfx90a.contains("bf16") || gfx942.contains("bf16") => ANY_BRAIN,
            _ => ANY_HALF,
        };
        for (name, targets) in [(gfx90a, GFX908), (gfx90a, GFX90A), (gfx942, GFX942)] {
            if !name.is_empty() {
                shapes.push(shape(name, targets, sizes, [format; 2]));
            }
        }
    }
    for shape in FIXED.iter().chain(&of_eight()) {
        let any = |format: Format, name: &str| match (format.bits, name) {
            (64, _) => Some(ANY_DOUBLE),
            (16, name) if name.contains("bf16") => Some(ANY_BRAIN),
            (16, _) => Some(ANY_HALF),
            (8, "fp8") if shape.targets == GFX950 => Some(ANY_FP8),
            (8, "bf8") if shape.targets == GFX950 => Some(ANY_BF8),
            (8, "fp8") => Some(ANY_FP8_FNUZ),
            (8, "bf8") => Some(ANY_BF8_FNUZ),
            // Integers have any bits in the other cases, and the cases of xf32 have those that decide its rounding.
            _ => None,
        };
        let mut parts = shape.name.rsplit('_');
        let (second, first) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let [a, b] = shape.formats;
        let (first, second) = match a.bits {
            8 => (first, second),
            _ => (shape.name, shape.name),
        };
        if let (Some(a), Some(b)) = (any(a, first), any(b, second)) {
            shapes.push(Shape {
                formats: [a, b],
                ..*shape
            });
        }
    }
    let any = shapes.into_iter().map(|shape| Shape {
        is_any: true,
        ..shape
    });
    any.flat_map(|shape| product(shape, Modifiers::default(), None))
        .collect()
}

/// The numbers of a factor of a scaled product: a format, its number in the instruction's fields, and masks that
/// make numbers near 1 of any bits.
type Selected = (small::Format, u32, [u32; 2]);

const SELECTED: [Selected; 5] = [
    (small::FP8, 0, [0x9f9f_9f9f, 0x2020_2020]),
    (small::BF8, 1, [0x8f8f_8f8f, 0x3030_3030]),
    (small::FP6, 2, [u32::MAX, 0]),
    (small::BF6, 3, [u32::MAX, 0]),
    (small::FP4, 4, [u32::MAX, 0]),
];

/// Products of numbers of 8, 6 or 4 bits. A is in v[24:31], B in v[32:39], both from memory. Scales are in v40 and
/// v41: a byte for each 32 numbers of a row or a column.
fn scaled() -> Vec<Case> {
    let mut cases = Vec::new();
    for (stem, [size, depth]) in [("f32_16x16x128", [16, 128]), ("f32_32x32x64", [32, 64])] {
        for first in SELECTED {
            for second in SELECTED {
                for has_scales in [false, true] {
                    let prefix = if has_scales { "v_mfma_scale" } else { "v_mfma" };
                    let name: &'static str = format!("{prefix}_{stem}_f8f6f4").leak();
                    cases.extend(scaled_product(
                        name,
                        [size, depth],
                        [first, second],
                        has_scales,
                    ));
                }
            }
        }
    }
    cases
}

fn scaled_product(
    name: &'static str,
    [size, depth]: [usize; 2],
    formats: [Selected; 2],
    has_scales: bool,
) -> Vec<Case> {
    let shape = shape(name, GFX950, [size, depth, 1], [HALF; 2]);
    // A lane has 32 bytes of memory for each factor.
    let first_byte = |source: usize, lane: usize| (32 * lane + 2048 * source) as u32;
    let masked = move |source: usize, lane: usize, word: usize| {
        let first = first_byte(source, lane) + 4 * word as u32;
        let bytes = std::array::from_fn(|byte| memory_byte(first + byte as u32));
        let [and, or] = formats[source].2;
        u32::from_le_bytes(bytes) & and | or
    };
    // 127 stands for 1. The other bytes of the registers count for nothing.
    let exponent = |source: usize, lane: usize| 125 + (lane + source) as u32 % 4;
    let bytes = [(name.len() % 3) + 1, 2];
    let number = move |source: usize, line: usize, k: usize| {
        let (format, _, _) = formats[source];
        let groups = LANES / size;
        // Each lane has 32 numbers: of 8 bits, 16 from each half of the row.
        let (group, place) = match format.width() {
            8 => (k / 16 % groups, k % 16 + k / (16 * groups) * 16),
            _ => (k / 32, k % 32),
        };
        let lane = line + size * group;
        let bits = (0..format.width() as usize).fold(0, |bits, bit| {
            let at = place * format.width() as usize + bit;
            bits | (masked(source, lane, at / 32) >> (at % 32) & 1) << bit
        });
        let scale = match has_scales {
            true => 2f64.powi(exponent(source, line + size * (k / 32)) as i32 - 127),
            false => 1.0,
        };
        format.value(bits) * scale
    };
    let numbers: Vec<Vec<f64>> = (0..2)
        .map(|source| {
            let lines = (0..size).flat_map(|line| (0..depth).map(move |k| (line, k)));
            lines.map(|(line, k)| number(source, line, k)).collect()
        })
        .collect();
    let mut body = String::from("v_lshlrev_b32 v14, 5, v0\n");
    for (source, (_, _, [and, or])) in formats.into_iter().enumerate() {
        let register = 24 + 8 * source;
        body += &format!(
            "v_add_u32 v15, {}, v14
             global_load_dwordx4 v[{register}:{}], v15, s[12:13]
             global_load_dwordx4 v[{}:{}], v15, s[12:13] offset:16
             s_waitcnt vmcnt(0)\n",
            2048 * source,
            register + 3,
            register + 4,
            register + 7
        );
        for register in register..register + 8 {
            body += &format!(
                "v_and_b32 v{register}, {and:#x}, v{register}
                 v_or_b32 v{register}, {or:#x}, v{register}\n"
            );
        }
        body += &format!(
            "v_add_u32 v15, {source}, v0
             v_and_b32 v15, 3, v15
             v_add_u32 v15, 125, v15
             v_lshlrev_b32 v15, {shift}, v15
             v_or_b32 v{}, {others:#x}, v15\n",
            40 + source,
            shift = 8 * bytes[source],
            others = !(0xffu32 << (8 * bytes[source])),
        );
    }
    let count = |source: usize| formats[source].0.width() as usize;
    let sums = range('v', SUMS + 28, shape.registers());
    let constant = 2.0;
    body += &format!(
        "{name} {sums}, {}, {}, {constant:?}{} cbsz:{} blgp:{}\ns_nop 15\n",
        range('v', 24, count(0)),
        range('v', 32, count(1)),
        match has_scales {
            true => format!(
                ", v40, v41 op_sel:[{},{},0] op_sel_hi:[{},{},0]",
                bytes[0] & 1,
                bytes[1] & 1,
                bytes[0] >> 1,
                bytes[1] >> 1
            ),
            false => String::new(),
        },
        formats[0].1,
        formats[1].1
    );
    let numbers = std::rc::Rc::new(numbers);
    // The first and the last four registers.
    [0, shape.registers() - 4]
        .into_iter()
        .take(if shape.registers() == 4 { 1 } else { 2 })
        .map(|first| {
            let mut body = body.clone();
            for place in 0..4 {
                let source = SUMS + 28 + first + place;
                body += &format!("v_mov_b32 v{}, v{source}\n", 10 + place);
            }
            let numbers = std::rc::Rc::clone(&numbers);
            Case::new(name, body, [[0; 4]; LANES], move |_, lane| {
                Want::All(std::array::from_fn(|place| {
                    let (_, row, column) = shape.result(first + place, lane);
                    let sum: f64 = (0..depth)
                        .map(|k| numbers[0][row * depth + k] * numbers[1][column * depth + k])
                        .sum();
                    ((sum + constant) as f32).to_bits()
                }))
            })
            .only(GFX950)
        })
        .collect()
}

/// Sparse products of twice the depth. A is in v[2:5] and its places in v6. B comes from memory: eight registers
/// of each lane. Masks make numbers of few bits of them.
fn long_sparse() -> Vec<Case> {
    type Decode = fn(u32) -> f64;
    let half: Decode = |bits| half_to_f64(bits as u16);
    let brain: Decode = |bits| f32::from_bits(bits << 16).into();
    let byte: Decode = |bits| f64::from(bits as i8);
    let halves = (16, 0x8300_8300u32, 0x3c00_3c00u32, half);
    let brains = (16, 0x8060_8060, 0x3f80_3f80, brain);
    let bytes = (8, u32::MAX, 0, byte);
    // Both formats have this mask's numbers near 1.
    let (and, or) = (0x8787_8787, 0x3838_3838);
    let eights: [(&str, Decode); 2] = [
        ("fp8", |bits| small::FP8.value(bits)),
        ("bf8", |bits| small::BF8.value(bits)),
    ];
    let mut cases = Vec::new();
    let plain = [
        ("v_smfmac_f32_16x16x64_f16", [16, 64], halves),
        ("v_smfmac_f32_32x32x32_f16", [32, 32], halves),
        ("v_smfmac_f32_16x16x64_bf16", [16, 64], brains),
        ("v_smfmac_f32_32x32x32_bf16", [32, 32], brains),
        ("v_smfmac_i32_16x16x128_i8", [16, 128], bytes),
        ("v_smfmac_i32_32x32x64_i8", [32, 64], bytes),
    ];
    let mut instructions: Vec<_> = plain
        .map(|(name, sizes, format)| (name, sizes, [format; 2]))
        .into();
    for (first, a) in eights {
        for (second, b) in eights {
            for (stem, sizes) in [("16x16x128", [16, 128]), ("32x32x64", [32, 64])] {
                let name: &'static str = format!("v_smfmac_f32_{stem}_{first}_{second}").leak();
                instructions.push((name, sizes, [(8, and, or, a), (8, and, or, b)]));
            }
        }
    }
    for (name, [size, depth], formats) in instructions {
        let [(width, and, or, decode), (.., decode_second)] = formats;
        let shape = Shape {
            targets: &[Target::Gfx950],
            ..sparse(
                name,
                [size, depth],
                [if width == 8 { BYTE } else { HALF }; 2],
            )
        };
        let per_lane = depth * size / LANES;
        let sets = 32 / per_lane;
        for abid in 0..sets {
            let mut inputs: Inputs = [[0; 4]; LANES];
            for (lane, input) in inputs.iter_mut().enumerate() {
                *input = std::array::from_fn(|place| random(9, abid, lane, place));
                // Each two bits are a place, and each two places differ.
                let places = (0..8).fold(0, |places, pair| {
                    let [first, second] = pair_of_places(random(10, abid, lane, pair));
                    places | ((first | second << 2) as u64) << (4 * pair)
                });
                input[2] = input[2] & !0xffff_ffff | places;
            }
            let masks: String = (2..6)
                .chain(40..48)
                .map(|register| {
                    format!(
                        "v_and_b32 v{register}, {and:#x}, v{register}
                         v_or_b32 v{register}, {or:#x}, v{register}\n"
                    )
                })
                .collect();
            let sums = range('v', SUMS, shape.registers());
            let head = format!(
                "v_lshlrev_b32 v14, 5, v0
                 global_load_dwordx4 v[40:43], v14, s[12:13]
                 global_load_dwordx4 v[44:47], v14, s[12:13] offset:16
                 s_waitcnt vmcnt(0)
                 {masks}
                 {}
                 {name} {sums}, v[2:5], v[40:47], v6 abid:{abid}
                 s_nop 15\n",
                setup(shape, false)
            );
            let part = move |decode: Decode, word: u32, bit: usize| {
                decode((word & and | or) >> (bit % 32) & u32::MAX >> (32 - width))
            };
            let sum = move |all: &Inputs, register: usize, lane: usize| {
                let (_, row, column) = shape.result(register, lane);
                let mut sum = f64::from(addend(register, lane));
                for group in 0..LANES / size {
                    let (of_a, of_b) = (row + size * group, column + size * group);
                    for number in 0..per_lane / 2 {
                        let bit = number * width;
                        let word = (all[of_a][bit / 64] >> (bit % 64 / 32 * 32)) as u32;
                        let at = abid * per_lane + 2 * number;
                        let k = number / 2 * 4 + (all[of_a][2] >> at & 3) as usize;
                        let offset = (32 * of_b + k * width / 32 * 4) as u32;
                        let other = std::array::from_fn(|byte| memory_byte(offset + byte as u32));
                        let other = part(decode_second, u32::from_le_bytes(other), k * width);
                        sum += part(decode, word, bit) * other;
                    }
                }
                match shape.sum() {
                    Sum::Integer => sum as i64 as u32,
                    _ => (sum as f32).to_bits(),
                }
            };
            for first in (0..shape.registers()).step_by(4) {
                let mut body = head.clone();
                for place in 0..4 {
                    body += &format!("v_mov_b32 v{}, v{}\n", 10 + place, SUMS + first + place);
                }
                let case = Case::new(name, body, inputs, move |all, lane| {
                    Want::All(std::array::from_fn(|place| sum(all, first + place, lane)))
                });
                cases.push(case.only(shape.targets));
            }
        }
    }
    cases
}

/// Products of a few numbers: signs, denormal numbers, rounding.
fn numbers() -> Vec<Case> {
    let mut cases = Vec::new();
    // All rows and columns are equal, so that any element of D serves. On gfx90a, denormal numbers
    // of 16 bits, and results in single precision, count as zero; on gfx942 they do not.
    for (name, targets, a, c, want) in [
        ("v_mfma_f32_4x4x4f16", GFX90A, "0x02000200", "0", 0.0),
        (
            "v_mfma_f32_4x4x4_16b_f16",
            GFX942,
            "0x02000200",
            "0",
            2f32.powi(-13),
        ),
        ("v_mfma_f32_4x4x4f16", GFX90A, "0", "0x00000300", 0.0),
        (
            "v_mfma_f32_4x4x4_16b_f16",
            GFX942,
            "0",
            "0x00000300",
            f32::from_bits(0x300),
        ),
    ] {
        let body = format!(
            "v_mov_b32 v2, {a}
             v_mov_b32 v3, {a}
             v_mov_b32 v4, 0x3c003c00
             v_mov_b32 v5, 0x3c003c00
             v_mov_b32 v16, {c}
             v_mov_b32 v17, {c}
             v_mov_b32 v18, {c}
             v_mov_b32 v19, {c}
             {name} v[16:19], v[2:3], v[4:5], v[16:19]
             s_nop 15
             v_mov_b32 v10, v18"
        );
        let case = Case::new(name, body, [[0; 4]; LANES], move |_, _| Want::Single(want));
        cases.push(case.only(targets));
    }
    // One product of any numbers, rounded once. Column and row of D's first element are the lanes of
    // the block's first row.
    for (name, targets) in [
        ("v_mfma_f32_4x4x1f32", GFX90A),
        ("v_mfma_f32_4x4x1_16b_f32", GFX942),
    ] {
        let body = format!(
            "v_mov_b32 v16, v6
             v_mov_b32 v17, v6
             v_mov_b32 v18, v6
             v_mov_b32 v19, v6
             {name} v[16:19], v2, v4, v[16:19]
             s_nop 15
             v_mov_b32 v10, v17"
        );
        let case = Case::new(name, body, crate::inputs::singles(), |all, lane| {
            let f = crate::float::f;
            let row = lane / 4 * 4 + 1;
            Want::Single(f(all[row][0]).mul_add(f(all[lane][1]), f(all[lane][2])))
        });
        cases.push(case.only(targets));
    }
    // gfx942 negates A, B and C of doubles.
    for (signs, factor) in [
        ("[1,0,0]", [-1.0, 1.0]),
        ("[0,1,1]", [-1.0, -1.0]),
        ("[1,1,1]", [1.0, -1.0]),
    ] {
        let name = "v_mfma_f64_4x4x4_4b_f64";
        let body = format!(
            "v_cvt_f64_u32 v[2:3], v0
             v_mov_b32 v4, 0
             v_mov_b32 v5, 0x3ff00000
             v_cvt_f64_i32 v[16:17], 7
             {name} v[10:11], v[2:3], v[4:5], v[16:17] neg:{signs}"
        );
        let case = Case::new(name, body, [[0; 4]; LANES], move |_, lane| {
            // Row lane / 16 of block lane / 4 % 4: lanes of A that are 16 apart.
            let row = lane / 16 + lane / 4 % 4 * 4;
            let sum: usize = (0..4).map(|k| row + 16 * k).sum();
            Want::Double(factor[0] * sum as f64 + factor[1] * 7.0)
        });
        cases.push(case.only(GFX942));
    }
    cases
}
