//! Coverage mappings: the source file of each function.
//!
//! `__llvm_covfun` has a record for each function. The record names its files by their places in a list, and
//! names the list by a hash. `__llvm_covmap` has the lists, one for each translation unit (LLVM's
//! CoverageMappingFormat, versions 4 to 7, which LLVM 11 to 22 write). Neither section is loaded onto the
//! device.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use byteorder::{ByteOrder, LittleEndian};
use thiserror::Error;

use crate::format::bundle::Method;
use crate::format::codeobject::kernel_sources::name_ref;
use crate::format::decompress::unpack;
use crate::format::leb128::uleb128;

/// The sections' names in messages.
const COVMAP: &str = "__llvm_covmap";
const COVFUN: &str = "__llvm_covfun";
/// The size of a file list's header: four u32 words. The second is the size of the list in bytes, the fourth
/// is the version.
const MAP_HEADER: usize = 16;
/// The size of a function record's header: hash of the name (u64), size of the mapping in bytes (u32), hash
/// of the function (u64), hash of the file list (u64). The header is packed.
const FUNCTION_HEADER: usize = 28;
/// The versions that rocov reads, as the format numbers them: one less than LLVM's names.
const VERSIONS: std::ops::RangeInclusive<u32> = 3..=6;
/// The first version whose file list starts with the compilation directory.
const WITH_DIRECTORY: u32 = 5;
/// The largest size in bytes of a compressed file list: enough for a hundred thousand names.
const MAX_LIST: u64 = 16 << 20;
/// The largest size in bytes of a path with its directory. Linux opens no longer path (`PATH_MAX`).
const MAX_PATH: usize = 4096;

/// The error for a damaged coverage mapping.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CoverageError {
    /// A length goes beyond the section or the file list.
    #[error("damaged coverage mapping: {found} bytes at byte {at} of {section}, which has {len}")]
    Cut {
        /// The section.
        section: &'static str,
        /// The offset of the first byte.
        at: usize,
        /// The number of bytes that the length announces.
        found: u64,
        /// The number of bytes that there are.
        len: usize,
    },
    /// A variable-length number is cut short or does not end.
    #[error(
        "damaged coverage mapping: no number at byte {at} of {section}, expected one up to 2^63"
    )]
    Number {
        /// The section.
        section: &'static str,
        /// The offset from the start of the list or of the record's mapping.
        at: usize,
    },
    /// A file list would take too much memory.
    #[error(
        "damaged coverage mapping: a list of files of {found} bytes, expected at most {MAX_LIST}"
    )]
    Large {
        /// The declared size.
        found: u64,
    },
    /// A file list cannot be inflated.
    #[error(
        "damaged coverage mapping: a list of files that should inflate to {expected} bytes: {reason}"
    )]
    Inflate {
        /// The declared size.
        expected: u64,
        /// The decoder's message.
        reason: String,
    },
    /// A path is longer than any file's.
    #[error("damaged coverage mapping: a path of {found} bytes, expected at most {MAX_PATH}")]
    Path {
        /// The size in bytes, with the directory.
        found: usize,
    },
    /// A function names a file that the list does not have.
    #[error("damaged coverage mapping: a function in file {found} of a list of {len}")]
    File {
        /// The place of the file, from 0.
        found: u64,
        /// The number of files in the list.
        len: usize,
    },
}

/// The source files of the functions `wanted`, by the hash of their names. Leaves out functions that have no
/// mapping, or a mapping of an unknown version.
pub(super) fn sources(
    maps: &[u8],
    functions: &[u8],
    wanted: &HashSet<u64>,
) -> Result<HashMap<u64, String>, CoverageError> {
    let mut in_list: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    for (name, function) in mapped(functions, wanted)? {
        let of_list = in_list.entry(function.list).or_default();
        of_list.push((name, function.file));
    }
    let mut sources = HashMap::new();
    let mut reader = Reader::new(COVMAP, maps);
    // After the last list there may be padding, shorter than a header.
    while reader.rest().len() >= MAP_HEADER && !in_list.is_empty() {
        let header = reader.take(MAP_HEADER as u64)?;
        let list = reader.take(LittleEndian::read_u32(&header[4..]).into())?;
        reader.take(LittleEndian::read_u32(&header[8..]).into())?;
        reader.align();
        let version = LittleEndian::read_u32(&header[12..]);
        if !VERSIONS.contains(&version) {
            continue;
        }
        // Reads one list at a time: together they could be large.
        if let Some(functions) = in_list.remove(&name_ref(list)) {
            let wanted = functions.iter().map(|(_, file)| *file).collect();
            let paths = paths(list, version, &wanted)?;
            for (name, file) in functions {
                sources.insert(name, paths[&file].clone());
            }
        }
    }
    Ok(sources)
}

/// The place of a function.
struct Mapped {
    /// The hash of the file list.
    list: u64,
    /// The place in the list.
    file: u64,
    /// True if this stands in for a function that its unit does not use. Another unit may have the real
    /// mapping.
    is_unused: bool,
}

