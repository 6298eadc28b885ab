//! Data directories: what a run leaves in one, whole and nothing else.

use super::command::{limited, run};
use super::profile::{PROFDATA, raw_profiles};
use rocov::codeobject::Identity;
use rocov::registry::OBJECTS;
use rocov::registry::model::Document;
use std::path::{Path, PathBuf};

/// The contents of a data directory, which may not exist.
pub(crate) struct Data {
    pub(crate) profiles: Vec<PathBuf>,
    pub(crate) registries: Vec<Document>,
    pub(crate) elfs: Vec<PathBuf>,
}

impl Data {
    /// Reads all that lies there: profiles are whole by what llvm-profdata says of each, device ELFs
    /// are what their names say. Nothing else may lie there.
    #[track_caller]
    pub(crate) fn of(directory: &Path) -> Self {
        let profiles = raw_profiles(directory);
        for profile in &profiles {
            run(limited(PROFDATA).arg("show").arg(profile))
                .success()
                .silently();
        }
        let elfs = entries(&directory.join(OBJECTS));
        for elf in &elfs {
            let bytes = std::fs::read(elf).expect("a device ELF");
            let identity = Identity::of(&bytes).expect("a device ELF");
            let name = elf.to_string_lossy();
            assert!(
                name.ends_with(&format!(".{identity}.elf")),
                "{identity}: {name}"
            );
        }
        let mut registries = Vec::new();
        for path in entries(directory) {
            if path.to_string_lossy().ends_with(".kernels.json") {
                let text = std::fs::read(&path).expect("a registry");
                let registry = Document::parse(&text);
                registries.push(registry.unwrap_or_else(|it| panic!("{}: {it}", path.display())));
            } else if !profiles.contains(&path) {
                let is_objects = path.file_name().is_some_and(|name| name == OBJECTS);
                assert!(is_objects, "{} was not expected", path.display());
            }
        }
        Self {
            profiles,
            registries,
            elfs,
        }
    }
}

/// What lies in a directory that may not exist, by name.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.sort();
    paths
}
