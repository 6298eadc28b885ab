//! A container of device images, and the code objects in it.

use crate::format::bundle::bytes::Bytes;
use crate::format::bundle::error::BundleError;
use crate::format::bundle::formats::{BUNDLE, COMPRESSED, FAT_BINARY, KPACK, OFFLOAD_BINARY};
use crate::format::bundle::image::{Content, Image};
use crate::format::codeobject::{CodeObject, Identity};
use crate::format::decompress::Method;

/// The most bytes that one container may unpack to: the most that version 2 of compressed bundles can
/// declare.
pub const MAX_UNPACKED_BYTES: u64 = 4 << 30;

/// The most entries of a container. A bundle has one for each target, and LLVM supports fewer than a hundred
/// targets.
pub const MAX_ENTRIES: u64 = 4096;

/// A container of device images.
#[derive(Debug)]
pub struct Container<'data> {
    /// The section of a host ELF that it is in.
    pub section: Option<String>,
    /// Its offset in the file.
    pub offset: usize,
    /// Its size in the file in bytes, as far as its readable images show.
    pub size: usize,
    /// The format of the container.
    pub packing: Packing,
    /// Its images, by their offset. Includes the host's, which is usually empty.
    pub images: Vec<Image<'data>>,
    /// The errors in it. Damaged images are left out of `images`.
    pub damage: Vec<BundleError>,
}

/// The format of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// No container: the file is a code object.
    Alone,
    /// A plain bundle.
    Bundle,
    /// A compressed bundle.
    Compressed {
        /// The version of the format, 1 to 3.
        version: u16,
        /// The compression method.
        method: Method,
        /// The size in bytes when unpacked.
        unpacked: u64,
    },
    /// An offload binary.
    OffloadBinary {
        /// The version of the format, 1 to 3.
        version: u32,
        /// The size in bytes when unpacked, if it is compressed.
        unpacked: Option<u64>,
    },
    /// A CUDA fat binary.
    FatBinary {
        /// The size in bytes of all images that were compressed, when unpacked.
        unpacked: u64,
    },
    /// An entry of a kpack archive.
    Kpack {
        /// The size in bytes when unpacked, if it is compressed.
        unpacked: Option<u64>,
    },
}

/// A code object in a file.
#[derive(Clone, Debug)]
pub struct DeviceImage<'data> {
    /// Processor and features, such as `gfx90a:xnack-`, from its container, or else from the code object.
    /// `None` if neither has them.
    pub target: Option<String>,
    /// Its identity.
    pub identity: Identity,
    /// Its ELF.
    pub bytes: Bytes<'data>,
}

impl<'data> Container<'data> {
    /// Its code objects, and its errors. Leaves out PTX, which becomes a code object in the driver.
    #[must_use]
    pub fn into_device_images(self) -> Vec<Result<DeviceImage<'data>, BundleError>> {
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
                        found: "LLVM bitcode, which the linker turns into a code object".to_owned(),
                    }));
                }
                Content::Relocatable => {
                    return Some(Err(BundleError::NotCodeObject {
                        id: image.id,
                        what,
                        offset,
                        found: "a part of a cubin, which the linker turns into one (-fgpu-rdc)"
                            .to_owned(),
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
            Self::Alone => "code object",
            Self::Bundle => BUNDLE.name,
            Self::Compressed { .. } => COMPRESSED.name,
            Self::OffloadBinary { .. } => OFFLOAD_BINARY.name,
            Self::FatBinary { .. } => FAT_BINARY.name,
            Self::Kpack { .. } => KPACK.name,
        }
    }
}
