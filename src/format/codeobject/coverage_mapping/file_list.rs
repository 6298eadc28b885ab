//! `__llvm_covmap`: lists of source files, one for each translation unit.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use byteorder::{ByteOrder, LittleEndian};

use crate::format::codeobject::coverage_mapping::error::{
    CoverageError, MAX_LIST, MAX_PATH, VERSIONS,
};
use crate::format::codeobject::coverage_mapping::reader::Reader;
use crate::format::codeobject::kernel_sources::name_ref;
use crate::format::decompress::{Method, unpack};

/// The section's name in messages.
const COVMAP: &str = "__llvm_covmap";
/// The size of a file list's header: four u32 words. The second is the size of the list in bytes, the fourth
/// is the version.
const HEADER: usize = 16;
/// The first version whose file list starts with the compilation directory.
pub(super) const WITH_DIRECTORY: u32 = 5;
/// The file lists of the section, in order.
pub(super) struct FileLists<'a>(Reader<'a>);

/// The source files of a translation unit.
pub(super) struct FileList<'a> {
    /// Compressed or not.
    pub(super) bytes: &'a [u8],
    /// The version, as the format numbers it.
    pub(super) version: u32,
}

impl<'a> FileLists<'a> {
    pub(super) fn new(section: &'a [u8]) -> Self {
        Self(Reader::new(COVMAP, section))
    }

    fn read(&mut self) -> Result<FileList<'a>, CoverageError> {
        let header = self.0.take(HEADER as u64)?;
        let bytes = self.0.take(LittleEndian::read_u32(&header[4..]).into())?;
        self.0.take(LittleEndian::read_u32(&header[8..]).into())?;
        self.0.align();
        let version = LittleEndian::read_u32(&header[12..]);
        Ok(FileList { bytes, version })
    }
}

impl<'a> Iterator for FileLists<'a> {
    type Item = Result<FileList<'a>, CoverageError>;

    fn next(&mut self) -> Option<Self::Item> {
        // After the last list there may be padding, shorter than a header.
        (self.0.rest().len() >= HEADER).then(|| self.read())
    }
}

impl FileList<'_> {
    /// The hash by which function records name the list.
    pub(super) fn hash(&self) -> u64 {
        name_ref(self.bytes)
    }

    /// Returns whether rocov reads this version.
    pub(super) fn is_known(&self) -> bool {
        VERSIONS.contains(&self.version)
    }

    /// The paths of the files `wanted`, by their places in the list, as llvm-cov prints them. Builds only
    /// these: each path repeats the directory, so a small list could take much memory. Takes their sizes in
    /// bytes from `room`.
    pub(super) fn paths(
        &self,
        wanted: &BTreeSet<u64>,
        room: &mut usize,
    ) -> Result<HashMap<u64, String>, CoverageError> {
        let mut reader = Reader::new(COVMAP, self.bytes);
        let count = reader.number()?;
        let [size, compressed] = [reader.number()?, reader.number()?];
        let inflated;
        let mut names = if compressed == 0 {
            reader
        } else {
            inflated = Inflated::new(reader.take(compressed)?, size)?;
            Reader::new(COVMAP, &inflated.names)
        };
        let mut directory = None;
        let mut paths = HashMap::new();
        // Each name takes at least one byte, so the data ends the loop whatever the count.
        for place in 0..count {
            let len = names.number()?;
            let name = names.take(len)?;
            if wanted.contains(&place) {
                let path = within(directory, name)?;
                *room = room.checked_sub(path.len()).ok_or(CoverageError::Paths)?;
                paths.insert(place, path);
            }
            if place == 0 && self.version >= WITH_DIRECTORY {
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
    // Most paths have no such parts, and to take a path apart takes long.
    let whole = format!("{directory}/{name}");
    if !["//", "/."].iter().any(|part| whole.contains(part))
        && !whole.starts_with('.')
        && !directory.is_empty()
        && !whole.ends_with('/')
    {
        return Ok(whole);
    }
    let mut path = PathBuf::new();
    for component in Path::new(&*directory).join(&*name).components() {
        let last = path.components().next_back();
        match (component, last) {
            (Component::ParentDir, Some(Component::Normal(_))) => _ = path.pop(),
            (Component::ParentDir, Some(Component::RootDir)) | (Component::CurDir, _) => {}
            (other, _) => path.push(other),
        }
    }
    Ok(path.to_string_lossy().into_owned())
}

/// The longest list in bytes that stays for the next code object.
const KEPT: usize = 64 << 10;

/// The list that was inflated last. A program often loads many code objects of one source, whose lists are equal.
static LAST: Mutex<Inflated> = Mutex::new(Inflated {
    data: Vec::new(),
    names: Vec::new(),
});

/// A compressed list, and its names.
struct Inflated {
    data: Vec<u8>,
    names: Vec<u8>,
}

impl Inflated {
    fn new(data: &[u8], size: u64) -> Result<Self, CoverageError> {
        // A child that was forked while another thread had the lock never gets it.
        if let Ok(mut last) = LAST.try_lock()
            && last.data == data
            && last.names.len() as u64 == size
        {
            return Ok(Self {
                data: std::mem::take(&mut last.data),
                names: std::mem::take(&mut last.names),
            });
        }
        Ok(Self {
            names: inflate(data, size)?,
            data: data.to_vec(),
        })
    }
}

impl Drop for Inflated {
    fn drop(&mut self) {
        if (1..=KEPT).contains(&self.names.len())
            && let Ok(mut last) = LAST.try_lock()
        {
            std::mem::swap(&mut last.data, &mut self.data);
            std::mem::swap(&mut last.names, &mut self.names);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_together_as_llvm_cov_prints_them() {
        for (directory, name, expected) in [
            (None, "a.c", "a.c"),
            (Some(""), "a.c", "a.c"),
            (Some("/d"), "a.c", "/d/a.c"),
            (Some("/d"), "e/a.c", "/d/e/a.c"),
            (Some("/d"), "/e/a.c", "/e/a.c"),
            (Some("/"), "a.c", "/a.c"),
            (Some("/d/"), "a.c", "/d/a.c"),
            (Some("/d"), "./a.c", "/d/a.c"),
            (Some("/d/e"), "../a.c", "/d/a.c"),
            (Some("/d/.."), "a.c", "/a.c"),
            (Some("."), "a.c", "a.c"),
            (Some("d"), "a.c", "d/a.c"),
            (Some("/d/.e"), "f..c", "/d/.e/f..c"),
            (Some("/d"), "e/", "/d/e"),
        ] {
            let found = within(directory.map(str::as_bytes), name.as_bytes());
            assert_eq!(found.expect("a path"), expected, "{directory:?} {name}");
        }
    }
}
