//! The addresses of a wave.

use crate::lanes::{LANES, Longs};

/// The addresses of a wave. Inactive lanes have that of an active one.
pub(crate) struct Span {
    /// In a wave of 32, those of the upper half mean nothing.
    pub addresses: Longs,
    pub lowest: u64,
    pub highest: u64,
    /// All bits that are set in an address.
    pub bits: u64,
    /// The number of lanes up to the last active one.
    pub end: usize,
    /// The bytes from an address to the next lane's, if this is one number and all lanes before the end are
    /// active; else 0.
    pub step: u64,
}

impl Span {
    pub(crate) fn new() -> Self {
        Self {
            addresses: [0; LANES],
            lowest: 0,
            highest: 0,
            bits: 0,
            end: 0,
            step: 0,
        }
    }
}
