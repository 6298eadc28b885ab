//! The places of all files that rocov writes: the names in a data directory, each defined once.
//!
//! ```text
//! DATA/profraw/ARCH.IDENTITY.AGENT.BASE    raw profiles, and nothing else: `llvm-profdata merge` reads
//! DATA/profraw/labels/LABEL/...            all files in a folder
//! DATA/objects/TARGET.IDENTITY.elf         device ELFs
//! DATA/objects/TARGET.IDENTITY.ptx         the PTX that such an ELF was made from, before counters were added,
//!                                          and hashes of its source lines
//! DATA/registry/BASE.kernels.json          kernel registries
//! DATA/sections/...                        sections that nothing reads yet
//! ```
//!
//! A user's own pattern `P/x.profraw` has the profiles in `P` and everything else in `P.rocov`, the side of
//! `P`. If the pattern names no directory, `P` is the working directory. Its side is then in `.rocov` of the
//! parent directory, under the name of `P`: another directory there has another side.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use crate::format::codeobject::{Identity, sanitize_target};
use crate::store::{LABELS, Label};

/// The folder of raw profiles in a data directory, and the extension of most of them.
pub const PROFRAW: &str = "profraw";
/// The folder of device ELFs.
pub const OBJECTS: &str = "objects";
/// The ending of the PTX that a device ELF was made of. It is next to the ELF.
pub const PTX: &str = "ptx";
/// The folder of kernel registries.
pub const REGISTRIES: &str = "registry";
/// The end of the names of kernel registries.
pub const REGISTRY: &str = ".kernels.json";
/// The folder of saved sections, and their extension.
pub const SECTIONS: &str = "sections";
/// The end of the name of a side, and the name of the folder with the sides of working directories.
pub const SIDE: &str = ".rocov";
/// The file that marks the directory of a data set, which is no data directory.
pub const DATA_SET: &str = "rocov-dataset.json";
/// The start of the name of a data set in the bucket of an object store.
pub const IN_BUCKETS: &str = "s3://";

/// The bucket and the prefix in it, as in `BUCKET/PREFIX`, if a path names these.
#[must_use]
pub fn in_bucket(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(IN_BUCKETS)
}

/// Returns whether the user means a data set by this path: it is in a bucket, or has the mark of a data set.
#[must_use]
pub fn is_data_set(path: &Path) -> bool {
    in_bucket(path).is_some() || path.join(DATA_SET).is_file()
}

/// The places of a process's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataLayout {
    /// The directory that the user sees: the data directory, or the directory of the user's own pattern.
    directory: PathBuf,
    /// The directory of all profiles, spelled as in their paths.
    profiles: PathBuf,
    /// The directory of everything else.
    side: PathBuf,
}

impl DataLayout {
    /// The layout of the data directory `data`.
    #[must_use]
    pub fn from_data(data: &Path) -> Self {
        Self {
            directory: data.to_owned(),
            profiles: data.join(PROFRAW),
            side: data.to_owned(),
        }
    }

    /// The layout of a user's own pattern, whose profiles are in `profiles` or below. Set `is_unnamed` if the
    /// pattern names no directory, and `profiles` is the working directory.
    #[must_use]
    pub fn from_pattern(profiles: &Path, is_unnamed: bool) -> Self {
        let directory = normal(profiles);
        let [named, unnamed] = sides(&directory);
        Self {
            side: if is_unnamed { unnamed } else { named },
            directory,
            profiles: profiles.to_owned(),
        }
    }

    /// The layout of profiles in `profiles` and everything else in `side`.
    #[must_use]
    pub fn from_places(profiles: &Path, side: &Path) -> Self {
        Self {
            directory: normal(profiles),
            profiles: profiles.to_owned(),
            side: side.to_owned(),
        }
    }

    /// The directory that the user sees and passes to `rocov report`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of all files that are not profiles.
    #[must_use]
    pub fn side(&self) -> &Path {
        &self.side
    }

    /// The directory of all profiles.
    #[must_use]
    pub fn profiles(&self) -> &Path {
        &self.profiles
    }

    /// Returns whether the profiles of `other` are among those of this layout.
    #[must_use]
    pub fn has(&self, other: &Self) -> bool {
        other.profiles.starts_with(&self.profiles)
    }

