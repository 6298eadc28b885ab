//! Everything that device code comes in: bundles plain ([`plain`]) and compressed ([`compressed`]),
//! offload binaries ([`offload_binary`]), and the host files that hold these ([`host`]).
//!
//! The `.hip_fatbin` section of a host ELF holds one bundle for each translation unit (one in all
//! with `-fgpu-rdc`), each on a page of its own; `--genco` writes a file that is a bundle. The
//! section `.llvm.offloading` holds offload binaries one after the other.
//!
//! [`containers`] reads what is there, with everything that is wrong with it; [`images`] gives the
//! code objects alone. Neither trusts a number in the file: memory is taken for bytes that there
//! are, and a container is unpacked while the caller has it, one at a time.

mod bytes;
mod compressed;
mod cursor;
mod error;
mod host;
mod image;
mod offload_binary;
mod plain;

pub use bytes::Bytes;
pub use compressed::Method;
pub use error::BundleError;
pub use image::{Content, Image};

use std::collections::VecDeque;

use host::Section;

use super::{CodeObject, Identity};

/// Most bytes that one container may unpack to: as many as version 2 of compressed bundles can say.
pub const MAX_UNPACKED_BYTES: u64 = 4 << 30;

/// Most entries of a container. A bundle has one for each target, of which LLVM knows less than a
/// hundred.
pub const MAX_ENTRIES: u64 = 4096;

/// Damaged containers after which the rest of a file is given up.
const MAX_DAMAGED: usize = 16;

/// Something that holds device images.
#[derive(Debug)]
pub struct Container<'data> {
    /// The section of a host ELF that it is in.
    pub section: Option<String>,
    /// Where it starts in the file.
    pub offset: usize,
    /// How many bytes it has in the file, as far as its images that can be read tell.
    pub size: usize,
    /// What it is.
    pub packing: Packing,
    /// Its images, by their place; the host's, usually empty, included.
    pub images: Vec<Image<'data>>,
    /// All that is wrong with it. Images with which something is wrong are left out.
    pub damage: Vec<BundleError>,
}

/// How images are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all: the file is a code object.
    Alone,
    /// A plain bundle.
    Bundle,
    /// A compressed bundle.
    Compressed {
        /// Version of the format, 1 to 3.
        version: u16,
        /// How it is compressed.
        method: Method,
        /// Bytes when unpacked.
        unpacked: u64,
    },
    /// An offload binary.
    OffloadBinary {
        /// Version of the format, 1 to 3.
        version: u32,
        /// Bytes when unpacked, where it is compressed.
        unpacked: Option<u64>,
    },
}

/// A code object in a file.
#[derive(Clone, Debug)]
pub struct DeviceImage<'data> {
    /// Processor and features, such as `gfx90a:xnack-`: by its container, else by the code object
    /// itself; `None` where that does not know either.
    pub target: Option<String>,
    /// Its identity.
    pub identity: Identity,
    /// Its ELF.
    pub bytes: Bytes<'data>,
}

/// Whether `bytes` start as a container does, which is a bundle, compressed or not, or an offload
/// binary.
fn starts_container(bytes: &[u8]) -> bool {
    starts_bundle(bytes) || bytes.starts_with(offload_binary::MAGIC)
}

/// Whether `bytes` start as a bundle does, compressed or not.
fn starts_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(plain::MAGIC) || bytes.starts_with(compressed::MAGIC)
}

/// The containers of device code in the file with the bytes `file`: a code object, a bundle, an
/// offload binary, several of these with zeros between them, or a host ELF with these in its
/// sections.
///
/// After one that cannot be read goes on with the next that starts as a container does.
#[must_use]
pub fn containers(file: &[u8]) -> Containers<'_> {
    let all = Section {
        name: None,
        place: 0..file.len(),
        has_one: false,
    };
    let (sections, error) = if starts_container(file) || image::is_code_object(file) {
        (vec![all], None)
    } else {
        match host::sections(file) {
            Ok(sections) => (sections, None),
            Err(error) => (Vec::new(), Some(error)),
        }
    };
    Containers {
        file: Bytes::of_file(file),
        sections: sections.into(),
        error,
        is_scanning: false,
        damaged: 0,
        room: u64::MAX,
    }
}

/// The code objects in `file`, wherever they are in it, and all that is wrong with its containers.
pub fn images(file: &[u8]) -> impl Iterator<Item = Result<DeviceImage<'_>, BundleError>> {
    containers(file).flat_map(|container| match container {
        Err(error) => vec![Err(error)].into_iter(),
        Ok(container) => container.into_device_images().into_iter(),
    })
}

