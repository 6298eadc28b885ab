//! Loops over lanes by AVX2.

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_blendv_epi8, _mm256_castsi256_ps, _mm256_cmpeq_epi32,
    _mm256_loadu_si256, _mm256_movemask_ps, _mm256_set1_epi32, _mm256_setr_epi32,
    _mm256_storeu_si256,
};

use super::portable;
use crate::lanes::Words;

/// Lanes of a vector.
const WIDTH: usize = 8;

#[target_feature(enable = "avx2")]
pub(super) fn fill(words: &mut [u32], value: u32) {
    portable::fill(words, value);
}

#[target_feature(enable = "avx2")]
pub(super) fn change_bits(
    from: &[u32],
    clear: u32,
    flip: u32,
    to: &mut [u32],
    shifts: (u32, u32, bool),
) {
    portable::change_bits(from, clear, flip, to, shifts);
}

/// Zeros or ones for eight bits.
#[target_feature(enable = "avx2")]
fn flags(bits: u64) -> __m256i {
    let places = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let bits = _mm256_set1_epi32(bits as u8 as i32);
    _mm256_cmpeq_epi32(_mm256_and_si256(bits, places), places)
}

#[target_feature(enable = "avx2")]
pub(super) fn blend(to: &mut Words, from: &Words, lanes: u64) {
    for (number, (to, from)) in to
        .as_chunks_mut::<WIDTH>()
        .0
        .iter_mut()
        .zip(from.as_chunks::<WIDTH>().0)
        .enumerate()
    {
        let flags = flags(lanes >> (WIDTH * number));
        // SAFETY: both arrays have 32 bytes, and the accesses need no alignment.
        unsafe {
            let old = _mm256_loadu_si256(to.as_ptr().cast());
            let new = _mm256_loadu_si256(from.as_ptr().cast());
            _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_blendv_epi8(old, new, flags));
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn spread(bits: u64, words: &mut Words) {
    for (number, words) in words.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        let flags = flags(bits >> (WIDTH * number));
        // SAFETY: the array has 32 bytes, and the access needs no alignment.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), flags) };
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn pack(flags: &Words) -> u64 {
    let mut bits = 0;
    for (number, words) in flags.as_chunks::<WIDTH>().0.iter().enumerate() {
        // SAFETY: the array has 32 bytes, and the access needs no alignment.
        let words = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
        let eight = _mm256_movemask_ps(_mm256_castsi256_ps(words)) as u32;
        bits |= u64::from(eight) << (WIDTH * number);
    }
    bits
}
