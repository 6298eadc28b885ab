//! What a load has counted, as it was copied.

use xxhash_rust::xxh3::Xxh3;

use crate::profraw::{Counts, Parts};

/// The sections of a load that change while kernels run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a> {
    pub(super) counters: &'a [u8],
    pub(super) bitmap: &'a [u8],
    pub(super) uniform: &'a [u8],
}

/// What tells counts from others without having them: 128 bits of XXH3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(u128);

impl<'a> Counted<'a> {
    pub(super) fn of_parts(parts: &Parts<'a>) -> Self {
        Counted {
            counters: parts.counters,
            bitmap: parts.bitmap,
            uniform: parts.uniform,
        }
    }

    pub(super) fn of(counts: &'a Counts) -> Self {
        Counted {
            counters: &counts.counters,
            bitmap: &counts.bitmap,
            uniform: &counts.uniform,
        }
    }

    pub(super) fn digest(&self) -> Digest {
        let mut hash = Xxh3::new();
        for section in [self.counters, self.bitmap, self.uniform] {
            hash.update(&section.len().to_le_bytes());
            hash.update(section);
        }
        Digest(hash.digest128())
    }

    pub(super) fn to_counts(self) -> Counts {
        Counts {
            counters: self.counters.to_vec(),
            bitmap: self.bitmap.to_vec(),
            uniform: self.uniform.to_vec(),
        }
    }
}
