//! Offload binaries, as clang-offload-packager (llvm-offload-binary) writes them and clang's newer offload
//! driver embeds them.
//!
//! The format is that of LLVM's `OffloadBinary` (llvm/include/llvm/Object/OffloadBinary.h). All numbers are
//! little-endian, and all offsets count from the start of the binary:
//!
//! | bytes | field |
//! |---|---|
//! | 4 | magic `10 ff 10 ad` |
//! | 4 | version |
//! | 8 | bytes of the binary, a multiple of 8 |
//! | 8 | offset of the entries |
//! | 8 | version 1: bytes of the one entry; from 2 on: number of entries |
//! | 8 | from version 3 on: bytes when unpacked, 0 if it is not compressed. If it is, all after this header is a zlib or zstd stream |
//! | for each entry: 2, 2, 4 | kind of image, producer, flags |
//! | 8, 8 | offset and number of strings |
//! | 8, 8 | offset and size of the image |
//! | for each string: 8, 8 | offsets of key and value |
//! | 8 | from version 2 on: bytes of the value; in version 1 a zero ends the value. A zero ends each key |
//!
//! The strings `triple` and `arch` name the target of an image.

use std::ops::Range;

use crate::format::bundle::bytes::Bytes;
use crate::format::bundle::container::{Container, MAX_ENTRIES, MAX_UNPACKED_BYTES, Packing};
use crate::format::bundle::cursor::Cursor;
use crate::format::bundle::entries::Entries;
use crate::format::bundle::error::BundleError;
use crate::format::bundle::formats::OFFLOAD_BINARY;
use crate::format::bundle::image::Image;
use crate::format::decompress::{Method, ZSTD_MAGIC, unpack};

const NEWEST_VERSION: u64 = 3;

/// The most strings of an entry: clang writes two to four.
const MAX_STRINGS: u64 = 64;

/// The size in bytes of the longest key that rocov reads.
const LONGEST_KEY: usize = "triple".len();

/// The names of the producer's bits, in their order.
const PRODUCERS: [&str; 4] = ["openmp", "cuda", "hip", "sycl"];

/// Parses the offload binary at the start of the range `place` of `file`.
pub(super) fn parse<'data>(
    file: &Bytes<'data>,
    place: Range<usize>,
) -> Result<Container<'data>, BundleError> {
    let start = place.start;
    let mut cursor = Cursor {
        bytes: &file[place.clone()],
        what: OFFLOAD_BINARY.name,
        start,
        at: OFFLOAD_BINARY.magic.len(),
    };
    let header = Header::read(&mut cursor)?;
    cursor.check_size(header.size)?;
    let end = start + cursor.range("contents", 0, header.size)?.end;
    let mut container = if header.unpacked == 0 {
        entries(file, start..end, &header)?
    } else {
        let whole = header.unpack(start, &file[start..end])?;
        let place = 0..whole.len();
        let inside = |source| BundleError::Unpacked {
            what: OFFLOAD_BINARY.name,
            offset: start,
            source: Box::new(source),
        };
        let container = entries(&Bytes::unpacked(whole), place, &header).map_err(inside)?;
        let damage = container.damage.into_iter().map(inside).collect();
        Container {
            damage,
            ..container
        }
    };
    container.offset = start;
    container.size = end - start;
    Ok(container)
}

struct Header {
    version: u64,
    size: u64,
    entries_offset: u64,
    entries: u64,
    /// The size in bytes when unpacked. 0 if the binary is not compressed.
    unpacked: u64,
}

impl Header {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, BundleError> {
        let version = cursor.number::<4>("header")?;
        if !(1..=NEWEST_VERSION).contains(&version) {
            return Err(BundleError::Version {
                what: OFFLOAD_BINARY.name,
                offset: cursor.start,
                found: version,
                newest: NEWEST_VERSION,
            });
        }
        let size = cursor.number::<8>("header")?;
        let entries_offset = cursor.number::<8>("header")?;
        let entries = cursor.number::<8>("header")?;
        let unpacked = match version {
            3.. => cursor.number::<8>("header")?,
            _ => 0,
        };
        Ok(Self {
            version,
            size,
            entries_offset,
            entries: if version == 1 { 1 } else { entries },
            unpacked,
        })
    }

