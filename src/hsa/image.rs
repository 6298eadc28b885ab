//! The ELF behind a loaded code object: host memory that may be gone, or part of a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use crate::device::{Image, LoadedCodeObject};

/// Opens the storage that the loader reports; where it reports none, the file of the URI.
pub(super) fn open(code_object: &LoadedCodeObject) -> io::Result<Box<dyn Image>> {
    if let Some(storage) = code_object.storage {
        // A program may free the buffer of a code object once it is loaded (the HSA interface
        // lets it), so a plain read could crash; the kernel's own view of the process answers
        // with an error instead.
        return Ok(Box::new(Part::new(
            "/proc/self/mem",
            storage.start,
            storage.len,
        )?));
    }
    let Some((path, offset, size)) = file_uri(&code_object.uri) else {
        return Err(io::Error::other("neither memory nor file"));
    };
    let size = match size {
        Some(size) => size,
        None => std::fs::metadata(&path)?.len().saturating_sub(offset),
    };
    Ok(Box::new(Part::new(&path, offset, size)?))
}

/// Path, offset and size of a `file://` URI (`file:///a%20b#offset=4096&size=9000`, as ROCr's
/// loader writes them: percent-encoded, both parts of the fragment optional, decimal or `0x`).
fn file_uri(uri: &str) -> Option<(String, u64, Option<u64>)> {
    let rest = uri.strip_prefix("file://")?;
    let (path, fragment) = rest.split_once(['#', '?']).unwrap_or((rest, ""));
    let number = |name: &str| {
        let value = fragment
            .split('&')
            .find_map(|part| part.strip_prefix(name))?;
        match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        }
    };
    Some((
        percent_decode(path),
        number("offset=").unwrap_or(0),
        number("size="),
    ))
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        match hex.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A part of a file, as a file of its own.
struct Part {
    file: File,
    start: u64,
    len: u64,
    at: u64,
}

impl Part {
    fn new(path: &str, start: u64, len: u64) -> io::Result<Part> {
        Ok(Part {
            file: File::open(path)?,
            start,
            len,
            at: 0,
        })
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

    fn read(code_object: &LoadedCodeObject) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open(code_object)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn own_memory_is_read_and_unmapped_memory_is_an_error() {
        let data = *b"a code object, say";
        let range = DeviceRange {
            start: data.as_ptr() as u64,
            len: data.len() as u64,
        };
        assert_eq!(read(&loaded("memory://1", Some(range))).unwrap(), data);
        // The page at 0 is never mapped.
        let null = DeviceRange { start: 8, len: 4 };
        assert!(read(&loaded("memory://1", Some(null))).is_err());
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
            assert_eq!(
                read(&loaded(&uri, None)).unwrap(),
                expected.as_bytes(),
                "{uri}"
            );
        }
        assert!(read(&loaded("memory://1#offset=0x10", None)).is_err());
    }
}
