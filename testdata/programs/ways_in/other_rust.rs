//! A second Rust library in one program: it formats, allocates and unwinds by a standard library of
//! its own.

use std::collections::HashMap;
use std::panic;

/// The sum of the numbers below `count`, by roundabout ways; 0 if it could not be had.
#[unsafe(no_mangle)]
pub extern "C" fn sum_below(count: u64) -> u64 {
    let words: HashMap<u64, String> = (0..count).map(|it| (it, it.to_string())).collect();
    let sum: u64 = words.values().filter_map(|word| word.parse::<u64>().ok()).sum();
    // Unwinds through frames of this library, past the other's personality.
    let unwound = panic::catch_unwind(|| panic::resume_unwind(Box::new(sum)));
    unwound.map_or_else(|sum| sum.downcast_ref().copied().unwrap_or(0), |()| 0)
}
