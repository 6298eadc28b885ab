//! Adding what two runs of the same code object counted.

use std::ops::Range;

use byteorder::{ByteOrder, LittleEndian};

use super::ProfileError;
use super::decode::RawProfile;
use super::encode::padding;
use super::pooled;
use super::version::Version;

/// The largest count that a profile may hold: `llvm-profdata` calls a raw profile with a larger
/// one malformed (`RawInstrProfReader`, `MaxCounterValue`).
pub const MAX_COUNT: u64 = 1 << 56;

/// What a code object counts: the sections that change while kernels run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The counters.
    pub counters: Vec<u8>,
    /// The MC/DC bitmaps.
    pub bitmap: Vec<u8>,
    /// The uniform counters.
    pub uniform: Vec<u8>,
}

impl Counts {
    /// What the raw profile `file` says was counted.
    ///
    /// # Errors
    /// Fails where `file` is no raw profile of a known version, or is cut short.
    pub fn of_profile(file: &[u8]) -> Result<Counts, ProfileError> {
        let profile = RawProfile::parse(file)?;
        Ok(Counts {
            counters: file[profile.counters].to_vec(),
            bitmap: file[profile.bitmap].to_vec(),
            uniform: file[profile.uniform].to_vec(),
        })
    }

    /// Adds the counts of another run of the same code object. Sums stop at [`MAX_COUNT`];
    /// single-byte counters and bitmaps are joined: reached in either is reached.
    ///
    /// # Errors
    /// Fails, with `self` as it was, where the two have not the same sizes.
    pub fn add(&mut self, more: &Counts, version: &Version) -> Result<(), ProfileError> {
        let sizes = |counts: &Counts| {
            [
                counts.counters.len(),
                counts.bitmap.len(),
                counts.uniform.len(),
            ]
        };
        for (expected, found) in sizes(self).into_iter().zip(sizes(more)) {
            if expected != found {
                return Err(ProfileError::Mismatch { found, expected });
            }
        }
        add_counters(&mut self.counters, &more.counters, version);
        add_bitmap(&mut self.bitmap, &more.bitmap);
        add_words(&mut self.uniform, &more.uniform);
        Ok(())
    }

    /// What was counted since `before`, of the same load: added to `before`, it gives these counts
    /// again. Of joined counts (single bytes, bitmaps) that is what was not reached before.
    #[must_use]
    pub fn since(&self, before: &Counts, version: &Version) -> Counts {
        let mut news = self.clone();
        if version.is_single_byte() {
            // Zero is "reached".
            join(&mut news.counters, &before.counters, |now, then| {
                now | !then
            });
        } else {
            subtract_words(&mut news.counters, &before.counters);
        }
        join(&mut news.bitmap, &before.bitmap, |now, then| now & !then);
        subtract_words(&mut news.uniform, &before.uniform);
        news
    }

    /// Whether any of these is less than `before`, of the same load: they were reset in between.
    #[must_use]
    pub fn is_below(&self, before: &Counts, version: &Version) -> bool {
        let now = self.counters.chunks_exact(8);
        let mut both = now.zip(before.counters.chunks_exact(8));
        !version.is_single_byte()
            && both.any(|(now, then)| LittleEndian::read_u64(now) < LittleEndian::read_u64(then))
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_nothing(&self, version: &Version) -> bool {
        let nothing = if version.is_single_byte() { 0xff } else { 0 };
        self.counters.iter().all(|byte| *byte == nothing)
            && self
                .bitmap
                .iter()
                .chain(&self.uniform)
                .all(|byte| *byte == 0)
    }
}

/// A raw profile that others of the same code are added to, as the bytes of its file.
#[derive(Clone, Debug)]
pub struct Sum {
    file: Vec<u8>,
    profile: RawProfile,
}

impl Sum {
    /// Starts with what the raw profile `file` counted.
    ///
    /// # Errors
    /// Fails where `file` is no raw profile of a known version, is cut short, or has more parts than
    /// those that are added.
    pub fn of(file: impl AsRef<[u8]> + Into<Vec<u8>>) -> Result<Sum, ProfileError> {
        let profile = parse_whole(file.as_ref())?;
        let (file, profile) = pooled::plain(file, profile)?;
        Ok(Sum { file, profile })
    }

    /// Adds what the raw profile `file` counted, as [`Counts::add`] does. Apart from what is
    /// counted, and from where that is, both files must be alike: then they are of the same code and
    /// version.
    ///
    /// # Errors
    /// Fails, with the sum as it was, where they are not, for the reasons of [`Sum::of`], or where the
    /// counts in force in `file` are not whole: those before them would go without a word.
    pub fn add(&mut self, file: &[u8]) -> Result<(), ProfileError> {
        let theirs = parse_whole(file)?;
        theirs.check_counts(file)?;
        if !theirs.header.is_like(&self.profile.header)
            || unchanging(file, &theirs) != unchanging(&self.file, &self.profile)
        {
            return Err(ProfileError::OtherCode);
        }
        add_counts(
            self.profile.header.version(),
            (&mut self.file, self.profile.counts()),
            (file, theirs.counts()),
        );
        Ok(())
    }