fn mapped(functions: &[u8], wanted: &HashSet<u64>) -> Result<HashMap<u64, Mapped>, CoverageError> {
    let mut found: HashMap<u64, Mapped> = HashMap::new();
    let mut reader = Reader::new(COVFUN, functions);
    while reader.rest().len() >= FUNCTION_HEADER {
        let header = reader.take(FUNCTION_HEADER as u64)?;
        let mapping = reader.take(LittleEndian::read_u32(&header[8..]).into())?;
        reader.align();
        let name = LittleEndian::read_u64(header);
        if !wanted.contains(&name) || found.get(&name).is_some_and(|it| !it.is_unused) {
            continue;
        }
        let mut mapping = Reader::new(COVFUN, mapping);
        if mapping.number()? == 0 {
            continue;
        }
        let function = Mapped {
            list: LittleEndian::read_u64(&header[20..]),
            // A function starts in the first of its files. The others are files of macros.
            file: mapping.number()?,
            is_unused: LittleEndian::read_u64(&header[12..]) == 0,
        };
        found.insert(name, function);
    }
    Ok(found)
}

/// The paths of the files `wanted` of a list, by their places in it, as llvm-cov prints them. Builds only
/// these: each path repeats the directory, so a small list could take much memory.
fn paths(
    list: &[u8],
    version: u32,
    wanted: &HashSet<u64>,
) -> Result<HashMap<u64, String>, CoverageError> {
    let mut reader = Reader::new(COVMAP, list);
    let count = reader.number()?;
    let [size, compressed] = [reader.number()?, reader.number()?];
    let inflated;
    let mut names = if compressed == 0 {
        reader
    } else {
        inflated = inflate(reader.take(compressed)?, size)?;
        Reader::new(COVMAP, &inflated)
    };
    let mut directory = None;
    let mut paths = HashMap::new();
    // Each name takes at least one byte, so the data ends the loop whatever the count.
    for place in 0..count {
        let len = names.number()?;
        let name = names.take(len)?;
        if wanted.contains(&place) {
            paths.insert(place, within(directory, name)?);
        }
        if place == 0 && version >= WITH_DIRECTORY {
            directory = Some(name);
        }
    }
    match wanted.iter().find(|place| **place >= count) {
        Some(place) => Err(CoverageError::File {
            found: *place,
            len: count as usize,
        }),
        None => Ok(paths),
    }
}

/// `name` within `directory`, without `.` and `..`. Returns `name` itself if there is no directory or the
/// path is absolute.
fn within(directory: Option<&[u8]>, name: &[u8]) -> Result<String, CoverageError> {
    let directory = directory.filter(|_| !name.starts_with(b"/"));
    let found = directory.map_or(0, <[u8]>::len) + name.len();
    if found > MAX_PATH {
        return Err(CoverageError::Path { found });
    }
    let name = String::from_utf8_lossy(name);
    let Some(directory) = directory.map(String::from_utf8_lossy) else {
        return Ok(name.into_owned());
    };
    let mut path = PathBuf::new();
    for component in Path::new(&*directory).join(&*name).components() {
        match component {
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    Ok(path.to_string_lossy().into_owned())
}

fn inflate(data: &[u8], size: u64) -> Result<Vec<u8>, CoverageError> {
    if size > MAX_LIST {
        return Err(CoverageError::Large { found: size });
    }
    let failed = |reason| CoverageError::Inflate {
        expected: size,
        reason,
    };
    let inflated = unpack(Method::Zlib, data, size).map_err(failed)?.bytes;
    match inflated.len() as u64 {
        len if len == size => Ok(inflated),
        len if len > size => Err(failed("there are more".into())),
        len => Err(failed(format!("there are {len}"))),
    }
}

/// A reader that moves forward through a section or a part of it.
struct Reader<'a> {
    section: &'static str,
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(section: &'static str, data: &'a [u8]) -> Self {
        let at = 0;
        Reader { section, data, at }
    }

    fn rest(&self) -> &'a [u8] {
        &self.data[self.at..]
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], CoverageError> {
        let taken = usize::try_from(len)
            .ok()
            .and_then(|len| self.rest().get(..len));
        let taken = taken.ok_or(CoverageError::Cut {
            section: self.section,
            at: self.at,
            found: len,
            len: self.data.len(),
        })?;
        self.at += taken.len();
        Ok(taken)
    }

    /// Moves to the next multiple of 8 bytes, or to the end.
    fn align(&mut self) {
        self.at = self.at.next_multiple_of(8).min(self.data.len());
    }

    /// Reads a ULEB128 number.
    fn number(&mut self) -> Result<u64, CoverageError> {
        let (number, len) = uleb128(self.rest()).ok_or(CoverageError::Number {
            section: self.section,
            at: self.at,
        })?;
        self.at += len;
        Ok(number)
    }
}

#[cfg(test)]
#[path = "coverage_mapping_tests.rs"]
mod tests;
