//! Processes put together: one record for all that had one set of host files on GPUs of one kind.
//!
//! Thousands of ranks do one thing, and a report needs it only once. The result does not depend on the order or
//! the grouping of the merges that lead to it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::format::codeobject::FileUri;
use crate::format::registry::model::{
    AgentRecord, CodeFileRecord, DeviceCodeRecord, GroupLoad, GroupRecord, HostRecord, MAX_STOPS,
    MachineRecord, NeverLoadedRecord, ProcessRecord,
};
use crate::format::registry::runs::Runs;

/// The properties that processes of a group share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    /// Index, name and instruction set of each GPU.
    agents: Vec<(usize, String, Option<String>)>,
    /// Path and build of each host file.
    hosts: Vec<(String, String)>,
    /// The directory for profiles of zeros and whether they were traced, if somebody has yet to look at their host
    /// files.
    zeros: Option<(String, bool)>,
}

/// A load without its number, in the order of records.
type LoadKey = (
    usize,
    Option<String>,
    Option<String>,
    Option<usize>,
    Option<String>,
);

/// The processes of one kind.
#[derive(Debug)]
struct Group {
    first: u64,
    last: u64,
    command: Vec<String>,
    loads: BTreeMap<LoadKey, u64>,
    code_files: BTreeSet<CodeFileRecord>,
    /// Code objects by file, build and agent.
    never_loaded: BTreeMap<(String, Option<String>, usize), BTreeSet<String>>,
    stops: BTreeSet<String>,
    notes: BTreeSet<String>,
    processes: BTreeMap<String, Runs>,
}

/// Groups of processes.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: BTreeMap<Kind, Group>,
    /// All their processes.
    runs: Runs,
}

impl Groups {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Adds a process, unless it is there.
    pub(super) fn add_process(&mut self, process: ProcessRecord) {
        let started = process.start.saturating_add(process.epoch);
        let mut loads = BTreeMap::new();
        for load in process.loads {
            let file = FileUri::parse(&load.uri);
            let file = file.map(|uri| uri.path.to_string_lossy().into_owned());
            let key = (load.agent, load.code_object, file, load.host, load.partial);
            *loads.entry(key).or_default() += 1;
        }
        let runs = Runs::new(&process.host, process.pid, process.start);
        self.add(
            &process.agents,
            process.hosts,
            process.device_code,
            process.never_loaded,
            Group {
                first: started,
                last: started,
                command: process.command,
                loads,
                code_files: BTreeSet::new(),
                never_loaded: BTreeMap::new(),
                stops: process.stops.into_iter().collect(),
                notes: process.notes.into_iter().collect(),
                processes: BTreeMap::from([(process.host, runs)]),
            },
        );
    }

    /// Adds a group, unless all its processes are there.
    pub(super) fn add_group(&mut self, group: GroupRecord) {
        let mut loads = BTreeMap::new();
        for load in group.loads {
            let key = (
                load.agent,
                load.code_object,
                load.file,
                load.host,
                load.partial,
            );
            let times: &mut u64 = loads.entry(key).or_default();
            *times = times.saturating_add(load.times);
        }
        let mut processes: BTreeMap<String, Runs> = BTreeMap::new();
        for MachineRecord { machine, runs } in group.processes {
            processes.entry(machine).or_default().add(&runs);
        }
        self.add(
            &group.agents,
            group.hosts,
            group.device_code,
            group.never_loaded,
            Group {
                first: group.first,
                last: group.last,
                command: group.command,
                loads,
                code_files: BTreeSet::new(),
                never_loaded: BTreeMap::new(),
                stops: group.stops.into_iter().collect(),
                notes: group.notes.into_iter().collect(),
                processes,
            },
        );
    }

