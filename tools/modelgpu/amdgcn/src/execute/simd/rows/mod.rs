//! Rows of sums, of which matrix products compute several at once. A compiler does not make vector code of these loops
//! on all levels, so each level has its own. All have the same results.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod portable;

/// The columns of a block that the loops compute side by side, if a block has four.
pub(crate) const FOUR: usize = 4;

/// A part of a row of sums.
///
/// # Safety
/// The processor has the level of the module that a type is from, for all functions.
pub(crate) trait Row<const WIDTH: usize>: Copy {
    /// A number of a factor.
    type Number: Copy;
    /// The registers of a sum.
    const REGISTERS: usize;

    /// Sums from their registers, of which those of 32 bits have the first one.
    unsafe fn load(low: &[u32; WIDTH], high: &[u32; WIDTH]) -> Self;

    unsafe fn store_low(self, low: &mut [u32; WIDTH]);

    unsafe fn store_high(self, high: &mut [u32; WIDTH]);

    /// Adds the products of a number and those of a line.
    unsafe fn add(self, number: Self::Number, line: &[Self::Number; WIDTH]) -> Self;
}

/// A part of the rows of several blocks of four columns.
///
/// # Safety
/// See [`Row`].
pub(crate) trait FourRow<const WIDTH: usize>: Row<WIDTH> {
    /// Adds the products of lines. The first one stands for as many equal numbers in each four lanes: those with
    /// the number `row`, from 0 to 3, among them.
    unsafe fn add_fours(
        self,
        columns: &[Self::Number; WIDTH],
        row: usize,
        line: &[Self::Number; WIDTH],
    ) -> Self;
}
