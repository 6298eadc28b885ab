//! The containers of device code: plain and compressed bundles, offload binaries, CUDA fat binaries, kpack archives, and
//! the host files that hold these.
//!
//! The `.hip_fatbin` section of a host ELF holds one bundle for each translation unit (a single one with
//! `-fgpu-rdc`). Each bundle starts a page. `--genco` writes a file that is a bundle. The section
//! `.llvm.offloading` holds offload binaries one after the other, and `.nv_fatbin` CUDA fat binaries. A kpack archive has
//! many code objects of many host files: each is a container here.
//!
//! [`containers`] reads all containers and reports all damage. [`images`] returns only the code objects.
//! Neither trusts a number in the file: memory grows with the data that there is, and at most one container
//! at a time is unpacked.

mod bytes;
mod compressed;
mod container;
mod cursor;
mod entries;
mod error;
mod fat_binary;
mod formats;
mod host;
mod image;
mod kpack;
mod offload_binary;
mod plain;
mod split_off;

pub use crate::format::bundle::bytes::Bytes;
pub use crate::format::bundle::container::{
    Container, DeviceImage, MAX_ENTRIES, MAX_UNPACKED_BYTES, Packing,
};
pub use crate::format::bundle::error::BundleError;
pub use crate::format::bundle::fat_binary::{
    FAT_BINARY_HEADER, PackedPtx, fat_binary_size, packed_ptx, ptx_architecture, runs_ptx,
};
pub use crate::format::bundle::image::{Content, Image};
pub use crate::format::bundle::split_off::{ANY_TARGET, SplitOff};
pub use crate::format::decompress::Method;

use std::collections::VecDeque;

use crate::format::bundle::formats::{starts_bundle, starts_container, starts_packed};
use crate::format::bundle::host::HostSection;
use crate::format::bundle::kpack::Archive;
use crate::format::decompress::ZSTD_MAGIC;

/// The number of damaged containers after which rocov skips the rest of a file.
const MAX_DAMAGED: usize = 16;

/// The containers of device code in the file with the bytes `file`. The file is a code object, a bundle, an
/// offload binary, a CUDA fat binary, several of these with zeros between them, or a host ELF with these in its sections.
///
/// After an unreadable container, the iterator continues with the next magic number of a container.
#[must_use]
pub fn containers(file: &[u8]) -> Containers<'_> {
    let all = HostSection {
        name: None,
        place: 0..file.len(),
        has_one: false,
    };
    if file.starts_with(formats::KPACK.magic) {
        let (archive, error) = match Archive::parse(file) {
            Ok(archive) => (Some(archive), None),
            Err(error) => (None, Some(error)),
        };
        return Containers {
            file: Bytes::from_file(file),
            sections: VecDeque::new(),
            archive,
            error,
            is_scanning: false,
            damaged: 0,
            room: u64::MAX,
        };
    }
    let (sections, error) = if starts_container(file) || image::is_code_object(file) {
        (vec![all], None)
    } else {
        match host::sections(file) {
            Ok(sections) => (sections, None),
            Err(error) => (Vec::new(), Some(error)),
        }
    };
    Containers {
        file: Bytes::from_file(file),
        sections: sections.into(),
        archive: None,
        error,
        is_scanning: false,
        damaged: 0,
        room: u64::MAX,
    }
}

/// The container at `offset` of `file`, which [`containers`] has found there.
///
/// # Errors
/// Fails if there is no container, or it is damaged.
pub fn container_at(file: &[u8], offset: usize) -> Result<Container<'_>, BundleError> {
    let start = offset.min(file.len());
    if file.starts_with(formats::KPACK.magic) {
        let entries = Archive::parse(file)?.entries.into_iter().flatten();
        let mut entries = entries.filter(|entry| entry.offset() == offset);
        let entry = entries
            .next()
            .ok_or_else(|| BundleError::unknown_magic(&file[start..], start))?;
        return entry.into_container(&Bytes::from_file(file), u64::MAX);
    }
    parse(&Bytes::from_file(file), start..file.len(), u64::MAX)
}

/// Returns whether a container or a code object starts at `offset` of `file`, by its first bytes.
#[must_use]
pub fn starts_at(file: &[u8], offset: usize) -> bool {
    let rest = file.get(offset..).unwrap_or_default();
    if file.starts_with(formats::KPACK.magic) && (offset == 0 || rest.starts_with(ZSTD_MAGIC)) {
        return true;
    }
    starts_container(rest) || image::is_code_object(rest)
}

/// The reference of the host file with the bytes `file` to the kpack archives with its device code. `None` if its code was
/// not split off.
#[must_use]
pub fn split_off(file: &[u8]) -> Option<SplitOff> {
    match host::sections(file) {
        Err(BundleError::SplitOff(reference)) => Some(reference),
        _ => None,
    }
}

/// The code objects in `file`, and all errors in its containers.
pub fn images(file: &[u8]) -> impl Iterator<Item = Result<DeviceImage<'_>, BundleError>> {
    containers(file).flat_map(|container| match container {
        Err(error) => vec![Err(error)].into_iter(),
        Ok(container) => container.into_device_images().into_iter(),
    })
}

