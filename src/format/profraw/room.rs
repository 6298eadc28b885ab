//! The room for two sets of counts in a raw profile that is added to in place, and the seals of these sets: see
//! [`pool`](super::pool).

use std::ops::Range;

use byteorder::{ByteOrder, LittleEndian};
use xxhash_rust::xxh3::Xxh3;

use crate::format::profraw::ProfileError;
use crate::format::profraw::layout::{Meaning, padding};
use crate::format::profraw::read::RawProfile;
use crate::format::sections::Section;

/// The size of a seal in bytes: 128 bits of XXH3.
pub(super) const SEAL: usize = 16;

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

/// The offset of the half in force, in bytes from the start of the room. `None` for a file that is not added
/// to in place.
fn in_force(profile: &RawProfile) -> Option<usize> {
    let room = room(profile);
    let in_force = profile.sections.counters.start - room.start;
    let is_pooled = profile.sections.names.start - room.start == 2 * room.len()
        && (in_force == 0 || in_force == room.len());
    is_pooled.then_some(in_force)
}

pub(super) fn is_sealed(half: &[u8], code: &Xxh3) -> bool {
    let (counts, sealed) = half.split_at(half.len() - SEAL);
    *sealed == seal(code, counts)
}

/// The first half of the room: the counts and their seal.
pub(super) fn room(profile: &RawProfile) -> Range<usize> {
    let sizes = Section::counted().map(|section| profile.sections.get(section).len());
    let counts: usize = sizes.map(|size| size.next_multiple_of(8)).sum();
    let start = profile.sections.data.end;
    start..start + counts + SEAL
}

/// The header of `file` with `before` bytes before the counts and `after` bytes after them, beyond the
/// padding to 8.
pub(super) fn with_paddings(
    file: &[u8],
    profile: &RawProfile,
    before: usize,
    after: usize,
) -> Vec<u8> {
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
pub(super) fn code(file: &[u8], profile: &RawProfile) -> Xxh3 {
    let mut hash = Xxh3::new();
    for part in profile.unchanging(file) {
        hash.update(&part);
    }
    hash
}

pub(super) fn seal(code: &Xxh3, counts: &[u8]) -> [u8; SEAL] {
    let mut hash = code.clone();
    hash.update(counts);
    hash.digest128().to_le_bytes()
}

impl RawProfile {
    /// Checks that the counts of `file` are whole. `file` must be the file that this was parsed from. Only
    /// profiles that many processes add to have a hash to check.
    ///
    /// # Errors
    /// Fails if the hash does not match.
    pub fn check_counts(&self, file: &[u8]) -> Result<(), ProfileError> {
        let Some(in_force) = in_force(self) else {
            return Ok(());
        };
        let room = room(self);
        let half = &file[room.start + in_force..][..room.len()];
        match is_sealed(half, &code(file, self)) {
            true => Ok(()),
            false => Err(ProfileError::NotWhole),
        }
    }
}
