//! Allocations: the GPU virtual addresses, the GPUs that map them, and the host memory that backs them.
//!
//! The driver's VRAM and system memory (GTT) are pieces of the owning GPU's render node file. The
//! thunk decides whether the program can access its own mapping of them. With a small BAR it maps
//! VRAM with PROT_NONE, so a stray host access crashes, as on a machine without a large BAR.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use modelgpu_amdgcn::memory::{AddressSpace, Region};

use crate::abi::drm::Metadata;
use crate::node::{Node, Ranges};
use crate::svm::Svm;
use crate::sys::{self, Errno, PAGE};

/// The alignment of pieces with at least this size, as for large pages.
const LARGE_PAGE: u64 = 2 << 20;
/// System memory that a GPU's driver can allocate, beyond its VRAM. It is sparse, so it costs only
/// address space. A process has little of that under Valgrind (128 GiB).
const GTT_BYTES: std::ops::RangeInclusive<u64> = 16 << 30..=256 << 30;

/// The model remembers the places of so many freed allocations.
const FREED: usize = 256;

/// The size of a render node's file for a GPU with this much device memory.
pub(crate) fn node_file_bytes(vram_bytes: u64) -> u64 {
    let gtt_bytes = (16 * vram_bytes).clamp(*GTT_BYTES.start(), *GTT_BYTES.end());
    // Twice the VRAM: first fit on 2 MiB boundaries may leave gaps, but the accounting is exact.
    2 * vram_bytes + gtt_bytes
}

/// The kind of an allocation's host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// A piece of the owning GPU's render node file; `vram` counts against its device memory.
    Piece { vram: bool },
    /// Memory of the program or of the `/dev/kfd` file (doorbells, remapped registers).
    Borrowed,
    /// Another address for (part of) a piece: an imported buffer.
    Alias,
    /// A piece of another process's node, which stays mapped.
    Foreign,
}

/// One allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) handle: u64,
    pub(crate) va: u64,
    pub(crate) size: u64,
    pub(crate) backing: Backing,
    /// The owning GPU's number.
    pub(crate) gpu: usize,
    /// Offset in the node's file, which is also the mmap offset (0 for borrowed memory).
    pub(crate) offset: u64,
    /// Host address that backs `va`.
    host: HostAddress,
    /// Bit n: mapped on GPU n.
    mapped: u8,
}

/// The owner of memory that a GPU cannot access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreached {
    /// The GPU with this number.
    OtherGpu(usize),
    /// The program. No GPU maps the memory.
    Program,
    /// None: the program has freed it.
    Freed,
}

/// A host address; only the interpreter and the queues follow it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostAddress(pub(crate) *mut u8);

// SAFETY: a plain address; code that follows it must ensure that it is valid.
unsafe impl Send for HostAddress {}

/// Every allocation of the process.
pub(crate) struct Memory {
    table: Mutex<Table>,
    svm: Svm,
    /// Changes whenever a mapping does; see [`AddressSpace::generation`].
    generation: AtomicU64,
    vram_bytes: u64,
}

struct Table {
    /// Keyed by address and handle, because a program may register its own memory twice.
    by_address: BTreeMap<(u64, u64), Allocation>,
    addresses: HashMap<u64, u64>,
    metadata: HashMap<u64, Metadata>,
    ranges: Vec<Ranges>,
    vram_used: Vec<u64>,
    next_handle: u64,
    /// Address and size of the allocations that the program freed last.
    freed: VecDeque<(u64, u64)>,
    /// Size of the largest allocation so far, which bounds the search for overlaps.
    largest: u64,
}

