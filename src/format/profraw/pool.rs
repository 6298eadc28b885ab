//! Raw profiles that are added to in place.
//!
//! Such a file has room for two sets of counts, between records and names. One set is in force. Readers of
//! raw profiles see the other as padding, before the counters or after the last section of counts. rocov
//! writes new sums over the set that is not in force, and then writes the header. Two words of the header put
//! the new set in force. The header lies in one page, and the kernel writes a page wholly or not at all when
//! a process is killed. So at any moment the file is a raw profile of the old sums or of the new ones.
//!
//! A seal follows each set: a hash of the counts and of everything that does not change. It shows that two
//! files are of the same code without a look at records and names. It also shows damaged counts: if the
//! machine goes down, the header may have reached the disk before the counts. The other set is still there
//! then, and rocov continues with it.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use crate::format::profraw::ProfileError;
use crate::format::profraw::counts::add;
use crate::format::profraw::read::RawProfile;
use crate::format::profraw::room::{SEAL, code, is_sealed, room, seal, with_paddings};
use crate::format::sections::Section;

/// The contribution of one process to a shared file: its own raw profile, and the places of its parts there.
pub(crate) struct Pooled<'a> {
    /// A raw profile from `encode`.
    plain: &'a [u8],
    profile: RawProfile,
    /// The hash of the parts that do not change.
    code: Xxh3,
}

impl<'a> Pooled<'a> {
    /// Starts with a raw profile from [`crate::format::profraw::encode`].
    ///
    /// # Errors
    /// Fails if `plain` is not one.
    pub(crate) fn new(plain: &'a [u8]) -> Result<Self, ProfileError> {
        let profile = RawProfile::parse(plain)?;
        let code = code(plain, &profile);
        Ok(Pooled {
            plain,
            profile,
            code,
        })
    }

    /// The file before any other process has added to it.
    pub(crate) fn file(&self) -> Vec<u8> {
        let (start, end) = (
            self.profile.sections.data.end,
            self.profile.sections.names.start,
        );
        let mut file = self.header(0);
        file.extend_from_slice(&self.plain[file.len()..end]);
        file.extend_from_slice(&seal(&self.code, &self.plain[start..end]));
        file.resize(file.len() + self.room().len(), 0);
        file.extend_from_slice(&self.plain[end..]);
        file
    }

    /// The size of the file in bytes.
    pub(crate) fn len(&self) -> u64 {
        (self.plain.len() + self.room().len() + SEAL) as u64
    }

    /// The header that puts the counts in this half of the room, 0 or 1, in force.
    pub(crate) fn header(&self, half: usize) -> Vec<u8> {
        let room = self.room().len();
        with_paddings(
            self.plain,
            &self.profile,
            half * room,
            SEAL + (1 - half) * room,
        )
    }

    /// The first half of the room, in bytes of the file. The second half follows it.
    pub(crate) fn room(&self) -> Range<usize> {
        room(&self.profile)
    }

    /// The records in the file, in bytes, if they have sizes of waves: adding may change these.
    pub(crate) fn records_with_wave_sizes(&self) -> Option<Range<usize>> {
        let record = self.profile.header.version().layout().record;
        record.wave_size.map(|_| self.profile.sections.data.clone())
    }

    /// Gives the records of the file the sizes of waves that only ours have. Returns whether there were any.
    pub(crate) fn take_wave_sizes(&self, records: &mut [u8]) -> bool {
        let ours = &self.plain[self.profile.sections.data.clone()];
        let record = self.profile.header.version().layout().record;
        record.take_wave_sizes(records, ours)
    }

    /// Adds our counts to a half of the room and seals it again. Returns whether the half was whole and of
    /// the same code. If not, it does not change.
    pub(crate) fn add_to(&self, half: &mut [u8]) -> bool {
        if !is_sealed(half, &self.code) {
            return false;
        }
        let (counts, sealed) = half.split_at_mut(half.len() - SEAL);
        let start = self.room().start;
        for section in Section::counted() {
            let place = self.profile.sections.get(section).clone();
            let into = &mut counts[place.start - start..place.end - start];
            add(
                section,
                self.profile.header.version(),
                into,
                &self.plain[place],
            );
        }
        sealed.copy_from_slice(&seal(&self.code, counts));
        true
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
