//! The modelled machine of one process: its nodes, memory, events and queues.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use modelgpu_amdgcn::Trace;
use modelgpu_queue::{Bells, Processor};

use crate::config::{Config, MAX_GPUS};
use crate::event::Events;
use crate::fidelity::Fidelity;
use crate::foreign::ForeignBuffer;
use crate::gpu;
use crate::instructions::Instructions;
use crate::log::{self, Log};
use crate::memory::{self, Allocation, Backing, HostAddress, Memory};
use crate::node::Node;
use crate::paths::DeviceNode;
use crate::placed::Placed;
use crate::sys::{self, Errno, FileId};
use crate::tree::Tree;

/// Distance between two GPUs' doorbell pages in the `/dev/kfd` file.
///
/// The thunk of ROCr 5.2.3 uses more than the low 13 bits of `doorbell_offset` as the offset inside
/// its mapped page. With GPUs 8 KiB apart, it would write the second one's doorbells after the
/// mapping. At 4 GiB apart, in a sparse file, every thunk computes the right address.
const DOORBELL_STRIDE: u64 = 1 << 32;
/// Offset of a GPU's remapped registers from its doorbells.
const MMIO_OFFSET: u64 = 0x1_0000;
/// Bytes of one doorbell.
const DOORBELL_BYTES: u64 = 8;
/// The most queues of a GPU: the doorbells of two pages.
const MAX_QUEUES: usize = 1024;

static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
/// The model of this process; a forked child starts without one.
static CURRENT: AtomicPtr<Model> = AtomicPtr::new(ptr::null_mut());
/// Set once the model could not be created, so that the message comes once.
static FAILED: AtomicBool = AtomicBool::new(false);

/// The configuration; `None` if there is no modelled GPU. The library then does nothing. A bad value ends
/// the process with status 2, because a wrong model is useless.
pub(crate) fn config() -> Option<&'static Config> {
    let config = CONFIG.get_or_init(|| match Config::read(|name| std::env::var_os(name)) {
        Ok(config) => config,
        Err(error) => {
            log::message(&error.to_string());
            sys::exit_now(2)
        }
    });
    config.as_ref()
}

/// A process's modelled machine. It lives until the process ends, because queues' threads and the
/// program's own mappings refer to it until then.
pub(crate) struct Model {
    pub(crate) config: &'static Config,
    pub(crate) memory: Memory,
    pub(crate) events: Events,
    pub(crate) log: Log,
    /// `None` unless the user asks for the counts.
    pub(crate) instructions: Option<Instructions>,
    /// The executed opcodes. `None` unless the user asks for the evidence.
    pub(crate) fidelity: Option<Fidelity>,
    /// The executions of each instruction. `None` unless the user asks for them.
    pub(crate) trace: Option<Trace>,
    /// The code of kernels that no loader has put into memory, if executions are counted.
    pub(crate) placed: Placed,
    tree: Tree,
    kfd: Node,
    render: Vec<Node>,
    /// Nodes of other processes whose memory this one has imported.
    foreign: Mutex<Vec<&'static Node>>,
    queues: Mutex<BTreeMap<u32, Processor>>,
    /// The doorbells of the queues.
    pub(crate) bells: Bells,
}

