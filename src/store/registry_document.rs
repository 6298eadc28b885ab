//! Turns the registry of a running process into the document.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::device::Agent;
use crate::discover::host_files::HostFile;
use crate::discover::{ElfFacts, Loaded, Registry};
use crate::format::codeobject::Kernel;
use crate::format::registry::model::{
    AgentRecord, CodeFileRecord, CodeObjectRecord, DeviceCodeRecord, Document, HostRecord,
    KernelAddress, LoadRecord, ProcessRecord,
};
use crate::store::layout::DataLayout;

/// The properties of a process that its registry does not contain.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// The name of its host.
    pub host: String,
    /// The command line.
    pub command: Vec<String>,
    /// See [`ProcessRecord::epoch`].
    pub epoch: u64,
}

/// The document of one process, for the side of `layout`. `kept` returns the path of a kept ELF in the side.
pub(super) fn document(
    registry: &Registry,
    process: &Process,
    layout: &DataLayout,
    kept: impl Fn(&ElfFacts) -> Option<String>,
) -> Document {
    let loaded = registry.loads().iter();
    let loaded = loaded.filter_map(|load| load.code_object.as_deref());
    let mut distinct = BTreeMap::new();
    distinct.extend(loaded.map(|elf| ((&elf.identity, &elf.target), elf)));
    let mut hosts: Vec<&HostFile> = Vec::new();
    for host in registry
        .loads()
        .iter()
        .filter_map(|load| load.host.as_deref())
    {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    let mut places = Places::new(layout);
    let process = ProcessRecord {
        pid: process.pid,
        host: process.host.clone(),
        start: registry.start(),
        epoch: process.epoch,
        command: process.command.clone(),
        agents: registry.agents().map(agent).collect(),
        loads: registry
            .loads()
            .iter()
            .map(|recorded| load(recorded, &mut places, &hosts))
            .collect(),
        hosts: hosts.iter().map(|named| host(named)).collect(),
        device_code: device_code(registry, layout),
        never_loaded: Vec::new(),
        stops: registry
            .stops()
            .iter()
            .map(|stop| stop.to_string())
            .collect(),
        notes: Vec::new(),
    };
    Document {
        code_objects: distinct
            .values()
            .map(|elf| code_object(elf, kept(elf)))
            .collect(),
        processes: vec![process],
        ..Document::default()
    }
}

/// The host files with device code, if there are any.
fn device_code(registry: &Registry, layout: &DataLayout) -> Option<DeviceCodeRecord> {
    let files = registry.device_code();
    let files = files.iter().map(|file| CodeFileRecord {
        path: file.path.to_string_lossy().into_owned(),
        build: file.build.clone(),
        modified: file.modified,
    });
    let files: Vec<_> = files.collect();
    let profiles = layout.relative(layout.profiles());
    // Without a slash at the end.
    let profiles: PathBuf = profiles.components().collect();
    (!files.is_empty()).then(|| DeviceCodeRecord {
        profiles: profiles.to_string_lossy().into_owned(),
        traced: registry.is_traced(),
        files,
    })
}

/// Describes a code object whose ELF is kept in `file`, if it is kept.
pub(crate) fn code_object(elf: &ElfFacts, file: Option<String>) -> CodeObjectRecord {
    CodeObjectRecord {
        identity: elf.identity.to_string(),
        target: elf.target.clone(),
        size: elf.size,
        clang: elf.clang,
        instrumented: elf.is_counted(),
        file,
        kernels: elf.kernels.clone(),
        damage: elf.damage.clone(),
    }
}

fn agent(agent: &Agent) -> AgentRecord {
    AgentRecord {
        index: agent.index,
        name: agent.name.clone(),
        isa: agent.isa.clone(),
        uuid: agent.uuid.clone(),
        node: agent.node,
    }
}

fn host(host: &HostFile) -> HostRecord {
    HostRecord {
        path: host.path.to_string_lossy().into_owned(),
        build: host.build.clone(),
    }
}

/// The paths of profiles from the side of a layout. Most are in one directory, whose path is found once.
struct Places<'a> {
    layout: &'a DataLayout,
    /// The latest directory, and its path from the side.
    latest: Option<(&'a OsStr, PathBuf)>,
}

impl<'a> Places<'a> {
    fn new(layout: &'a DataLayout) -> Self {
        Self {
            layout,
            latest: None,
        }
    }

    fn place(&mut self, path: &'a Path) -> String {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return self.layout.relative(path).to_string_lossy().into_owned();
        };
        let directory = directory.as_os_str();
        let layout = self.layout;
        let place = match &mut self.latest {
            Some((known, place)) if *known == directory => place,
            latest => {
                let place = layout.relative(Path::new(directory));
                &mut latest.insert((directory, place)).1
            }
        };
        place.join(name).to_string_lossy().into_owned()
    }
}

/// Describes a load. `hosts` are the host files of the process.
fn load<'a>(load: &'a Loaded, places: &mut Places<'a>, hosts: &[&HostFile]) -> LoadRecord {
    let host = load.host.as_deref();
    let host = host.and_then(|host| hosts.iter().position(|known| *known == host));
    let elf = load.code_object.as_deref();
    let loaded = |address: u64| address.wrapping_add(load.load_delta);
    let kernel = |kernel: &Kernel| KernelAddress {
        name: kernel.name.clone(),
        object: loaded(kernel.descriptor),
        entry: loaded(kernel.entry),
    };
    let profile = load.profile.as_deref();
    LoadRecord {
        generation: load.generation,
        time: load.time,
        agent: load.agent,
        executable: load.executable.0,
        uri: load.uri.to_string(),
        base: load.segment.start,
        size: load.segment.len,
        delta: load.load_delta,
        code_object: elf.map(|elf| elf.identity.to_string()),
        host,
        profile: profile.map(|path| places.place(Path::new(path))),
        partial: load.partial.as_deref().map(str::to_owned),
        kernels: elf
            .map_or(&[][..], |elf| elf.kernels.as_slice())
            .iter()
            .map(kernel)
            .collect(),
        unload: load.unload,
    }
}

#[cfg(test)]
#[path = "registry_document_tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "registry_merge_tests.rs"]
mod merge_tests;
