//! Products of matrices: the loops that matrix instructions share. A factor is decoded once into lines, one for each
//! of the numbers that a lane has; each sum begins as an element of C and takes its products in the order of k.

use super::super::simd::rows::{FourRow, Row};
use super::super::simd::{
    DecodeFunction, EncodeFunction, Leveled, PairsFunction, ProductsFunction, TestFunction,
    leveled, of_rows,
};
use super::super::value::{Brain, Half};
use super::small::Format;
use crate::lanes::{LANES as ALL_LANES, Words};

/// The numbers with one place in the registers of all lanes.
pub(super) type Line<T> = [T; ALL_LANES];

/// Lines on boundaries of the host's vectors.
#[repr(align(64))]
pub(super) struct Lines<T, const COUNT: usize>(pub [Line<T>; COUNT]);

/// The most numbers of a factor that a lane has.
pub(super) const MOST: usize = 32;
/// The rows whose sums the loops compute at once.
const TOGETHER: usize = 4;
/// The most fours of rows in all blocks of an instruction.
pub(super) const FOURS: usize = 16;
/// The most numbers of a row of A that the loops take.
pub(super) const DEEPEST: usize = 64;

/// The places of the elements of a product.
pub(super) struct Shape {
    /// Rows of A and columns of B in a block.
    pub size: usize,
    pub blocks: usize,
    /// The first lane of each four rows of C and D, counted from that of the first register on.
    pub fours: &'static [u16; FOURS],
    /// The lanes from a row to the next one among four.
    pub distance: usize,
    pub order: Order,
}

/// The places in the lines of both factors that products are taken from, one after the other. The rows of a block lie
/// there side by side, and those of the next block behind them.
pub(super) struct Order {
    count: usize,
    places: [[u16; 2]; DEEPEST],
}

impl Order {
    /// For groups of lanes that have parts of the rows, one behind the other: a part has `count` numbers of A, and a
    /// group as many lanes as there are rows. A sparse A has two of four numbers.
    #[inline(always)]
    pub(super) fn of_groups(groups: usize, count: usize, rows: usize, is_sparse: bool) -> Self {
        let mut places = [[0; 2]; DEEPEST];
        let mut left = places.iter_mut();
        for group in 0..groups {
            for (number, place) in (0..count).zip(&mut left) {
                let other = if is_sparse { number / 2 * 4 } else { number };
                *place = [number, other].map(|number| (number * ALL_LANES + group * rows) as u16);
            }
        }
        Self {
            count: groups * count,
            places,
        }
    }

    /// For lines that have a row of B, and a column of A, one behind the other.
    pub(super) fn of_rows(size: usize) -> Self {
        Self {
            count: DEEPEST,
            places: std::array::from_fn(|k| [(k * size) as u16; 2]),
        }
    }

    #[inline(always)]
    fn places(&self) -> &[[u16; 2]] {
        &self.places[..self.count.min(DEEPEST)]
    }
}

/// The parts of the registers at which four rows of a tile begin.
#[inline(always)]
fn parts<const WIDTH: usize>(first: usize, distance: usize) -> [usize; TOGETHER] {
    std::array::from_fn(|row| first + row * (distance / WIDTH))
}

/// Loads the rows of a tile, which begin at these parts of the registers.
///
/// # Safety
/// See [`Row`], here and below.
#[inline(always)]
unsafe fn load<R: Row<WIDTH>, const WIDTH: usize>(
    words: &[[u32; WIDTH]],
    parts: [usize; TOGETHER],
) -> [R; TOGETHER] {
    let high = (R::REGISTERS - 1) * (ALL_LANES / WIDTH);
    // In a closure that the library calls, vector code would not be inlined.
    let [first, second, third, fourth] = parts;
    // SAFETY: the caller's promise.
    unsafe {
        [
            R::load(&words[first], &words[first + high]),
            R::load(&words[second], &words[second + high]),
            R::load(&words[third], &words[third + high]),
            R::load(&words[fourth], &words[fourth + high]),
        ]
    }
}

#[inline(always)]
unsafe fn store<R: Row<WIDTH>, const WIDTH: usize>(
    tile: [R; TOGETHER],
    words: &mut [[u32; WIDTH]],
    parts: [usize; TOGETHER],
) {
    for (sums, part) in tile.into_iter().zip(parts) {
        // SAFETY: the caller's promise.
        unsafe { sums.store_low(&mut words[part]) };
        if R::REGISTERS == 2 {
            // SAFETY: the caller's promise.
            unsafe { sums.store_high(&mut words[part + ALL_LANES / WIDTH]) };
        }
    }
}