impl Model {
    /// The process's model, created at the first call. `None` without a configuration or if the
    /// creation fails.
    pub(crate) fn get() -> Option<&'static Self> {
        if let Some(model) = Self::existing() {
            return Some(model);
        }
        let config = config()?;
        if FAILED.load(Ordering::Relaxed) {
            return None;
        }
        let model = match Self::new(config) {
            Ok(model) => Box::into_raw(Box::new(model)),
            Err(problem) => {
                if !FAILED.swap(true, Ordering::Relaxed) {
                    log::message(&problem);
                }
                return None;
            }
        };
        let none = ptr::null_mut();
        if CURRENT
            .compare_exchange(none, model, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // Another thread was quicker. SAFETY: no other thread has seen this model.
            drop(unsafe { Box::from_raw(model) });
        }
        Self::existing()
    }

    /// The process's model, if it exists.
    pub(crate) fn existing() -> Option<&'static Self> {
        // SAFETY: the pointer is null or a leaked box.
        unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
    }

    /// Forgets the model, as the first act of a forked child. Its parent's GPU is not its own: the
    /// driver rejects inherited descriptors, and queue threads do not survive a fork. The child may
    /// open the device again and then gets its own model. The parent's model leaks, because another
    /// thread may have held any of its locks.
    pub(crate) fn forget() {
        CURRENT.store(ptr::null_mut(), Ordering::Release);
    }

    fn new(config: &'static Config) -> Result<Self, String> {
        let tree = Tree::find_or_create(config).map_err(|error| error.to_string())?;
        let node = |name: &str, size| {
            Node::new(name, size).map_err(|errno| {
                let reason = std::io::Error::from_raw_os_error(errno.0);
                format!("cannot make the device {name} in {size} bytes of address space: {reason}")
            })
        };
        let count = config.gpus.len();
        let render_bytes = memory::node_file_bytes(config.vram_bytes);
        Ok(Self {
            config,
            memory: Memory::new(count, config.vram_bytes),
            events: Events::new(),
            log: Log::open(config.log.as_ref()),
            instructions: config.instructions.as_ref().and_then(Instructions::open),
            fidelity: config.fidelity.as_ref().and_then(Fidelity::open),
            trace: config.traces.then(Trace::default),
            placed: Placed::default(),
            tree,
            kfd: node("kfd", DOORBELL_STRIDE * MAX_GPUS as u64)?,
            render: (0..count)
                .map(|_| node("renderD", render_bytes))
                .collect::<Result<_, _>>()?,
            foreign: Mutex::new(Vec::new()),
            queues: Mutex::new(BTreeMap::new()),
            bells: Bells::default(),
        })
    }

    /// The node's file.
    pub(crate) fn node(&self, device: DeviceNode) -> Result<&Node, Errno> {
        match device {
            DeviceNode::Kfd => Ok(&self.kfd),
            DeviceNode::Render(gpu) => self.render.get(gpu).ok_or(Errno(libc::ENODEV)),
        }
    }

    /// The descriptor of the file with an allocation's bytes and its identity; `None` if this process
    /// has no such file.
    pub(crate) fn place(&self, allocation: &Allocation) -> Option<(RawFd, FileId)> {
        match allocation.backing {
            Backing::Piece { .. } => self.render.get(allocation.gpu).map(Node::place),
            Backing::Borrowed | Backing::Alias | Backing::Foreign => None,
        }
    }

    /// Registers memory of another process at `va`; 0 if it gets its addresses later.
    ///
    /// # Errors
    /// Fails if the other process has ended or belongs to another user, or if it names a place outside
    /// of its memory.
    pub(crate) fn import(&self, buffer: &ForeignBuffer, va: u64) -> Result<Allocation, Errno> {
        let mut nodes = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        let node = match nodes.iter().find(|node| node.is(buffer.node)) {
            Some(node) => *node,
            None => {
                let node = Node::for_process(buffer.process, buffer.descriptor, buffer.node)?;
                // Kernels may use the memory until the process ends.
                let node: &'static Node = Box::leak(Box::new(node));
                nodes.push(node);
                node
            }
        };
        drop(nodes);
        let end = buffer.offset.checked_add(buffer.size.max(1) - 1);
        let last = end.and_then(|end| node.host(end));
        let (Some(host), Some(_)) = (node.host(buffer.offset), last) else {
            return Err(Errno(libc::EINVAL));
        };
        let host = HostAddress(host);
        let allocation = self.memory.import(buffer.gpu, va, buffer.size, host);
        self.memory.attach(allocation.handle, buffer.metadata);
        Ok(allocation)
    }

    /// The node whose file `fd` is.
    pub(crate) fn device_of(&self, fd: RawFd) -> Option<DeviceNode> {
        self.device_with(sys::file_id(fd)?)
    }

    /// The node with this file identity.
    pub(crate) fn device_with(&self, id: FileId) -> Option<DeviceNode> {
        if self.kfd.is(id) {
            return Some(DeviceNode::Kfd);
        }
        let gpu = self.render.iter().position(|node| node.is(id));
        gpu.map(DeviceNode::Render)
    }

    /// The path of the generated tree.
    pub(crate) fn tree_root(&self) -> &[u8] {
        self.tree.root()
    }

    /// The GPU with an ioctl's id, or `EINVAL`.
    pub(crate) fn gpu(&self, gpu_id: u32) -> Result<usize, Errno> {
        gpu::index_of(gpu_id, self.config.gpus.len()).ok_or(Errno(libc::EINVAL))
    }

    /// Offset of a GPU's doorbells in the `/dev/kfd` file.
    pub(crate) fn doorbells(gpu: usize) -> u64 {
        gpu as u64 * DOORBELL_STRIDE
    }

    /// Offset of a GPU's remapped registers in the `/dev/kfd` file.
    pub(crate) fn mmio(gpu: usize) -> u64 {
        Self::doorbells(gpu) + MMIO_OFFSET
    }

    /// Offset of the doorbell of a queue in the `/dev/kfd` file.
    pub(crate) fn doorbell(gpu: usize, queue: u32) -> u64 {
        Self::doorbells(gpu) + u64::from(queue) * DOORBELL_BYTES
    }

    fn lock_queues(&self) -> MutexGuard<'_, BTreeMap<u32, Processor>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the driver lets the process switch XNACK on: each of its GPUs must have it.
    pub(crate) fn may_have_xnack(&self) -> bool {
        let mut gpus = self.config.gpus.iter();
        gpus.all(|target| gpu::identity(*target).has_xnack)
    }

    /// Returns whether the process has any queue.
    pub(crate) fn has_queues(&self) -> bool {
        !self.lock_queues().is_empty()
    }

    /// Adds a queue. `start` starts it under the lowest free id, from 1 on.
    ///
    /// # Errors
    /// Fails if there are too many queues (`ENOMEM`), or if `start` fails.
    pub(crate) fn add_queue(
        &self,
        start: impl FnOnce(u32) -> Result<Processor, Errno>,
    ) -> Result<u32, Errno> {
        let mut queues = self.lock_queues();
        let ids = 1..MAX_QUEUES as u32;
        let id = ids.into_iter().find(|id| !queues.contains_key(id));
        let id = id.ok_or(Errno(libc::ENOMEM))?;
        queues.insert(id, start(id)?);
        Ok(id)
    }

    /// Ends a queue. The join of its thread happens outside the lock: the thread may take a while.
    pub(crate) fn remove_queue(&self, id: u32) -> Result<(), Errno> {
        let queue = self.lock_queues().remove(&id);
        queue.map(drop).ok_or(Errno(libc::EINVAL))
    }

    /// Returns whether a queue with this id exists.
    pub(crate) fn has_queue(&self, id: u32) -> bool {
        self.lock_queues().contains_key(&id)
    }

    /// Changes a queue.
    ///
    /// # Errors
    /// Fails if no queue has this id (`EINVAL`).
    pub(crate) fn with_queue(&self, id: u32, change: impl FnOnce(&Processor)) -> Result<(), Errno> {
        let queues = self.lock_queues();
        queues.get(&id).map(change).ok_or(Errno(libc::EINVAL))
    }

    /// Writes a line to the log, at level 1 or 2.
    pub(crate) fn note(&self, level: u8, text: Arguments<'_>) {
        self.log.note(level, text);
    }
}
