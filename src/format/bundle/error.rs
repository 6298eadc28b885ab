//! Errors in containers of device code.

use std::borrow::Cow;

use thiserror::Error;

use crate::format::bundle::split_off::SplitOff;
use crate::format::codeobject::CodeObjectError;
use crate::format::decompress::Method;
use crate::support::diagnostic::Remedy;

/// The next step for a file without device code.
pub(super) const WITH_CODE: &str =
    "name a program, a library, an object file or a bundle with GPU code";

/// The reason why a container or one of its images cannot be read. Offsets count from the first byte of the
/// file. Inside [`BundleError::Unpacked`] they count from the first unpacked byte.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The bytes are neither a container nor padding.
    #[error("no device code at offset {offset:#x}: found bytes {found:02x?}")]
    UnknownMagic {
        /// The offset where a container was expected.
        offset: usize,
        /// The bytes there, 8 at most.
        found: Vec<u8>,
    },
    /// A part reaches beyond the end of the data.
    #[error(
        "the {part} of the {what} at offset {offset:#x} should end at {end:#x}, after the last byte at \
         {available:#x}"
    )]
    Truncated {
        /// The part.
        part: Cow<'static, str>,
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The end of the part, according to its header.
        end: u128,
        /// The end of the data.
        available: usize,
    },
    /// A container has more entries than any real one.
    #[error("the {what} at offset {offset:#x} has {found} entries, at most {limit} are allowed")]
    Count {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The number found.
        found: u64,
        /// The most entries that rocov reads.
        limit: u64,
    },
    /// A target id is not text.
    #[error("a target id of the {what} at offset {offset:#x} is not UTF-8: {found:02x?}")]
    TargetId {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The id's bytes, 64 at most.
        found: Vec<u8>,
    },
    /// A target id is longer than any real one.
    #[error(
        "a target id of the {what} at offset {offset:#x} has {found} bytes, at most {limit} are allowed"
    )]
    LongId {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The size of the id in bytes.
        found: usize,
        /// The most bytes that an id may have.
        limit: usize,
    },
    /// The version of the format is unknown.
    #[error("the {what} at offset {offset:#x} has version {found}, expected 1 to {newest}")]
    Version {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The version found.
        found: u64,
        /// The newest known version.
        newest: u64,
    },
    /// The compression method is unknown.
    #[error(
        "the compressed bundle at offset {offset:#x} has compression method {found}, expected 0 \
         (zlib) or 1 (zstd)"
    )]
    Method {
        /// The offset of the bundle.
        offset: usize,
        /// The method found.
        found: u64,
    },
    /// The compression method of a CUDA fat binary is unknown.
    #[error(
        "an image of the CUDA fat binary at offset {offset:#x} has compression flags {found:#x}, expected 0x2000 (LZ4) or \
         0x8000 (zstd)"
    )]
    FatBinaryMethod {
        /// The offset of the fat binary.
        offset: usize,
        /// The flags found.
        found: u64,
    },
    /// The declared size is smaller than the header.
    #[error(
        "the {what} at offset {offset:#x} says that it has {declared} bytes, but its header has {header}"
    )]
    Size {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The declared size in bytes.
        declared: u64,
        /// The size of the header in bytes.
        header: usize,
    },
    /// The declared unpacked size is over the limit.
    #[error(
        "the {what} at offset {offset:#x} says that it unpacks to {declared} bytes, at most {limit} are allowed"
    )]
    TooLarge {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The declared size in bytes.
        declared: u64,
        /// The most bytes that rocov unpacks.
        limit: u64,
    },
    /// The compressed bytes are damaged.
    #[error("the {what} at offset {offset:#x} cannot be unpacked as {method}: {reason}")]
    Unpack {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The compression method.
        method: Method,
        /// The decoder's message.
        reason: String,
    },
    /// The unpacked size is not the declared one.
    #[error(
        "the {what} at offset {offset:#x} unpacks to {} bytes, but its header says {declared}",
        at_least(*found, *declared)
    )]
    UnpackedSize {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The declared size in bytes.
        declared: u64,
        /// The unpacked size in bytes. rocov unpacks at most one byte too many.
        found: u64,
    },
    /// Bytes are left after the compressed data.
    #[error(
        "the {what} at offset {offset:#x} has {found} bytes of compressed data, but its header says {declared}"
    )]
    PackedSize {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The declared size in bytes.
        declared: u64,
        /// The number of bytes that the decoder consumed.
        found: u64,
    },
    /// The unpacked bytes do not have the declared hash.
    #[error(
        "the compressed bundle at offset {offset:#x} unpacks to bytes with the hash {found:016x}, but its header says \
        {declared:016x}"
    )]
    Hash {
        /// The offset of the bundle.
        offset: usize,
        /// The first half of the MD5 sum of the bytes, most significant byte first.
        found: u64,
        /// The declared first half of the MD5 sum.
        declared: u64,
    },
    /// The unpacked data has an error.
    #[error("inside the unpacked {what} at offset {offset:#x}: {source}")]
    Unpacked {
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The error.
        source: Box<Self>,
    },
    /// Two images share bytes.
    #[error(
        "{id} in the {what} at offset {offset:#x} starts at {start:#x}, inside {other}, which ends \
         at {end:#x}"
    )]
    Overlap {
        /// The image that rocov leaves out.
        id: String,
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The offset of the image.
        start: usize,
        /// The image before it.
        other: String,
        /// The end of the image before it.
        end: usize,
    },
    /// A second image has the id of an earlier one. A runtime would never load it.
    #[error("{id} is in the {what} at offset {offset:#x} twice")]
    Duplicate {
        /// The id.
        id: String,
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
    },
    /// An image for a GPU is not a code object.
    #[error(
        "{id} in the {what} at offset {offset:#x} is {found}, expected an ELF for AMDGPU or CUDA"
    )]
    NotCodeObject {
        /// The image.
        id: String,
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The kind of data that it is.
        found: String,
    },
    /// A code object has damaged headers.
    #[error("{id} in the {what} at offset {offset:#x} is {source}")]
    CodeObject {
        /// The image.
        id: String,
        /// The container.
        what: &'static str,
        /// The offset of the container.
        offset: usize,
        /// The error in the code object.
        source: Box<CodeObjectError>,
    },
    /// A file that is one code object is damaged.
    #[error(transparent)]
    Alone(#[from] CodeObjectError),
    /// Too many containers are damaged, so rocov skips the rest of the file.
    #[error("{limit} damaged containers: rocov skipped the rest of the file")]
    TooMuchDamage {
        /// The number of damaged containers.
        limit: usize,
    },
    /// The file is of another kind, or a host ELF without device code: the reason, and the next step.
    #[error("no device code: {}", .0[0])]
    NoDeviceCode([&'static str; 2]),
    /// The list of a kpack archive cannot be used.
    #[error("the list of code objects of the kpack archive {0}")]
    KpackList(&'static str),
    /// The device code of the file is in kpack archives.
    #[error("no device code: it was split off into kpack archives")]
    SplitOff(SplitOff),
    /// The host file around the containers is damaged.
    #[error("not a 64-bit little-endian ELF: {0}")]
    HostFile(#[from] object::Error),
}

impl Remedy for BundleError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::SplitOff(reference) => {
                return format!("name one of them: {}", reference.archives.join(", ")).into();
            }
            Self::NoDeviceCode([_, next]) => next,
            Self::HostFile(_) => WITH_CODE,
            _ => "build it again",
        })
    }
}

impl BundleError {
    /// The error for `bytes`, at `offset` in the file, that start with no known magic number.
    pub(super) fn unknown_magic(bytes: &[u8], offset: usize) -> Self {
        const SHOWN: usize = 8;
        Self::UnknownMagic {
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
