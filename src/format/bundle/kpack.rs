//! kpack archives, to which ROCm's kpack tools move the device code of host files.
//!
//! An archive has a header of 16 bytes (magic number, version and the offset of the list), the code objects from byte 64
//! on, and the list in MessagePack. Code objects lie there as they are (`none`), or each is a zstd frame after its size
//! (`zstd-per-kernel`). The list names each by the host file that it was in, the number of its fat binary there, and its
//! target (rocm-kpack: multi_arch_packaging_with_kpack.md, "Kpack Archive Format").

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use crate::format::bundle::bytes::Bytes;
use crate::format::bundle::container::{Container, MAX_UNPACKED_BYTES, Packing};
use crate::format::bundle::cursor::Cursor;
use crate::format::bundle::entries::Entries;
use crate::format::bundle::error::BundleError;
use crate::format::bundle::formats::KPACK;
use crate::format::bundle::image::{Content, Image};
use crate::format::codeobject::msgpack::{Fault, Reader, Value};
use crate::format::decompress::{Method, unpack_whole};

/// The version of the format.
const VERSION: u64 = 1;

/// The list of an archive.
#[derive(Debug)]
pub(super) struct Archive {
    /// The code objects by their offset, and the errors in the list.
    pub(super) entries: VecDeque<Result<Entry, BundleError>>,
}

/// A code object of an archive.
#[derive(Debug)]
pub(super) struct Entry {
    /// The host file and the number of the fat binary in it, such as `lib/librocrand.so.1.1#0`.
    id: String,
    target: String,
    /// Its range in the file.
    place: Range<usize>,
    /// Its size when unpacked. `None` if it is not packed.
    unpacked: Option<u64>,
    is_code: bool,
}

impl Archive {
    /// Reads the list of the archive with the bytes `file`.
    ///
    /// # Errors
    /// Fails if there is no list, or none of this format.
    pub(super) fn parse(file: &[u8]) -> Result<Self, BundleError> {
        let mut cursor = Cursor::new(file, KPACK.name, 0);
        cursor.take("header", KPACK.magic.len() as u64)?;
        let version = cursor.number::<4>("header")?;
        if version != VERSION {
            return Err(BundleError::Version {
                what: KPACK.name,
                offset: 0,
                found: version,
                newest: VERSION,
            });
        }
        let start = cursor.number::<8>("header")?;
        let start = cursor.range("list of code objects", start, 1)?.start;
        let list = List::read(&mut Reader::new(&file[start..])).map_err(Wrong::error)?;
        let places = list.places(&Cursor::new(file, KPACK.name, 0))?;
        let is_packed = list.is_packed()?;
        let (mut used, ids) = (BTreeSet::new(), Entries::new(KPACK.name, 0));
        let mut entries: Vec<_> = list
            .entries
            .iter()
            .map(|listed| {
                let id = ids.id(listed.id)?;
                let target = ids.id(listed.target)?;
                let place = usize::try_from(listed.ordinal)
                    .ok()
                    .and_then(|ordinal| places.get(ordinal))
                    .ok_or(Wrong("has a number for which there is no code object").error())?;
                let place = cursor.range(format!("image {id}"), place.0, place.1)?;
                // Many entries of one large code object would take endless time.
                if !used.insert(listed.ordinal) {
                    return Err(Wrong("has one code object twice").error());
                }
                Ok(Entry {
                    id,
                    target,
                    place,
                    unpacked: is_packed.then_some(listed.size),
                    is_code: matches!(listed.kind, b"hsaco" | b"cubin"),
                })
            })
            .collect();
        let offset = |entry: &Result<Entry, _>| entry.as_ref().map_or(0, |entry| entry.place.start);
        entries.sort_by_key(offset);
        let mut end = 0;
        for entry in &mut entries {
            let Ok(Entry { place, .. }) = entry else {
                continue;
            };
            if place.start < end {
                *entry = Err(Wrong("has code objects that overlap").error());
            } else {
                end = place.end;
            }
        }
        Ok(Self {
            entries: entries.into(),
        })
    }

    /// Keeps only the code objects of the host file with this name, and all errors.
    pub(super) fn retain(&mut self, name: &str) {
        let is_of = |entry: &Entry| {
            entry
                .id
                .rsplit_once('#')
                .is_some_and(|(host, _)| host == name)
        };
        self.entries
            .retain(|entry| entry.as_ref().map_or(true, is_of));
    }
}

impl Entry {
    /// The offset of its bytes in the file.
    pub(super) fn offset(&self) -> usize {
        self.place.start
    }

