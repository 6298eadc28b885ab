//! Data directories: the complete files of a run, and nothing else.

use std::path::{Path, PathBuf};

use rocov::format::codeobject::Identity;
use rocov::format::registry::model::Document;
use rocov::store::layout::{OBJECTS, PROFRAW, REGISTRIES, REGISTRY, sides};

use super::command::{limited, run};
use super::profile::{raw_profiles, reader_of};

/// The contents of a data directory, which may not exist.
pub struct Data {
    /// Raw profiles.
    pub profiles: Vec<PathBuf>,
    /// The contents of the registries.
    pub registries: Vec<Document>,
    /// The device ELFs that were kept.
    pub elfs: Vec<PathBuf>,
}

impl Data {
    /// Reads the directory. Fails if llvm-profdata rejects a profile, if the name of a device ELF
    /// does not match its contents, or if there is another file.
    #[track_caller]
    pub fn read(directory: &Path) -> Self {
        // A custom pattern puts the other files next to the directory.
        let [side, _] = sides(directory);
        let within = directory.join(PROFRAW);
        // A killed program may leave only device ELFs.
        let is_side = |folder: &&str| directory.join(folder).is_dir();
        let has_sides = [PROFRAW, OBJECTS, REGISTRIES].iter().any(is_side);
        let (among_profiles, rest) = match has_sides {
            true => (within, directory.to_owned()),
            false => (directory.to_owned(), side),
        };
        let profiles = raw_profiles(&among_profiles);
        assert_eq!(entries(&among_profiles), profiles, "and nothing else");
        for profile in &profiles {
            run(limited(reader_of(profile)).arg("show").arg(profile))
                .success()
                .silently();
        }
        let elfs = entries(&rest.join(OBJECTS));
        for elf in &elfs {
            let bytes = std::fs::read(elf).expect("a device ELF");
            let identity = Identity::from_image(&bytes).expect("a device ELF");
            let name = elf.to_string_lossy();
            assert!(
                name.ends_with(&format!(".{identity}.elf")),
                "{identity}: {name}"
            );
        }
        let registries = entries(&rest.join(REGISTRIES)).into_iter().map(|path| {
            let name = path.to_string_lossy();
            assert!(name.ends_with(REGISTRY), "{name}");
            let text = std::fs::read(&path).expect("a registry");
            Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
        });
        let registries = registries.collect();
        for path in entries(&rest) {
            let folders = [PROFRAW, OBJECTS, REGISTRIES];
            let is_folder = folders.iter().any(|folder| path.ends_with(folder));
            assert!(is_folder, "{} was not expected", path.display());
        }
        Self {
            profiles,
            registries,
            elfs,
        }
    }
}

/// The entries of a directory, by name; empty if it does not exist.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}
