//! The counts of a code object, and their addition.

use byteorder::{ByteOrder, LittleEndian};

use crate::format::profraw::ProfileError;
use crate::format::profraw::count_kind::MAX_COUNT;
use crate::format::profraw::layout::Version;
use crate::format::profraw::read::RawProfile;
use crate::format::sections::{Addition, PerSection, Section};

/// The counts of a code object: the sections that change while kernels run. The others are empty.
pub type Counts = PerSection<Vec<u8>>;

impl PerSection<Vec<u8>> {
    /// The counts in the raw profile `file`.
    ///
    /// # Errors
    /// Fails if `file` is not a raw profile of a known version, or is cut short.
    pub fn from_profile(file: &[u8]) -> Result<Self, ProfileError> {
        let profile = RawProfile::parse(file)?;
        Ok(Self::from_fn(|section| match section.is_counted() {
            true => file[profile.sections.get(section).clone()].to_vec(),
            false => Vec::new(),
        }))
    }

    /// Adds the counts of another run of the same code object. Sums stop at [`MAX_COUNT`]. Single-byte
    /// counters and bitmaps are joined: reached in either means reached.
    ///
    /// # Errors
    /// Fails if the sizes of the two differ. `self` does not change then.
    pub fn add(&mut self, more: &Self, version: &Version) -> Result<(), ProfileError> {
        for section in Section::counted() {
            let (expected, found) = (self.get(section).len(), more.get(section).len());
            if expected != found {
                return Err(ProfileError::Mismatch { found, expected });
            }
        }
        for section in Section::counted() {
            add(section, version, self.get_mut(section), more.get(section));
        }
        Ok(())
    }

    /// The counts since `before`, of the same load. Added to `before`, they give these counts again. For
    /// joined counts (single bytes, bitmaps) these are the blocks that were not reached before.
    #[must_use]
    pub fn since(&self, before: &Self, version: &Version) -> Self {
        let mut news = self.clone();
        for section in Section::counted() {
            let (now, then) = (news.get_mut(section), before.get(section));
            match section.adds(version) {
                Addition::Words => subtract_words(now, then),
                // Zero means "reached".
                Addition::And => join(now, then, |now, then| now | !then),
                Addition::Or => join(now, then, |now, then| now & !then),
                Addition::None => {}
            }
        }
        news
    }

    /// Returns whether any counter is smaller than in `before`, of the same load. Then the counters were
    /// reset in between.
    #[must_use]
    pub fn is_below(&self, before: &Self, version: &Version) -> bool {
        let now = self.counters.chunks_exact(8);
        let mut both = now.zip(before.counters.chunks_exact(8));
        !version.is_single_byte()
            && both.any(|(now, then)| LittleEndian::read_u64(now) < LittleEndian::read_u64(then))
    }

    /// Returns whether all counts are empty.
    #[must_use]
    pub fn is_nothing(&self, version: &Version) -> bool {
        Section::counted().all(|section| {
            let nothing = match section.adds(version) {
                Addition::And => 0xff,
                _ => 0,
            };
            self.get(section).iter().all(|byte| *byte == nothing)
        })
    }
}

/// Adds the counts of a section in `from` to those in `into`, of the same size.
pub(super) fn add(section: Section, version: &Version, into: &mut [u8], from: &[u8]) {
    match section.adds(version) {
        Addition::Words => add_words(into, from),
        Addition::Or => join(into, from, |sum, more| sum | more),
        Addition::And => join(into, from, |sum, more| sum & more),
        Addition::None => {}
    }
}

fn subtract_words(from: &mut [u8], before: &[u8]) {
    for (count, before) in from.chunks_exact_mut(8).zip(before.chunks_exact(8)) {
        let (now, then) = (
            LittleEndian::read_u64(count),
            LittleEndian::read_u64(before),
        );
        // A smaller count was reset in between, so all of it is new.
        LittleEndian::write_u64(count, now.checked_sub(then).unwrap_or(now));
    }
}

fn add_words(into: &mut [u8], from: &[u8]) {
    for (sum, more) in into.chunks_exact_mut(8).zip(from.chunks_exact(8)) {
        let total = LittleEndian::read_u64(sum).saturating_add(LittleEndian::read_u64(more));
        LittleEndian::write_u64(sum, total.min(MAX_COUNT));
    }
}

fn join(into: &mut [u8], from: &[u8], both: impl Fn(u8, u8) -> u8) {
    for (sum, more) in into.iter_mut().zip(from) {
        *sum = both(*sum, *more);
    }
}