    /// Takes the code object out of the archive `file`.
    ///
    /// # Errors
    /// Fails if it is damaged, or unpacks to more than `room` bytes.
    pub(super) fn into_container<'data>(
        self,
        file: &Bytes<'data>,
        room: u64,
    ) -> Result<Container<'data>, BundleError> {
        let offset = self.place.start;
        let packed = file.get(self.place.clone()).unwrap_or_default();
        let bytes = match self.unpacked {
            None => packed,
            Some(declared) => {
                let limit = room.min(MAX_UNPACKED_BYTES);
                if declared > limit {
                    return Err(BundleError::TooLarge {
                        what: KPACK.name,
                        offset,
                        declared,
                        limit,
                    });
                }
                let unpacked = unpack_whole(Method::Zstd, &packed, declared);
                Bytes::unpacked(unpacked.map_err(|reason| BundleError::Unpack {
                    what: KPACK.name,
                    offset,
                    method: Method::Zstd,
                    reason,
                })?)
            }
        };
        let image = Image {
            id: self.id,
            target: Some(self.target),
            offset,
            bytes,
        };
        let mut damage = Vec::new();
        if self.is_code && image.content() != Content::CodeObject {
            damage.push(BundleError::NotCodeObject {
                id: image.id.clone(),
                what: KPACK.name,
                offset,
                found: format!("{:02x?}", &image.bytes[..image.bytes.len().min(8)]),
            });
        }
        let images = if damage.is_empty() {
            vec![image]
        } else {
            Vec::new()
        };
        Ok(Container {
            section: None,
            offset,
            size: self.place.len(),
            packing: Packing::Kpack {
                unpacked: self.unpacked,
            },
            images,
            damage,
        })
    }
}

/// The list of an archive, as it is written.
#[derive(Default)]
struct List<'a> {
    scheme: &'a [u8],
    /// Offsets and sizes of code objects that are not packed.
    blobs: Vec<(u64, u64)>,
    /// The offset and the size of all frames.
    frames: (u64, u64),
    entries: Vec<Listed<'a>>,
}

/// An entry of the list.
#[derive(Default)]
struct Listed<'a> {
    id: &'a [u8],
    target: &'a [u8],
    kind: &'a [u8],
    ordinal: u64,
    size: u64,
}

/// The reason why a list cannot be used.
struct Wrong(&'static str);

impl Wrong {
    fn error(self) -> BundleError {
        BundleError::KpackList(self.0)
    }
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        Self(match fault {
            Fault::Cut => "is cut short",
            Fault::NoValue(_) => "is no MessagePack",
        })
    }
}

impl<'a> List<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Wrong> {
        let mut list = Self::default();
        for _ in 0..pairs(reader)? {
            match key(reader)? {
                b"compression_scheme" => list.scheme = text(reader)?,
                b"zstd_offset" => list.frames.0 = number(reader)?,
                b"zstd_size" => list.frames.1 = number(reader)?,
                b"blobs" => list.blobs = blobs(reader)?,
                b"toc" => list.entries = entries(reader)?,
                _ => {
                    reader.value()?;
                }
            }
        }
        Ok(list)
    }

    fn is_packed(&self) -> Result<bool, BundleError> {
        match self.scheme {
            b"none" => Ok(false),
            b"zstd-per-kernel" => Ok(true),
            _ => Err(Wrong("has a compression other than none and zstd-per-kernel").error()),
        }
    }

    /// The offsets and sizes of all code objects, by their numbers.
    fn places(&self, file: &Cursor<'_>) -> Result<Vec<(u64, u64)>, BundleError> {
        if !self.is_packed()? {
            return Ok(self.blobs.clone());
        }
        let all = file.range("code objects", self.frames.0, self.frames.1)?;
        let mut cursor = Cursor {
            bytes: &file.bytes[..all.end],
            at: all.start,
            ..*file
        };
        let count = cursor.number::<4>("number of code objects")?;
        // Each has its size.
        cursor.check_count(count, (all.len() / size_of::<u32>()) as u64)?;
        let mut places = Vec::new();
        for _ in 0..count {
            let size = cursor.number::<4>("code objects")?;
            places.push((cursor.at as u64, size));
            cursor.take("code objects", size)?;
        }
        Ok(places)
    }
}

fn blobs(reader: &mut Reader<'_>) -> Result<Vec<(u64, u64)>, Wrong> {
    let Value::List(count) = reader.start()? else {
        return Err(Wrong("has no list of places"));
    };
    let mut blobs = Vec::new();
    for _ in 0..count {
        let mut blob = (0, 0);
        for _ in 0..pairs(reader)? {
            match key(reader)? {
                b"offset" => blob.0 = number(reader)?,
                b"size" => blob.1 = number(reader)?,
                _ => {
                    reader.value()?;
                }
            }
        }
        blobs.push(blob);
    }
    Ok(blobs)
}

fn entries<'a>(reader: &mut Reader<'a>) -> Result<Vec<Listed<'a>>, Wrong> {
    let mut entries = Vec::new();
    for _ in 0..pairs(reader)? {
        let id = key(reader)?;
        for _ in 0..pairs(reader)? {
            let mut entry = Listed {
                id,
                target: key(reader)?,
                ..Listed::default()
            };
            for _ in 0..pairs(reader)? {
                match key(reader)? {
                    b"type" => entry.kind = text(reader)?,
                    b"ordinal" => entry.ordinal = number(reader)?,
                    b"original_size" => entry.size = number(reader)?,
                    _ => {
                        reader.value()?;
                    }
                }
            }
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// The number of pairs of a map, which has started then.
fn pairs(reader: &mut Reader<'_>) -> Result<u32, Wrong> {
    match reader.start()? {
        Value::Map(count) => Ok(count),
        _ => Err(Wrong("has another value instead of a map")),
    }
}

fn key<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Wrong> {
    text(reader)
}

fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Wrong> {
    match reader.value()? {
        Value::Text(text) => Ok(text),
        _ => Err(Wrong("has another value instead of text")),
    }
}

fn number(reader: &mut Reader<'_>) -> Result<u64, Wrong> {
    match reader.value()? {
        Value::Number(number) => Ok(number),
        _ => Err(Wrong("has another value instead of a number")),
    }
}
