//! The registry as a document: the contents of `<basename>.kernels.json`.

use serde::{Deserialize, Serialize};

use crate::format::codeobject::Kernel;
use crate::format::registry::runs::Runs;

/// The number of this schema. A reader rejects other numbers. A new optional field does not change it.
pub const VERSION: u32 = 1;

/// The code objects of one process, or of all processes that share a pooled file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// [`VERSION`].
    pub rocov_registry: u32,
    /// Each distinct code object once, by identity and target.
    pub code_objects: Vec<CodeObjectRecord>,
    /// The processes, by start, number and host.
    pub processes: Vec<ProcessRecord>,
    /// Processes that a merge has put together, as one record for all that ran one build on like GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRecord>,
}

/// The most reasons for stops that a record of one or of many processes has, and the most notes.
pub const MAX_STOPS: usize = 16;

impl Default for Document {
    /// An empty document of this version.
    fn default() -> Self {
        Self {
            rocov_registry: VERSION,
            code_objects: Vec::new(),
            processes: Vec::new(),
            groups: Vec::new(),
        }
    }
}

/// A distinct code object: its properties that do not depend on a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeObjectRecord {
    /// Its [identity](crate::format::codeobject::Identity).
    pub identity: String,
    /// The processor that it is compiled for, with its features, such as `gfx90a:xnack-`.
    pub target: String,
    /// The size of its ELF in bytes.
    pub size: u64,
    /// The major version of the clang that compiled it.
    pub clang: Option<u32>,
    /// True if the code object has counters.
    pub instrumented: bool,
    /// The path of its kept ELF, relative to the data directory: `objects/gfx90a.<identity>.elf`. If the user
    /// set a pattern, relative to the pattern's directory. `None` if the ELF is not kept.
    pub file: Option<String>,
    /// Its kernels, by name.
    pub kernels: Vec<Kernel>,
    /// The reason why `kernels` is empty, if the ELF's data about them is damaged.
    pub damage: Option<String>,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Process id.
    pub pid: u32,
    /// The name of its host.
    pub host: String,
    /// The time of the program's first load of a code object, or of its end if it left one unloaded. In
    /// nanoseconds of the host's boot clock (`CLOCK_BOOTTIME`), the clock of all times here and of HSA's time
    /// stamps. A program that takes a process over (`execve`) has a record of its own.
    pub start: u64,
    /// The nanoseconds to add to a time of the boot clock for a time since 1970.
    pub epoch: u64,
    /// The command line.
    pub command: Vec<String>,
    /// Its GPU agents, by index.
    pub agents: Vec<AgentRecord>,
    /// The host files that instrumented code objects came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// The code objects that it loaded, by generation.
    pub loads: Vec<LoadRecord>,
    /// The host files with device code that the process had, until `rocov` has looked for code in them that
    /// the process never loaded. Then that code is in `never_loaded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_code: Option<DeviceCodeRecord>,
    /// The code objects that it could have loaded but did not: it launched none of their kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_loaded: Vec<NeverLoadedRecord>,
    /// The reasons why the GPU has stopped kernels, if a tool reports them: the first [`MAX_STOPS`] in the order
    /// of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<String>,
    /// Sentences that `rocov run` adds for reports: the end of the process if it came before the last drain, mistakes
    /// of kernels that went on, and kernels without progress. At most [`MAX_STOPS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A GPU agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Place among the GPU agents, from 0, as in the names of profiles.
    pub index: usize,
    /// Its name, such as `gfx90a`.
    pub name: String,
    /// The instruction set with its features: `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
    pub isa: Option<String>,
    /// Its UUID, such as `GPU-4f1d...`. `GPU-XX` if the device has none.
    pub uuid: Option<String>,
    /// The driver's number of the node.
    pub node: Option<u32>,
}

/// A host file, as it was when code objects were loaded from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its path.
    pub path: String,
    /// Its GNU build id, or else a hash of its contents. The names of pools (`%m`) have both, as in
    /// [`crate::discover::host_files::tag`].
    pub build: String,
}

