//! Bytes of a file, or bytes that were unpacked from it.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A range of bytes. Images of one container share them without a copy.
#[derive(Clone)]
pub struct Bytes<'data> {
    source: Source<'data>,
    range: Range<usize>,
}

#[derive(Clone)]
enum Source<'data> {
    File(&'data [u8]),
    Unpacked(Arc<Vec<u8>>),
}

impl<'data> Bytes<'data> {
    /// Bytes of the file itself.
    pub(super) fn from_file(file: &'data [u8]) -> Self {
        Bytes {
            source: Source::File(file),
            range: 0..file.len(),
        }
    }

    /// Bytes that were unpacked, and are in no file.
    pub(super) fn unpacked(bytes: Vec<u8>) -> Bytes<'static> {
        let range = 0..bytes.len();
        Bytes {
            source: Source::Unpacked(Arc::new(bytes)),
            range,
        }
    }

    /// A part of the bytes. `None` if they do not reach so far.
    pub(super) fn get(&self, range: Range<usize>) -> Option<Self> {
        let start = self.range.start.checked_add(range.start)?;
        let end = self.range.start.checked_add(range.end)?;
        (start <= end && end <= self.range.end).then(|| Bytes {
            source: self.source.clone(),
            range: start..end,
        })
    }

    /// The range in the file. `None` for unpacked bytes.
    #[must_use]
    pub fn range_in_file(&self) -> Option<Range<usize>> {
        match self.source {
            Source::File(_) => Some(self.range.clone()),
            Source::Unpacked(_) => None,
        }
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all: &[u8] = match &self.source {
            Source::File(file) => file,
            Source::Unpacked(bytes) => bytes,
        };
        &all[self.range.clone()]
    }
}

impl Default for Bytes<'_> {
    fn default() -> Self {
        Bytes::from_file(&[])
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match self.source {
            Source::File(_) => "file",
            Source::Unpacked(_) => "unpacked",
        };
        write!(f, "{from} bytes {:#x?}", self.range)
    }
}
