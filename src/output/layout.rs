//! Where everything lies that rocov writes: the names of a data directory, each spelled once.
//!
//! ```text
//! DATA/profraw/ARCH.IDENTITY.AGENT.BASE    raw profiles, and nothing else: `llvm-profdata merge` takes
//! DATA/profraw/labels/LABEL/...            all that it finds in a folder
//! DATA/objects/TARGET.IDENTITY.elf         device ELFs
//! DATA/registry/BASE.kernels.json          kernel registries
//! DATA/sections/...                        sections that no reader takes yet
//! ```
//!
//! A user's own pattern `P/x.profraw` has the profiles in `P` and all else in `P.rocov`, the side of `P`.
//! If the pattern names no directory, `P` is the working directory, and its side is in `.rocov` of the
//! directory above, under the name of `P`: another directory there has another side.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The folder of raw profiles in a data directory, and the extension of most of them.
pub const PROFRAW: &str = "profraw";
/// The folder of device ELFs.
pub const OBJECTS: &str = "objects";
/// The folder of kernel registries.
pub const REGISTRIES: &str = "registry";
/// The end of the names of kernel registries.
pub const REGISTRY: &str = ".kernels.json";
/// The folder of saved sections, and their extension.
pub const SECTIONS: &str = "sections";
/// The end of the name of a side, and the name of the folder with the sides of working directories.
pub const SIDE: &str = ".rocov";

/// Where the files of a process lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What a user calls all of it: the data directory, or the directory of the own pattern.
    directory: PathBuf,
    /// The directory of all profiles, as their paths begin.
    profiles: PathBuf,
    /// The directory of all else.
    side: PathBuf,
}

impl Layout {
    /// The layout of the data directory `data`.
    #[must_use]
    pub fn of_data(data: &Path) -> Layout {
        Layout {
            directory: data.to_owned(),
            profiles: data.join(PROFRAW),
            side: data.to_owned(),
        }
    }

    /// The layout of a user's own pattern, whose profiles are in `profiles` or below. `is_unnamed`: the
    /// pattern names no directory, so that this is the working directory.
    #[must_use]
    pub fn of_pattern(profiles: &Path, is_unnamed: bool) -> Layout {
        let directory = normal(profiles);
        let [named, unnamed] = sides(&directory);
        Layout {
            side: if is_unnamed { unnamed } else { named },
            directory,
            profiles: profiles.to_owned(),
        }
    }

    /// What a user calls all of it, and `rocov report` takes.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of all that is no profile.
    #[must_use]
    pub fn side(&self) -> &Path {
        &self.side
    }

    /// Returns whether the profiles of `other` are among those of this.
    #[must_use]
    pub fn has(&self, other: &Layout) -> bool {
        other.profiles.starts_with(&self.profiles)
    }

    /// The folder of this name for what goes with the profile at `path`: within it, folders are as they
    /// are among the profiles.
    #[must_use]
    pub fn beside(&self, path: &Path, folder: &str) -> PathBuf {
        let parent = path.parent().unwrap_or(path);
        let below = parent.strip_prefix(&self.profiles).unwrap_or(Path::new(""));
        self.side.join(folder).join(below)
    }

    /// How what lies in the side calls the file at `path`: from the side on, so that both can be moved
    /// together; whole, if it lies somewhere else.
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

/// Where the side of a directory of profiles may be: of one that a pattern names, and of one that was the
/// working directory.
#[must_use]
pub fn sides(directory: &Path) -> [PathBuf; 2] {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        // The root has no name and nothing above it.
        let side = directory.join(SIDE);
        return [side.clone(), side];
    };
    let mut named = OsString::from(name);
    named.push(SIDE);
    [parent.join(named), parent.join(SIDE).join(name)]
}

/// `path` without `.` and `..`, by its words alone.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            // Above the root is the root.
            Component::ParentDir if normal.has_root() => {}
            component => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_of_a_directory_is_beside_it() {
        for (directory, named, unnamed) in [
            ("/work/cov", "/work/cov.rocov", "/work/.rocov/cov"),
            ("/cov", "/cov.rocov", "/.rocov/cov"),
            ("/", "/.rocov", "/.rocov"),
        ] {
            let expected = [named, unnamed].map(PathBuf::from);
            assert_eq!(sides(Path::new(directory)), expected, "{directory}");
        }
    }

    #[test]
    fn paths_are_normal_by_their_words() {
        for (path, expected) in [
            ("/a/./b/../c", "/a/c"),
            ("/../a/", "/a"),
            ("/a/..", "/"),
            ("../a", "../a"),
            (".", ""),
        ] {
            assert_eq!(normal(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn what_lies_in_the_side_finds_the_profiles_from_there() {
        let data = Layout::of_data(Path::new("/d"));
        let named = Layout::of_pattern(Path::new("/w/x/../cov"), false);
        let unnamed = Layout::of_pattern(Path::new("/w/here"), true);
        let root = Layout::of_pattern(Path::new("/"), false);
        for (layout, profile, relative) in [
            (&data, "/d/profraw/7/x.profraw", "profraw/7/x.profraw"),
            (&data, "/elsewhere/x.profraw", "/elsewhere/x.profraw"),
            (&named, "/w/x/../cov/7/x.profraw", "../cov/7/x.profraw"),
            (&unnamed, "/w/here/x.profraw", "../../here/x.profraw"),
            (&root, "/x.profraw", "../x.profraw"),
        ] {
            let found = layout.relative(Path::new(profile));
            assert_eq!(found, Path::new(relative), "{profile}");
            let back = normal(&layout.side().join(&found));
            assert_eq!(back, normal(Path::new(profile)), "{profile}");
        }
        let beside = named.beside(Path::new("/w/x/../cov/7/x.profraw"), OBJECTS);
        assert_eq!(beside, Path::new("/w/cov.rocov/objects/7"));
    }
}