impl Memory {
    /// Creates empty memory for `gpus` GPUs with `vram_bytes` of device memory each.
    pub(crate) fn new(gpus: usize, vram_bytes: u64) -> Self {
        Self {
            table: Mutex::new(Table {
                by_address: BTreeMap::new(),
                addresses: HashMap::new(),
                metadata: HashMap::new(),
                ranges: (0..gpus)
                    .map(|_| Ranges::new(node_file_bytes(vram_bytes)))
                    .collect(),
                vram_used: vec![0; gpus],
                next_handle: 1,
                freed: VecDeque::new(),
                largest: 0,
            }),
            svm: Svm::new(),
            generation: AtomicU64::new(0),
            vram_bytes,
        }
    }

    /// The program's own memory that GPUs reach.
    pub(crate) fn svm(&self) -> &Svm {
        &self.svm
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells every GPU that mappings have changed.
    pub(crate) fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Bytes of device memory in use on a GPU.
    pub(crate) fn vram_used(&self, gpu: usize) -> u64 {
        self.lock().vram_used[gpu]
    }

    /// Bytes of device memory left on a GPU.
    pub(crate) fn vram_available(&self, gpu: usize) -> u64 {
        self.vram_bytes - self.vram_used(gpu)
    }

    /// Allocates a piece of `node`, the render node of GPU number `gpu`.
    ///
    /// # Errors
    /// Fails if the GPU has too little memory left (`ENOMEM`).
    pub(crate) fn allocate(
        &self,
        node: &Node,
        gpu: usize,
        va: u64,
        size: u64,
        vram: bool,
    ) -> Result<Allocation, Errno> {
        let mut table = self.lock();
        // The driver maps whole pages.
        let bytes = page_multiple(size).ok_or(Errno(libc::ENOMEM))?;
        if vram && bytes > self.vram_bytes - table.vram_used[gpu] {
            return Err(Errno(libc::ENOMEM));
        }
        let align = if size >= LARGE_PAGE { LARGE_PAGE } else { PAGE };
        let offset = table.ranges[gpu]
            .take(bytes, align)
            .ok_or(Errno(libc::ENOMEM))?;
        let Some(host) = node.host(offset) else {
            table.ranges[gpu].release(offset);
            return Err(Errno(libc::ENOMEM));
        };
        if vram {
            table.vram_used[gpu] += bytes;
        }
        Ok(table.insert(Allocation {
            handle: 0,
            va,
            size: bytes,
            backing: Backing::Piece { vram },
            gpu,
            offset,
            host: HostAddress(host),
            mapped: 0,
        }))
    }

    /// Registers host memory of the program or of another file.
    pub(crate) fn borrow(
        &self,
        gpu: usize,
        va: u64,
        size: u64,
        host: HostAddress,
        offset: u64,
    ) -> Allocation {
        self.lock().insert(Allocation {
            handle: 0,
            va,
            size,
            backing: Backing::Borrowed,
            gpu,
            offset,
            host,
            mapped: 0,
        })
    }

    /// Registers `size` bytes at `host` of a node of another process.
    pub(crate) fn import(&self, gpu: usize, va: u64, size: u64, host: HostAddress) -> Allocation {
        self.lock().insert(Allocation {
            handle: 0,
            va,
            size,
            backing: Backing::Foreign,
            gpu,
            offset: 0,
            host,
            mapped: 0,
        })
    }

    /// Adds another address for `size` bytes from `offset` of an allocation, like an import.
    /// `mapped_on` maps it on that GPU at once.
    ///
    /// # Errors
    /// Fails if the handle is unknown or the range lies outside the allocation (`EINVAL`).
    pub(crate) fn alias(
        &self,
        handle: u64,
        va: u64,
        offset: u64,
        size: u64,
        mapped_on: Option<usize>,
    ) -> Result<Allocation, Errno> {
        let mut table = self.lock();
        let source = *table.get(handle)?;
        let end = offset.checked_add(size).ok_or(Errno(libc::EINVAL))?;
        if page_multiple(source.size).is_none_or(|whole| end > whole) {
            return Err(Errno(libc::EINVAL));
        }
        let alias = table.insert(Allocation {
            va,
            size,
            backing: Backing::Alias,
            offset: source.offset + offset,
            host: HostAddress(source.host.0.wrapping_add(offset as usize)),
            mapped: mapped_on.map_or(0, |gpu| 1 << gpu),
            ..source
        });
        drop(table);
        self.changed();
        Ok(alias)
    }

    /// The allocation with this handle, or `EINVAL`.
    pub(crate) fn get(&self, handle: u64) -> Result<Allocation, Errno> {
        self.lock().get(handle).copied()
    }

    /// Returns whether memory that the driver has allocated, or memory of the program that is mapped on a GPU, has an
    /// address in `start..start + len`.
    pub(crate) fn has_of_driver(&self, start: u64, len: u64) -> bool {
        let table = self.lock();
        let first = start.saturating_sub(table.largest);
        let mut below = (table.by_address).range((first, 0)..(start.saturating_add(len), 0));
        let is_of_driver = |allocation: &Allocation| {
            allocation.backing != Backing::Borrowed || allocation.mapped != 0
        };
        below.any(|(_, allocation)| {
            is_of_driver(allocation) && allocation.va + allocation.size > start
        })
    }

    /// Attaches the information that a program gives about an allocation to those that import it.
    pub(crate) fn attach(&self, handle: u64, metadata: Metadata) {
        self.lock().metadata.insert(handle, metadata);
    }

    /// Returns what a program has attached to an allocation; zeros if it has attached nothing.
    pub(crate) fn attached(&self, handle: u64) -> Metadata {
        let attached = self.lock().metadata.get(&handle).copied();
        attached.unwrap_or(Metadata {
            flags: 0,
            tiling: 0,
            size: 0,
            data: [0; 64],
            pad: 0,
        })
    }

    /// The allocation whose handle's low half is `low`: DRM's handles are 32 bits wide.
    pub(crate) fn by_low_handle(&self, low: u32) -> Option<Allocation> {
        let table = self.lock();
        let mut all = table.by_address.values();
        all.find(|allocation| allocation.handle as u32 == low)
            .copied()
    }

    /// Maps or unmaps an allocation on a GPU.
    pub(crate) fn set_mapped(&self, handle: u64, gpu: usize, mapped: bool) -> Result<(), Errno> {
        let mut table = self.lock();
        let allocation = table.get_mut(handle)?;
        match mapped {
            true => allocation.mapped |= 1 << gpu,
            false => allocation.mapped &= !(1 << gpu),
        }
        drop(table);
        self.changed();
        Ok(())
    }

    /// Frees an allocation; `node` finds the render node of the owning GPU.
    pub(crate) fn free(
        &self,
        handle: u64,
        node: impl FnOnce(usize) -> Result<&'static Node, Errno>,
    ) -> Result<Allocation, Errno> {
        let mut table = self.lock();
        let allocation = *table.get(handle)?;
        table.by_address.remove(&(allocation.va, handle));
        table.addresses.remove(&handle);
        table.metadata.remove(&handle);
        table.freed.truncate(FREED - 1);
        table.freed.push_front((allocation.va, allocation.size));
        // The generation changes before the pages go: a kernel that accesses them afterwards
        // faults.
        self.changed();
        if let Backing::Piece { vram } = allocation.backing {
            node(allocation.gpu)?.clear(allocation.offset, allocation.size)?;
            table.ranges[allocation.gpu].release(allocation.offset);
            if vram {
                table.vram_used[allocation.gpu] -= allocation.size;
            }
        }
        Ok(allocation)
    }

    /// Frees the alias at `va`, if one exists (DRM unmaps by address).
    pub(crate) fn free_alias_at(&self, va: u64) {
        let mut table = self.lock();
        let at_va = table.by_address.range((va, 0)..=(va, u64::MAX));
        let alias = at_va
            .map(|(_, allocation)| allocation)
            .find(|allocation| allocation.backing == Backing::Alias)
            .map(|allocation| allocation.handle);
        if let Some(handle) = alias {
            table.by_address.remove(&(va, handle));
            table.addresses.remove(&handle);
            self.changed();
        }
    }

    /// The region that holds `address` on GPU number `gpu`.
    fn region(&self, address: u64, gpu: usize) -> Option<Region> {
        self.allocated(address, gpu).or_else(|| {
            let (base, len) = self.svm.region(address, gpu)?;
            let host = base as *mut u8;
            Some(Region { base, len, host })
        })
    }

    fn allocated(&self, address: u64, gpu: usize) -> Option<Region> {
        let table = self.lock();
        let mut there = table.at(address);
        let allocation = there.find(|allocation| allocation.mapped & 1 << gpu != 0)?;
        Some(Region {
            base: allocation.va,
            len: allocation.size,
            host: allocation.host.0,
        })
    }

    /// The owner of the memory at `address`, which GPU number `gpu` cannot access. `None` if that is not known.
    pub(crate) fn unreached(&self, address: u64, gpu: usize) -> Option<Unreached> {
        let table = self.lock();
        if let Some(allocation) = table.at(address).next() {
            let owner = allocation.gpu;
            let is_of_gpu = match allocation.backing {
                Backing::Piece { vram } => vram,
                Backing::Borrowed => false,
                Backing::Alias | Backing::Foreign => true,
            };
            return (is_of_gpu && owner != gpu).then_some(Unreached::OtherGpu(owner));
        }
        if sys::mapping_around(address).is_some() {
            return Some(Unreached::Program);
        }
        let mut freed = table.freed.iter();
        let was_there = freed.any(|(va, size)| (*va..va + size).contains(&address));
        was_there.then_some(Unreached::Freed)
    }
}

impl Table {
    /// The allocations that hold `address`.
    fn at(&self, address: u64) -> impl Iterator<Item = &Allocation> {
        let below = self.by_address.range(..=(address, u64::MAX)).rev();
        let allocations = below.map(|(_, allocation)| allocation);
        let near = allocations.take_while(move |allocation| address - allocation.va < self.largest);
        near.filter(move |allocation| address - allocation.va < allocation.size)
    }

