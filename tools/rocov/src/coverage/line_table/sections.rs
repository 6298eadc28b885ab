//! The sections of debug information, unpacked if they are compressed.

use std::borrow::Cow;
use std::sync::Arc;

use gimli::{Dwarf, EndianSlice, LittleEndian, Unit};
use object::{CompressionFormat, File, Object, ObjectSection};
use rocov::format::bundle::Method;
use rocov::format::unpack_whole;
use rocov::validate::MAX_SECTION_BYTES;

/// The limit in bytes for a section that is unpacked.
const MAX: u64 = MAX_SECTION_BYTES;

/// The contents of the section `name`; empty if there is none.
///
/// # Errors
///
/// Fails if it is damaged, or compressed in a way that is not known.
pub(super) fn contents<'a>(elf: &File<'a>, name: &str) -> Result<Cow<'a, [u8]>, String> {
    let failed = |error: &dyn ToString| format!("section {name}: {}", error.to_string());
    let Some(section) = elf.section_by_name(name) else {
        return Ok(Cow::Borrowed(&[]));
    };
    let packed = section.compressed_data().map_err(|error| failed(&error))?;
    let size = packed.uncompressed_size;
    let method = match packed.format {
        CompressionFormat::None => return Ok(Cow::Borrowed(packed.data)),
        CompressionFormat::Zlib => Method::Zlib,
        CompressionFormat::Zstandard => Method::Zstd,
        _ => return Err(failed(&"compressed neither by zlib nor by Zstandard")),
    };
    if size > MAX {
        return Err(failed(&format!(
            "{size} bytes unpacked, at most {MAX} are allowed"
        )));
    }
    let unpacked = unpack_whole(method, packed.data, size).map_err(|error| failed(&error))?;
    Ok(Cow::Owned(unpacked))
}

pub(super) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// A unit, and the sections that it refers to.
pub(super) struct InSections<'a> {
    pub(super) dwarf: Arc<Dwarf<Bytes<'a>>>,
    pub(super) unit: Unit<Bytes<'a>>,
}
