//! The bytes of an ELF, for parsers.

use std::io::{Cursor, SeekFrom};
use std::ops::{Deref, Range};
use std::sync::Mutex;

use object::read::{ReadCache, ReadRef};

use crate::device::ElfImage;
use crate::support::memory::{NoMemory, room};

/// The size in bytes up to which an ELF is read at once. Most code objects are smaller. Nobody needs most bytes of a
/// large one.
const SHORT: u64 = 1 << 20;

/// The bytes of an ELF: all in memory if they are few, read on demand otherwise.
#[derive(Debug)]
pub struct ElfBytes(Bytes);

#[derive(Debug)]
enum Bytes {
    Short(ElfBuffer),
    Long(ReadCache<Box<dyn ElfImage>>),
}

impl ElfBytes {
    /// Reads a short ELF. A read that fails fails again when the bytes are needed.
    #[must_use]
    pub fn new(mut image: Box<dyn ElfImage>) -> Self {
        Self(match all(&mut *image) {
            Some(bytes) => Bytes::Short(bytes),
            None => Bytes::Long(ReadCache::new(image)),
        })
    }

    /// All bytes, if they are in memory.
    #[must_use]
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.0 {
            Bytes::Short(bytes) => Some(bytes),
            Bytes::Long(_) => None,
        }
    }

    /// All bytes, if they are in memory. If not, the ELF to read from any place.
    ///
    /// # Errors
    /// Fails if they are not in memory.
    pub(crate) fn into_memory(self) -> Result<ElfBuffer, Box<dyn ElfImage>> {
        match self.0 {
            Bytes::Short(bytes) => Ok(bytes),
            Bytes::Long(cache) => Err(cache.into_inner()),
        }
    }

    /// The ELF to read from any place.
    #[must_use]
    pub fn into_image(self) -> Box<dyn ElfImage> {
        self.into_memory().map_or_else(
            |image| image,
            |bytes| Box::new(Cursor::new(bytes.into_vec())),
        )
    }
}

/// The largest buffer in bytes that stays for the next ELF.
const KEPT: usize = 256 << 10;

/// The buffer of the last ELF that was read. New memory for each would take longer than the read: the system has to make
/// its pages.
static KEPT_BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// All bytes of an ELF. Its memory serves later ones.
#[derive(Debug, Default)]
pub(crate) struct ElfBuffer {
    /// As long as the longest ELF so far.
    memory: Vec<u8>,
    len: usize,
}

impl ElfBuffer {
    /// Makes a buffer for `len` bytes, of any content.
    fn new(len: u64) -> Result<Self, NoMemory> {
        // A child that was forked while another thread had the lock never gets it.
        let kept = KEPT_BUFFER.try_lock();
        let kept = kept.map_or_else(|_| Vec::new(), |mut kept| std::mem::take(&mut *kept));
        let mut memory = match kept.len() as u64 {
            enough if enough >= len => kept,
            _ => room(len)?,
        };
        let len = len as usize;
        if memory.len() < len {
            memory.resize(len, 0);
        }
        Ok(Self { memory, len })
    }

    fn into_vec(mut self) -> Vec<u8> {
        self.memory.truncate(self.len);
        std::mem::take(&mut self.memory)
    }
}

impl Deref for ElfBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl Drop for ElfBuffer {
    fn drop(&mut self) {
        if (1..=KEPT).contains(&self.memory.len())
            && let Ok(mut kept) = KEPT_BUFFER.try_lock()
            && kept.len() < self.memory.len()
        {
            *kept = std::mem::take(&mut self.memory);
        }
    }
}

/// All bytes of a short ELF. `None` if it is long or cannot be read, or if there is no memory for it.
fn all(image: &mut dyn ElfImage) -> Option<ElfBuffer> {
    let len = image.seek(SeekFrom::End(0)).ok()?;
    image.rewind().ok()?;
    if len > SHORT {
        return None;
    }
    let mut bytes = ElfBuffer::new(len).ok()?;
    let len = bytes.len;
    image.read_exact(&mut bytes.memory[..len]).ok()?;
    Some(bytes)
}

impl<'a> ReadRef<'a> for &'a ElfBytes {
    fn len(self) -> Result<u64, ()> {
        match &self.0 {
            Bytes::Short(bytes) => Ok(bytes.len() as u64),
            Bytes::Long(cache) => cache.len(),
        }
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        match &self.0 {
            Bytes::Short(bytes) => (&**bytes).read_bytes_at(offset, size),
            Bytes::Long(cache) => cache.read_bytes_at(offset, size),
        }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        match &self.0 {
            Bytes::Short(bytes) => (&**bytes).read_bytes_at_until(range, delimiter),
            Bytes::Long(cache) => cache.read_bytes_at_until(range, delimiter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_ones_read_alike() {
        for len in [0, 1, SHORT, SHORT + 1] {
            let expected: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let bytes = ElfBytes::new(Box::new(Cursor::new(expected.clone())));
            assert_eq!(bytes.in_memory().is_some(), len <= SHORT, "{len}");
            assert_eq!((&bytes).len(), Ok(len));
            assert_eq!((&bytes).read_bytes_at(0, len), Ok(expected.as_slice()));
            assert!((&bytes).read_bytes_at(1, len + 1).is_err(), "{len}");
            if len > 8 {
                let until = (&bytes).read_bytes_at_until(2..len, 6);
                assert_eq!(until, Ok(&expected[2..6]));
            }
            let mut read = Vec::new();
            let mut image = bytes.into_image();
            image.rewind().expect("a start");
            image.read_to_end(&mut read).expect("it is in memory");
            assert_eq!(read, expected);
        }
    }

    /// The memory of an ELF serves later ones, longer and shorter, while others are there.
    #[test]
    fn elfs_one_after_the_other_keep_their_own_bytes() {
        let image = |byte: u8, len: usize| ElfBytes::new(Box::new(Cursor::new(vec![byte; len])));
        let other = image(1, 3_000);
        for (byte, len) in [(2, 5_000), (3, 10), (4, KEPT + 1), (5, 4_999), (6, 0)] {
            let bytes = image(byte, len);
            assert_eq!(bytes.in_memory(), Some(vec![byte; len].as_slice()));
            assert_eq!(other.in_memory(), Some([1; 3_000].as_slice()));
        }
    }
}
