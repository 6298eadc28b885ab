//! Rows of sums by AVX2 and FMA.

use std::arch::x86_64::{
    __m128, __m256, __m256d, __m256i, _mm_loadu_ps, _mm_loadu_si128, _mm_storeu_ps,
    _mm_storeu_si128, _mm256_add_epi32, _mm256_add_pd, _mm256_castpd_si256, _mm256_castps_si256,
    _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cvtepu32_epi64,
    _mm256_cvtpd_ps, _mm256_cvtps_pd, _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_loadu_pd,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_mul_pd, _mm256_mullo_epi32, _mm256_or_si256,
    _mm256_permute4x64_pd, _mm256_permutevar_ps, _mm256_permutevar8x32_epi32, _mm256_set1_epi32,
    _mm256_set1_pd, _mm256_set1_ps, _mm256_setr_epi32, _mm256_slli_epi64, _mm256_storeu_ps,
    _mm256_storeu_si256,
};

use super::{FourRow, Row};

/// Rounded once for each product; so products that are exact in single precision may also be added by it.
#[derive(Clone, Copy)]
pub(crate) struct Avx2SingleRow([__m256; 2]);

#[derive(Clone, Copy)]
pub(crate) struct Avx2IntegerRow([__m256i; 2]);

#[derive(Clone, Copy)]
pub(crate) struct Avx2DoubleRow([__m256d; 2]);

#[derive(Clone, Copy)]
pub(crate) struct Avx2ScaledRow([__m128; 2]);

/// Both halves of a row. In a closure that a function of the library calls, vector code would not be inlined.
macro_rules! both {
    (|$half:ident| $result:expr) => {
        [
            {
                let $half = 0;
                $result
            },
            {
                let $half = 1;
                $result
            },
        ]
    };
}

// SAFETY for all functions: the processor has AVX2 and FMA (`Row`); a half of an array has the size of a vector, and
// the accesses need no alignment.

impl Row<16> for Avx2SingleRow {
    type Number = f32;
    const REGISTERS: usize = 1;

    #[inline(always)]
    unsafe fn load(low: &[u32; 16], _: &[u32; 16]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            _mm256_loadu_ps(low.as_ptr().add(8 * half).cast())
        }))
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; 16]) {
        for (half, sums) in self.0.into_iter().enumerate() {
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(low.as_mut_ptr().add(8 * half).cast(), sums) };
        }
    }

    #[inline(always)]
    unsafe fn store_high(self, _: &mut [u32; 16]) {}

    #[inline(always)]
    unsafe fn add(self, number: f32, line: &[f32; 16]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            let line = _mm256_loadu_ps(line.as_ptr().add(8 * half));
            _mm256_fmadd_ps(_mm256_set1_ps(number), line, self.0[half])
        }))
    }
}

impl FourRow<16> for Avx2SingleRow {
    #[inline(always)]
    unsafe fn add_fours(self, columns: &[f32; 16], row: usize, line: &[f32; 16]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            let columns = _mm256_loadu_ps(columns.as_ptr().add(8 * half));
            let numbers = _mm256_permutevar_ps(columns, _mm256_set1_epi32(row as i32));
            let line = _mm256_loadu_ps(line.as_ptr().add(8 * half));
            _mm256_fmadd_ps(numbers, line, self.0[half])
        }))
    }
}

impl Row<16> for Avx2IntegerRow {
    type Number = i32;
    const REGISTERS: usize = 1;

    #[inline(always)]
    unsafe fn load(low: &[u32; 16], _: &[u32; 16]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            _mm256_loadu_si256(low.as_ptr().add(8 * half).cast())
        }))
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; 16]) {
        for (half, sums) in self.0.into_iter().enumerate() {
            // SAFETY: see above.
            unsafe { _mm256_storeu_si256(low.as_mut_ptr().add(8 * half).cast(), sums) };
        }
    }

    #[inline(always)]
    unsafe fn store_high(self, _: &mut [u32; 16]) {}

    #[inline(always)]
    unsafe fn add(self, number: i32, line: &[i32; 16]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            let line = _mm256_loadu_si256(line.as_ptr().add(8 * half).cast());
            let products = _mm256_mullo_epi32(_mm256_set1_epi32(number), line);
            _mm256_add_epi32(products, self.0[half])
        }))
    }
}