    /// The directory in `folder` for files that belong to the profile at `path`. It has the subdirectories
    /// that the profile is in.
    #[must_use]
    pub fn beside(&self, path: &Path, folder: &str) -> PathBuf {
        let parent = path.parent().unwrap_or(path);
        let below = parent.strip_prefix(&self.profiles).unwrap_or(Path::new(""));
        self.side.join(folder).join(below)
    }

    /// The path of `path` for files in the side: relative to the side, so that both can be moved together.
    /// Absolute if `path` is elsewhere.
    #[must_use]
    pub fn relative(&self, path: &Path) -> PathBuf {
        if let Ok(within) = path.strip_prefix(&self.side) {
            return within.to_owned();
        }
        let Ok(below) = path.strip_prefix(&self.profiles) else {
            return path.to_owned();
        };
        let mut common = self.side.as_path();
        let mut up = PathBuf::new();
        while let Some(parent) = common.parent() {
            common = parent;
            up.push("..");
            if let Ok(down) = self.directory.strip_prefix(common) {
                return up.join(down).join(below);
            }
        }
        path.to_owned()
    }
}

/// Returns whether the file at `path` has the name of a kernel registry.
#[must_use]
pub fn is_registry(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_encoded_bytes);
    name.is_some_and(|name| name.ends_with(REGISTRY.as_bytes()))
}

/// The identity in the path of a kept device ELF, `objects/TARGET.IDENTITY.elf`, which
/// [`device_elf_name`] makes.
#[must_use]
pub fn elf_identity(path: &Path) -> Option<&str> {
    kept_identity(path, "elf")
}

/// The identity in the path of the PTX next to a kept device ELF, `objects/TARGET.IDENTITY.ptx`.
#[must_use]
pub fn source_identity(path: &Path) -> Option<&str> {
    kept_identity(path, PTX)
}

/// The identity in a path `objects/TARGET.IDENTITY.ENDING`.
fn kept_identity<'a>(path: &'a Path, ending: &str) -> Option<&'a str> {
    let is_kept = path.parent()?.file_name()? == OBJECTS && path.extension()? == ending;
    let (_, identity) = path.file_stem()?.to_str()?.rsplit_once('.')?;
    is_kept.then_some(identity)
}

/// The label in the path of a profile. The directories of labels are in that of all profiles, whatever is
/// above.
#[must_use]
pub fn profile_label(path: &Path) -> Option<Label> {
    let (_, label) = split_at_labels(path.parent()?);
    Label::from_directory(&label?)
}

/// The directory of the profiles without a label, for the directory of any profiles: `profraw/7` for
/// `profraw/7/labels/LABEL`.
#[must_use]
pub fn unlabelled_directory(directory: &Path) -> PathBuf {
    split_at_labels(directory).0
}

/// Splits the directory of a profile: the part before the directory of labels, and the part below it if
/// there is one.
fn split_at_labels(directory: &Path) -> (PathBuf, Option<PathBuf>) {
    let names: Vec<_> = directory.iter().collect();
    let profiles = names.iter().rposition(|name| *name == PROFRAW);
    let from = profiles.map_or(0, |at| at + 1);
    match names[from..].iter().position(|name| *name == LABELS) {
        None => (directory.to_owned(), None),
        Some(labels) => {
            let (above, below) = names.split_at(from + labels);
            (above.iter().collect(), Some(below[1..].iter().collect()))
        }
    }
}

/// The two possible sides of a directory of profiles: if a pattern names the directory, and if it is the
/// working directory.
#[must_use]
pub fn sides(directory: &Path) -> [PathBuf; 2] {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        // The root has no name and no parent.
        let side = directory.join(SIDE);
        return [side.clone(), side];
    };
    let mut named = OsString::from(name);
    named.push(SIDE);
    [parent.join(named), parent.join(SIDE).join(name)]
}

/// `path` without `.` and `..`, from the text of the path only.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            // The parent of the root is the root.
            Component::ParentDir if normal.has_root() => {}
            component => normal.push(component),
        }
    }
    normal
}

/// The file name of the device ELF of `identity`, for the target of its bundle or agent:
/// `gfx90a-xnack-.0f3c9b.elf`.
#[must_use]
pub fn device_elf_name(target: &str, identity: &Identity) -> String {
    format!("{}.{identity}.elf", sanitize_target(target))
}

/// The file name of the PTX from which rocov has made the device ELF of `identity`: `sm_90.0f3c9b.ptx`.
#[must_use]
pub fn source_name(target: &str, identity: &Identity) -> String {
    format!("{}.{identity}.{PTX}", sanitize_target(target))
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