/// Adds the products of all blocks to the sums from one register on, and writes the results from another one on.
#[inline(always)]
unsafe fn multiply<R: Row<WIDTH>, const SIZE: usize, const WIDTH: usize>(
    shape: &Shape,
    (a, b): (&[R::Number], &[R::Number]),
    [from, to]: [usize; 2],
    registers: &mut [Words],
) {
    let words = registers.as_flattened_mut().as_chunks_mut::<WIDTH>().0;
    let [from, to] = [from, to].map(|register| register * (ALL_LANES / WIDTH));
    // Four rows of A, and a part of a row of B.
    let a = a.as_chunks::<TOGETHER>().0;
    let b = b.as_chunks::<WIDTH>().0;
    for block in 0..shape.blocks {
        for four in 0..SIZE / TOGETHER {
            let left = block * (SIZE / TOGETHER) + four;
            let start = usize::from(shape.fours[left % FOURS]) / WIDTH;
            for part in 0..SIZE / WIDTH {
                let right = block * (SIZE / WIDTH) + part;
                let first = start + part;
                // SAFETY: the caller's promise.
                unsafe {
                    let parts = parts::<WIDTH>(from + first, shape.distance);
                    let mut tile: [R; TOGETHER] = load(words, parts);
                    for [column, line] in shape.order.places() {
                        let column = &a[left + usize::from(*column) / TOGETHER];
                        let line = &b[right + usize::from(*line) / WIDTH];
                        for (sums, number) in tile.iter_mut().zip(column) {
                            *sums = sums.add(*number, line);
                        }
                    }
                    store(
                        tile,
                        words,
                        self::parts::<WIDTH>(to + first, shape.distance),
                    );
                }
            }
        }
    }
}

/// As [`multiply`], for a sparse A: each number of A has its own row of B, among four.
#[inline(always)]
unsafe fn multiply_sparse<R: Row<WIDTH>, const SIZE: usize, const WIDTH: usize>(
    shape: &Shape,
    (a, b, places): (&[R::Number], &[R::Number], &[u8]),
    [from, to]: [usize; 2],
    registers: &mut [Words],
) {
    let words = registers.as_flattened_mut().as_chunks_mut::<WIDTH>().0;
    let [from, to] = [from, to].map(|register| register * (ALL_LANES / WIDTH));
    let a = a.as_chunks::<TOGETHER>().0;
    let places = places.as_chunks::<TOGETHER>().0;
    let b = b.as_chunks::<WIDTH>().0;
    for four in 0..SIZE / TOGETHER {
        let start = usize::from(shape.fours[four]) / WIDTH;
        for part in 0..SIZE / WIDTH {
            let first = start + part;
            // SAFETY: the caller's promise.
            unsafe {
                let parts = parts::<WIDTH>(from + first, shape.distance);
                let mut tile: [R; TOGETHER] = load(words, parts);
                for [column, line] in shape.order.places() {
                    let left = four + usize::from(*column) / TOGETHER;
                    let right = part + usize::from(*line) / WIDTH;
                    let numbers = a[left].iter().zip(&places[left]);
                    for (sums, (number, place)) in tile.iter_mut().zip(numbers) {
                        let line = &b[right + usize::from(*place) * (ALL_LANES / WIDTH)];
                        *sums = sums.add(*number, line);
                    }
                }
                store(
                    tile,
                    words,
                    self::parts::<WIDTH>(to + first, shape.distance),
                );
            }
        }
    }
}

/// As [`multiply`], for blocks of four rows and columns: several of them side by side. The rows of all blocks
/// lie one behind the other, as A's and B's numbers with adjacent places do.
#[inline(always)]
unsafe fn multiply_fours<R: FourRow<WIDTH>, const WIDTH: usize>(
    shape: &Shape,
    (a, b): (&[R::Number], &[R::Number]),
    [from, to]: [usize; 2],
    registers: &mut [Words],
) {
    let words = registers.as_flattened_mut().as_chunks_mut::<WIDTH>().0;
    let [from, to] = [from, to].map(|register| register * (ALL_LANES / WIDTH));
    let a = a.as_chunks::<WIDTH>().0;
    let b = b.as_chunks::<WIDTH>().0;
    let row_parts = TOGETHER * shape.blocks / WIDTH;
    for part in 0..row_parts {
        let parts = |first: usize| std::array::from_fn(|row| first + row * row_parts + part);
        // SAFETY: the caller's promise.
        unsafe {
            let mut tile: [R; TOGETHER] = load(words, parts(from));
            for k in 0..shape.order.count {
                let (columns, line) = (&a[k * row_parts + part], &b[k * row_parts + part]);
                for (row, sums) in tile.iter_mut().enumerate() {
                    *sums = sums.add_fours(columns, row, line);
                }
            }
            store(tile, words, parts(to));
        }
    }
}

