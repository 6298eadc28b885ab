//! The sections of debug information, unpacked if they are compressed.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;
use object::{CompressionFormat, File, Object, ObjectSection};

/// The most bytes of a section for each byte of the file: what zlib can make of it. A header that promises more is
/// damaged.
const MOST_TIMES: u64 = 1032;

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
    let packed = section.compressed_data().map_err(|it| failed(&it))?;
    let size = packed.uncompressed_size;
    if size > MOST_TIMES.saturating_mul(packed.data.len() as u64) {
        return Err(failed(&format!(
            "{size} bytes packed into {}",
            packed.data.len()
        )));
    }
    let mut unpacked = Vec::new();
    // One byte more shows a section that is longer than its header says.
    let most = size.saturating_add(1);
    match packed.format {
        CompressionFormat::None => return Ok(Cow::Borrowed(packed.data)),
        CompressionFormat::Zlib => {
            let read = ZlibDecoder::new(packed.data)
                .take(most)
                .read_to_end(&mut unpacked);
            read.map_err(|it| failed(&it))?;
        }
        CompressionFormat::Zstandard => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed.data);
            let decoder = decoder.map_err(|it| failed(&it))?;
            let read = decoder.take(most).read_to_end(&mut unpacked);
            read.map_err(|it| failed(&it))?;
        }
        _ => return Err(failed(&"compressed neither by zlib nor by Zstandard")),
    }
    if unpacked.len() as u64 != size {
        return Err(failed(&format!(
            "{} bytes, and its header says {size}",
            unpacked.len()
        )));
    }
    Ok(Cow::Owned(unpacked))
}
