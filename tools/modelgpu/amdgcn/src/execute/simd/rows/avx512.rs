//! Rows of sums by AVX-512.

use std::arch::x86_64::{
    __m256, __m512, __m512d, __m512i, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_storeu_ps,
    _mm256_storeu_si256, _mm512_add_epi32, _mm512_add_epi64, _mm512_add_pd, _mm512_castpd_si512,
    _mm512_castps_si512, _mm512_castsi512_pd, _mm512_castsi512_ps, _mm512_cvtepi64_epi32,
    _mm512_cvtepu32_epi64, _mm512_cvtpd_ps, _mm512_cvtps_pd, _mm512_fmadd_pd, _mm512_fmadd_ps,
    _mm512_loadu_epi32, _mm512_loadu_pd, _mm512_loadu_ps, _mm512_mul_pd, _mm512_mullo_epi32,
    _mm512_or_si512, _mm512_permutevar_ps, _mm512_permutexvar_pd, _mm512_set_epi64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_set1_pd, _mm512_set1_ps, _mm512_slli_epi64,
    _mm512_srli_epi64, _mm512_storeu_epi32, _mm512_storeu_ps,
};

use super::{FourRow, Row};

/// Rounded once for each product; so products that are exact in single precision may also be added by it.
#[derive(Clone, Copy)]
pub(crate) struct Avx512SingleRow(__m512);

#[derive(Clone, Copy)]
pub(crate) struct Avx512IntegerRow(__m512i);

#[derive(Clone, Copy)]
pub(crate) struct Avx512DoubleRow(__m512d);

#[derive(Clone, Copy)]
pub(crate) struct Avx512ScaledRow(__m256);

// SAFETY for all functions: the processor has AVX-512F (`Row`); the arrays have the size of the vectors, and the
// accesses need no alignment.

impl Row<16> for Avx512SingleRow {
    type Number = f32;
    const REGISTERS: usize = 1;

    #[inline(always)]
    unsafe fn load(low: &[u32; 16], _: &[u32; 16]) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_loadu_ps(low.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; 16]) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(low.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn store_high(self, _: &mut [u32; 16]) {}

    #[inline(always)]
    unsafe fn add(self, number: f32, line: &[f32; 16]) -> Self {
        // SAFETY: see above.
        unsafe {
            let line = _mm512_loadu_ps(line.as_ptr());
            Self(_mm512_fmadd_ps(_mm512_set1_ps(number), line, self.0))
        }
    }
}

impl FourRow<16> for Avx512SingleRow {
    #[inline(always)]
    unsafe fn add_fours(self, columns: &[f32; 16], row: usize, line: &[f32; 16]) -> Self {
        // SAFETY: see above.
        unsafe {
            let columns = _mm512_loadu_ps(columns.as_ptr());
            let numbers = _mm512_permutevar_ps(columns, _mm512_set1_epi32(row as i32));
            let line = _mm512_loadu_ps(line.as_ptr());
            Self(_mm512_fmadd_ps(numbers, line, self.0))
        }
    }
}

impl Row<16> for Avx512IntegerRow {
    type Number = i32;
    const REGISTERS: usize = 1;

    #[inline(always)]
    unsafe fn load(low: &[u32; 16], _: &[u32; 16]) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_loadu_epi32(low.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; 16]) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_epi32(low.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn store_high(self, _: &mut [u32; 16]) {}

    #[inline(always)]
    unsafe fn add(self, number: i32, line: &[i32; 16]) -> Self {
        // SAFETY: see above.
        unsafe {
            let line = _mm512_loadu_epi32(line.as_ptr());
            let products = _mm512_mullo_epi32(_mm512_set1_epi32(number), line);
            Self(_mm512_add_epi32(products, self.0))
        }
    }
}

impl FourRow<16> for Avx512IntegerRow {
    #[inline(always)]
    unsafe fn add_fours(self, columns: &[i32; 16], row: usize, line: &[i32; 16]) -> Self {
        // SAFETY: see above.
        unsafe {
            let columns = _mm512_castsi512_ps(_mm512_loadu_epi32(columns.as_ptr()));
            let numbers = _mm512_permutevar_ps(columns, _mm512_set1_epi32(row as i32));
            let line = _mm512_loadu_epi32(line.as_ptr());
            let products = _mm512_mullo_epi32(_mm512_castps_si512(numbers), line);
            Self(_mm512_add_epi32(products, self.0))
        }
    }
}

impl Row<8> for Avx512DoubleRow {
    type Number = f64;
    const REGISTERS: usize = 2;

    #[inline(always)]
    unsafe fn load(low: &[u32; 8], high: &[u32; 8]) -> Self {
        // SAFETY: see above.
        unsafe {
            let low = _mm512_cvtepu32_epi64(_mm256_loadu_si256(low.as_ptr().cast()));
            let high = _mm512_cvtepu32_epi64(_mm256_loadu_si256(high.as_ptr().cast()));
            let both = _mm512_or_si512(low, _mm512_slli_epi64::<32>(high));
            Self(_mm512_castsi512_pd(both))
        }
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; 8]) {
        // SAFETY: see above.
        unsafe {
            let words = _mm512_cvtepi64_epi32(_mm512_castpd_si512(self.0));
            _mm256_storeu_si256(low.as_mut_ptr().cast(), words);
        }
    }

    #[inline(always)]
    unsafe fn store_high(self, high: &mut [u32; 8]) {
        // SAFETY: see above.
        unsafe {
            let words = _mm512_srli_epi64::<32>(_mm512_castpd_si512(self.0));
            _mm256_storeu_si256(high.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(words));
        }
    }

    #[inline(always)]
    unsafe fn add(self, number: f64, line: &[f64; 8]) -> Self {
        // SAFETY: see above.
        unsafe {
            let line = _mm512_loadu_pd(line.as_ptr());
            Self(_mm512_fmadd_pd(_mm512_set1_pd(number), line, self.0))
        }
    }
}

impl FourRow<8> for Avx512DoubleRow {
    #[inline(always)]
    unsafe fn add_fours(self, columns: &[f64; 8], row: usize, line: &[f64; 8]) -> Self {
        // SAFETY: see above.
        unsafe {
            let firsts = _mm512_set_epi64(4, 4, 4, 4, 0, 0, 0, 0);
            let places = _mm512_add_epi64(firsts, _mm512_set1_epi64(row as i64));
            let numbers = _mm512_permutexvar_pd(places, _mm512_loadu_pd(columns.as_ptr()));
            let line = _mm512_loadu_pd(line.as_ptr());
            Self(_mm512_fmadd_pd(numbers, line, self.0))
        }
    }
}

impl Row<8> for Avx512ScaledRow {
    type Number = f64;
    const REGISTERS: usize = 1;

    #[inline(always)]
    unsafe fn load(low: &[u32; 8], _: &[u32; 8]) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_loadu_ps(low.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn store_low(self, low: &mut [u32; 8]) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(low.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn store_high(self, _: &mut [u32; 8]) {}

    #[inline(always)]
    unsafe fn add(self, number: f64, line: &[f64; 8]) -> Self {
        // SAFETY: see above.
        unsafe {
            let line = _mm512_loadu_pd(line.as_ptr());
            let products = _mm512_mul_pd(_mm512_set1_pd(number), line);
            Self(_mm512_cvtpd_ps(_mm512_add_pd(
                products,
                _mm512_cvtps_pd(self.0),
            )))
        }
    }
}
