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

use byteorder::{ByteOrder, LittleEndian};
use xxhash_rust::xxh3::Xxh3;

use crate::format::profraw::ProfileError;
use crate::format::profraw::layout::Meaning;
use crate::format::profraw::read::RawProfile;
use crate::format::profraw::sum::{add, unchanging};
use crate::format::profraw::write::padding;
use crate::format::sections::Section;

/// The size of a seal in bytes: 128 bits of XXH3.
const SEAL: usize = 16;

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
    pub(crate) fn of(plain: &'a [u8]) -> Result<Self, ProfileError> {
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

/// `file` and its parts without the room for other counts, as [`crate::format::profraw::encode`] would make
/// it.
pub(super) fn plain(
    file: impl AsRef<[u8]> + Into<Vec<u8>>,
    profile: RawProfile,
) -> Result<(Vec<u8>, RawProfile), ProfileError> {
    let bytes = file.as_ref();
    if profile.sections.names.start - profile.sections.data.end == room(&profile).len() - SEAL {
        return Ok((file.into(), profile));
    }
    let profile = whole(bytes, profile)?;
    let mut plain = with_paddings(bytes, &profile, 0, 0);
    plain.extend_from_slice(&bytes[plain.len()..profile.sections.data.end]);
    for section in Section::counted() {
        plain.extend_from_slice(&bytes[profile.sections.get(section).clone()]);
        plain.resize(plain.len().next_multiple_of(8), 0);
    }
    plain.extend_from_slice(&bytes[profile.sections.names.start..]);
    let profile = RawProfile::parse(&plain)?;
    Ok((plain, profile))
}

/// The profile with the place of whole counts: the counts in force, or the other set if the machine went
/// down. Returns a profile without room as it is.
///
/// # Errors
/// Fails if neither set is whole.
pub(super) fn whole(file: &[u8], profile: RawProfile) -> Result<RawProfile, ProfileError> {
    let Some(in_force) = in_force(&profile) else {
        return Ok(profile);
    };
    let room = room(&profile);
    let code = code(file, &profile);
    for half in [in_force, room.len() - in_force] {
        let mut at = room.start + half;
        if !is_sealed(&file[at..][..room.len()], &code) {
            continue;
        }
        let mut profile = profile;
        for section in Section::counted() {
            let place = profile.sections.get_mut(section);
            let len = place.len();
            *place = at..at + len;
            at += len.next_multiple_of(8);
        }
        return Ok(profile);
    }
    Err(ProfileError::NotWhole)
}

/// Checks that the counts in force are whole: other readers read only these.
///
/// # Errors
/// Fails if they are not, even if the other set is.
pub(super) fn check(file: &[u8], profile: &RawProfile) -> Result<(), ProfileError> {
    let Some(in_force) = in_force(profile) else {
        return Ok(());
    };
    let room = room(profile);
    let half = &file[room.start + in_force..][..room.len()];
    match is_sealed(half, &code(file, profile)) {
        true => Ok(()),
        false => Err(ProfileError::NotWhole),
    }
}

/// The offset of the half in force, in bytes from the start of the room. `None` for a file that is not added
/// to in place.
fn in_force(profile: &RawProfile) -> Option<usize> {
    let room = room(profile);
    let in_force = profile.sections.counters.start - room.start;
    let is_pooled = profile.sections.names.start - room.start == 2 * room.len()
        && (in_force == 0 || in_force == room.len());
    is_pooled.then_some(in_force)
}

fn is_sealed(half: &[u8], code: &Xxh3) -> bool {
    let (counts, sealed) = half.split_at(half.len() - SEAL);
    *sealed == seal(code, counts)
}

/// The first half of the room: the counts and their seal.
fn room(profile: &RawProfile) -> Range<usize> {
    let sizes = Section::counted().map(|section| profile.sections.get(section).len());
    let counts: usize = sizes.map(|size| size.next_multiple_of(8)).sum();
    let start = profile.sections.data.end;
    start..start + counts + SEAL
}

/// The header of `file` with `before` bytes before the counts and `after` bytes after them, beyond the
/// padding to 8.
fn with_paddings(file: &[u8], profile: &RawProfile, before: usize, after: usize) -> Vec<u8> {
    let layout = profile.header.version().layout();
    let mut header = file[..layout.header_bytes()].to_vec();
    let mut words: Vec<_> = layout
        .header
        .iter()
        .enumerate()
        .filter_map(|(index, word)| {
            let bytes = match word.meaning() {
                Meaning::PaddingAfter(Section::Data) => before,
                Meaning::PaddingAfter(section) => padding(profile.sections.get(section).len()),
                _ => return None,
            };
            Some((8 * (1 + index), bytes))
        })
        .collect();
    if let Some((_, last)) = words.last_mut() {
        *last += after;
    }
    for (at, bytes) in words {
        LittleEndian::write_u64(&mut header[at..], bytes as u64);
    }
    header
}

/// The hash of the binary ids, records and names of `file`.
fn code(file: &[u8], profile: &RawProfile) -> Xxh3 {
    let mut hash = Xxh3::new();
    for part in unchanging(file, profile) {
        hash.update(&part);
    }
    hash
}

fn seal(code: &Xxh3, counts: &[u8]) -> [u8; SEAL] {
    let mut hash = code.clone();
    hash.update(counts);
    hash.digest128().to_le_bytes()
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
