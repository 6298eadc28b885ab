//! A part of a file or of the process's memory, for readers that ask for many short pieces of it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use rustix::io::Errno;

use crate::support::own_memory;

/// The size of a block in bytes. A block holds the headers, notes and names of a small ELF.
const BLOCK: u64 = 64 << 10;

/// Bytes with an offset each: those of a file, or of the memory of this process.
pub trait ReadAt: fmt::Debug {
    /// Reads bytes from `offset` on into `into`, and returns their number.
    ///
    /// # Errors
    /// Fails if nothing can be read there.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }
}

/// The memory of this process, by address.
#[derive(Debug)]
pub struct OwnMemory;

impl ReadAt for OwnMemory {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        own_memory::read_at(offset, into)
    }
}

/// A part of a file or of memory that reads like a file of its own.
///
/// It keeps the block that it read last, because a parser of ELFs asks for each name separately, and a system
/// call for each name takes longer than the parsing. `BufReader` would drop its buffer at each seek.
pub struct FilePart<F = File> {
    file: F,
    /// The offset of the part in the file, in bytes.
    start: u64,
    len: u64,
    /// The place of the next byte to read, in bytes from the start of the part.
    at: u64,
    block: Vec<u8>,
    /// The place of the block, in bytes from the start of the part.
    block_at: u64,
}

impl<F: ReadAt> FilePart<F> {
    /// Creates a reader of the `len` bytes of `file` that start at byte `start`.
    #[must_use]
    pub fn new(file: F, start: u64, len: u64) -> Self {
        Self {
            file,
            start,
            len,
            at: 0,
            block: Vec::new(),
            block_at: 0,
        }
    }

    /// Returns the bytes of the block from the next byte on.
    fn buffered(&self) -> &[u8] {
        let skipped = self.at.checked_sub(self.block_at);
        let skipped = skipped.and_then(|skipped| usize::try_from(skipped).ok());
        skipped
            .and_then(|skipped| self.block.get(skipped..))
            .unwrap_or_default()
    }

    /// Reads the block of the next byte, or as much of it as the file has.
    fn fill(&mut self) -> io::Result<()> {
        self.block_at = self.at - self.at % BLOCK;
        let len = BLOCK.min(self.len - self.block_at);
        self.block.clear();
        let room = self.block.try_reserve_exact(len as usize);
        room.map_err(|_| Errno::NOMEM)?;
        self.block.resize(len as usize, 0);
        let read = read_at(&self.file, &mut self.block, self.start, self.block_at);
        self.block.truncate(*read.as_ref().unwrap_or(&0));
        read.map(drop)
    }
}

impl<F: fmt::Debug> fmt::Debug for FilePart<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilePart")
            .field("file", &self.file)
            .field("start", &self.start)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

fn read_at(file: &impl ReadAt, into: &mut [u8], start: u64, at: u64) -> io::Result<usize> {
    let offset = start.checked_add(at).ok_or(io::ErrorKind::InvalidInput)?;
    file.read_at(into, offset)
}

impl<F: ReadAt> Read for FilePart<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(self.at);
        let want = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let into = &mut into[..want];
        // A reader that wants all of it reads no byte twice.
        if (into.len() as u64) < BLOCK.min(self.len) && self.buffered().is_empty() && left > 0 {
            self.fill()?;
        }
        let buffered = self.buffered();
        let read = match buffered.len().min(want) {
            // A long piece, or one after a page that cannot be read.
            0 => read_at(&self.file, into, self.start, self.at)?,
            len => {
                into[..len].copy_from_slice(&buffered[..len]);
                len
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

impl<F> Seek for FilePart<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of random pieces of a part of a file agree with the bytes of the file.
    #[test]
    fn pieces_are_those_of_the_file() {
        let contents: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..))
            .take(300_000)
            .collect();
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), &contents).expect("it can be written");
        let open = || File::open(file.path()).expect("it can be opened");
        for (start, len) in [
            (0, 300_000),
            (1, 65_536),
            (7, 200_000),
            (299_999, 1),
            (5, 0),
        ] {
            let expected = &contents[start..start + len];
            let mut part = FilePart::new(open(), start as u64, len as u64);
            for _ in 0..300 {
                let at = fastrand::usize(0..=len);
                let size = fastrand::usize(0..=[8, 3_000, 100_000][fastrand::usize(..3)]);
                let size = size.min(len - at);
                let mut piece = vec![0; size];
                part.seek(SeekFrom::Start(at as u64)).expect("a place");
                part.read_exact(&mut piece).expect("bytes of the part");
                assert_eq!(piece, expected[at..at + size], "{size} bytes at {at}");
            }
            part.seek(SeekFrom::Start(0)).expect("the start");
            let mut all = Vec::new();
            part.read_to_end(&mut all).expect("the part can be read");
            assert_eq!(all, expected);
        }
    }

    /// A part may name more bytes than the file has: those that it has can be read.
    #[test]
    fn a_part_ends_with_its_file() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), [7; 100]).expect("it can be written");
        let open = || File::open(file.path()).expect("it can be opened");
        let mut part = FilePart::new(open(), 90, 1 << 40);
        let mut read = Vec::new();
        part.read_to_end(&mut read).expect("an end");
        assert_eq!(read, [7; 10]);
        assert_eq!(
            part.seek(SeekFrom::Start(1 << 39)).expect("a place"),
            1 << 39
        );
        assert_eq!(part.read(&mut [0; 8]).expect("an end"), 0);
        let mut beyond = FilePart::new(open(), u64::MAX, 8);
        beyond.read(&mut [0; 8]).expect_err("no file is this long");
    }
}
