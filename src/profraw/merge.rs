//! Adding counters of the same code object.

use byteorder::{ByteOrder, LittleEndian};

use super::ProfileError;
use super::version::Version;

/// The largest count that a profile may hold: `llvm-profdata` calls a raw profile with a larger
/// one malformed (`RawInstrProfReader`, `MaxCounterValue`).
pub const MAX_COUNT: u64 = 1 << 56;

/// Adds the counters of one run to those of another, both of the same code object. Sums stop at
/// [`MAX_COUNT`]. Single-byte counters are joined: reached in either is reached.
///
/// # Errors
/// Fails, with `into` as it was, where the two have not the same size.
pub fn add_counters(into: &mut [u8], from: &[u8], version: &Version) -> Result<(), ProfileError> {
    if into.len() != from.len() {
        return Err(ProfileError::Mismatch {
            found: from.len(),
            expected: into.len(),
        });
    }
    if version.is_single_byte() {
        for (sum, more) in into.iter_mut().zip(from) {
            // 0 is reached, 0xff is not.
            *sum &= more;
        }
        return Ok(());
    }
    for (sum, more) in into.chunks_exact_mut(8).zip(from.chunks_exact(8)) {
        let total = LittleEndian::read_u64(sum).saturating_add(LittleEndian::read_u64(more));
        LittleEndian::write_u64(sum, total.min(MAX_COUNT));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(counts: &[u64]) -> Vec<u8> {
        counts.iter().copied().flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn counts_add_and_stop_at_the_limit_of_the_reader() {
        let version = Version::of_word(10).unwrap();
        let mut sum = bytes(&[1, 0, MAX_COUNT - 1, u64::MAX]);
        add_counters(&mut sum, &bytes(&[2, 0, 5, u64::MAX]), &version).unwrap();
        assert_eq!(sum, bytes(&[3, 0, MAX_COUNT, MAX_COUNT]));
    }

    #[test]
    fn single_byte_counters_join() {
        let version = Version::of_word(1 << 60 | 10).unwrap();
        let mut sum = vec![0xff, 0, 0xff, 0];
        add_counters(&mut sum, &[0xff, 0xff, 0, 0], &version).unwrap();
        assert_eq!(sum, [0xff, 0, 0, 0]);
    }

    #[test]
    fn other_code_is_refused() {
        let version = Version::of_word(10).unwrap();
        let mut sum = bytes(&[7]);
        let error = add_counters(&mut sum, &bytes(&[1, 2]), &version).unwrap_err();
        assert_eq!(
            error,
            ProfileError::Mismatch {
                found: 16,
                expected: 8
            }
        );
        assert_eq!(sum, bytes(&[7]));
    }
}