    /// Version, variant and parts, which are those of every profile in the sum.
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

/// Reads a profile whose every part is known here: one that ends with its names.
fn parse_whole(file: &[u8]) -> Result<RawProfile, ProfileError> {
    let profile = RawProfile::parse(file)?;
    let end = profile.names.end + padding(profile.names.len());
    if file.len() > end {
        return Err(ProfileError::MoreParts {
            end,
            found: file.len() - end,
        });
    }
    Ok(profile)
}

/// What a profile has beside its header and what is counted: binary ids and records, and names.
pub(super) fn unchanging<'a>(file: &'a [u8], profile: &RawProfile) -> [&'a [u8]; 2] {
    let header = profile.header.version().layout().header_bytes();
    [
        &file[header..profile.records.end],
        &file[profile.names.clone()],
    ]
}

/// Adds the counts in `from` to those in `into`, each with the places of counters, bitmap and uniform
/// counters, of the same sizes.
pub(super) fn add_counts(
    version: &Version,
    (into, [counters, bitmap, uniform]): (&mut [u8], [Range<usize>; 3]),
    (from, places): (&[u8], [Range<usize>; 3]),
) {
    let [more_counters, more_bitmap, more_uniform] = places.map(|it| &from[it]);
    add_counters(&mut into[counters], more_counters, version);
    add_bitmap(&mut into[bitmap], more_bitmap);
    add_words(&mut into[uniform], more_uniform);
}

fn add_counters(into: &mut [u8], from: &[u8], version: &Version) {
    if version.is_single_byte() {
        // 0 is reached, 0xff is not.
        join(into, from, |sum, more| sum & more);
    } else {
        add_words(into, from);
    }
}

fn add_bitmap(into: &mut [u8], from: &[u8]) {
    join(into, from, |sum, more| sum | more);
}

fn subtract_words(from: &mut [u8], before: &[u8]) {
    for (count, before) in from.chunks_exact_mut(8).zip(before.chunks_exact(8)) {
        let (now, then) = (
            LittleEndian::read_u64(count),
            LittleEndian::read_u64(before),
        );
        // A smaller count was reset in between: all of it is new.
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
    use super::*;
    use crate::profraw::{Parts, encode};

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
            uniform: vec![],
        };
        let more = Counts {
            counters: vec![0xff, 0xff, 0, 0],
            bitmap: vec![2, 4],
            uniform: vec![],
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
        // The second was reset in between.
        let news = with(counts(&[5, 3, 7]), 6).since(&with(counts(&[2, 4, 7]), 3), &version);
        assert_eq!(news, with(counts(&[3, 3, 0]), 4));
        let reached = |counters: &[u8]| Counts {
            counters: counters.to_vec(),
            ..Counts::default()
        };
        let ten = version;
        let version = Version::of_word(1 << 60 | 10).unwrap();
        // The last was reset in between.
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

    /// A profile of two functions with `counters` each, or of other ones with another `hash`.
    fn profile(word: u64, hash: u8, counters: &[u8]) -> Vec<u8> {
        let version = Version::of_word(word).unwrap();
        let bytes = version.layout().record.bytes as usize;
        encode(&Parts {
            version,
            build_id: None,
            records: &vec![hash; 2 * bytes],
            counters,
            bitmap: if word == 8 { &[] } else { &counters[..8] },
            uniform: if word == 11 { counters } else { &[] },
            names: b"names",
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
            assert_eq!(part(&sum.profile().counters), twice(both));
            if word != 8 {
                assert_eq!(part(&sum.profile().bitmap), (one | two).to_le_bytes());
            }
            if word == 11 {
                assert_eq!(part(&sum.profile().uniform), twice(both));
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
        };
        let file = profile(11, 7, &expected.counters);
        assert_eq!(Counts::of_profile(&file), Ok(expected.clone()));
        // The same file as one of other counts, having counted these.
        let version = Version::of_word(11).unwrap();
        let other = Parts {
            version,
            build_id: None,
            records: &vec![7; 2 * version.layout().record.bytes as usize],
            counters: &[9; 16],
            bitmap: &[9; 8],
            uniform: &[9; 16],
            names: b"names",
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
                records: &vec![7; bytes],
                counters: &[1; 16],
                bitmap: &[0x22; 8],
                uniform: &[0x33; 8],
                names: b"names",
                names_address: 0,
            });
            let sum = Sum::of(file.as_slice()).unwrap();
            assert_eq!(&file[sum.profile().names.clone()], b"names", "{word}");
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
        // Where only the header tells: records have no place of what follows the counters.
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
