//! Loops over lanes by AVX-512.

use std::arch::x86_64::{
    _mm256_setzero_si256, _mm256_storeu_si256, _mm512_add_epi64, _mm512_cmpge_epi64_mask,
    _mm512_cmple_epi64_mask, _mm512_loadu_epi32, _mm512_loadu_epi64, _mm512_mask_i64gather_epi32,
    _mm512_mask_storeu_epi32, _mm512_movepi32_mask, _mm512_movm_epi32, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_storeu_epi32,
};

use super::portable;
use crate::lanes::Words;

/// Lanes of a vector.
const WIDTH: usize = 16;
const GATHERED: usize = portable::GATHERED;

#[target_feature(enable = "avx512f")]
pub(super) fn fill(words: &mut [u32], value: u32) {
    portable::fill(words, value);
}

#[target_feature(enable = "avx512f")]
pub(super) fn change_bits(
    from: &[u32],
    clear: u32,
    flip: u32,
    to: &mut [u32],
    shifts: (u32, u32, bool),
) {
    portable::change_bits(from, clear, flip, to, shifts);
}

#[target_feature(enable = "avx512f")]
pub(super) fn blend(to: &mut Words, from: &Words, lanes: u64) {
    let vectors = to.as_chunks_mut::<WIDTH>().0.iter_mut();
    for (number, (to, from)) in vectors.zip(from.as_chunks::<WIDTH>().0).enumerate() {
        // A wave of 32 has no more lanes.
        if number == 2 && lanes >> 32 == 0 {
            break;
        }
        let lanes = (lanes >> (WIDTH * number)) as u16;
        // SAFETY: both arrays have 64 bytes, and the accesses need no alignment.
        unsafe {
            let new = _mm512_loadu_epi32(from.as_ptr().cast());
            _mm512_mask_storeu_epi32(to.as_mut_ptr().cast(), lanes, new);
        }
    }
}

#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn gather(bytes: &[u8], offsets: &[u64], shift: usize, words: &mut Words) {
    let last = _mm512_set1_epi64(bytes.len() as i64 - 4);
    let shift = _mm512_set1_epi64(shift as i64);
    let words = words.as_chunks_mut::<GATHERED>().0.iter_mut();
    for (words, offsets) in words.zip(offsets.as_chunks::<GATHERED>().0) {
        // SAFETY: the arrays have 32 and 64 bytes, and the accesses need no alignment. The mask
        // has the lanes whose four bytes lie in `bytes`; others are not loaded.
        unsafe {
            let offsets = _mm512_loadu_epi64(offsets.as_ptr().cast());
            let places = _mm512_add_epi64(offsets, shift);
            let inside = _mm512_cmple_epi64_mask(places, last)
                & _mm512_cmpge_epi64_mask(places, _mm512_setzero_si512());
            let loaded = _mm512_mask_i64gather_epi32::<1>(
                _mm256_setzero_si256(),
                inside,
                places,
                bytes.as_ptr().cast(),
            );
            _mm256_storeu_si256(words.as_mut_ptr().cast(), loaded);
        }
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn spread(bits: u64, words: &mut Words) {
    for (number, words) in words.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        let flags = _mm512_movm_epi32((bits >> (WIDTH * number)) as u16);
        // SAFETY: the array has 64 bytes, and the access needs no alignment.
        unsafe { _mm512_storeu_epi32(words.as_mut_ptr().cast(), flags) };
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn pack(flags: &Words) -> u64 {
    let mut bits = 0;
    for (number, words) in flags.as_chunks::<WIDTH>().0.iter().enumerate() {
        // SAFETY: the array has 64 bytes, and the access needs no alignment.
        let words = unsafe { _mm512_loadu_epi32(words.as_ptr().cast()) };
        bits |= u64::from(_mm512_movepi32_mask(words)) << (WIDTH * number);
    }
    bits
}
