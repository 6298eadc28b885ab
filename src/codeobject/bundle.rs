//! Offload bundles: how clang puts the code objects of several targets into one file.
//!
//! The `.hip_fatbin` section of a host ELF holds one bundle for each translation unit (one in all
//! with `-fgpu-rdc`), each on a page of its own; `--genco` writes a file that is a bundle. The
//! format is that of clang-offload-bundler: a magic, the number of entries, for each entry offset,
//! size and a target id with its length, then the bytes of the entries. Numbers are little-endian
//! u64; offsets and sizes count bytes from the start of the bundle.

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use thiserror::Error;

/// What a bundle starts with.
const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// What a compressed bundle starts with.
const COMPRESSED_MAGIC: &[u8] = b"CCOB";

/// The section of a host ELF that holds bundles.
const SECTION: &[u8] = b".hip_fatbin";

/// Fixed part of an entry's header: offset, size, length of the target id.
const ENTRY_HEADER_BYTES: usize = 3 * size_of::<u64>();

/// Why bytes are not a sequence of bundles. Offsets count from the first of these bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Neither a bundle nor padding.
    #[error("no offload bundle at offset {offset:#x}: found bytes {found:02x?}")]
    UnknownMagic {
        /// Where a bundle was expected.
        offset: usize,
        /// The bytes there, 8 at most.
        found: Vec<u8>,
    },
    /// A bundle that has to be decompressed first.
    #[error(
        "compressed offload bundle at offset {offset:#x}, which is not read yet: \
         compile with --no-offload-compress"
    )]
    Compressed {
        /// Where the bundle starts.
        offset: usize,
    },
    /// A part that reaches beyond the bytes there are.
    #[error(
        "the {part} of the offload bundle at offset {bundle:#x} ends at {end:#x}, \
         after the last byte at {available:#x}"
    )]
    Truncated {
        /// Which part.
        part: &'static str,
        /// Where the bundle starts.
        bundle: usize,
        /// Where the part ends, as far as its header is believed.
        end: u128,
        /// How many bytes there are.
        available: usize,
    },
    /// A target id that is not text.
    #[error("target id {found:02x?} of the offload bundle at offset {bundle:#x} is not UTF-8")]
    TargetId {
        /// Where the bundle starts.
        bundle: usize,
        /// The id's bytes.
        found: Vec<u8>,
    },
    /// The host file around the bundles is not an ELF that can be read.
    #[error("not a 64-bit little-endian ELF: {0}")]
    HostFile(#[from] object::Error),
}

/// One bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle<'data> {
    /// Where it starts in the bytes that were searched.
    pub offset: usize,
    /// Its entries, in their order; the host's, usually empty, included.
    pub entries: Vec<Entry<'data>>,
}

/// What a bundle holds for one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'data> {
    /// The whole id, such as `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-` or
    /// `host-x86_64-unknown-linux-gnu-`.
    pub target_id: &'data str,
    /// Offset of the bytes from the start of the bundle.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
    /// The bytes: a code object where [`Entry::target`] says so.
    pub bytes: &'data [u8],
}

impl<'data> Entry<'data> {
    /// Processor and features of an amdgcn entry, such as `gfx90a:xnack-`; `None` for the host's
    /// entry and for other devices.
    #[must_use]
    pub fn target(&self) -> Option<&'data str> {
        let (_kind, triple_and_target) = self.target_id.split_once('-')?;
        // The environment part of the triple is empty, hence two dashes.
        let (triple, target) = triple_and_target.split_once("--")?;
        (triple == "amdgcn-amd-amdhsa").then_some(target)
    }
}

/// Whether `data` starts with a bundle, plain or compressed.
#[must_use]
pub fn is_bundle(data: &[u8]) -> bool {
    data.starts_with(MAGIC) || data.starts_with(COMPRESSED_MAGIC)
}

/// The bundles in `data`, which may be followed by zeros up to the next one.
///
/// Ends after the first error, as nothing says where the next bundle would start.
#[must_use]
pub fn bundles(data: &[u8]) -> Bundles<'_> {
    Bundles {
        data,
        next: Some(0),
    }
}

