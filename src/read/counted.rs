//! The counts of a load, as copied.

use xxhash_rust::xxh3::Xxh3;

use crate::format::profraw::{Counts, Parts};
use crate::format::sections::{PerSection, Section};

/// The sections of a load that change while kernels run. The others are empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'a>(PerSection<&'a [u8]>);

/// 128 bits of XXH3, which distinguish counts without a copy of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(u128);

impl<'a> Counted<'a> {
    pub(crate) fn from_parts(parts: &Parts<'a>) -> Self {
        Counted(PerSection::from_fn(|section| match section.is_counted() {
            true => *parts.sections.get(section),
            false => &[],
        }))
    }

    pub(crate) fn from_counts(counts: &'a Counts) -> Self {
        Counted(counts.slices())
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut hash = Xxh3::new();
        for section in Section::counted().map(|section| *self.0.get(section)) {
            hash.update(&section.len().to_le_bytes());
            hash.update(section);
        }
        Digest(hash.digest128())
    }

    pub(crate) fn to_counts(self) -> Counts {
        self.0.map(|section| section.to_vec())
    }
}
