//! The ELF of a loaded code object: host memory that may be gone, or a part of a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::read::ReadCache;

use crate::device::{ElfImage, LoadedCodeObject};
use crate::format::codeobject::{CodeObject, FileUri};

/// The most bytes of each segment to compare. The headers of two code objects differ, unless they are
/// compiled from nearly equal sources.
const COMPARED: u64 = 64 << 10;

/// Opens the ELF from the first place that still has it: the storage that the loader reports, or the file of
/// the URI.
///
/// The HSA interface lets a program free or reuse the buffer of a code object as soon as it is loaded, before
/// the freeze that rocov sees. ROCr itself does so if it got a file: it reports the memory that it read the
/// file into, and the file's URI. So this compares the contents with the loaded code object. `loaded` finds
/// the host address for a device address.
pub(super) fn open(
    code_object: &LoadedCodeObject,
    loaded: impl Fn(u64) -> Option<u64>,
) -> io::Result<Box<dyn ElfImage>> {
    let parts = [Part::of_storage(code_object), Part::of_file(code_object)];
    let mut failure = io::Error::other("neither memory nor file");
    for part in parts.into_iter().flatten() {
        let checked = part.and_then(|part| Ok((is_loaded(&part, code_object, &loaded)?, part)));
        match checked {
            Ok((true, part)) => return Ok(Box::new(part)),
            Ok((false, _)) => failure = io::Error::other("it is not there any more"),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Returns whether the ELF in `part` matches the loaded code object, as far as rocov can compare them.
fn is_loaded(
    part: &Part,
    code_object: &LoadedCodeObject,
    loaded: impl Fn(u64) -> Option<u64>,
) -> io::Result<bool> {
    let image: Box<dyn ElfImage> = Box::new(part.reopen()?);
    let image = ReadCache::new(image);
    let segments = CodeObject::parse(&image).and_then(|elf| elf.constant_segments(COMPARED));
    let Ok(segments) = segments else {
        return Ok(false);
    };
    for (address, bytes) in segments {
        let Some(host) = loaded(address.wrapping_add(code_object.load_delta)) else {
            continue;
        };
        let mut there = vec![0; bytes.len()];
        memory()?.read_exact_at(&mut there, host)?;
        if bytes.is_empty() || there != bytes {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The process's memory as a file. If the program has freed a buffer, a plain read would crash, but a read
/// from this file returns an error.
fn memory() -> io::Result<File> {
    File::open("/proc/self/mem")
}

/// A part of a file that reads like a file of its own.
struct Part {
    file: File,
    start: u64,
    len: u64,
    at: u64,
}

impl Part {
    fn new(file: File, start: u64, len: u64) -> Self {
        Self {
            file,
            start,
            len,
            at: 0,
        }
    }

    fn of_storage(code_object: &LoadedCodeObject) -> Option<io::Result<Self>> {
        let storage = code_object.storage?;
        Some(memory().map(|file| Self::new(file, storage.start, storage.len)))
    }

    fn of_file(code_object: &LoadedCodeObject) -> Option<io::Result<Self>> {
        let FileUri { path, offset, size } = FileUri::parse(&code_object.uri)?;
        Some(Self::of_path(&path, offset, size))
    }

    fn of_path(path: &Path, offset: u64, size: Option<u64>) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = match size {
            Some(size) => size,
            None => file.metadata()?.len().saturating_sub(offset),
        };
        Ok(Self::new(file, offset, size))
    }

    /// Opens this part again, at its start.
    fn reopen(&self) -> io::Result<Self> {
        Ok(Self::new(self.file.try_clone()?, self.start, self.len))
    }
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(self.at);
        let want = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let at = self
            .start
            .checked_add(self.at)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let read = self.file.read_at(&mut into[..want], at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Part {
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
    use crate::device::{DeviceRange, Executable};

    fn loaded(uri: &str, storage: Option<DeviceRange>) -> LoadedCodeObject {
        LoadedCodeObject {
            executable: Executable(1),
            agent: 1,
            uri: uri.into(),
            segment: DeviceRange { start: 0, len: 0 },
            load_delta: 0,
            storage,
        }
    }

    fn read(part: Option<io::Result<Part>>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        part.expect("a place")?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn own_memory_is_read_and_unmapped_memory_is_an_error() {
        let data = *b"a code object, say";
        let range = DeviceRange {
            start: data.as_ptr() as u64,
            len: data.len() as u64,
        };
        let part = Part::of_storage(&loaded("memory://1", Some(range)));
        assert_eq!(read(part).unwrap(), data);
        // The page at 0 is never mapped.
        let null = DeviceRange { start: 8, len: 4 };
        assert!(read(Part::of_storage(&loaded("memory://1", Some(null)))).is_err());
    }

    #[test]
    fn a_file_is_read_from_its_offset() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a b.co");
        std::fs::write(&path, b"0123456789").unwrap();
        let encoded = path.display().to_string().replace(' ', "%20");
        for (fragment, expected) in [
            ("", "0123456789"),
            ("#offset=3&size=4", "3456"),
            ("#offset=0x8", "89"),
            ("#offset=8&size=9", "89"),
        ] {
            let uri = format!("file://{encoded}{fragment}");
            let part = Part::of_file(&loaded(&uri, None));
            assert_eq!(read(part).unwrap(), expected.as_bytes(), "{uri}");
        }
        assert!(Part::of_file(&loaded("memory://1#offset=0x10", None)).is_none());
    }
}
