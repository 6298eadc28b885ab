//! The kernel registries of a data directory: `BASENAME.kernels.json`, one for each process, or for all
//! that share a pool.
//!
//! Every command needs to know which process loaded which code object from which file. That part is
//! small ([`Registries`]). Only some commands need the kernels and their addresses, which may be large
//! ([`MergedRegistry`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};
use rocov::format::codeobject::FileUri;
use rocov::format::registry::model::{
    AgentRecord, CodeObjectRecord, DeviceCodeRecord, Document, HostRecord, LoadRecord,
    NeverLoadedRecord, ProcessRecord,
};
use rocov::store::layout::{REGISTRIES, normal};
use serde::Deserialize;

use crate::support::mmap;

/// The part of all registries that every command needs.
#[derive(Debug, Default)]
pub(crate) struct Registries {
    /// The registries that can be read.
    pub(crate) registries: Vec<Registry>,
    /// The reasons why the others cannot.
    pub(crate) unread: Vec<Error>,
}

/// One registry.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Its file.
    pub(crate) path: PathBuf,
    /// The directory that the paths of its profiles start from.
    pub(crate) side: PathBuf,
    /// True if it belongs to the directories that the user named, and not to more.
    pub(crate) is_named: bool,
    pub(crate) code_objects: Vec<RegistryCodeObject>,
    pub(crate) processes: Vec<RegistryProcess>,
}

/// The part of a [`Document`] that every command needs.
#[derive(Debug, Deserialize)]
struct DocumentPart {
    code_objects: Vec<RegistryCodeObject>,
    processes: Vec<RegistryProcess>,
}

/// The part of a [`CodeObjectRecord`] that every command needs.
#[derive(Debug, Deserialize)]
pub(crate) struct RegistryCodeObject {
    pub(crate) identity: String,
    pub(crate) instrumented: bool,
}

/// The part of a [`ProcessRecord`] that every command needs.
#[derive(Debug, Deserialize)]
pub(crate) struct RegistryProcess {
    #[serde(flatten)]
    pub(crate) key: ProcessKey,
    epoch: u64,
    pub(crate) command: Vec<String>,
    pub(crate) agents: Vec<AgentRecord>,
    #[serde(default)]
    pub(crate) hosts: Vec<HostRecord>,
    pub(crate) loads: Vec<RegistryLoad>,
    #[serde(default)]
    pub(crate) device_code: Option<DeviceCodeRecord>,
    #[serde(default)]
    pub(crate) never_loaded: Vec<NeverLoadedRecord>,
}

/// The parts of a [`ProcessRecord`] that tell processes apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct ProcessKey {
    start: u64,
    pid: u32,
    host: String,
}

/// The part of a [`LoadRecord`] that every command needs.
#[derive(Debug, Deserialize)]
pub(crate) struct RegistryLoad {
    pub(crate) uri: String,
    pub(crate) agent: usize,
    pub(crate) code_object: Option<String>,
    pub(crate) host: Option<usize>,
    pub(crate) profile: Option<String>,
    #[serde(default)]
    pub(crate) partial: Option<String>,
}

/// All of several registries, as one.
#[derive(Debug, Default)]
pub(crate) struct MergedRegistry {
    /// The records of the registries that can be read.
    pub(crate) document: Document,
    /// The reasons why the others cannot.
    pub(crate) unread: Vec<Error>,
}

impl Registries {
    /// Reads these registries. Each comes with whether the user named the directory that it is of.
    pub(super) fn read<'a>(files: impl Iterator<Item = (&'a Path, bool)>) -> Self {
        let mut registries = Self::default();
        for (path, is_named) in files {
            match read_part(path) {
                Ok(part) => registries
                    .registries
                    .push(Registry::of(path, is_named, part)),
                Err(error) => registries.unread.push(error),
            }
        }
        registries
    }

    /// Reads these registries whole, and has `complete` add to each. Returns all of them as one too.
    pub(super) fn read_whole<'a>(
        files: impl Iterator<Item = (&'a Path, bool)>,
        complete: impl Fn(&Path, &mut Document),
    ) -> (Self, MergedRegistry) {
        let (mut registries, mut merged) = (Self::default(), MergedRegistry::default());
        for (path, is_named) in files {
            match read_document(path) {
                Ok(mut document) => {
                    complete(path, &mut document);
                    let part = DocumentPart::from(&document);
                    let registry = Registry::of(path, is_named, part);
                    registries.registries.push(registry);
                    merged.add(document);
                }
                Err(error) => merged.unread.push(error),
            }
        }
        (registries, merged)
    }

    /// All processes, each with the registry that it is in.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (&Registry, &RegistryProcess)> {
        let registries = self.registries.iter();
        registries.flat_map(|registry| registry.processes.iter().map(move |it| (registry, it)))
    }

    /// The files that code objects were loaded from, or could have been.
    pub(super) fn origins(&self) -> Origins {
        let mut origins = Origins::default();
        for (_, process) in self.processes() {
            for load in &process.loads {
                let Some(identity) = &load.code_object else {
                    continue;
                };
                if let Some(uri) = FileUri::parse(&load.uri) {
                    // HIP may name the dynamic linker instead of a program that it has started.
                    let host = process.host(load).map(|host| PathBuf::from(&host.path));
                    let known = origins.0.entry(identity.clone());
                    known.or_insert(host.unwrap_or(uri.path));
                }
            }
            for never in &process.never_loaded {
                for identity in &never.code_objects {
                    origins.learn(identity, Path::new(&never.file));
                }
            }
        }
        origins
    }
}