/// Iterator over containers, made by [`containers`].
#[derive(Debug)]
pub struct Containers<'data> {
    file: Bytes<'data>,
    /// What is still to be read.
    sections: VecDeque<Section>,
    /// Why there is nothing to read.
    error: Option<BundleError>,
    /// Whether what comes next may be the rest of a damaged container.
    is_scanning: bool,
    /// How many were damaged.
    damaged: usize,
    /// How many bytes may still be unpacked.
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
            self.error = Some(BundleError::TooMuchDamage { limit: MAX_DAMAGED });
        }
        Some(found)
    }
}

impl<'data> Containers<'data> {
    /// Refuses compressed bundles ([`BundleError::TooLarge`]) that would unpack to more than `room` bytes
    /// altogether.
    #[must_use]
    pub fn unpacking_at_most(self, room: u64) -> Self {
        Containers { room, ..self }
    }

    /// How many bytes of that are left.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Parses the next container and leaves in `sections` what comes after it.
    fn parse_next(&mut self) -> Option<Result<Container<'data>, BundleError>> {
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
                packing: Packing::Compressed { unpacked, .. },
                ..
            }) = &found
            {
                self.room = self.room.saturating_sub(*unpacked);
            }
            // One that cannot be read has at least its magic.
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

/// Where the next container starts in `bytes`, which are at `start` in the file: bundles are on pages
/// of their own there, offload binaries aligned to 8 bytes.
fn next_magic(bytes: &[u8], start: usize) -> Option<usize> {
    const ALIGNMENT: usize = 8;
    let first = start.next_multiple_of(ALIGNMENT) - start;
    (first..bytes.len()).step_by(ALIGNMENT).find(|at| {
        let rest = &bytes[*at..];
        rest.starts_with(offload_binary::MAGIC)
            || (start + at).is_multiple_of(host::BUNDLE_ALIGNMENT) && starts_bundle(rest)
    })
}

/// Parses the container at the start of the stretch `place` of `file`, if it unpacks to no more than
/// `room` bytes.
fn parse<'data>(
    file: &Bytes<'data>,
    place: std::ops::Range<usize>,
    room: u64,
) -> Result<Container<'data>, BundleError> {
    let bytes = &file[place.clone()];
    if bytes.starts_with(plain::MAGIC) {
        plain::parse(file, place)
    } else if bytes.starts_with(compressed::MAGIC) {
        compressed::parse(bytes, place.start, room)
    } else if bytes.starts_with(offload_binary::MAGIC) {
        offload_binary::parse(file, place)
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

impl<'data> Container<'data> {
    /// Its code objects, and what is wrong with it.
    fn into_device_images(self) -> Vec<Result<DeviceImage<'data>, BundleError>> {
        let (what, offset, packing) = (self.packing.name(), self.offset, self.packing);
        let damage = self.damage.into_iter().map(Err);
        let images = self.images.into_iter().filter_map(|image| {
            let identity = match image.content() {
                Content::CodeObject => image.identity(),
                Content::Bitcode if image.target.is_some() => {
                    return Some(Err(BundleError::NotCodeObject {
                        id: image.id,
                        what,
                        offset,
                        found: "LLVM bitcode, of which linking makes a code object".to_owned(),
                    }));
                }
                _ => return None,
            };
            Some(match identity {
                Ok(identity) => Ok(DeviceImage {
                    target: image.target.or_else(|| own_target(&image.bytes)),
                    identity,
                    bytes: image.bytes,
                }),
                Err(error) if packing == Packing::Alone => Err(error.into()),
                Err(source) => Err(BundleError::CodeObject {
                    id: image.id,
                    what,
                    offset,
                    source: source.into(),
                }),
            })
        });
        images.chain(damage).collect()
    }
}

fn own_target(code_object: &[u8]) -> Option<String> {
    CodeObject::parse(code_object).ok()?.target().ok()
}

impl Packing {
    /// The container's name in messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Packing::Alone => "code object",
            Packing::Bundle => plain::WHAT,
            Packing::Compressed { .. } => compressed::WHAT,
            Packing::OffloadBinary { .. } => offload_binary::WHAT,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Containers put together by hand from the formats' descriptions. That the ones clang writes
    //! are read is shown by the tests of the command.

    mod damage;
    mod mutations;
    mod reading;
    mod synth;
}