    /// The binary before its compression. Keeps the header as it is.
    fn unpack(&self, start: usize, bytes: &[u8]) -> Result<Vec<u8>, BundleError> {
        if self.unpacked > MAX_UNPACKED_BYTES {
            return Err(BundleError::TooLarge {
                what: OFFLOAD_BINARY.name,
                offset: start,
                declared: self.unpacked,
                limit: MAX_UNPACKED_BYTES,
            });
        }
        let cursor = Cursor::new(bytes, OFFLOAD_BINARY.name, start);
        let header_end = cursor.range("header", self.entries_offset, 0)?.end;
        let (header, packed) = bytes.split_at(header_end);
        let method = if packed.starts_with(ZSTD_MAGIC) {
            Method::Zstd
        } else {
            Method::Zlib
        };
        let declared = self.unpacked.saturating_sub(header.len() as u64);
        let body = unpack(method, packed, declared).map_err(|reason| BundleError::Unpack {
            what: OFFLOAD_BINARY.name,
            offset: start,
            method,
            reason,
        })?;
        let found = body.bytes.len() as u64;
        if found != declared {
            return Err(BundleError::UnpackedSize {
                what: OFFLOAD_BINARY.name,
                offset: start,
                declared,
                found,
            });
        }
        Ok([header, &body.bytes].concat())
    }
}

/// The images of the whole binary at `place` in `file`.
fn entries<'data>(
    file: &Bytes<'data>,
    place: Range<usize>,
    header: &Header,
) -> Result<Container<'data>, BundleError> {
    let start = place.start;
    let mut cursor = Cursor::new(&file[place], OFFLOAD_BINARY.name, start);
    cursor.check_count(header.entries, MAX_ENTRIES)?;
    cursor.at = cursor
        .range("list of entries", header.entries_offset, 0)?
        .end;
    let mut entries = Entries::new(OFFLOAD_BINARY.name, start);
    for _ in 0..header.entries {
        let entry = Entry::read(&mut cursor)?;
        let image = entry.id(&cursor, &entries, header.version).and_then(|id| {
            let range = cursor.range(format!("image {id}"), entry.image, entry.image_size)?;
            Ok(Image::from_bundle(id, file, start, range))
        });
        entries.push(image);
    }
    let packing = Packing::OffloadBinary {
        version: header.version as u32,
        unpacked: (header.unpacked != 0).then_some(header.unpacked),
    };
    Ok(entries.into_container(cursor.at, packing))
}

struct Entry {
    producer: u64,
    strings: u64,
    string_count: u64,
    image: u64,
    image_size: u64,
}

impl Entry {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, BundleError> {
        const PART: &str = "list of entries";
        let _image_kind = cursor.number::<2>(PART)?;
        let producer = cursor.number::<2>(PART)?;
        let _flags = cursor.number::<4>(PART)?;
        Ok(Self {
            producer,
            strings: cursor.number::<8>(PART)?,
            string_count: cursor.number::<8>(PART)?,
            image: cursor.number::<8>(PART)?,
            image_size: cursor.number::<8>(PART)?,
        })
    }

    /// Producer, triple and processor, in the form of a bundle's id.
    fn id(
        &self,
        cursor: &Cursor<'_>,
        entries: &Entries<'_>,
        version: u64,
    ) -> Result<String, BundleError> {
        cursor.check_count(self.string_count, MAX_STRINGS)?;
        let string_bytes = if version == 1 { 16 } else { 24 };
        let table = cursor.range("strings", self.strings, self.string_count * string_bytes)?;
        let (mut triple, mut arch) = (String::new(), String::new());
        let mut strings = Cursor {
            at: table.start,
            ..*cursor
        };
        while strings.at < table.end {
            let key = strings.number::<8>("strings")?;
            let value = strings.number::<8>("strings")?;
            let size = match version {
                1 => None,
                _ => Some(strings.number::<8>("strings")?),
            };
            // Reads the key first: an unwanted value costs nothing, however long it is.
            let wanted = match until_zero(cursor, key, LONGEST_KEY + 1)? {
                b"triple" => &mut triple,
                b"arch" => &mut arch,
                _ => continue,
            };
            let value = match size {
                None => until_zero(cursor, value, usize::MAX)?,
                Some(size) => &cursor.bytes[cursor.range("strings", value, size)?],
            };
            *wanted = entries.id(value)?;
        }
        let triple = triple.trim_end_matches('-');
        Ok(format!("{}-{triple}--{arch}", producer(self.producer)))
    }
}

/// The bytes from `offset` to the next zero, at most `most` of them.
fn until_zero<'a>(cursor: &Cursor<'a>, offset: u64, most: usize) -> Result<&'a [u8], BundleError> {
    let start = cursor.range("strings", offset, 0)?.start;
    let rest = &cursor.bytes[start..];
    let rest = &rest[..rest.len().min(most)];
    let len = rest.iter().position(|byte| *byte == 0);
    Ok(&rest[..len.unwrap_or(rest.len())])
}

fn producer(bits: u64) -> &'static str {
    let bit = bits.trailing_zeros() as usize;
    PRODUCERS.get(bit).copied().unwrap_or("none")
}