impl Registry {
    fn of(path: &Path, is_named: bool, part: DocumentPart) -> Self {
        Self {
            path: path.to_owned(),
            side: side(path),
            is_named,
            code_objects: part.code_objects,
            processes: part.processes,
        }
    }
}

impl Registry {
    /// Returns whether it names host files with device code that nobody has looked at.
    pub(crate) fn has_device_code(&self) -> bool {
        let mut processes = self.processes.iter();
        processes.any(|process| process.device_code.is_some())
    }
}

impl RegistryProcess {
    /// The time at which it started, in nanoseconds since 1970.
    pub(crate) fn started(&self) -> u64 {
        self.key.start.saturating_add(self.epoch)
    }

    /// The code objects that the process has loaded: the name of the agent, and the identity.
    pub(crate) fn loaded(&self) -> BTreeSet<(&str, &str)> {
        let loaded = self.loads.iter().filter_map(|load| {
            let agent = self.agents.iter().find(|it| it.index == load.agent)?;
            Some((agent.name.as_str(), load.code_object.as_deref()?))
        });
        loaded.collect()
    }

    /// The file that a load came from, if it is known.
    pub(crate) fn host(&self, load: &RegistryLoad) -> Option<&HostRecord> {
        self.hosts.get(load.host?)
    }
}

impl ProcessKey {
    /// The key of a process.
    pub(crate) fn of(process: &ProcessRecord) -> Self {
        Self {
            start: process.start,
            pid: process.pid,
            host: process.host.clone(),
        }
    }
}

impl MergedRegistry {
    /// Adds the processes of another registry, and the code objects that are not there yet.
    fn add(&mut self, other: Document) {
        self.document.processes.extend(other.processes);
        for object in other.code_objects {
            let is_same = |it: &CodeObjectRecord| {
                (&it.identity, &it.target) == (&object.identity, &object.target)
            };
            if !self.document.code_objects.iter().any(is_same) {
                self.document.code_objects.push(object);
            }
        }
    }
}

impl From<&Document> for DocumentPart {
    fn from(document: &Document) -> Self {
        let code_objects = document.code_objects.iter().map(|it| RegistryCodeObject {
            identity: it.identity.clone(),
            instrumented: it.instrumented,
        });
        Self {
            code_objects: code_objects.collect(),
            processes: document
                .processes
                .iter()
                .map(RegistryProcess::from)
                .collect(),
        }
    }
}

impl From<&ProcessRecord> for RegistryProcess {
    fn from(process: &ProcessRecord) -> Self {
        Self {
            key: ProcessKey::of(process),
            epoch: process.epoch,
            command: process.command.clone(),
            agents: process.agents.clone(),
            hosts: process.hosts.clone(),
            loads: process.loads.iter().map(RegistryLoad::from).collect(),
            device_code: process.device_code.clone(),
            never_loaded: process.never_loaded.clone(),
        }
    }
}

impl From<&LoadRecord> for RegistryLoad {
    fn from(load: &LoadRecord) -> Self {
        Self {
            uri: load.uri.clone(),
            agent: load.agent,
            code_object: load.code_object.clone(),
            host: load.host,
            profile: load.profile.clone(),
            partial: load.partial.clone(),
        }
    }
}

/// The files that code objects were loaded from, by identity. A code object that was handed over in
/// memory has none.
#[derive(Default)]
pub(crate) struct Origins(BTreeMap<String, PathBuf>);

impl Origins {
    /// The file that a code object was loaded from.
    pub(crate) fn of(&self, identity: &str) -> Option<&Path> {
        self.0.get(identity).map(PathBuf::as_path)
    }

    /// Records `file` as the origin of a code object, unless another is known.
    pub(crate) fn learn(&mut self, identity: &str, file: &Path) {
        let known = self.0.entry(identity.to_owned());
        known.or_insert_with(|| file.to_path_buf());
    }

    /// The code objects that were loaded from `file`.
    pub(crate) fn from(&self, file: &Path) -> impl Iterator<Item = &str> {
        let real = |path: &Path| {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
            absolute.canonicalize().unwrap_or(absolute)
        };
        let file = real(file);
        let loaded = self.0.iter();
        let loaded = loaded.filter(move |(_, origin)| real(origin) == file);
        loaded.map(|(identity, _)| identity.as_str())
    }
}

fn read_part(path: &Path) -> Result<DocumentPart> {
    let name = || path.display().to_string();
    let text = mmap::map(path)?;
    Document::check(&text).with_context(name)?;
    serde_json::from_slice(&text).with_context(name)
}

fn read_document(path: &Path) -> Result<Document> {
    let text = mmap::map(path)?;
    Document::parse(&text).with_context(|| path.display().to_string())
}

/// The directory that the paths in a registry start from: above the folder of registries, if it lies in
/// one.
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
