//! The loops over lanes that each processor runs.

use crate::lanes::{LANES, WaveSize, Words};

/// The lanes of a wave of 32: loops over parts of this size need no code for odd sizes.
/// The offsets that a gather takes at once.
pub(super) const GATHERED: usize = 8;

const PART: usize = WaveSize::Wave32.lanes();

#[inline(always)]
pub(super) fn fill(words: &mut [u32], value: u32) {
    for part in words.as_chunks_mut::<PART>().0 {
        part.fill(value);
    }
}

#[inline(always)]
pub(super) fn change_bits(
    from: &[u32],
    clear: u32,
    flip: u32,
    to: &mut [u32],
    shifts: (u32, u32, bool),
) {
    let parts = to.as_chunks_mut::<PART>().0;
    for (to, from) in parts.iter_mut().zip(from.as_chunks::<PART>().0) {
        if shifts == (0, 0, false) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from & !clear ^ flip;
            }
        } else {
            for (to, from) in to.iter_mut().zip(from) {
                *to = select(*from, shifts) & !clear ^ flip;
            }
        }
    }
}

pub(super) fn blend(to: &mut Words, from: &Words, lanes: u64) {
    let mut left = lanes;
    while left != 0 {
        let lane = left.trailing_zeros() as usize % LANES;
        to[lane] = from[lane];
        left &= left - 1;
    }
}

pub(super) fn spread(bits: u64, flags: &mut Words) {
    for half in 0..2 {
        let bits = (bits >> (32 * half)) as u32;
        for lane in 0..32 {
            flags[32 * half + lane] = 0u32.wrapping_sub(bits >> lane & 1);
        }
    }
}

pub(super) fn pack(flags: &Words) -> u64 {
    let mut bits = [0u32; 2];
    for half in 0..2 {
        for lane in 0..32 {
            bits[half] |= flags[32 * half + lane] >> 31 << lane;
        }
    }
    u64::from(bits[0]) | u64::from(bits[1]) << 32
}

/// A part of a word: shifted to the left, then to the right, with its sign or with zeros.
#[inline(always)]
pub(crate) fn select(word: u32, (left, right, signed): (u32, u32, bool)) -> u32 {
    let high = word << left;
    if signed {
        (high as i32 >> right) as u32
    } else {
        high >> right
    }
}
