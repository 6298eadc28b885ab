//! Coverage mappings: which source file a function is in.
//!
//! `__llvm_covfun` has a record for each function, which names its files by their places in a list;
//! the lists are in `__llvm_covmap`, one for each translation unit, found by a hash (LLVM's
//! CoverageMappingFormat, versions 4 to 7, that is LLVM 11 to 22). Neither section is loaded onto
//! the device.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use byteorder::{ByteOrder, LittleEndian};
use thiserror::Error;

use super::bundle::Method;
use super::functions::name_ref;
use super::unpack::unpack;

/// Sections, for messages.
const COVMAP: &str = "__llvm_covmap";
const COVFUN: &str = "__llvm_covfun";
/// Header of a list of files: four u32, of which the second is the bytes of the list, the fourth
/// the version.
const MAP_HEADER: usize = 16;
/// Header of a function's record: hash of the name (u64), bytes of the mapping (u32), hash of the
/// function (u64), hash of the list of files (u64). Packed.
const FUNCTION_HEADER: usize = 28;
/// The versions that are read, as the format has them: one less than LLVM's names for them.
const VERSIONS: std::ops::RangeInclusive<u32> = 3..=6;
/// The first version whose first file is the directory of the compilation.
const WITH_DIRECTORY: u32 = 5;
/// Most bytes of a list of files that is compressed: names of a hundred thousand files.
const MAX_LIST: u64 = 16 << 20;
/// Most bytes of a path, directory and all: Linux opens none that is longer (`PATH_MAX`).
const MAX_PATH: usize = 4096;

/// What is wrong with a coverage mapping.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CoverageError {
    /// A length that goes beyond the section, or the list of files.
    #[error("damaged coverage mapping: {found} bytes at byte {at} of {section}, which has {len}")]
    Cut {
        /// The section.
        section: &'static str,
        /// Where the bytes should start.
        at: usize,
        /// How many there should be.
        found: u64,
        /// Bytes that there are.
        len: usize,
    },
    /// A number of the variable-length form that is cut or does not end.
    #[error(
        "damaged coverage mapping: no number at byte {at} of {section}, expected one up to 2^63"
    )]
    Number {
        /// The section.
        section: &'static str,
        /// Where, from the start of the list or the record's mapping.
        at: usize,
    },
    /// A list of files that would take too much memory.
    #[error(
        "damaged coverage mapping: a list of files of {found} bytes, expected at most {MAX_LIST}"
    )]
    Large {
        /// Its size as declared.
        found: u64,
    },
    /// A list of files that cannot be inflated.
    #[error(
        "damaged coverage mapping: a list of files that should inflate to {expected} bytes: {reason}"
    )]
    Inflate {
        /// Its size as declared.
        expected: u64,
        /// What the decoder says.
        reason: String,
    },
    /// A path that no file can have.
    #[error("damaged coverage mapping: a path of {found} bytes, expected at most {MAX_PATH}")]
    Path {
        /// Its bytes with those of the directory.
        found: usize,
    },
    /// A function in a file that the list does not have.
    #[error("damaged coverage mapping: a function in file {found} of a list of {len}")]
    File {
        /// Its place, from 0.
        found: u64,
        /// Files in the list.
        len: usize,
    },
}

/// The source files of the functions `wanted`, by the hash of their names. Those are left out that
/// have no mapping, or one of a version that is not known.
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
    // Behind the last one may be less than a header of padding.
    while reader.rest().len() >= MAP_HEADER && !in_list.is_empty() {
        let header = reader.take(MAP_HEADER as u64)?;
        let list = reader.take(LittleEndian::read_u32(&header[4..]).into())?;
        reader.take(LittleEndian::read_u32(&header[8..]).into())?;
        reader.align();
        let version = LittleEndian::read_u32(&header[12..]);
        if !VERSIONS.contains(&version) {
            continue;
        }
        // One list at a time: together they could be large.
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

/// Where a function is.
struct Mapped {
    /// Hash of the list of files.
    list: u64,
    /// Place in the list.
    file: u64,
    /// Whether it is a stand-in for a function that its unit does not use: the mapping proper may
    /// be another unit's.
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
            // The first of its files is the one that it starts in; others are of macros.
            file: mapping.number()?,
            is_unused: LittleEndian::read_u64(&header[12..]) == 0,
        };
        found.insert(name, function);
    }
    Ok(found)
}

/// The paths of the files `wanted` of a list, by their places in it, as llvm-cov has them. No others are
/// put together: with the directory before each, a small list would make large ones.
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
    // Each takes a byte at the least: this ends with the bytes that there are, whatever the count.
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

/// `name` from `directory`, without `.` and `..`; as it is where there is none, or it is from the root.
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

/// Reads forward through a section, or a part of one.
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

    /// Goes on at a multiple of 8 bytes, or the end.
    fn align(&mut self) {
        self.at = self.at.next_multiple_of(8).min(self.data.len());
    }

    /// A number as ULEB128.
    fn number(&mut self) -> Result<u64, CoverageError> {
        let (number, len) = uleb128(self.rest()).ok_or(CoverageError::Number {
            section: self.section,
            at: self.at,
        })?;
        self.at += len;
        Ok(number)
    }
}

/// The number below 2^63 at the start of `bytes` as ULEB128, and how many of them it takes.
pub(crate) fn uleb128(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    None
}

#[cfg(test)]
#[path = "coverage_tests.rs"]
mod tests;
