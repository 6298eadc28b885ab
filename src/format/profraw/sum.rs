//! Adds up the counts of several runs of one code object.

use byteorder::{ByteOrder, LittleEndian};

use crate::format::profraw::ProfileError;
use crate::format::profraw::layout::Version;
use crate::format::profraw::pool;
use crate::format::profraw::read::RawProfile;
use crate::format::profraw::write::padding;
use crate::format::sections::{Addition, PerSection, Section};

/// The largest count that a profile may hold. `llvm-profdata` rejects a raw profile with a larger one as
/// malformed (`RawInstrProfReader`, `MaxCounterValue`).
pub const MAX_COUNT: u64 = 1 << 56;

/// The counts of a code object: the sections that change while kernels run. The others are empty.
pub type Counts = PerSection<Vec<u8>>;

impl PerSection<Vec<u8>> {
    /// The counts in the raw profile `file`.
    ///
    /// # Errors
    /// Fails if `file` is not a raw profile of a known version, or is cut short.
    pub fn of_profile(file: &[u8]) -> Result<Self, ProfileError> {
        let profile = RawProfile::parse(file)?;
        Ok(Self::from_fn(|section| match section.is_counted() {
            true => file[profile.sections.get(section).clone()].to_vec(),
            false => Vec::new(),
        }))
    }

