//! Reading a container from front to back, each part checked against the bytes there are.

use std::borrow::Cow;
use std::ops::Range;

use super::error::BundleError;

/// A place in the bytes of a container. Offsets count from the container's first byte; messages
/// name those of the file (or of what was unpacked).
pub(super) struct Cursor<'a> {
    /// From the container's first byte to the last that may belong to it.
    pub(super) bytes: &'a [u8],
    /// What the container is called in messages.
    pub(super) what: &'static str,
    /// Where it starts in the file.
    pub(super) start: usize,
    /// The next byte to read.
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// At the first of `bytes`, those of a container that starts at `start` in the file.
    pub(super) fn new(bytes: &'a [u8], what: &'static str, start: usize) -> Self {
        Cursor {
            bytes,
            what,
            start,
            at: 0,
        }
    }

    /// The next little-endian number of `SIZE` bytes, 8 at most.
    pub(super) fn number<const SIZE: usize>(
        &mut self,
        part: &'static str,
    ) -> Result<u64, BundleError> {
        let bytes = self.take(part, SIZE as u64)?;
        let mut word = [0; 8];
        word[..SIZE].copy_from_slice(bytes);
        Ok(u64::from_le_bytes(word))
    }

    /// The next `size` bytes.
    pub(super) fn take(&mut self, part: &'static str, size: u64) -> Result<&'a [u8], BundleError> {
        let range = self.range(part, self.at as u64, size)?;
        self.at = range.end;
        Ok(&self.bytes[range])
    }

    /// The `size` bytes from `offset`.
    pub(super) fn range(
        &self,
        part: impl Into<Cow<'static, str>>,
        offset: u64,
        size: u64,
    ) -> Result<Range<usize>, BundleError> {
        // Two u64 are no overflow in u128.
        let end = u128::from(offset) + u128::from(size);
        if end > self.bytes.len() as u128 {
            return Err(BundleError::Truncated {
                part: part.into(),
                what: self.what,
                offset: self.start,
                end: self.start as u128 + end,
                available: self.start + self.bytes.len(),
            });
        }
        // Both are at most the length, which is a usize.
        Ok(offset as usize..end as usize)
    }

    /// Refuses a size of the whole container by which it would end before where it is read now, which is
    /// behind the header.
    ///
    /// What has no bytes at all would be found again and again at one place.
    pub(super) fn check_size(&self, declared: u64) -> Result<(), BundleError> {
        if declared < self.at as u64 {
            return Err(BundleError::Size {
                what: self.what,
                offset: self.start,
                declared,
                header: self.at,
            });
        }
        Ok(())
    }

    /// Refuses numbers of entries that no container has, before they are used for anything.
    pub(super) fn check_count(&self, count: u64, limit: u64) -> Result<(), BundleError> {
        if count > limit {
            return Err(BundleError::Count {
                what: self.what,
                offset: self.start,
                found: count,
                limit,
            });
        }
        Ok(())
    }
}
