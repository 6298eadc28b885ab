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
use rocov::format::registry::Runs;
use rocov::format::registry::model::{
    AgentRecord, CodeObjectRecord, DeviceCodeRecord, Document, GroupRecord, HostRecord,
    NeverLoadedRecord, ProcessRecord,
};
use rocov::store::layout::{REGISTRIES, normal};
use rocov::support::diagnostic::{Diagnostic, diagnostic};
use serde::Deserialize;

use crate::support::mmap;
use crate::term::plural::count;

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
    processes: Vec<ProcessPart>,
    #[serde(default)]
    groups: Vec<GroupRecord>,
}

/// The part of a [`CodeObjectRecord`] that every command needs.
#[derive(Debug, Deserialize)]
pub(crate) struct RegistryCodeObject {
    pub(crate) identity: String,
    pub(crate) instrumented: bool,
}

/// The part of a [`ProcessRecord`] that every command needs.
#[derive(Debug, Deserialize)]
struct ProcessPart {
    start: u64,
    pid: u32,
    host: String,
    epoch: u64,
    command: Vec<String>,
    agents: Vec<AgentRecord>,
    #[serde(default)]
    hosts: Vec<HostRecord>,
    loads: Vec<LoadPart>,
    #[serde(default)]
    device_code: Option<DeviceCodeRecord>,
    #[serde(default)]
    never_loaded: Vec<NeverLoadedRecord>,
    #[serde(default)]
    stops: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
}

/// The part of a [`LoadRecord`] that every command needs.
#[derive(Debug, Deserialize)]
struct LoadPart {
    uri: String,
    agent: usize,
    code_object: Option<String>,
    host: Option<usize>,
    profile: Option<String>,
    #[serde(default)]
    partial: Option<String>,
}

/// A process in a registry, or many that a merge has put together.
#[derive(Debug)]
pub(crate) struct RegistryProcess {
    pub(crate) key: ProcessKey,
    /// The processes that it stands for.
    pub(crate) runs: Runs,
    /// The start of the first of them, in nanoseconds since 1970.
    pub(crate) first: u64,
    /// The start of the last of them, in nanoseconds since 1970.
    pub(crate) last: u64,
    /// The command line, or what all of them have of it.
    pub(crate) command: Vec<String>,
    pub(crate) agents: Vec<AgentRecord>,
    pub(crate) hosts: Vec<HostRecord>,
    pub(crate) loads: Vec<RegistryLoad>,
    pub(crate) device_code: Option<DeviceCodeRecord>,
    pub(crate) never_loaded: Vec<NeverLoadedRecord>,
    /// The reasons why GPUs have stopped kernels, if a tool knew them.
    pub(crate) stops: Vec<String>,
    /// Other sentences about the run.
    pub(crate) notes: Vec<String>,
}

/// The parts of a record that distinguish processes and groups of a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProcessKey {
    Process {
        start: u64,
        pid: u32,
        host: String,
    },
    /// The place of a group in its document.
    Group(usize),
}

