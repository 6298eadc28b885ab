//! Reads a container from front to back and checks each part against the size of the data.

use std::borrow::Cow;
use std::ops::Range;

use crate::format::bundle::error::BundleError;

/// A place in the bytes of a container. Offsets count from the container's first byte. Messages name offsets
/// in the file or in the unpacked data.
pub(super) struct Cursor<'a> {
    /// The bytes from the container's first to the last that may belong to it.
    pub(super) bytes: &'a [u8],
    /// The container's name in messages.
    pub(super) what: &'static str,
    /// The offset of the container in the file.
    pub(super) start: usize,
    /// The next byte to read.
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// Makes a cursor at the first of `bytes`, for a container at `start` in the file.
    pub(super) fn new(bytes: &'a [u8], what: &'static str, start: usize) -> Self {
        Cursor {
            bytes,
            what,
            start,
            at: 0,
        }
    }

    /// Reads the next little-endian number of `SIZE` bytes, 8 at most.
    pub(super) fn number<const SIZE: usize>(
        &mut self,
        part: &'static str,
    ) -> Result<u64, BundleError> {
        let bytes = self.take(part, SIZE as u64)?;
        let mut word = [0; 8];
        word[..SIZE].copy_from_slice(bytes);
        Ok(u64::from_le_bytes(word))
    }

    /// Reads the next `size` bytes.
    pub(super) fn take(&mut self, part: &'static str, size: u64) -> Result<&'a [u8], BundleError> {
        let range = self.range(part, self.at as u64, size)?;
        self.at = range.end;
        Ok(&self.bytes[range])
    }

    /// The range of `size` bytes from `offset`.
    pub(super) fn range(
        &self,
        part: impl Into<Cow<'static, str>>,
        offset: u64,
        size: u64,
    ) -> Result<Range<usize>, BundleError> {
        // Two u64 cannot overflow a u128.
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
        // Both are at most the length, and so fit a usize.
        Ok(offset as usize..end as usize)
    }

    /// Rejects a declared size of the whole container that ends before the cursor, which is after the header.
    ///
    /// A container without bytes would be found again and again in one place.
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

    /// Rejects a number of entries that no container has, before anything uses it.
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
