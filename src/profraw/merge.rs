//! Adding what two runs of the same code object counted.

use byteorder::{ByteOrder, LittleEndian};

use super::ProfileError;
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
        if version.is_single_byte() {
            // 0 is reached, 0xff is not.
            join(&mut self.counters, &more.counters, |sum, more| sum & more);
        } else {
            add_words(&mut self.counters, &more.counters);
        }
        join(&mut self.bitmap, &more.bitmap, |sum, more| sum | more);
        add_words(&mut self.uniform, &more.uniform);
        Ok(())
    }

    /// What was counted since `before`, of the same load. Joined counts (single bytes, bitmaps)
    /// stay whole: joining them again changes nothing.
    #[must_use]
    pub fn since(&self, before: &Counts, version: &Version) -> Counts {
        let mut news = self.clone();
        if !version.is_single_byte() {
            subtract_words(&mut news.counters, &before.counters);
        }
        subtract_words(&mut news.uniform, &before.uniform);
        news
    }
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
}