/// Multiplies blocks of 4, 16 or 32 rows. Without `places`, A is not sparse.
#[inline(always)]
unsafe fn multiply_any<R: FourRow<WIDTH>, const WIDTH: usize>(
    shape: &Shape,
    (a, b, places): (&[R::Number], &[R::Number], &[u8]),
    sums: [usize; 2],
    registers: &mut [Words],
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (shape.size, places) {
            (TOGETHER, _) => multiply_fours::<R, WIDTH>(shape, (a, b), sums, registers),
            (16, []) => multiply::<R, 16, WIDTH>(shape, (a, b), sums, registers),
            (_, []) => multiply::<R, 32, WIDTH>(shape, (a, b), sums, registers),
            (16, _) => multiply_sparse::<R, 16, WIDTH>(shape, (a, b, places), sums, registers),
            _ => multiply_sparse::<R, 32, WIDTH>(shape, (a, b, places), sums, registers),
        }
    }
}

/// As [`multiply_any`], for numbers with scales, whose blocks have 16 or 32 rows.
#[inline(always)]
unsafe fn multiply_scaled<R: Row<WIDTH>, const WIDTH: usize>(
    shape: &Shape,
    (a, b, _): (&[R::Number], &[R::Number], &[u8]),
    sums: [usize; 2],
    registers: &mut [Words],
) {
    // SAFETY: the caller's promise.
    unsafe {
        match shape.size {
            16 => multiply::<R, 16, WIDTH>(shape, (a, b), sums, registers),
            _ => multiply::<R, 32, WIDTH>(shape, (a, b), sums, registers),
        }
    }
}

/// Compiles a function for each level of the processor, with the rows of the level.
macro_rules! products {
    ($run:ident, $width:literal, $number:ty, $rows:tt) => {
        of_rows!(
            |shape: &Shape,
             factors: (&[$number], &[$number], &[u8]),
             sums: [usize; 2],
             registers: &mut [Words]| $run,
            $width,
            $rows
        )
    };
}

pub(super) type Products<T> = Leveled<ProductsFunction<Shape, T>>;

/// Rounded once.
pub(super) const FUSED: Products<f32> = products!(
    multiply_any,
    16,
    f32,
    [FusedRow, Avx2SingleRow, Avx512SingleRow]
);
/// Products of such numbers are exact in single precision.
pub(super) const OF_EXACT: Products<f32> = products!(
    multiply_any,
    16,
    f32,
    [ExactRow, Avx2SingleRow, Avx512SingleRow]
);
pub(super) const OF_DOUBLES: Products<f64> = products!(
    multiply_any,
    8,
    f64,
    [DoubleRow, Avx2DoubleRow, Avx512DoubleRow]
);
/// Products of scaled numbers go beyond single precision; sums do not.
pub(super) const OF_SCALED: Products<f64> = products!(
    multiply_scaled,
    8,
    f64,
    [ScaledRow, Avx2ScaledRow, Avx512ScaledRow]
);
pub(super) const OF_INTEGERS: Products<i32> = products!(
    multiply_any,
    16,
    i32,
    [IntegerRow, Avx2IntegerRow, Avx512IntegerRow]
);

pub(super) type Decode<T> = Leveled<DecodeFunction<Format, T>>;

/// Compiles a loop that decodes numbers of `$width` bits: the first one begins at a bit of the first register, and
/// the others follow at a distance.
macro_rules! decode {
    ($type:ty, $width:literal, |$bits:ident, $format:ident| $result:expr) => {
        leveled!(|words: &[Words],
                  format: Format,
                  bits: [usize; 2],
                  lines: &mut [Line<$type>]|
         -> () {
            let $format = format;
            let [first, distance] = bits;
            for (number, line) in lines.iter_mut().enumerate() {
                let bit = first + number * distance;
                let (words, shift) = (&words[bit / 32], bit % 32);
                for (number, word) in line[..LANES].iter_mut().zip(&words[..LANES]) {
                    let $bits = word >> shift & (u32::MAX >> (32 - $width));
                    *number = $result;
                }
            }
        })
    };
}

pub(super) const SINGLES: Decode<f32> = decode!(f32, 32, |bits, _format| f32::from_bits(bits));
pub(super) const SHORTENED: Decode<f32> = decode!(f32, 32, |bits, _format| shortened(bits));
pub(super) const HALVES: Decode<f32> = decode!(f32, 16, |bits, _format| Half(bits as u16).to_f32());
pub(super) const BRAINS: Decode<f32> =
    decode!(f32, 16, |bits, _format| Brain(bits as u16).to_f32());
