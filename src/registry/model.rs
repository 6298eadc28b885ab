//! The registry as a document: what is written to `<basename>.kernels.json`.

use serde::{Deserialize, Serialize};

use crate::codeobject::Kernel;

/// Number of the schema that this describes. A reader refuses others; a field that is only added
/// does not change it.
pub const VERSION: u32 = 1;

/// All that is known of the code objects of one process, or of all that share a pooled file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// [`VERSION`].
    pub rocov_registry: u32,
    /// Each distinct code object once, by identity and target.
    pub code_objects: Vec<CodeObjectRecord>,
    /// The processes, by start, number and host.
    pub processes: Vec<ProcessRecord>,
}

impl Default for Document {
    /// An empty document of this version.
    fn default() -> Document {
        Document {
            rocov_registry: VERSION,
            code_objects: Vec::new(),
            processes: Vec::new(),
        }
    }
}

/// A distinct code object: what does not depend on where it is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeObjectRecord {
    /// Its identity.
    pub identity: String,
    /// Processor that it is compiled for with its features, such as `gfx90a:xnack-`.
    pub target: String,
    /// Bytes of its ELF.
    pub size: u64,
    /// The major version of the clang that compiled it.
    pub clang: Option<u32>,
    /// Whether it counts anything.
    pub instrumented: bool,
    /// Where its ELF is kept, from the data directory on: `objects/gfx90a.<identity>.elf`; of a user's
    /// own pattern, from its side on. `None` if it is not kept.
    pub file: Option<String>,
    /// Its kernels, by name.
    pub kernels: Vec<Kernel>,
    /// Why there are none, where what it says of them is damaged.
    pub damage: Option<String>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Process id.
    pub pid: u32,
    /// Name of its host.
    pub host: String,
    /// When its program first loaded a code object, or left one unloaded, in nanoseconds of the host's boot clock
    /// (`CLOCK_BOOTTIME`), which is the clock of all times here and of HSA's time stamps. A program
    /// that takes a process over (`execve`) has a record of its own.
    pub start: u64,
    /// Nanoseconds to add to a time of the boot clock for one since 1970.
    pub epoch: u64,
    /// The command line.
    pub command: Vec<String>,
    /// Its GPU agents, by index.
    pub agents: Vec<AgentRecord>,
    /// The files of the host that what counts came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// What it loaded, by generation.
    pub loads: Vec<LoadRecord>,
    /// What it could have loaded and did not: it launched none of these kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_loaded: Vec<NeverLoadedRecord>,
}

/// A GPU agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Place among the GPU agents, from 0, as in the names of profiles.
    pub index: usize,
    /// Such as `gfx90a`.
    pub name: String,
    /// The instruction set with its features: `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
    pub isa: Option<String>,
    /// Such as `GPU-4f1d...`; `GPU-XX` where the device has none.
    pub uuid: Option<String>,
    /// The driver's number of the node.
    pub node: Option<u32>,
}

/// A file of the host, as it was when code objects were loaded from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Where it was.
    pub path: String,
    /// Its GNU build id, else a hash of its contents. The names of pools (`%m`) have both, as
    /// [`crate::host::tag`].
    pub build: String,
}

/// One load of a code object: an executable on an agent, from its freeze to its destruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// Number of the event, from 1: loads and unloads are counted together.
    pub generation: u64,
    /// When, on the boot clock.
    pub time: u64,
    /// Index of the agent.
    pub agent: usize,
    /// The runtime's handle of the executable.
    #[serde(with = "super::hex")]
    pub executable: u64,
    /// Where its ELF came from.
    pub uri: String,
    /// First device address.
    #[serde(with = "super::hex")]
    pub base: u64,
    /// Bytes of device memory.
    pub size: u64,
    /// Device address minus ELF address, modulo 2^64.
    #[serde(with = "super::hex")]
    pub delta: u64,
    /// Identity of the code object; `None` where its ELF was out of reach. Those of one identity
    /// and several targets are told apart by the agent's name.
    pub code_object: Option<String>,
    /// Index of the file that it came from among the `hosts`, if that is known and it counts: the one
    /// that `uri` names; of one in memory, the one whose code loaded it, else the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<usize>,
    /// Its profile, once there is one: the path from where that of `file` begins, or a whole one, if the
    /// profile belongs to another directory. In a merged registry, as the process has called it: a
    /// merged profile has another name.
    pub profile: Option<String>,
    /// Where its kernels are, by name.
    pub kernels: Vec<KernelAddress>,
    /// Its end, where that was before the registry was written.
    pub unload: Option<Unload>,
}

/// The code objects of one file that an agent of the process could have loaded, and never did. Only
/// those that count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeverLoadedRecord {
    /// The program or library that they are in.
    pub file: String,
    /// The build of that, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Index of the agent: of those with one instruction set, the first.
    pub agent: usize,
    /// Their identities, in the order of the file. Those that another process has written down are
    /// not in [`Document::code_objects`].
    pub code_objects: Vec<String>,
}

/// Where a kernel is while its code object is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelAddress {
    /// Its name, as in the code object's list.
    pub name: String,
    /// Address of its descriptor: the kernel object of dispatch packets and traces.
    #[serde(with = "super::hex")]
    pub object: u64,
    /// Address of its first instruction.
    #[serde(with = "super::hex")]
    pub entry: u64,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unload {
    /// Number of the event.
    pub generation: u64,
    /// When, on the boot clock.
    pub time: u64,
}
