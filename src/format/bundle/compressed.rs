//! Compressed bundles: a plain bundle as one zlib or zstd stream after a header.
//!
//! The format is that of LLVM's `CompressedOffloadBundle` (llvm/lib/Object/OffloadBundle.cpp). All numbers
//! are little-endian:
//!
//! | bytes, version 1 | 2 | 3 | field |
//! |---|---|---|---|
//! | 4 | 4 | 4 | magic `CCOB` |
//! | 2 | 2 | 2 | version |
//! | 2 | 2 | 2 | compression method: 0 zlib, 1 zstd |
//! | - | 4 | 8 | bytes of the bundle, header included |
//! | 4 | 4 | 8 | bytes when unpacked |
//! | 8 | 8 | 8 | the first half of the MD5 sum of the unpacked bytes |
//!
//! clang 18 writes version 1, 19 to 21 write 2, 22 writes 3. The variable `COMPRESSED_BUNDLE_FORMAT_VERSION`
//! chooses the version in the newer ones. LLVM and HIP ignore the sum. rocov checks it, because a checksum is
//! optional in both kinds of stream.

use crate::format::bundle::bytes::Bytes;
use crate::format::bundle::container::{Container, MAX_UNPACKED_BYTES, Packing};
use crate::format::bundle::cursor::Cursor;
use crate::format::bundle::error::BundleError;
use crate::format::bundle::formats::COMPRESSED;
use crate::format::bundle::plain;
use crate::format::decompress::{Method, Unpacked, unpack};

/// Parses the compressed bundle at the start of `bytes`, which is at `start` in the file. Fails if it unpacks
/// to more than `room` bytes.
pub(super) fn parse(
    bytes: &[u8],
    start: usize,
    room: u64,
) -> Result<Container<'static>, BundleError> {
    let mut cursor = Cursor {
        bytes,
        what: COMPRESSED.name,
        start,
        at: COMPRESSED.magic.len(),
    };
    let header = Header::read(&mut cursor, room.min(MAX_UNPACKED_BYTES))?;
    let packed_end = match header.size {
        None => bytes.len(),
        Some(size) => {
            cursor.check_size(size)?;
            let at = cursor.at as u64;
            cursor.range("compressed data", at, size - at)?.end
        }
    };
    let packed = &bytes[cursor.at..packed_end];
    let unpacked =
        unpack(header.method, packed, header.unpacked).map_err(|reason| BundleError::Unpack {
            what: COMPRESSED.name,
            offset: start,
            method: header.method,
            reason,
        })?;
    let size = match header.size {
        None => cursor.at + unpacked.taken,
        Some(_) => packed_end,
    };
    let mut damage = header.compare(start, packed.len(), &unpacked)?;
    let bytes = Bytes::unpacked(unpacked.bytes);
    let all = 0..bytes.len();
    let container = plain::parse(&bytes, all).map_err(|source| inside(start, source))?;
    let inner = container.damage.into_iter();
    damage.extend(inner.map(|source| inside(start, source)));
    Ok(Container {
        offset: start,
        size,
        packing: Packing::Compressed {
            version: header.version,
            method: header.method,
            unpacked: header.unpacked,
        },
        damage,
        ..container
    })
}

fn inside(offset: usize, source: BundleError) -> BundleError {
    BundleError::Unpacked {
        what: COMPRESSED.name,
        offset,
        source: Box::new(source),
    }
}

struct Header {
    version: u16,
    method: Method,
    /// The size of the bundle in bytes, header included. Version 1 does not have it.
    size: Option<u64>,
    /// The size when unpacked, in bytes.
    unpacked: u64,
    hash: u64,
}

impl Header {
    fn read(cursor: &mut Cursor<'_>, limit: u64) -> Result<Self, BundleError> {
        let offset = cursor.start;
        let version = cursor.number::<2>("header")?;
        let method = match cursor.number::<2>("header")? {
            0 => Method::Zlib,
            1 => Method::Zstd,
            found => return Err(BundleError::Method { offset, found }),
        };
        let (size, unpacked) = match version {
            1 => (None, cursor.number::<4>("header")?),
            2 => (
                Some(cursor.number::<4>("header")?),
                cursor.number::<4>("header")?,
            ),
            3 => (
                Some(cursor.number::<8>("header")?),
                cursor.number::<8>("header")?,
            ),
            found => {
                return Err(BundleError::Version {
                    what: COMPRESSED.name,
                    offset,
                    found,
                    newest: 3,
                });
            }
        };
        // The sum is a sequence of bytes, which the header has in their order.
        let hash = cursor.number::<8>("header")?.swap_bytes();
        if unpacked > limit {
            return Err(BundleError::TooLarge {
                what: COMPRESSED.name,
                offset,
                declared: unpacked,
                limit,
            });
        }
        Ok(Self {
            version: version as u16,
            method,
            size,
            unpacked,
            hash,
        })
    }

    /// The differences between the unpacked bytes and this header. Fails if there are more bytes than
    /// declared. With any other difference the bytes are still of use.
    fn compare(
        &self,
        offset: usize,
        packed: usize,
        unpacked: &Unpacked,
    ) -> Result<Vec<BundleError>, BundleError> {
        let mut damage = Vec::new();
        let found = unpacked.bytes.len() as u64;
        if found != self.unpacked {
            let error = BundleError::UnpackedSize {
                what: COMPRESSED.name,
                offset,
                declared: self.unpacked,
                found,
            };
            if found > self.unpacked {
                return Err(error);
            }
            damage.push(error);
        }
        if self.size.is_some() && packed != unpacked.taken {
            damage.push(BundleError::PackedSize {
                what: COMPRESSED.name,
                offset,
                declared: packed as u64,
                found: unpacked.taken as u64,
            });
        }
        let sum = md5::compute(&unpacked.bytes);
        let half = sum.iter().take(size_of::<u64>());
        let found = half.fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        if found != self.hash {
            damage.push(BundleError::Hash {
                offset,
                found,
                declared: self.hash,
            });
        }
        Ok(damage)
    }
}
