//! The ELF of a loaded code object: host memory that may be gone, or a part of a file.

use std::fs::File;
use std::io;

use crate::device::{ElfBytes, ElfImage, LoadedCodeObject};
use crate::format::codeobject::{CodeObject, FileUri};
use crate::support::file_part::{FilePart, OwnMemory};
use crate::support::own_memory;

/// The most bytes of each segment to compare. The headers of two code objects differ, unless they are
/// compiled from nearly equal sources.
const COMPARED: u64 = 64 << 10;

/// The ELF of a code object, wherever it lies.
type Image = Box<dyn ElfImage>;

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
    let storage = || Some(Ok(Box::new(storage_part(code_object)?) as Image));
    let file = || {
        let part = file_part(code_object)?;
        Some(part.map(|part| Box::new(part) as Image))
    };
    let places: [&dyn Fn() -> Option<io::Result<Image>>; 2] = [&storage, &file];
    let mut failure = io::Error::other("neither memory nor file");
    for image in places.into_iter().filter_map(|place| place()) {
        match image.and_then(|image| if_loaded(image, code_object, &loaded)) {
            Ok(Some(image)) => return Ok(image),
            Ok(None) => failure = io::Error::other("it no longer exists"),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Returns the ELF `image` if it matches the loaded code object, as far as rocov can compare them.
fn if_loaded(
    image: Box<dyn ElfImage>,
    code_object: &LoadedCodeObject,
    loaded: impl Fn(u64) -> Option<u64>,
) -> io::Result<Option<Box<dyn ElfImage>>> {
    let image = ElfBytes::new(image);
    let segments = CodeObject::parse(&image).and_then(|elf| elf.constant_segments(COMPARED));
    let Ok(segments) = segments else {
        return Ok(None);
    };
    // The loader has one piece of host memory for all segments of a code object. To find an address, it goes through
    // all code that is loaded, so this asks for one address only.
    let first = segments.first().map(|(first, _)| *first);
    let there = first.and_then(|first| {
        let host = loaded(first.wrapping_add(code_object.load_delta))?;
        Some((first, host))
    });
    if let Some((first, host)) = there {
        for (address, bytes) in segments {
            let host = host.wrapping_add(address.wrapping_sub(first));
            let mut there = vec![0; bytes.len()];
            let read = own_memory::read_at(host, &mut there)?;
            if bytes.is_empty() || there[..read] != *bytes {
                return Ok(None);
            }
        }
    }
    let mut image = image.into_image();
    image.rewind()?;
    Ok(Some(image))
}

/// Returns the ELF in the storage that the loader reports, if it reports one. If the program has freed a buffer, a plain
/// read would crash, but a read from this returns an error.
pub(super) fn storage_part(code_object: &LoadedCodeObject) -> Option<FilePart<OwnMemory>> {
    let storage = code_object.storage?;
    Some(FilePart::new(OwnMemory, storage.start, storage.len))
}

/// Returns the ELF in the file that the URI names, if it names one.
fn file_part(code_object: &LoadedCodeObject) -> Option<io::Result<FilePart>> {
    let FileUri { path, offset, size } = FileUri::parse(&code_object.uri)?;
    let part = File::open(path).and_then(|file| {
        let size = match size {
            Some(size) => size,
            None => file.metadata()?.len().saturating_sub(offset),
        };
        Ok(FilePart::new(file, offset, size))
    });
    Some(part)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

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

    fn read(mut part: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        part.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn own_memory_is_read_and_unmapped_memory_is_an_error() {
        let data = *b"a code object, say";
        let range = DeviceRange {
            start: data.as_ptr() as u64,
            len: data.len() as u64,
        };
        let part = storage_part(&loaded("memory://1", Some(range)));
        assert_eq!(read(part.expect("a place")).unwrap(), data);
        // The page at 0 is never mapped.
        let null = DeviceRange { start: 8, len: 4 };
        let part = storage_part(&loaded("memory://1", Some(null)));
        assert!(read(part.expect("a place")).is_err());
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
            let part = file_part(&loaded(&uri, None)).expect("a place");
            assert_eq!(read(part.unwrap()).unwrap(), expected.as_bytes(), "{uri}");
        }
        assert!(file_part(&loaded("memory://1#offset=0x10", None)).is_none());
    }
}