/// Zero for denormal numbers.
pub(super) const FLUSHED_HALVES: Decode<f32> = decode!(f32, 16, |bits, _format| {
    let magnitude = bits << 13 & 0x0fff_e000;
    // Re-biased from 15 to 127.
    let normal = magnitude + (112 << 23);
    let value = match bits & 0x7c00 {
        0 => 0,
        0x7c00 => magnitude | 0x7f80_0000,
        _ => normal,
    };
    f32::from_bits(value | (bits & 0x8000) << 16)
});
pub(super) const FLUSHED_BRAINS: Decode<f32> =
    decode!(f32, 16, |bits, _format| flushed(bits << 16));
pub(super) const UNSIGNED_BYTES: Decode<i32> = decode!(i32, 8, |bits, _format| bits as i32);
pub(super) const SIGNED_BYTES: Decode<i32> = decode!(i32, 8, |bits, _format| i32::from(bits as i8));
pub(super) const UNSIGNED_NIBBLES: Decode<i32> = decode!(i32, 4, |bits, _format| bits as i32);
pub(super) const SIGNED_NIBBLES: Decode<i32> =
    decode!(i32, 4, |bits, _format| (bits as i32 ^ 8) - 8);

/// Numbers of up to 8 bits, which may lie in two registers.
pub(super) const PACKED: Decode<f32> =
    leveled!(
        |words: &[Words], format: Format, bits: [usize; 2], lines: &mut [Line<f32>]| -> () {
            let decoder = format.decoder();
            let width = format.width();
            let [first, distance] = bits;
            for (number, line) in lines.iter_mut().enumerate() {
                let bit = first + number * distance;
                let last = (bit + width as usize - 1) / 32;
                let shift = bit as u32 % 32;
                let (low, high) = (&words[bit / 32], &words[last]);
                for lane in 0..LANES {
                    // If there is only one register, its low bits come behind those of the number.
                    let both = low[lane] >> shift | high[lane] << (31 - shift) << 1;
                    line[lane] = decoder.decode(both & (u32::MAX >> (32 - width)));
                }
            }
        }
    );

/// Doubles in pairs of registers, with the sign bit changed by the last argument.
pub(super) const DOUBLES: Leveled<PairsFunction> = leveled!(|words: &[Words; 2],
                                                             sign: u64,
                                                             line: &mut Line<f64>|
 -> () {
    let [low, high] = words;
    for (number, (low, high)) in line[..LANES].iter_mut().zip(low.iter().zip(high)) {
        *number = f64::from_bits((u64::from(*low) | u64::from(*high) << 32) ^ sign);
    }
});

/// Returns whether registers hold a denormal number of single precision.
pub(super) const HAVE_DENORMALS: Leveled<TestFunction> = leveled!(|registers: &[Words]| -> bool {
    let mut found = 0;
    for word in registers.as_flattened() {
        found |= word ^ flushed(*word).to_bits();
    }
    found != 0
});

/// Makes denormal numbers of single precision zero. They are rare: see [`HAVE_DENORMALS`].
pub(super) fn flush(registers: &mut [Words]) {
    for word in registers.as_flattened_mut() {
        *word = flushed(*word).to_bits();
    }
}

/// Compiles a loop that rounds numbers of single precision to 16 bits, which have places as those that
/// [`Decode`] reads. The other bits of the registers stay.
macro_rules! encode {
    (|$number:ident| $result:expr) => {
        leveled!(
            |lines: &[Words], bits: [usize; 2], registers: &mut [Words]| -> () {
                let [first, distance] = bits;
                for (number, line) in lines.iter().enumerate() {
                    let bit = first + number * distance;
                    let (words, shift) = (&mut registers[bit / 32], bit % 32);
                    for (word, number) in words[..LANES].iter_mut().zip(&line[..LANES]) {
                        let $number = f32::from_bits(*number);
                        let result: u16 = $result;
                        *word = *word & !(0xffff << shift) | u32::from(result) << shift;
                    }
                }
            }
        )
    };
}

pub(super) const TO_HALVES: Leveled<EncodeFunction> =
    encode!(|number| Half::from_f64(number.into()).0);
pub(super) const TO_BRAINS: Leveled<EncodeFunction> = encode!(|number| Brain::nearest(number).0);

/// Rounds a fraction to 10 bits, to nearest even.
#[inline(always)]
fn shortened(bits: u32) -> f32 {
    const DROPPED: u32 = 13;
    let odd = bits >> DROPPED & 1;
    let rounded = bits.wrapping_add((1 << (DROPPED - 1)) - 1 + odd) >> DROPPED << DROPPED;
    let is_finite = bits & 0x7f80_0000 != 0x7f80_0000;
    f32::from_bits(if is_finite { rounded } else { bits })
}

#[inline(always)]
fn flushed(bits: u32) -> f32 {
    let is_denormal = bits & 0x7f80_0000 == 0;
    f32::from_bits(if is_denormal {
        bits & 0x8000_0000
    } else {
        bits
    })
}
