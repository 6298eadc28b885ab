//! Raw profiles that are added to in place.
//!
//! Such a file has room for its counts twice, between records and names. One of the two is in force:
//! to every reader of raw profiles, the other is padding, before the counters or after the last
//! section of counts. New sums are written where the old ones are not, and then the header, which
//! puts them in force by two of its words. The header lies in one page, of which the kernel writes
//! all or nothing to a process that is killed. So at any moment the file is a raw profile of the
//! old sums or of the new.
//!
//! Both have a seal behind them, a hash over them and over all that does not change. It tells
//! without a look at records and names that they are of the same code. And it tells counts that are
//! not whole: where the machine itself goes down, the header may have reached the disk and the counts
//! not. Then the others are still there, which is where a sum goes on.

use std::ops::Range;

use byteorder::{ByteOrder, LittleEndian};
use xxhash_rust::xxh3::Xxh3;

use super::ProfileError;
use super::decode::RawProfile;
use super::encode::padding;
use super::merge::{add_counts, unchanging};
use super::version::Word;

/// Size of a seal in bytes: 128 bits of XXH3.
const SEAL: usize = 16;

/// What a process adds to a file of many: its own raw profile, and where its parts are there.
pub(crate) struct Pooled<'a> {
    /// A raw profile as `encode` makes it.
    plain: &'a [u8],
    profile: RawProfile,
    /// The hash of what does not change.
    code: Xxh3,
}

impl<'a> Pooled<'a> {
    /// Starts with a raw profile as [`super::encode`] makes it.
    ///
    /// # Errors
    /// Fails where it is none.
    pub(crate) fn of(plain: &'a [u8]) -> Result<Self, ProfileError> {
        let profile = RawProfile::parse(plain)?;
        let code = code(plain, &profile);
        Ok(Pooled {
            plain,
            profile,
            code,
        })
    }

    /// The file where nobody else has counted yet.
    pub(crate) fn file(&self) -> Vec<u8> {
        let (start, end) = (self.profile.records.end, self.profile.names.start);
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

    /// The header where the counts in this half of the room, 0 or 1, are in force.
    pub(crate) fn header(&self, half: usize) -> Vec<u8> {
        let room = self.room().len();
        with_paddings(
            self.plain,
            &self.profile,
            half * room,
            SEAL + (1 - half) * room,
        )
    }

    /// The first half of the room, in bytes of the file; the other follows.
    pub(crate) fn room(&self) -> Range<usize> {
        room(&self.profile)
    }

    /// Adds our counts to a half of the room, and seals it again. Returns whether it was whole, and
    /// of the same code; otherwise it is as it was.
    pub(crate) fn add_to(&self, half: &mut [u8]) -> bool {
        if !is_sealed(half, &self.code) {
            return false;
        }
        let (counts, sealed) = half.split_at_mut(half.len() - SEAL);
        let from = self.profile.counts();
        let start = self.room().start;
        let into = from.clone().map(|it| it.start - start..it.end - start);
        add_counts(
            self.profile.header.version(),
            (counts, into),
            (self.plain, from),
        );
        sealed.copy_from_slice(&seal(&self.code, counts));
        true
    }
}

/// `file` and its parts without the room for other counts: as [`super::encode`] would make it.
pub(super) fn plain(
    file: impl AsRef<[u8]> + Into<Vec<u8>>,
    profile: RawProfile,
) -> Result<(Vec<u8>, RawProfile), ProfileError> {
    let bytes = file.as_ref();
    if profile.names.start - profile.records.end == room(&profile).len() - SEAL {
        return Ok((file.into(), profile));
    }
    let profile = whole(bytes, profile)?;
    let mut plain = with_paddings(bytes, &profile, 0, 0);
    plain.extend_from_slice(&bytes[plain.len()..profile.records.end]);
    for section in profile.counts() {
        plain.extend_from_slice(&bytes[section]);
        plain.resize(plain.len().next_multiple_of(8), 0);
    }
    plain.extend_from_slice(&bytes[profile.names.start..]);
    let profile = RawProfile::parse(&plain)?;
    Ok((plain, profile))
}

/// Where the counts of `file` are that are whole: those in force, or the others where a machine
/// went down. Profiles that are not added to in place say themselves where.
///
/// # Errors
/// Fails where neither are.
fn whole(file: &[u8], profile: RawProfile) -> Result<RawProfile, ProfileError> {
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
        let [counters, bitmap, uniform] = profile.counts().map(|it| {
            let start = at;
            at += it.len().next_multiple_of(8);
            start..start + it.len()
        });
        return Ok(RawProfile {
            counters,
            bitmap,
            uniform,
            ..profile
        });
    }
    Err(ProfileError::NotWhole)
}

/// Checks that the counts in force are whole: others read just these.
///
/// # Errors
/// Fails where they are not, whether the others are or not.
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

/// Which half of the room is in force, in bytes from its start; `None` for a file that is not added to
/// in place.
fn in_force(profile: &RawProfile) -> Option<usize> {
    let room = room(profile);
    let in_force = profile.counters.start - room.start;
    let is_pooled = profile.names.start - room.start == 2 * room.len()
        && (in_force == 0 || in_force == room.len());
    is_pooled.then_some(in_force)
}

fn is_sealed(half: &[u8], code: &Xxh3) -> bool {
    let (counts, sealed) = half.split_at(half.len() - SEAL);
    *sealed == seal(code, counts)
}

/// Where a file that is added to in place has its counts with their seal, for the first time.
fn room(profile: &RawProfile) -> Range<usize> {
    let sections = profile.counts();
    let counts: usize = sections.iter().map(|it| it.len().next_multiple_of(8)).sum();
    let start = profile.records.end;
    start..start + counts + SEAL
}

/// The header of `file` with `before` bytes before the counts and `after` them, beyond those that
/// fill up 8.
fn with_paddings(file: &[u8], profile: &RawProfile, before: usize, after: usize) -> Vec<u8> {
    let layout = profile.header.version().layout();
    let mut header = file[..layout.header_bytes()].to_vec();
    let mut words: Vec<_> = layout
        .header
        .iter()
        .enumerate()
        .filter_map(|(index, word)| {
            let bytes = match word {
                Word::PaddingBeforeCounters => before,
                Word::PaddingAfterCounters => padding(profile.counters.len()),
                Word::PaddingAfterBitmap => padding(profile.bitmap.len()),
                Word::PaddingAfterUniform => padding(profile.uniform.len()),
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
        hash.update(part);
    }
    hash
}

fn seal(code: &Xxh3, counts: &[u8]) -> [u8; SEAL] {
    let mut hash = code.clone();
    hash.update(counts);
    hash.digest128().to_le_bytes()
}

#[cfg(test)]
#[path = "pooled_tests.rs"]
mod tests;