/// An iterator over containers, made by [`containers`].
#[derive(Debug)]
pub struct Containers<'data> {
    file: Bytes<'data>,
    /// The sections that are still to be read.
    sections: VecDeque<HostSection>,
    /// The archive that is still to be read.
    archive: Option<Archive>,
    /// The reason why there is nothing to read.
    error: Option<BundleError>,
    /// True if the next bytes may be the rest of a damaged container.
    is_scanning: bool,
    /// The number of damaged containers so far.
    damaged: usize,
    /// The number of bytes that may still be unpacked.
    room: u64,
}

impl<'data> Iterator for Containers<'data> {
    type Item = Result<Container<'data>, BundleError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        let found = self.parse_next()?;
        self.is_scanning = !found
            .as_ref()
            .is_ok_and(|container| container.damage.is_empty());
        if self.is_scanning {
            self.damaged += 1;
        }
        if self.damaged == MAX_DAMAGED {
            self.sections.clear();
            self.archive = None;
            self.error = Some(BundleError::TooMuchDamage { limit: MAX_DAMAGED });
        }
        Some(found)
    }
}

impl<'data> Containers<'data> {
    /// Limits the unpacked size of all compressed containers together to `room` bytes. The iterator rejects a
    /// bundle that goes beyond it ([`BundleError::TooLarge`]).
    #[must_use]
    pub fn unpacking_at_most(self, room: u64) -> Self {
        Containers { room, ..self }
    }

    /// Leaves out the containers of a kpack archive that are from other host files than the one with this name. Others are
    /// not unpacked.
    #[must_use]
    pub fn of_host(mut self, name: &str) -> Self {
        if let Some(archive) = &mut self.archive {
            archive.retain(name);
        }
        self
    }

    /// The number of bytes that may still be unpacked.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Parses the next container and removes it from `sections`.
    fn parse_next(&mut self) -> Option<Result<Container<'data>, BundleError>> {
        if let Some(archive) = &mut self.archive {
            let entry = archive.entries.pop_front()?;
            let found = entry.and_then(|entry| entry.into_container(&self.file, self.room));
            if let Ok(Container {
                packing:
                    Packing::Kpack {
                        unpacked: Some(unpacked),
                    },
                ..
            }) = &found
            {
                self.room = self.room.saturating_sub(*unpacked);
            }
            return Some(found);
        }
        loop {
            let section = self.sections.front_mut()?;
            let rest = &self.file[section.place.clone()];
            let skipped = if self.is_scanning {
                next_magic(rest, section.place.start)
            } else {
                rest.iter().position(|byte| *byte != 0)
            };
            let Some(skipped) = skipped else {
                self.sections.pop_front();
                self.is_scanning = false;
                continue;
            };
            section.place.start += skipped;
            let found = parse(&self.file, section.place.clone(), self.room);
            if let Ok(Container {
                packing: Packing::Compressed { unpacked, .. } | Packing::FatBinary { unpacked },
                ..
            }) = &found
            {
                self.room = self.room.saturating_sub(*unpacked);
            }
            // An unreadable container has at least its magic number.
            let size = found.as_ref().map_or(1, |container| container.size);
            section.place.start += size;
            let name = section.name.clone();
            if section.has_one {
                self.sections.pop_front();
            }
            return Some(found.map(|container| Container {
                section: name,
                ..container
            }));
        }
    }
}

/// The offset of the next container in `bytes`, which are at `start` in the file. Bundles start a page there,
/// and the others are aligned to 8 bytes.
fn next_magic(bytes: &[u8], start: usize) -> Option<usize> {
    const ALIGNMENT: usize = 8;
    let first = start.next_multiple_of(ALIGNMENT) - start;
    (first..bytes.len()).step_by(ALIGNMENT).find(|at| {
        let rest = &bytes[*at..];
        starts_packed(rest)
            || (start + at).is_multiple_of(host::BUNDLE_ALIGNMENT) && starts_bundle(rest)
    })
}

/// Parses the container at the start of the range `place` of `file`. Fails if it unpacks to more than `room`
/// bytes.
fn parse<'data>(
    file: &Bytes<'data>,
    place: std::ops::Range<usize>,
    room: u64,
) -> Result<Container<'data>, BundleError> {
    let bytes = &file[place.clone()];
    if bytes.starts_with(formats::BUNDLE.magic) {
        plain::parse(file, place)
    } else if bytes.starts_with(formats::COMPRESSED.magic) {
        compressed::parse(bytes, place.start, room)
    } else if bytes.starts_with(formats::OFFLOAD_BINARY.magic) {
        offload_binary::parse(file, place)
    } else if bytes.starts_with(formats::FAT_BINARY.magic) {
        fat_binary::parse(file, place, room.min(MAX_UNPACKED_BYTES))
    } else if image::is_code_object(bytes) {
        Ok(Container {
            section: None,
            offset: place.start,
            size: bytes.len(),
            packing: Packing::Alone,
            images: vec![Image::alone(file.clone())],
            damage: Vec::new(),
        })
    } else {
        Err(BundleError::unknown_magic(bytes, place.start))
    }
}

#[cfg(test)]
mod tests {
    //! Containers built by hand from the formats' descriptions. The tests of the command read the containers
    //! that clang writes.

    mod damage;
    mod fat_binaries;
    mod headers;
    mod kpacks;
    mod mutations;
    mod reading;
    mod synth;
}