    /// The bytes of each section.
    pub(crate) fn slices(&self) -> PerSection<&[u8]> {
        PerSection::from_fn(|section| self.get(section).as_slice())
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

/// A raw profile that others of the same code can be added to, as the bytes of its file.
#[derive(Clone, Debug)]
pub struct Sum {
    file: Vec<u8>,
    profile: RawProfile,
}

impl Sum {
    /// Starts with the counts of the raw profile `file`.
    ///
    /// # Errors
    /// Fails if `file` is not a raw profile of a known version, is cut short, or has parts that rocov does
    /// not add.
    pub fn of(file: impl AsRef<[u8]> + Into<Vec<u8>>) -> Result<Self, ProfileError> {
        let profile = parse_whole(file.as_ref())?;
        let (file, profile) = pool::plain(file, profile)?;
        Ok(Self { file, profile })
    }

    /// Adds the counts of the raw profile `file`, as [`Counts::add`] does. Apart from the counts and their
    /// place, both files must be equal: then they are of the same code and version.
    ///
    /// # Errors
    /// Fails if they differ, for the reasons of [`Sum::of`], or if the counts in force in `file` are not
    /// whole: an addition would silently lose the older ones. The sum does not change then.
    pub fn add(&mut self, file: &[u8]) -> Result<(), ProfileError> {
        let theirs = parse_whole(file)?;
        theirs.check_counts(file)?;
        if !theirs.header.is_like(&self.profile.header)
            || unchanging(file, &theirs) != unchanging(&self.file, &self.profile)
        {
            return Err(ProfileError::OtherCode);
        }
        let version = self.profile.header.version();
        for section in Section::counted() {
            let into = &mut self.file[self.profile.sections.get(section).clone()];
            add(
                section,
                version,
                into,
                &file[theirs.sections.get(section).clone()],
            );
        }
        Ok(())
    }

    /// The parsed profile. All profiles in the sum have its version, variant and parts.
    #[must_use]
    pub fn profile(&self) -> &RawProfile {
        &self.profile
    }

    /// The sum as the bytes of a raw profile.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.file
    }
}

/// Parses a profile that has only known parts: one that ends with its names.
fn parse_whole(file: &[u8]) -> Result<RawProfile, ProfileError> {
    let profile = RawProfile::parse(file)?;
    let end = profile.sections.names.end + padding(profile.sections.names.len());
    if file.len() > end {
        return Err(ProfileError::MoreParts {
            end,
            found: file.len() - end,
        });
    }
    Ok(profile)
}

/// The parts of a profile besides header and counts: binary ids and records, and names.
pub(super) fn unchanging<'a>(file: &'a [u8], profile: &RawProfile) -> [&'a [u8]; 2] {
    let header = profile.header.version().layout().header_bytes();
    [
        &file[header..profile.sections.data.end],
        &file[profile.sections.names.clone()],
    ]
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

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::format::profraw::{Parts, encode};

    fn counts(counters: &[u64]) -> Counts {
        let counters = counters
            .iter()
            .copied()
            .flat_map(u64::to_le_bytes)
            .collect();
        Counts {
            counters,
            ..Counts::default()
        }
    }

    #[test]
    fn counts_add_and_stop_at_the_limit_of_the_reader() {
        let version = Version::of_word(10).unwrap();
        let mut sum = counts(&[1, 0, MAX_COUNT - 1, u64::MAX]);
        sum.add(&counts(&[2, 0, 5, u64::MAX]), &version).unwrap();
        assert_eq!(sum, counts(&[3, 0, MAX_COUNT, MAX_COUNT]));
    }

    #[test]
    fn single_byte_counters_and_bitmaps_join() {
        let version = Version::of_word(1 << 60 | 10).unwrap();
        let mut sum = Counts {
            counters: vec![0xff, 0, 0xff, 0],
            bitmap: vec![1, 6],
            ..Counts::default()
        };
        let more = Counts {
            counters: vec![0xff, 0xff, 0, 0],
            bitmap: vec![2, 4],
            ..Counts::default()
        };
        sum.add(&more, &version).unwrap();
        assert_eq!(sum.counters, [0xff, 0, 0, 0]);
        assert_eq!(sum.bitmap, [3, 6]);
    }

    #[test]
    fn what_is_new_is_told_from_what_was_there() {
        let with = |counts: Counts, bitmap| Counts {
            uniform: counts.counters.clone(),
            bitmap: vec![bitmap],
            ..counts
        };
        let version = Version::of_word(10).unwrap();
        // The second counter was reset in between.
        let news = with(counts(&[5, 3, 7]), 6).since(&with(counts(&[2, 4, 7]), 3), &version);
        assert_eq!(news, with(counts(&[3, 3, 0]), 4));
        let reached = |counters: &[u8]| Counts {
            counters: counters.to_vec(),
            ..Counts::default()
        };
        let ten = version;
        let version = Version::of_word(1 << 60 | 10).unwrap();
        // The last counter was reset in between.
        let news = reached(&[0, 0, 0xff, 0xff]).since(&reached(&[0, 0xff, 0xff, 0]), &version);
        assert_eq!(news, reached(&[0xff, 0, 0xff, 0xff]));
        assert!(!counts(&[1, 4]).is_below(&counts(&[1, 3]), &ten));
        assert!(counts(&[2, 2]).is_below(&counts(&[1, 3]), &ten));
        assert!(!news.is_nothing(&version));
        assert!(reached(&[0xff, 0xff]).is_nothing(&version));
        let [none, counters] = [0, 1].map(|count| counts(&[count]));
        let bitmap = Counts {
            bitmap: vec![0, 1],
            ..none.clone()
        };
        let uniform = Counts {
            uniform: vec![0, 1],
            ..none.clone()
        };
        let some = [counters, bitmap, uniform];
        assert!(some.iter().all(|some| !some.is_nothing(&ten)));
        assert!(with(none, 0).is_nothing(&ten));
    }

    #[test]
    fn other_code_is_refused() {
        let version = Version::of_word(10).unwrap();
        let mut sum = counts(&[7]);
        let error = sum.add(&counts(&[1, 2]), &version).unwrap_err();
        assert_eq!(
            error,
            ProfileError::Mismatch {
                found: 16,
                expected: 8
            }
        );
        assert_eq!(sum, counts(&[7]));
    }

    /// A profile of two functions with `counters` each. Another `hash` makes other functions.
    fn profile(word: u64, hash: u8, counters: &[u8]) -> Vec<u8> {
        let version = Version::of_word(word).unwrap();
        let bytes = version.layout().record.bytes as usize;
        encode(&Parts {
            version,
            build_id: None,
            sections: PerSection {
                data: &vec![hash; 2 * bytes],
                counters,
                bitmap: if word == 8 { &[] } else { &counters[..8] },
                uniform: if word == 11 { counters } else { &[] },
                names: b"names",
            },
            names_address: 0,
        })
    }

    #[test]
    fn files_add_where_nothing_but_counts_differs() {
        let twice = |value: u64| value.to_le_bytes().repeat(2);
        for (word, one, two, both) in [
            (8, 1, 2, 3),
            (10, 1, 2, 3),
            (11, 1, 2, 3),
            (1 << 60 | 10, u64::MAX, 0xff00, 0xff00),
        ] {
            let mut sum = Sum::of(profile(word, 7, &twice(one))).unwrap();
            sum.add(&profile(word, 7, &twice(two))).unwrap();
            let part = |part: &Range<usize>| sum.bytes()[part.clone()].to_vec();
            assert_eq!(part(&sum.profile().sections.counters), twice(both));
            if word != 8 {
                assert_eq!(
                    part(&sum.profile().sections.bitmap),
                    (one | two).to_le_bytes()
                );
            }
            if word == 11 {
                assert_eq!(part(&sum.profile().sections.uniform), twice(both));
            }
        }
    }

    #[test]
    fn the_counts_of_a_file_are_those_it_was_made_of() {
        let counters = [1, 2].map(u64::to_le_bytes).concat();
        let expected = Counts {
            bitmap: counters[..8].to_vec(),
            uniform: counters.clone(),
            counters,
            ..Counts::default()
        };
        let file = profile(11, 7, &expected.counters);
        assert_eq!(Counts::of_profile(&file), Ok(expected.clone()));
        // A file of other counts, with these counts in their place.
        let version = Version::of_word(11).unwrap();
        let other = Parts {
            version,
            build_id: None,
            sections: PerSection {
                data: &vec![7; 2 * version.layout().record.bytes as usize],
                counters: &[9; 16],
                bitmap: &[9; 8],
                uniform: &[9; 16],
                names: b"names",
            },
            names_address: 0,
        };
        assert_eq!(encode(&other.counting(&expected)), file);
    }

    #[test]
    fn sections_that_a_version_does_not_have_are_in_none_of_its_files() {
        for word in [8, 9, 10, 11] {
            let version = Version::of_word(word).unwrap();
            let bytes = version.layout().record.bytes as usize;
            let file = encode(&Parts {
                version,
                build_id: None,
                sections: PerSection {
                    data: &vec![7; bytes],
                    counters: &[1; 16],
                    bitmap: &[0x22; 8],
                    uniform: &[0x33; 8],
                    names: b"names",
                },
                names_address: 0,
            });
            let sum = Sum::of(file.as_slice()).unwrap();
            assert_eq!(
                &file[sum.profile().sections.names.clone()],
                b"names",
                "{word}"
            );
            assert_eq!(file.contains(&0x22), word > 8, "{word}");
            assert_eq!(
                file.ends_with(&[[0x33; 8], *b"names\0\0\0"].concat()),
                word > 10
            );
        }
    }

    #[test]
    fn files_of_other_code_and_damaged_ones_are_told_apart() {
        let good = profile(10, 7, &[1; 16]);
        let mut sum = Sum::of(good.clone()).unwrap();
        let mut other_names = good.clone();
        *other_names.iter_mut().rfind(|byte| **byte == b's').unwrap() = b'z';
        for other in [
            profile(10, 8, &[1; 16]),
            profile(10, 7, &[1; 24]),
            profile(11, 7, &[1; 16]),
            other_names,
        ] {
            assert_eq!(sum.add(&other), Err(ProfileError::OtherCode));
        }
        // Only the header tells these apart: records have no place for the data after the counters.
        let mut first = Sum::of(profile(8, 7, &[1; 16])).unwrap();
        let other = profile(8, 7, &[1; 24]);
        assert_eq!(first.add(&other), Err(ProfileError::OtherCode));
        let two = [good.as_slice(), &good].concat();
        let more = ProfileError::MoreParts {
            end: good.len(),
            found: good.len(),
        };
        assert_eq!(Sum::of(two.clone()).unwrap_err(), more);
        assert_eq!(sum.add(&two), Err(more));
        assert!(matches!(
            sum.add(&good[..good.len() - 1]),
            Err(ProfileError::Truncated { .. })
        ));
        assert!(matches!(
            sum.add(&[0; 200]),
            Err(ProfileError::WrongMagic { .. })
        ));
        assert_eq!(sum.bytes(), good);
    }
}
