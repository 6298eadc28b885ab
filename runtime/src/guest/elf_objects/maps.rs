//! The mappings of the process, from /proc/self/maps.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The text of /proc/self/maps at one moment.
///
/// Each line is `START-END PERMISSIONS OFFSET DEVICE INODE PATH`. Addresses are hexadecimal, spaces in
/// paths stand as they are, and a mark follows the path of a file that was removed.
pub(crate) struct Maps(String);

impl Maps {
    /// Reads the mappings. They are empty if the file cannot be read.
    pub(crate) fn read() -> Self {
        Self(fs::read_to_string("/proc/self/maps").unwrap_or_default())
    }

    /// Returns the file that is mapped at `address`, under its old name if it was removed.
    pub(crate) fn file_at(&self, address: usize) -> Option<PathBuf> {
        let (_, file) = self.all().find(|(range, _)| range.contains(&address))?;
        file.map(PathBuf::from)
    }

    /// Returns the file that is mapped at `address`, as [`Maps::file_at`] does. Reads the mappings up to that
    /// one only: the kernel takes long for all of them.
    pub(crate) fn find_file_at(address: usize) -> Option<PathBuf> {
        let maps = BufReader::new(File::open("/proc/self/maps").ok()?);
        let lines = maps.split(b'\n').map_while(Result::ok);
        for line in lines {
            let line = String::from_utf8_lossy(&line);
            if let Some((range, file)) = mapping(&line)
                && range.contains(&address)
            {
                return file.map(PathBuf::from);
            }
        }
        None
    }

    /// Returns the first address of each part of `file` that is mapped.
    pub(crate) fn starts_of(&self, file: &Path) -> impl Iterator<Item = usize> {
        let of_file = self
            .all()
            .filter(move |(_, mapped)| mapped.is_some_and(|mapped| Path::new(mapped) == file));
        of_file.map(|(range, _)| range.start)
    }

    fn all(&self) -> impl Iterator<Item = (Range<usize>, Option<&str>)> {
        self.0.lines().filter_map(mapping)
    }
}

/// Removes the mark that the kernel puts behind the name of a removed file.
pub(crate) fn without_mark(file: &str) -> &str {
    file.strip_suffix(" (deleted)").unwrap_or(file)
}

fn mapping(line: &str) -> Option<(Range<usize>, Option<&str>)> {
    let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let file = rest.find('/').map(|at| without_mark(&rest[at..]));
    Some((hexadecimal(start)?..hexadecimal(end)?, file))
}
