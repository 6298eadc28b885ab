//! What the kernel registries of a data directory tell a report: which process had what from where. The
//! rest of them may be large, and is not read.

use crate::mapped;
use anyhow::{Context, Error, Result};
use rocov::output::layout::{REGISTRIES, normal};
use rocov::registry::model::{AgentRecord, Document, HostRecord, NeverLoadedRecord};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The registries that can be read, and why others cannot be.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) registries: Vec<Registry>,
    pub(crate) unread: Vec<Error>,
}

/// One registry.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Where the paths of its profiles begin.
    pub(crate) side: PathBuf,
    /// Whether it is of what was asked for, and no more.
    pub(crate) is_asked: bool,
    pub(crate) code_objects: Vec<CodeObject>,
    pub(crate) processes: Vec<Process>,
}

/// As in [`Document`].
#[derive(Debug, Deserialize)]
struct Part {
    code_objects: Vec<CodeObject>,
    processes: Vec<Process>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CodeObject {
    pub(crate) identity: String,
    pub(crate) instrumented: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Process {
    start: u64,
    epoch: u64,
    pub(crate) agents: Vec<AgentRecord>,
    #[serde(default)]
    pub(crate) hosts: Vec<HostRecord>,
    pub(crate) loads: Vec<Load>,
    #[serde(default)]
    pub(crate) never_loaded: Vec<NeverLoadedRecord>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Load {
    pub(crate) uri: String,
    pub(crate) agent: usize,
    pub(crate) code_object: Option<String>,
    pub(crate) host: Option<usize>,
    pub(crate) profile: Option<String>,
}

impl Told {
    /// Reads these registries, of which some are of more than what was asked for.
    pub(super) fn read<'a>(files: impl Iterator<Item = (&'a Path, bool)>) -> Self {
        let mut told = Self::default();
        for (path, is_asked) in files {
            match read(path, is_asked) {
                Ok(registry) => told.registries.push(registry),
                Err(error) => told.unread.push(error),
            }
        }
        told
    }

    /// All processes, each with the registry that it is in.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (&Registry, &Process)> {
        let registries = self.registries.iter();
        registries.flat_map(|registry| registry.processes.iter().map(move |it| (registry, it)))
    }
}

impl Process {
    /// When it started, in nanoseconds since 1970.
    pub(crate) fn started(&self) -> u64 {
        self.start.saturating_add(self.epoch)
    }

    /// The file that a load came from, if it is known.
    pub(crate) fn host(&self, load: &Load) -> Option<&HostRecord> {
        self.hosts.get(load.host?)
    }
}

fn read(path: &Path, is_asked: bool) -> Result<Registry> {
    let about = || path.display().to_string();
    let text = mapped::map(path)?;
    Document::check(&text).with_context(about)?;
    let part: Part = serde_json::from_slice(&text).with_context(about)?;
    Ok(Registry {
        side: side(path),
        is_asked,
        code_objects: part.code_objects,
        processes: part.processes,
    })
}

/// Where the paths in a registry begin: above the folder of registries, if it lies in one.
fn side(registry: &Path) -> PathBuf {
    let absolute = std::path::absolute(registry).unwrap_or_else(|_| registry.to_owned());
    let absolute = normal(&absolute);
    let parent = absolute.parent().unwrap_or(&absolute);
    let mut folders = parent.ancestors();
    let folder = folders.find(|it| it.file_name().is_some_and(|name| name == REGISTRIES));
    let side = folder.and_then(Path::parent).unwrap_or(parent);
    side.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_above_the_folder_of_registries() {
        for (registry, expected) in [
            ("/d/registry/7.kernels.json", "/d"),
            ("/d/registry/node7/7.kernels.json", "/d"),
            ("/registry/d/x/../registry/7.kernels.json", "/registry/d"),
            ("/d/7.kernels.json", "/d"),
        ] {
            assert_eq!(side(Path::new(registry)), Path::new(expected), "{registry}");
        }
    }
}
