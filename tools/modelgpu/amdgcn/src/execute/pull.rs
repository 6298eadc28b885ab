//! Moves of values between lanes.

use super::simd::{Leveled, WordsFunction, leveled};
use crate::lanes::Words;

/// Each lane reads the lane that an array names.
pub(super) const PULL: Leveled<WordsFunction> =
    leveled!(
        |data: &Words, from: &Words, unused: &Words, results: &mut Words| -> () {
            for lane in 0..LANES {
                results[lane] = data[from[lane] as usize % LANES];
            }
        }
    );