impl FourRow<16> for Avx2IntegerRow {
    #[inline(always)]
    unsafe fn add_fours(self, columns: &[i32; 16], row: usize, line: &[i32; 16]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            let columns = _mm256_loadu_si256(columns.as_ptr().add(8 * half).cast());
            let place = _mm256_set1_epi32(row as i32);
            let numbers = _mm256_permutevar_ps(_mm256_castsi256_ps(columns), place);
            let line = _mm256_loadu_si256(line.as_ptr().add(8 * half).cast());
            let products = _mm256_mullo_epi32(_mm256_castps_si256(numbers), line);
            _mm256_add_epi32(products, self.0[half])
        }))
    }
}

impl Row<8> for Avx2DoubleRow {
    type Number = f64;
    const REGISTERS: usize = 2;

    #[inline(always)]
    unsafe fn load(low: &[u32; 8], high: &[u32; 8]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            let low = _mm256_cvtepu32_epi64(_mm_loadu_si128(low.as_ptr().add(4 * half).cast()));
            let high = _mm256_cvtepu32_epi64(_mm_loadu_si128(high.as_ptr().add(4 * half).cast()));
            _mm256_castsi256_pd(_mm256_or_si256(low, _mm256_slli_epi64::<32>(high)))
        }))
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; 8]) {
        // SAFETY: see above.
        unsafe { self.store(low, 0) };
    }

    #[inline(always)]
    unsafe fn store_high(self, high: &mut [u32; 8]) {
        // SAFETY: see above.
        unsafe { self.store(high, 1) };
    }

    #[inline(always)]
    unsafe fn add(self, number: f64, line: &[f64; 8]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            let line = _mm256_loadu_pd(line.as_ptr().add(4 * half));
            _mm256_fmadd_pd(_mm256_set1_pd(number), line, self.0[half])
        }))
    }
}

impl Avx2DoubleRow {
    /// Stores the low words of the sums, or the high ones.
    #[inline(always)]
    unsafe fn store(self, words: &mut [u32; 8], first: i32) {
        for (half, sums) in self.0.into_iter().enumerate() {
            // SAFETY: see above.
            unsafe {
                let places = _mm256_setr_epi32(
                    first,
                    first + 2,
                    first + 4,
                    first + 6,
                    first,
                    first + 2,
                    first + 4,
                    first + 6,
                );
                let chosen = _mm256_permutevar8x32_epi32(_mm256_castpd_si256(sums), places);
                let to = words.as_mut_ptr().add(4 * half);
                _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(chosen));
            }
        }
    }
}

impl FourRow<8> for Avx2DoubleRow {
    #[inline(always)]
    unsafe fn add_fours(self, columns: &[f64; 8], row: usize, line: &[f64; 8]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            let columns = _mm256_loadu_pd(columns.as_ptr().add(4 * half));
            let numbers = match row {
                0 => _mm256_permute4x64_pd::<0x00>(columns),
                1 => _mm256_permute4x64_pd::<0x55>(columns),
                2 => _mm256_permute4x64_pd::<0xaa>(columns),
                _ => _mm256_permute4x64_pd::<0xff>(columns),
            };
            let line = _mm256_loadu_pd(line.as_ptr().add(4 * half));
            _mm256_fmadd_pd(numbers, line, self.0[half])
        }))
    }
}

impl Row<8> for Avx2ScaledRow {
    type Number = f64;
    const REGISTERS: usize = 1;

    #[inline(always)]
    unsafe fn load(low: &[u32; 8], _: &[u32; 8]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            _mm_loadu_ps(low.as_ptr().add(4 * half).cast())
        }))
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; 8]) {
        for (half, sums) in self.0.into_iter().enumerate() {
            // SAFETY: see above.
            unsafe { _mm_storeu_ps(low.as_mut_ptr().add(4 * half).cast(), sums) };
        }
    }

    #[inline(always)]
    unsafe fn store_high(self, _: &mut [u32; 8]) {}

    #[inline(always)]
    unsafe fn add(self, number: f64, line: &[f64; 8]) -> Self {
        // SAFETY: see above.
        Self(both!(|half| unsafe {
            let line = _mm256_loadu_pd(line.as_ptr().add(4 * half));
            let products = _mm256_mul_pd(_mm256_set1_pd(number), line);
            _mm256_cvtpd_ps(_mm256_add_pd(products, _mm256_cvtps_pd(self.0[half])))
        }))
    }
}
