//! Plain bundles, as clang-offload-bundler writes them.
//!
//! A bundle has a magic number, the number of entries, and for each entry an offset, a size and a target id
//! with its length. The bytes of the entries follow. Numbers are little-endian u64. Offsets and sizes count
//! bytes from the start of the bundle.

use std::ops::Range;

use crate::format::bundle::bytes::Bytes;
use crate::format::bundle::container::{Container, MAX_ENTRIES, Packing};
use crate::format::bundle::cursor::Cursor;
use crate::format::bundle::entries::Entries;
use crate::format::bundle::error::BundleError;
use crate::format::bundle::formats::BUNDLE;
use crate::format::bundle::image::Image;

/// Parses the bundle at the start of the range `place` of `file`.
pub(super) fn parse<'data>(
    file: &Bytes<'data>,
    place: Range<usize>,
) -> Result<Container<'data>, BundleError> {
    let start = place.start;
    let mut cursor = Cursor::new(&file[place], BUNDLE.name, start);
    let magic = cursor.take("magic", BUNDLE.magic.len() as u64)?;
    if magic != BUNDLE.magic {
        return Err(BundleError::unknown_magic(magic, start));
    }
    let count = cursor.number::<8>("number of entries")?;
    cursor.check_count(count, MAX_ENTRIES)?;
    let mut entries = Entries::new(BUNDLE.name, start);
    for _ in 0..count {
        let offset = cursor.number::<8>("list of entries")?;
        let size = cursor.number::<8>("list of entries")?;
        let id_size = cursor.number::<8>("list of entries")?;
        let id = cursor.take("target id", id_size)?;
        let image = entries.id(id).and_then(|id| {
            let range = match size {
                // An empty image is valid at any offset.
                0 => 0..0,
                _ => cursor.range(format!("image {id}"), offset, size)?,
            };
            Ok(Image::from_bundle(id, file, start, range))
        });
        entries.push(image);
    }
    Ok(entries.into_container(cursor.at, Packing::Bundle))
}