    /// Adds `group`, which lacks what the other arguments have.
    fn add(
        &mut self,
        agents: &[AgentRecord],
        hosts: Vec<HostRecord>,
        device_code: Option<DeviceCodeRecord>,
        never_loaded: Vec<NeverLoadedRecord>,
        mut group: Group,
    ) {
        let (mut all, mut shared) = (0, 0);
        for runs in group.processes.values() {
            all += runs.len();
            shared += runs.shared_with(&self.runs);
        }
        // That is also a group of none.
        if shared == all {
            return;
        }
        for runs in group.processes.values() {
            self.runs.add(runs);
        }
        let agents = agents
            .iter()
            .map(|agent| (agent.index, agent.name.clone(), agent.isa.clone()));
        let kind = Kind {
            agents: agents.collect(),
            hosts: hosts
                .into_iter()
                .map(|host| (host.path, host.build))
                .collect(),
            zeros: device_code
                .as_ref()
                .map(|device_code| (device_code.profiles.clone(), device_code.traced)),
        };
        group.code_files = device_code
            .into_iter()
            .flat_map(|code| code.files)
            .collect();
        for never in never_loaded {
            let key = (never.file, never.build, never.agent);
            let identities = group.never_loaded.entry(key).or_default();
            identities.extend(never.code_objects);
        }
        match self.groups.entry(kind) {
            Entry::Vacant(place) => {
                place.insert(group);
            }
            Entry::Occupied(place) => place.into_mut().add(group),
        }
    }

    /// The records, by their kinds.
    pub(super) fn records(&self) -> Vec<GroupRecord> {
        let records = self.groups.iter().map(|(kind, group)| group.record(kind));
        records.collect()
    }
}

impl Group {
    /// Adds the processes of another group of this kind.
    fn add(&mut self, other: Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        let common = self.command.iter().zip(&other.command);
        let common = common.take_while(|(one, other)| one == other).count();
        self.command.truncate(common);
        for (load, times) in other.loads {
            let all: &mut u64 = self.loads.entry(load).or_default();
            *all = all.saturating_add(times);
        }
        self.code_files.extend(other.code_files);
        for (key, identities) in other.never_loaded {
            self.never_loaded.entry(key).or_default().extend(identities);
        }
        for (texts, more) in [
            (&mut self.stops, other.stops),
            (&mut self.notes, other.notes),
        ] {
            texts.extend(more);
            while texts.len() > MAX_STOPS {
                texts.pop_last();
            }
        }
        for (host, runs) in other.processes {
            self.processes.entry(host).or_default().add(&runs);
        }
    }

    fn record(&self, kind: &Kind) -> GroupRecord {
        let agents = kind.agents.iter().map(|(index, name, isa)| AgentRecord {
            index: *index,
            name: name.clone(),
            isa: isa.clone(),
            uuid: None,
            node: None,
        });
        let hosts = kind.hosts.iter().map(|(path, build)| HostRecord {
            path: path.clone(),
            build: build.clone(),
        });
        let loads = self.loads.iter().map(|(load, times)| {
            let (agent, code_object, file, host, partial) = load.clone();
            GroupLoad {
                times: *times,
                agent,
                code_object,
                file,
                host,
                partial,
            }
        });
        let never_loaded = self
            .never_loaded
            .iter()
            .map(|((file, build, agent), identities)| NeverLoadedRecord {
                file: file.clone(),
                build: build.clone(),
                agent: *agent,
                code_objects: identities.iter().cloned().collect(),
            });
        let processes = self.processes.iter().map(|(machine, runs)| MachineRecord {
            machine: machine.clone(),
            runs: runs.clone(),
        });
        GroupRecord {
            first: self.first,
            last: self.last,
            command: self.command.clone(),
            agents: agents.collect(),
            hosts: hosts.collect(),
            loads: loads.collect(),
            device_code: kind
                .zeros
                .clone()
                .map(|(profiles, traced)| DeviceCodeRecord {
                    profiles,
                    traced,
                    files: self.code_files.iter().cloned().collect(),
                }),
            never_loaded: never_loaded.collect(),
            stops: self.stops.iter().take(MAX_STOPS).cloned().collect(),
            notes: self.notes.iter().take(MAX_STOPS).cloned().collect(),
            processes: processes.collect(),
        }
    }
}
