//! The device code that an object of the process carries.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader};
use rocov::device::Image;

/// The section that clang puts it into.
const SECTION: &[u8] = b".hip_fatbin";

/// The bundles in the file at `path`; `None` where it has none, or is not an object. Of a library
/// without, little more than the section names is read.
///
/// # Errors
/// Fails where the file cannot be read.
pub(crate) fn of_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Ok(file) = File::open(path) else {
        // Deleted, or the kernel's own object.
        return Ok(None);
    };
    let Some((offset, size)) = place(&file) else {
        return Ok(None);
    };
    if offset
        .checked_add(size)
        .is_none_or(|end| end > u64::MAX / 2)
        || offset + size > file.metadata()?.len()
    {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // A file can be of any size, and have far fewer bytes on disk.
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size as usize)?;
    bytes.resize(size as usize, 0);
    file.read_exact_at(&mut bytes, offset)?;
    Ok(Some(bytes))
}

/// Offset and size of the section in the file.
fn place(file: &File) -> Option<(u64, u64)> {
    let image: Box<dyn Image> = Box::new(file.try_clone().ok()?);
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    let (_, section) = sections.section_by_name(LittleEndian, SECTION)?;
    section.file_range(LittleEndian)
}