/// The loads of a code object from one file on one GPU, by a process or by many.
#[derive(Debug)]
pub(crate) struct RegistryLoad {
    /// The file in the URI of its ELF, if that names one.
    pub(crate) file: Option<PathBuf>,
    pub(crate) agent: usize,
    pub(crate) code_object: Option<String>,
    pub(crate) host: Option<usize>,
    /// The path of its profile, unless a merge has put processes together.
    pub(crate) profile: Option<String>,
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
                    .push(Registry::new(path, is_named, part)),
                Err(error) => registries.unread.push(error),
            }
        }
        registries
    }

    /// All processes, each with the registry that it is in.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (&Registry, &RegistryProcess)> {
        let registries = self.registries.iter();
        registries.flat_map(|registry| {
            registry
                .processes
                .iter()
                .map(move |process| (registry, process))
        })
    }

    /// A line for each kernel that the GPU has stopped, and for each note.
    pub(super) fn stops_and_notes(&self) -> Vec<Diagnostic> {
        let lines = self.processes().flat_map(|(_, process)| {
            let who = match &process.key {
                ProcessKey::Process { pid, .. } => format!("process {pid}"),
                ProcessKey::Group(_) => "a process".into(),
            };
            let program = process
                .command
                .first()
                .map(|name| format!(" ({name})"))
                .unwrap_or_default();
            let stops = process.stops.iter().map(|reason| {
                diagnostic!(
                    "the GPU stopped a kernel: {reason}, and its counts end there";
                    "fix the kernel and run the program again"
                )
            });
            let said = stops.chain(process.notes.iter().cloned().map(Diagnostic::without_step));
            said.map(move |stop| stop.within(format_args!("{who}{program}")))
        });
        lines.collect()
    }

    /// The files that code objects were loaded from, or could have been.
    pub(crate) fn origins(&self) -> Origins {
        let mut origins = Origins::default();
        for (_, process) in self.processes() {
            for load in &process.loads {
                let (Some(identity), Some(file)) = (&load.code_object, &load.file) else {
                    continue;
                };
                // HIP may name the dynamic linker instead of a program that it has started.
                let host = process.host(load).map(|host| PathBuf::from(&host.path));
                let known = origins.0.entry(identity.clone());
                known.or_insert_with(|| host.unwrap_or_else(|| file.clone()));
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
    fn new(path: &Path, is_named: bool, part: DocumentPart) -> Self {
        let processes = part.processes.into_iter().map(RegistryProcess::from);
        let groups = part
            .groups
            .into_iter()
            .enumerate()
            .map(|(number, group)| RegistryProcess::from_group(number, group));
        Self {
            path: path.to_owned(),
            side: paths_start(path),
            is_named,
            code_objects: part.code_objects,
            processes: processes.chain(groups).collect(),
        }
    }

    /// Returns whether it names host files with device code that nobody has looked at.
    pub(crate) fn has_device_code(&self) -> bool {
        let mut processes = self.processes.iter();
        processes.any(|process| process.device_code.is_some())
    }
}

impl RegistryProcess {
    /// The group that has this place in its document.
    fn from_group(number: usize, group: GroupRecord) -> Self {
        let mut runs = Runs::default();
        for of_machine in &group.processes {
            runs.add(&of_machine.runs);
        }
        let loads = group.loads.into_iter().map(|load| RegistryLoad {
            file: load.file.map(PathBuf::from),
            agent: load.agent,
            code_object: load.code_object,
            host: load.host,
            profile: None,
            partial: load.partial,
        });
        Self {
            key: ProcessKey::Group(number),
            runs,
            first: group.first,
            last: group.last,
            command: group.command,
            agents: group.agents,
            hosts: group.hosts,
            loads: loads.collect(),
            device_code: group.device_code,
            never_loaded: group.never_loaded,
            stops: group.stops,
            notes: group.notes,
        }
    }

    /// The code objects that the process has loaded: the name of the agent, and the identity.
    pub(crate) fn loaded(&self) -> BTreeSet<(&str, &str)> {
        let loaded = self.loads.iter().filter_map(|load| {
            let agent = self.agents.iter().find(|agent| agent.index == load.agent)?;
            Some((agent.name.as_str(), load.code_object.as_deref()?))
        });
        loaded.collect()
    }

    /// The file that a load came from, if it is known.
    pub(crate) fn host(&self, load: &RegistryLoad) -> Option<&HostRecord> {
        self.hosts.get(load.host?)
    }

    /// Returns whether `rocov run` has written the record, as the process has left none.
    pub(super) fn is_of_notes(&self) -> bool {
        is_of_notes(&self.loads, &self.notes)
    }
}

/// Returns whether `rocov run` has written a record with these loads and notes.
fn is_of_notes<L>(loads: &[L], notes: &[String]) -> bool {
    loads.is_empty() && !notes.is_empty()
}

impl ProcessKey {
    /// The key of a process.
    pub(crate) fn new(process: &ProcessRecord) -> Self {
        Self::Process {
            start: process.start,
            pid: process.pid,
            host: process.host.clone(),
        }
    }
}

impl MergedRegistry {
    /// Reads these registries, and has `complete` add to each.
    pub(super) fn read<'a>(
        paths: impl Iterator<Item = &'a Path>,
        complete: impl Fn(&Path, &mut Document),
    ) -> Self {
        let mut merged = Self::default();
        for path in paths {
            match read_document(path) {
                Ok(mut document) => {
                    complete(path, &mut document);
                    merged.add(document);
                }
                Err(error) => merged.unread.push(error),
            }
        }
        merged
    }

    /// Returns whether a process has left a record, and not `rocov run` in its place.
    pub(super) fn has_records(&self) -> bool {
        let mut processes = self.document.processes.iter();
        let mut groups = self.document.groups.iter();
        processes.any(|process| !is_of_notes(&process.loads, &process.notes))
            || groups.any(|group| !is_of_notes(&group.loads, &group.notes))
    }

    /// A line that a merge has put processes together, if it has: their addresses and times are not in the
    /// registry.
    pub(crate) fn about_groups(&self) -> Option<Diagnostic> {
        let groups = self.document.groups.iter();
        let processes: usize = groups
            .flat_map(|group| &group.processes)
            .map(|of_machine| of_machine.runs.len())
            .sum();
        (processes > 0).then(|| {
            diagnostic!(
                "left out: {}, which a merge has combined without keeping their addresses and times",
                count(processes, "process");
                "merge with --processes to keep these"
            )
        })
    }

    /// Adds the processes of another registry, and the code objects that are not there yet.
    fn add(&mut self, other: Document) {
        self.document.processes.extend(other.processes);
        self.document.groups.extend(other.groups);
        for object in other.code_objects {
            let is_same = |other: &CodeObjectRecord| {
                (&other.identity, &other.target) == (&object.identity, &object.target)
            };
            if !self.document.code_objects.iter().any(is_same) {
                self.document.code_objects.push(object);
            }
        }
    }
}

impl From<ProcessPart> for RegistryProcess {
    fn from(process: ProcessPart) -> Self {
        let started = process.start.saturating_add(process.epoch);
        Self {
            runs: Runs::new(&process.host, process.pid, process.start),
            key: ProcessKey::Process {
                start: process.start,
                pid: process.pid,
                host: process.host,
            },
            first: started,
            last: started,
            command: process.command,
            agents: process.agents,
            hosts: process.hosts,
            loads: process.loads.into_iter().map(RegistryLoad::from).collect(),
            device_code: process.device_code,
            never_loaded: process.never_loaded,
            stops: process.stops,
            notes: process.notes,
        }
    }
}

impl From<LoadPart> for RegistryLoad {
    fn from(load: LoadPart) -> Self {
        Self {
            file: FileUri::parse(&load.uri).map(|uri| uri.path),
            agent: load.agent,
            code_object: load.code_object,
            host: load.host,
            profile: load.profile,
            partial: load.partial,
        }
    }
}

/// The files that code objects were loaded from, by identity. A code object that was handed over in
/// memory has none.
#[derive(Default)]
pub(crate) struct Origins(BTreeMap<String, PathBuf>);

impl Origins {
    /// The file that a code object was loaded from.
    pub(crate) fn get(&self, identity: &str) -> Option<&Path> {
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
        let loaded = self
            .0
            .iter()
            .filter(move |(_, origin)| real(origin) == file);
        loaded.map(|(identity, _)| identity.as_str())
    }

    /// The code objects that were loaded from files of this name, or of this name and a version, as
    /// `libfoo.so.1.2` is for `libfoo.so`. None if `name` is a path.
    pub(crate) fn named<'a>(&'a self, name: &'a Path) -> impl Iterator<Item = &'a str> {
        let is_path = name.components().count() != 1;
        let name = name.as_os_str().as_encoded_bytes();
        let loaded = self.0.iter().filter(move |(_, origin)| {
            let origin = origin.file_name().unwrap_or_default().as_encoded_bytes();
            let version = origin.strip_prefix(name);
            !is_path && version.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
        });
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
pub(crate) fn paths_start(registry: &Path) -> PathBuf {
    let absolute = std::path::absolute(registry).unwrap_or_else(|_| registry.to_owned());
    let absolute = normal(&absolute);
    let parent = absolute.parent().unwrap_or(&absolute);
    let mut folders = parent.ancestors();
    let folder = folders.find(|folder| folder.file_name().is_some_and(|name| name == REGISTRIES));
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
            assert_eq!(
                paths_start(Path::new(registry)),
                Path::new(expected),
                "{registry}"
            );
        }
    }
}
