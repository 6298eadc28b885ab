//! What can be wrong with a container of device code.

use std::borrow::Cow;

use thiserror::Error;

use super::compressed::Method;
use crate::codeobject::CodeObjectError;

/// Why a container, or one of its images, cannot be read. Offsets count from the first byte of the
/// file; inside [`BundleError::Unpacked`], from the first that was unpacked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Neither a container nor padding.
    #[error("no device code at offset {offset:#x}: found bytes {found:02x?}")]
    UnknownMagic {
        /// Where a container was expected.
        offset: usize,
        /// The bytes there, 8 at most.
        found: Vec<u8>,
    },
    /// A part that reaches beyond the bytes there are.
    #[error(
        "the {part} of the {what} at offset {offset:#x} ends at {end:#x}, after the last byte at \
         {available:#x}"
    )]
    Truncated {
        /// Which part.
        part: Cow<'static, str>,
        /// The container.
        what: &'static str,
        /// Where the container starts.
        offset: usize,
        /// Where the part ends, as far as its header is believed.
        end: u128,
        /// Where the bytes end.
        available: usize,
    },
    /// More entries than a container has.
    #[error("the {what} at offset {offset:#x} has {found} entries, {limit} are allowed")]
    Count {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// The number found.
        found: u64,
        /// The most that are read.
        limit: u64,
    },
    /// A target id that is not text.
    #[error("a target id of the {what} at offset {offset:#x} is not UTF-8: {found:02x?}")]
    TargetId {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// The id's bytes, 64 at most.
        found: Vec<u8>,
    },
    /// A target id that is longer than any.
    #[error(
        "a target id of the {what} at offset {offset:#x} has {found} bytes, {limit} are allowed"
    )]
    LongId {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes of the id.
        found: usize,
        /// The most that an id may have.
        limit: usize,
    },
    /// A version of a format that is not known.
    #[error("the {what} at offset {offset:#x} has version {found}, expected 1 to {newest}")]
    Version {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// The version found.
        found: u64,
        /// The newest that is known.
        newest: u64,
    },
    /// A compression method that is not known.
    #[error(
        "the compressed bundle at offset {offset:#x} has compression method {found}, expected 0 \
         (zlib) or 1 (zstd)"
    )]
    Method {
        /// Where the bundle starts.
        offset: usize,
        /// The method found.
        found: u64,
    },
    /// It says that it has fewer bytes than its header.
    #[error(
        "the {what} at offset {offset:#x} says that it has {declared} bytes, its header alone has \
         {header}"
    )]
    Size {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes by its header.
        declared: u64,
        /// Bytes of the header.
        header: usize,
    },
    /// It says that more would come out of it than is taken.
    #[error(
        "the {what} at offset {offset:#x} says that it unpacks to {declared} bytes, {limit} are \
         allowed"
    )]
    TooLarge {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes by its header.
        declared: u64,
        /// The most that are unpacked.
        limit: u64,
    },
    /// The compressed bytes are damaged.
    #[error("the {what} at offset {offset:#x} cannot be unpacked as {method}: {reason}")]
    Unpack {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// How it is compressed.
        method: Method,
        /// What the decoder says.
        reason: String,
    },
    /// Less or more comes out than its header says.
    #[error(
        "the {what} at offset {offset:#x} unpacks to {} bytes, its header says {declared}",
        at_least(*found, *declared)
    )]
    UnpackedSize {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes by its header.
        declared: u64,
        /// Bytes that came out. No more than one too many is unpacked.
        found: u64,
    },
    /// Bytes are left in it after what it compresses.
    #[error(
        "the {what} at offset {offset:#x} has {found} bytes of compressed data, its header says \
         {declared}"
    )]
    PackedSize {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes by its header.
        declared: u64,
        /// Bytes that the decoder took.
        found: u64,
    },
    /// What comes out is not what went in.
    #[error(
        "the compressed bundle at offset {offset:#x} unpacks to bytes with the hash {found:016x}, \
         its header says {declared:016x}"
    )]
    Hash {
        /// Where the bundle starts.
        offset: usize,
        /// First half of the MD5 sum of the bytes, most significant byte first.
        found: u64,
        /// The same by the header.
        declared: u64,
    },
    /// Something wrong with what was unpacked.
    #[error("in what the {what} at offset {offset:#x} unpacks to: {source}")]
    Unpacked {
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// What is wrong.
        source: Box<BundleError>,
    },
    /// Two images share bytes.
    #[error(
        "{id} in the {what} at offset {offset:#x} starts at {start:#x}, inside {other}, which ends \
         at {end:#x}"
    )]
    Overlap {
        /// The image that is left out.
        id: String,
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Where the image starts.
        start: usize,
        /// The image before.
        other: String,
        /// Where that one ends.
        end: usize,
    },
    /// A second image of one id, which a runtime would never load.
    #[error("{id} is in the {what} at offset {offset:#x} twice")]
    Duplicate {
        /// The id.
        id: String,
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
    },
    /// An image for a GPU that is no code object.
    #[error("{id} in the {what} at offset {offset:#x} is {found}, expected an ELF for AMDGPU")]
    NotCodeObject {
        /// The image.
        id: String,
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// What it is instead.
        found: String,
    },
    /// A code object with damaged headers.
    #[error("{id} in the {what} at offset {offset:#x} is {source}")]
    CodeObject {
        /// The image.
        id: String,
        /// The container.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// What is wrong with it.
        source: Box<CodeObjectError>,
    },
    /// A file that should be a code object and is damaged.
    #[error(transparent)]
    Alone(#[from] CodeObjectError),
    /// So much is wrong that the rest was not looked at.
    #[error("{limit} damaged containers: the rest is not looked at")]
    TooMuchDamage {
        /// How many were looked at.
        limit: usize,
    },
    /// A file of another kind, or a host ELF without device code.
    #[error("no device code: {0}")]
    NoDeviceCode(&'static str),
    /// The host file around the containers is damaged.
    #[error("not a 64-bit little-endian ELF: {0}")]
    HostFile(#[from] object::Error),
}

impl BundleError {
    /// `bytes`, at `offset` in the file, start as nothing that is known.
    pub(super) fn unknown_magic(bytes: &[u8], offset: usize) -> Self {
        const SHOWN: usize = 8;
        BundleError::UnknownMagic {
            offset,
            found: bytes[..bytes.len().min(SHOWN)].to_vec(),
        }
    }
}

fn at_least(found: u64, declared: u64) -> String {
    if found > declared {
        format!("more than {declared}")
    } else {
        found.to_string()
    }
}
