//! Turns the registry of a running process into the document.

use std::collections::BTreeMap;

use crate::device::Agent;
use crate::discover::host_files::HostFile;
use crate::discover::{ElfFacts, Loaded, Registry};
use crate::format::codeobject::Kernel;
use crate::format::registry::model::{
    AgentRecord, CodeObjectRecord, Document, HostRecord, KernelAddress, LoadRecord,
    NeverLoadedRecord, ProcessRecord,
};
use crate::store::layout::DataLayout;

/// The properties of a process that its registry does not know.
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
    let never = registry.never_loaded();
    let never = never.filter_map(|never| never.code_object.as_deref());
    let elfs = loaded.chain(never);
    let mut distinct = BTreeMap::new();
    distinct.extend(elfs.map(|elf| ((&elf.identity, &elf.target), elf)));
    let mut hosts: Vec<&HostFile> = Vec::new();
    for host in registry.loads().iter().filter_map(|it| it.host.as_deref()) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
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
            .map(|it| load(it, layout, &hosts))
            .collect(),
        hosts: hosts.iter().map(|it| host(it)).collect(),
        never_loaded: never_loaded(registry),
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

/// The code objects that were not loaded, by file and agent.
fn never_loaded(registry: &Registry) -> Vec<NeverLoadedRecord> {
    let mut files: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for never in registry.never_loaded() {
        let key = (&never.file, &never.build, never.agent);
        let of_file = files.entry(key).or_default();
        of_file.push(never.identity.to_string());
    }
    let files = files.into_iter();
    files
        .map(|((file, build, agent), code_objects)| NeverLoadedRecord {
            file: file.to_string_lossy().into_owned(),
            build: build.clone(),
            agent,
            code_objects,
        })
        .collect()
}

fn code_object(elf: &ElfFacts, file: Option<String>) -> CodeObjectRecord {
    CodeObjectRecord {
        identity: elf.identity.to_string(),
        target: elf.target.clone(),
        size: elf.size,
        clang: elf.clang,
        instrumented: elf.is_instrumented(),
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

/// Describes a load. `hosts` are the host files of the process.
fn load(load: &Loaded, layout: &DataLayout, hosts: &[&HostFile]) -> LoadRecord {
    let host = load.host.as_deref();
    let host = host.and_then(|host| hosts.iter().position(|it| *it == host));
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
        profile: profile.map(|path| layout.relative(path).to_string_lossy().into_owned()),
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
