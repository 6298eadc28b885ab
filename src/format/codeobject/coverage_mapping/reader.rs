//! A reader for the bytes of a coverage section.

use crate::format::codeobject::coverage_mapping::error::CoverageError;
use crate::format::leb128::uleb128;

/// A reader that moves forward through a section or a part of it.
pub(super) struct Reader<'a> {
    section: &'static str,
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(section: &'static str, data: &'a [u8]) -> Self {
        let at = 0;
        Reader { section, data, at }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.data[self.at..]
    }

    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], CoverageError> {
        let taken = usize::try_from(len)
            .ok()
            .and_then(|len| self.rest().get(..len));
        let taken = taken.ok_or(CoverageError::Cut {
            section: self.section,
            at: self.at,
            found: len,
            len: self.data.len(),
        })?;
        self.at += taken.len();
        Ok(taken)
    }

    /// Moves to the next multiple of 8 bytes, or to the end.
    pub(super) fn align(&mut self) {
        self.at = self.at.next_multiple_of(8).min(self.data.len());
    }

    /// Reads a ULEB128 number.
    pub(super) fn number(&mut self) -> Result<u64, CoverageError> {
        let (number, len) = uleb128(self.rest()).ok_or(CoverageError::Number {
            section: self.section,
            at: self.at,
        })?;
        self.at += len;
        Ok(number)
    }

    /// Reads a ULEB128 number below `limit`. `what` is its meaning in messages.
    pub(super) fn below(&mut self, limit: u64, what: &'static str) -> Result<u64, CoverageError> {
        match self.number()? {
            found if found < limit => Ok(found),
            found => Err(CoverageError::Limit { what, found, limit }),
        }
    }

    /// Reads a ULEB128 number below 2^32 - 1, the limit of LLVM's reader.
    pub(super) fn word(&mut self, what: &'static str) -> Result<u32, CoverageError> {
        let word = self.below(u32::MAX.into(), what)?;
        Ok(word as u32)
    }

    /// Reads the size of a list, in elements of at least one byte each.
    pub(super) fn size(&mut self) -> Result<usize, CoverageError> {
        let size = self.number()?;
        match usize::try_from(size) {
            Ok(size) if size <= self.rest().len() => Ok(size),
            _ => Err(CoverageError::Cut {
                section: self.section,
                at: self.at,
                found: size,
                len: self.data.len(),
            }),
        }
    }
}
