//! Rows of sums, for each processor.

use super::{FOUR, FourRow, Row};

/// The sums of one step, and their registers.
pub(crate) trait RowElement: Copy {
    type Number: Copy;
    const REGISTERS: usize;

    fn from_words(low: u32, high: u32) -> Self;

    fn to_words(self) -> [u32; 2];

    fn add(self, a: Self::Number, b: Self::Number) -> Self;
}

/// Defines the sum of a format: its number, its factors' numbers, its registers and its step.
macro_rules! step {
    ($(#[$comment:meta])* $name:ident($sum:ty), $number:ty, $registers:literal,
        |$low:ident, $high:ident| $from:expr, |$bits:ident| $to:expr, |$a:ident, $b:ident, $old:ident| $add:expr
    ) => {
        $(#[$comment])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name($sum);

        impl RowElement for $name {
            type Number = $number;
            const REGISTERS: usize = $registers;

            #[inline(always)]
            fn from_words($low: u32, $high: u32) -> Self {
                Self($from)
            }

            #[inline(always)]
            fn to_words(self) -> [u32; 2] {
                let $bits = self.0;
                $to
            }

            #[inline(always)]
            fn add(self, $a: $number, $b: $number) -> Self {
                let $old = self.0;
                Self($add)
            }
        }
    };
}

step!(
    /// Rounded once for each product.
    Fused(f32), f32, 1,
    |low, _high| f32::from_bits(low), |sum| [sum.to_bits(), 0], |a, b, sum| a.mul_add(b, sum)
);
step!(
    /// For products that single precision holds.
    Exact(f32), f32, 1,
    |low, _high| f32::from_bits(low), |sum| [sum.to_bits(), 0], |a, b, sum| a * b + sum
);
step!(
    /// For products that go beyond single precision, unlike the sums.
    Scaled(f32), f64, 1,
    |low, _high| f32::from_bits(low), |sum| [sum.to_bits(), 0], |a, b, sum| (a * b + f64::from(sum)) as f32
);
step!(
    Integer(i32),
    i32,
    1,
    |low, _high| low as i32,
    |sum| [sum as u32, 0],
    |a, b, sum| a.wrapping_mul(b).wrapping_add(sum)
);
step!(
    Double(f64),
    f64,
    2,
    |low, high| f64::from_bits(u64::from(low) | u64::from(high) << 32),
    |sum| [sum.to_bits() as u32, (sum.to_bits() >> 32) as u32],
    |a, b, sum| a.mul_add(b, sum)
);

impl<S: RowElement, const WIDTH: usize> Row<WIDTH> for [S; WIDTH] {
    type Number = S::Number;
    const REGISTERS: usize = S::REGISTERS;

    #[inline(always)]
    unsafe fn load(low: &[u32; WIDTH], high: &[u32; WIDTH]) -> Self {
        std::array::from_fn(|column| S::from_words(low[column], high[column]))
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; WIDTH]) {
        *low = self.map(|sum| sum.to_words()[0]);
    }

    #[inline(always)]
    unsafe fn store_high(self, high: &mut [u32; WIDTH]) {
        *high = self.map(|sum| sum.to_words()[1]);
    }

    #[inline(always)]
    unsafe fn add(self, number: S::Number, line: &[S::Number; WIDTH]) -> Self {
        std::array::from_fn(|column| self[column].add(number, line[column]))
    }
}

impl<S: RowElement, const WIDTH: usize> FourRow<WIDTH> for [S; WIDTH] {
    #[inline(always)]
    unsafe fn add_fours(
        self,
        columns: &[S::Number; WIDTH],
        row: usize,
        line: &[S::Number; WIDTH],
    ) -> Self {
        std::array::from_fn(|column| {
            self[column].add(columns[column / FOUR * FOUR + row], line[column])
        })
    }
}

pub(crate) type FusedRow = [Fused; 16];
pub(crate) type ExactRow = [Exact; 16];
pub(crate) type ScaledRow = [Scaled; 8];
pub(crate) type IntegerRow = [Integer; 16];
pub(crate) type DoubleRow = [Double; 8];