    fn insert(&mut self, mut allocation: Allocation) -> Allocation {
        allocation.handle = self.next_handle;
        self.next_handle += 1;
        self.largest = self.largest.max(allocation.size);
        self.addresses.insert(allocation.handle, allocation.va);
        let key = (allocation.va, allocation.handle);
        self.by_address.insert(key, allocation);
        allocation
    }

    fn get(&self, handle: u64) -> Result<&Allocation, Errno> {
        let va = self.addresses.get(&handle).ok_or(Errno(libc::EINVAL))?;
        let allocation = self.by_address.get(&(*va, handle));
        allocation.ok_or(Errno(libc::EINVAL))
    }

    fn get_mut(&mut self, handle: u64) -> Result<&mut Allocation, Errno> {
        let va = self.addresses.get(&handle).ok_or(Errno(libc::EINVAL))?;
        let allocation = self.by_address.get_mut(&(*va, handle));
        allocation.ok_or(Errno(libc::EINVAL))
    }
}

/// `size` rounded up to whole pages.
fn page_multiple(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(PAGE)
}

/// One GPU's view of memory: only memory mapped on the GPU exists.
pub(crate) struct GpuMemory {
    pub(crate) memory: &'static Memory,
    pub(crate) gpu: usize,
}

// SAFETY: pieces lie in node files that stay mapped until the process ends. Borrowed memory is the
// program's; it must keep the memory until it unregisters it, which changes the generation.
unsafe impl AddressSpace for GpuMemory {
    fn region(&self, address: u64) -> Option<Region> {
        self.memory.region(address, self.gpu)
    }

    fn generation(&self) -> u64 {
        self.memory.generation.load(Ordering::Acquire)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