/// Iterator over bundles, made by [`bundles`].
#[derive(Clone, Debug)]
pub struct Bundles<'data> {
    data: &'data [u8],
    /// Where the search for the next bundle starts; `None` when there is none.
    next: Option<usize>,
}

impl<'data> Iterator for Bundles<'data> {
    type Item = Result<Bundle<'data>, BundleError>;

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.next.take()?;
        let rest = self.data.get(from..)?;
        let start = from + rest.iter().position(|byte| *byte != 0)?;
        Some(parse(self.data, start).map(|(bundle, end)| {
            self.next = Some(end);
            bundle
        }))
    }
}

/// The bundles' section of the host ELF `file`; `None` where it has none.
///
/// # Errors
/// Fails where `file` is not a 64-bit little-endian ELF, or a damaged one.
pub fn fat_binary(file: &[u8]) -> Result<Option<&[u8]>, BundleError> {
    let header = FileHeader64::<LittleEndian>::parse(file)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, file)?;
    for section in sections.iter() {
        if sections.section_name(endian, section)? == SECTION {
            return Ok(Some(section.data(endian, file)?));
        }
    }
    Ok(None)
}

/// Parses the bundle at `start` and says where it ends.
fn parse(data: &[u8], start: usize) -> Result<(Bundle<'_>, usize), BundleError> {
    let rest = &data[start..];
    if rest.starts_with(COMPRESSED_MAGIC) {
        return Err(BundleError::Compressed { offset: start });
    }
    if !rest.starts_with(MAGIC) {
        let found = rest[..rest.len().min(8)].to_vec();
        return Err(BundleError::UnknownMagic {
            offset: start,
            found,
        });
    }
    let mut cursor = Cursor {
        data,
        bundle: start,
        at: start + MAGIC.len(),
    };
    let count = cursor.word("number of entries")?;
    // Refuse a count that cannot be before it is used for anything.
    cursor.check(
        "entries",
        cursor.at,
        u128::from(count) * ENTRY_HEADER_BYTES as u128,
    )?;
    let mut entries = Vec::new();
    let mut contents_end = start;
    for _ in 0..count {
        let (entry, end) = cursor.entry()?;
        contents_end = contents_end.max(end);
        entries.push(entry);
    }
    let end = contents_end.max(cursor.at);
    Ok((
        Bundle {
            offset: start,
            entries,
        },
        end,
    ))
}

/// Reads a bundle's header from front to back.
struct Cursor<'data> {
    data: &'data [u8],
    /// Where the bundle starts.
    bundle: usize,
    at: usize,
}

impl<'data> Cursor<'data> {
    /// Reads one entry's header and says where its contents end.
    fn entry(&mut self) -> Result<(Entry<'data>, usize), BundleError> {
        let offset = self.word("entry")?;
        let size = self.word("entry")?;
        let id_bytes = self.word("entry")?;
        let id = self.take("target id", u128::from(id_bytes))?;
        let target_id = str::from_utf8(id).map_err(|_| BundleError::TargetId {
            bundle: self.bundle,
            found: id.to_vec(),
        })?;
        let start = self.check("contents", self.bundle, u128::from(offset))?;
        let end = self.check("contents", start, u128::from(size))?;
        let bytes = &self.data[start..end];
        Ok((
            Entry {
                target_id,
                offset,
                size,
                bytes,
            },
            end,
        ))
    }

    fn word(&mut self, part: &'static str) -> Result<u64, BundleError> {
        let bytes = self.take(part, size_of::<u64>() as u128)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }

    fn take(&mut self, part: &'static str, size: u128) -> Result<&'data [u8], BundleError> {
        let end = self.check(part, self.at, size)?;
        let start = std::mem::replace(&mut self.at, end);
        Ok(&self.data[start..end])
    }

    /// The end of a part of `size` bytes from `start`, which must not be beyond the data's.
    fn check(&self, part: &'static str, start: usize, size: u128) -> Result<usize, BundleError> {
        // Two u64 at most: no overflow in u128.
        let end = start as u128 + size;
        let available = self.data.len();
        usize::try_from(end)
            .ok()
            .filter(|end| *end <= available)
            .ok_or(BundleError::Truncated {
                part,
                bundle: self.bundle,
                end,
                available,
            })
    }
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