/// One load of a code object: an executable on an agent, from its freeze to its destruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// The number of the event, from 1. Loads and unloads share one count.
    pub generation: u64,
    /// The time of the load, on the boot clock.
    pub time: u64,
    /// The index of the agent.
    pub agent: usize,
    /// The runtime's handle of the executable.
    #[serde(with = "crate::format::registry::hex")]
    pub executable: u64,
    /// The URI of its ELF.
    pub uri: String,
    /// The first device address.
    #[serde(with = "crate::format::registry::hex")]
    pub base: u64,
    /// The size of its device memory in bytes.
    pub size: u64,
    /// Device address minus ELF address, modulo 2^64.
    #[serde(with = "crate::format::registry::hex")]
    pub delta: u64,
    /// The identity of the code object. `None` if rocov could not read its ELF. If one identity has several
    /// targets, the agent's name distinguishes them.
    pub code_object: Option<String>,
    /// The index in `hosts` of the file that it came from, if rocov knows the file and the code object has
    /// counters. That is the file that `uri` names. For a code object in memory it is the file whose code
    /// loaded it, or else the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<usize>,
    /// Its profile, once there is one. The path is relative to the directory that `file` is relative to, or
    /// absolute if the profile is in another directory. A merged registry keeps the process's name for the
    /// profile: the merged profile has another name.
    pub profile: Option<String>,
    /// The reason why its profile lacks some of its counts, and the next step. `None` if it lacks none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// The addresses of its kernels, by name.
    pub kernels: Vec<KernelAddress>,
    /// Its end, if that came before the registry was written.
    pub unload: Option<Unload>,
}

/// The host files whose device code a process had registered with HIP or had in OpenMP's sections, at its end
/// or before. Code in them may be instrumented or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCodeRecord {
    /// The directory for profiles of zeros. It is relative to the directory that
    /// [`CodeObjectRecord::file`] is relative to, or absolute if it is elsewhere.
    pub profiles: String,
    /// True if the device counted what it executed, or rocov put counters into code. Then code without counters is counted,
    /// too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traced: bool,
    /// The files, by path.
    pub files: Vec<CodeFileRecord>,
}

/// A host file with device code, as it was when a process had it loaded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeFileRecord {
    /// Its path.
    pub path: String,
    /// Its GNU build id. `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// The time of its last change, in nanoseconds since 1970, if it has no build id and was still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<u64>,
}

/// The code objects of one file that an agent of the process could have loaded but never did. Only code
/// objects with counters are here, or all if the run was [traced](DeviceCodeRecord::traced).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeverLoadedRecord {
    /// The program or library that they are in.
    pub file: String,
    /// The [build](HostRecord::build) of the file, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// The index of the agent. If several agents have one instruction set, the first of them.
    pub agent: usize,
    /// Their identities, in the order of the file. If another process has recorded one, it may be absent from
    /// [`Document::code_objects`].
    pub code_objects: Vec<String>,
}

/// Many processes with one set of host files on GPUs of one kind. It has what reports need, and no addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// The start of the first of them, in nanoseconds since 1970.
    pub first: u64,
    /// The start of the last of them, in nanoseconds since 1970.
    pub last: u64,
    /// The words with which all their command lines start.
    pub command: Vec<String>,
    /// Their GPU agents, by index. `uuid` and `node` are `None`: they differ.
    pub agents: Vec<AgentRecord>,
    /// The host files that instrumented code objects came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// The code objects that they loaded, each once for each agent, file and reason to be partial.
    pub loads: Vec<GroupLoad>,
    /// The host files with device code that nobody has looked at, as in [`ProcessRecord::device_code`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_code: Option<DeviceCodeRecord>,
    /// The code objects that some of them could have loaded but did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_loaded: Vec<NeverLoadedRecord>,
    /// Reasons why GPUs have stopped kernels: the first [`MAX_STOPS`] in the order of the alphabet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<String>,
    /// Their [notes](ProcessRecord::notes): the first [`MAX_STOPS`] in the order of the alphabet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The processes on each machine, by its name.
    pub processes: Vec<MachineRecord>,
}

/// The processes of a group on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Its name: the [`ProcessRecord::host`] of the processes.
    pub machine: String,
    /// The processes.
    pub runs: Runs,
}

/// Loads of one code object by the processes of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLoad {
    /// The number of these loads.
    pub times: u64,
    /// The index of the agent.
    pub agent: usize,
    /// The identity of the code object. `None` if rocov could not read its ELF.
    pub code_object: Option<String>,
    /// The path in the URI of its ELF. `None` for code objects in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The index in `hosts` of the file that it came from, as in [`LoadRecord::host`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<usize>,
    /// The reason why profiles lack counts, as in [`LoadRecord::partial`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

/// The addresses of a kernel while its code object is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelAddress {
    /// Its name, as in the list of the code object.
    pub name: String,
    /// The address of its descriptor: the kernel object of dispatch packets and traces.
    #[serde(with = "crate::format::registry::hex")]
    pub object: u64,
    /// The address of its first instruction.
    #[serde(with = "crate::format::registry::hex")]
    pub entry: u64,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unload {
    /// The number of the event.
    pub generation: u64,
    /// The time of the unload, on the boot clock.
    pub time: u64,
}
