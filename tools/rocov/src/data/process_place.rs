//! The process that wrote a file, by the file's path.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rocov::store::layout::{PROFRAW, REGISTRIES, REGISTRY, SIDE, unlabelled_directory};
use rocov::store::{ProcessWord, ProfileNameParts};

/// A process's place among the data directories. All its profiles and its registry have the same one, unless the
/// pattern of its profiles has a build in it (`%b`). Processes of one number share it, because the profile of host
/// code has no more than the number in its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessPlace {
    /// The data directory, or the directory of the user's own pattern, without links.
    pub(crate) data: PathBuf,
    /// The name of its files in there, without extensions.
    pub(crate) name: PathBuf,
}

/// Finds the places of processes. It remembers directories: a million files are in few of them.
#[derive(Debug, Default)]
pub(crate) struct ProcessPlaces {
    /// The data directory of each directory, and the way from there.
    directories: HashMap<PathBuf, (PathBuf, PathBuf)>,
}

impl ProcessPlaces {
    /// The place of the process that wrote the profile or registry at `path`.
    pub(crate) fn place(&mut self, path: &Path) -> ProcessPlace {
        let directory = path.parent().unwrap_or(Path::new(""));
        let (data, way) = match self.directories.get(directory) {
            Some(known) => known.clone(),
            None => {
                let found = data_directory(directory);
                self.directories.insert(directory.to_owned(), found.clone());
                found
            }
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = |name: &str| {
            name.rsplit_once('.')
                .map_or(name, |(stem, _)| stem)
                .to_owned()
        };
        let base = match (ProfileNameParts::parse(&name), name.strip_suffix(REGISTRY)) {
            (Some(parts), _) => stem(&parts.name_of_llvm()),
            (None, Some(base)) => ProcessWord::cut_off(base).to_owned(),
            // A profile of host code has no word.
            (None, None) => stem(&name),
        };
        ProcessPlace {
            data,
            name: way.join(base),
        }
    }
}

/// The data directory that a directory of profiles or registries belongs to, and the way from the folder of all
/// profiles or registries to it.
fn data_directory(directory: &Path) -> (PathBuf, PathBuf) {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let real = absolute.canonicalize().unwrap_or(absolute);
    let real = unlabelled_directory(&real);
    let folder = real.ancestors().find(|ancestor| {
        ancestor
            .file_name()
            .is_some_and(|name| name == PROFRAW || name == REGISTRIES)
    });
    let Some((folder, data)) = folder.and_then(|ancestor| Some((ancestor, ancestor.parent()?)))
    else {
        return (real, PathBuf::new());
    };
    let way = real.strip_prefix(folder).unwrap_or(Path::new(""));
    // `P.rocov` is the side of profiles in `P`.
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    let data = match name.strip_suffix(SIDE) {
        Some(profiles) if !profiles.is_empty() => data.with_file_name(profiles),
        _ => data.to_owned(),
    };
    (data, way.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_place() {
        let mut places = ProcessPlaces::default();
        let mut place = |path: &str| {
            let ProcessPlace { data, name } = places.place(Path::new(path));
            (data.display().to_string(), name.display().to_string())
        };
        let identity = "0f3c9b21a0457e1d0f3c9b21a0457e1d";
        for (path, data, name) in [
            (
                format!("/d/profraw/gfx90a.{identity}.0.7.profraw"),
                "/d",
                "7",
            ),
            (
                format!("/d/profraw/labels/a/gfx90a.{identity}.1.7.profraw"),
                "/d",
                "7",
            ),
            ("/d/profraw/7.profraw".into(), "/d", "7"),
            ("/d/registry/7.kernels.json".into(), "/d", "7"),
            (
                format!("/d/profraw/gfx90a.{identity}.0.7-aaaaaaaa-q3ovk2ya.profraw"),
                "/d",
                "7-aaaaaaaa",
            ),
            ("/d/profraw/7-aaaaaaaa.profraw".into(), "/d", "7-aaaaaaaa"),
            (
                "/d/registry/7-aaaaaaaa-q3ovk2ya.kernels.json".into(),
                "/d",
                "7-aaaaaaaa",
            ),
            (
                format!("/d/profraw/n/gfx90a.{identity}.0.7.profraw"),
                "/d",
                "n/7",
            ),
            ("/d/registry/n/7.kernels.json".into(), "/d", "n/7"),
            (
                format!("/own/gfx90a.{identity}.0.x-7.profraw"),
                "/own",
                "x-7",
            ),
            ("/own.rocov/registry/x-7.kernels.json".into(), "/own", "x-7"),
        ] {
            assert_eq!(place(&path), (data.to_owned(), name.to_owned()), "{path}");
        }
    }
}
