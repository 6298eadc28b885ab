//! Data directories: what a run leaves in one, whole and nothing else.

use super::command::{limited, run};
use super::profile::{PROFDATA, raw_profiles};
use rocov::codeobject::Identity;
use rocov::output::layout::{OBJECTS, PROFRAW, REGISTRIES, REGISTRY};
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
        let registries = entries(&directory.join(REGISTRIES))
            .into_iter()
            .map(|path| {
                assert!(
                    path.to_string_lossy().ends_with(REGISTRY),
                    "{}",
                    path.display()
                );
                let text = std::fs::read(&path).expect("a registry");
                let registry = Document::parse(&text);
                registry.unwrap_or_else(|it| panic!("{}: {it}", path.display()))
            });
        let registries = registries.collect();
        let among_profiles = entries(&directory.join(PROFRAW));
        assert_eq!(among_profiles, profiles, "and nothing else");
        for path in entries(directory) {
            let folders = [PROFRAW, OBJECTS, REGISTRIES];
            let is_folder = path
                .file_name()
                .is_some_and(|name| folders.iter().any(|it| name == *it));
            assert!(is_folder, "{} was not expected", path.display());
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
