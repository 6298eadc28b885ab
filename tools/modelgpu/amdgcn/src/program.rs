//! A code object that runs without driver and runtime. It lies in its own arena. This module lays
//! out the kernel arguments, the hidden ones included.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use modelgpu_isa::decode;

use crate::code::Code;
use crate::code_object::{
    Files, KernelMetadata, LoadError, LoadedObject, Parameter, ParameterKind,
};
use crate::dispatch::{DispatchContext, Statistics, dispatch};
use crate::error::DispatchError;
use crate::execute::Simd;
use crate::listing::Listed;
use crate::memory::{Arena, View};
use crate::packet::DispatchPacket;
use crate::trace::Trace;
use crate::warning::{BeyondLds, Hazard, LdsMistake, Stuck};
use crate::workers::ScopedWorkers;

/// The apertures that the Linux driver gives these processors.
const SHARED_APERTURE: u64 = 1 << 48;
const PRIVATE_APERTURE: u64 = 2 << 48;

/// A loaded code object and the memory that its kernels work on.
pub struct Program {
    arena: Arena,
    file: File,
    object: LoadedObject,
    code: Code,
    mnemonics: BTreeSet<&'static str>,
    warnings: Vec<BeyondLds>,
    watches_lds: bool,
    mistakes: Vec<LdsMistake>,
    watches_hazards: bool,
    hazards: Vec<Hazard>,
    stuck: Vec<Stuck>,
    trace: Option<Trace>,
    interrupts: Vec<u32>,
    launches: u64,
    threads: usize,
}

/// The ELF file.
struct File(Vec<u8>);

impl Files for File {
    fn visit(&self, is_it: &mut dyn FnMut(&[u8]) -> bool) {
        is_it(&self.0);
    }
}

/// The parameters of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel's mangled name.
    pub kernel: String,
    /// Work-items in the grid.
    pub grid: [u32; 3],
    /// Work-items in a workgroup.
    pub block: [u32; 3],
    /// Dynamic LDS in bytes.
    pub dynamic_lds: u32,
    /// The explicit arguments.
    pub arguments: Vec<Argument>,
}

/// An explicit kernel argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A device address.
    Pointer(u64),
    /// A value as it lies in memory.
    Bytes(Vec<u8>),
}

/// The reason why a kernel could not be launched or did not end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The code object has no kernel with this name.
    #[error("the code object has no kernel {0}")]
    NoKernel(String),
    /// The kernel's descriptor is not among the symbols.
    #[error("kernel {kernel}: no symbol {symbol}")]
    NoDescriptor {
        /// The kernel.
        kernel: String,
        /// The missing symbol.
        symbol: String,
    },
    /// More or fewer arguments than the kernel has.
    #[error("kernel {kernel}: {given} arguments given, {wanted} wanted")]
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// The number of given arguments.
        given: usize,
        /// The number of the kernel's parameters.
        wanted: usize,
    },
    /// An argument of the wrong size.
    #[error("kernel {kernel}: argument {index} has {given} bytes, {wanted} wanted")]
    ArgumentSize {
        /// The kernel.
        kernel: String,
        /// The argument, from 0.
        index: usize,
        /// The argument's size in bytes.
        given: usize,
        /// The parameter's size in bytes.
        wanted: u64,
    },
    /// The metadata puts a parameter outside of the kernel arguments.
    #[error("kernel {kernel}: a parameter at {offset:#x} of {size} bytes exceeds the arguments")]
    ParameterOutside {
        /// The kernel.
        kernel: String,
        /// The parameter's offset.
        offset: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// The kernel started and failed.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
}

impl Program {
    /// Loads a code object from the bytes of its file.
    ///
    /// # Errors
    /// Fails if the file is not a code object for a target of the interpreter, or is damaged.
    pub fn load(file: &[u8]) -> Result<Self, LoadError> {
        let mut arena = Arena::new();
        let object = LoadedObject::load(file, &mut arena)?;
        let code = Code::new(object.target);
        Ok(Self {
            arena,
            file: File(file.to_vec()),
            object,
            code,
            mnemonics: BTreeSet::new(),
            warnings: Vec::new(),
            watches_lds: false,
            mistakes: Vec::new(),
            watches_hazards: false,
            hazards: Vec::new(),
            stuck: Vec::new(),
            trace: None,
            interrupts: Vec::new(),
            launches: 0,
            threads: 1,
        })
    }

    /// Sets the threads that run a launch. There is one at first. Further ones join at once, also
    /// for a small kernel.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Chooses the host's instructions for vector operations. All give equal results.
    pub fn set_simd(&mut self, simd: Simd) {
        self.code.set_simd(simd);
    }

    /// The loaded code object.
    pub fn object(&self) -> &LoadedObject {
        &self.object
    }

    /// The memory.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The memory, to allocate buffers in.
    pub fn arena_mut(&mut self) -> &mut Arena {
        &mut self.arena
    }

    /// The mnemonics of all instructions that launches have executed.
    pub fn executed_mnemonics(&self) -> &BTreeSet<&'static str> {
        &self.mnemonics
    }

    /// The warnings of all launches so far.
    pub fn warnings(&self) -> &[BeyondLds] {
        &self.warnings
    }

    /// Looks for mistakes with LDS from now on.
    pub fn watch_lds(&mut self) {
        self.watches_lds = true;
    }

    /// Looks for results that code uses too early from now on.
    pub fn watch_hazards(&mut self) {
        self.watches_hazards = true;
    }

    /// The hazards so far: one for each instruction and rule.
    pub fn hazards(&self) -> &[Hazard] {
        &self.hazards
    }

    /// Counts the executions of each instruction from now on.
    pub fn start_trace(&mut self) {
        self.trace = Some(Trace::default());
    }

    /// The counts since [`Self::start_trace`].
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// The mistakes with LDS so far.
    pub fn mistakes(&self) -> &[LdsMistake] {
        &self.mistakes
    }

    /// The launches so far that were stuck for a while.
    pub fn stuck(&self) -> &[Stuck] {
        &self.stuck
    }

    /// The interrupts of all launches so far: the values of M0.
    pub fn interrupts(&self) -> &[u32] {
        &self.interrupts
    }

    /// The address and the contents of every instruction in the code, in order. An error holds two
    /// dwords that encode no instruction; the listing goes on after the first of them.
    pub fn disassemble(&self) -> Vec<(u64, Result<Listed, [u32; 2]>)> {
        let mut memory = View::new(&self.arena);
        let mut word = |address| memory.load(address, 4).unwrap_or(0) as u32;
        let mut listing = Vec::new();
        for range in &self.object.code {
            let mut pc = range.start;
            while pc + 4 <= range.end {
                let words = [0, 4, 8, 12].map(|offset| word(pc + offset));
                let decoded = decode(words, self.object.target);
                let size = decoded.as_ref().map_or(4, |instruction| instruction.size);
                let result = decoded.map(Listed::from).map_err(|error| error.words);
                listing.push((pc, result));
                pc += u64::from(size);
            }
        }
        listing
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// Fails if the code object has no such kernel, an argument does not fit, or the kernel fails.
    pub fn launch(&mut self, launch: &Launch) -> Result<Statistics, LaunchError> {
        let kernel = self
            .object
            .kernels
            .iter()
            .find(|kernel| kernel.name == launch.kernel)
            .ok_or_else(|| LaunchError::NoKernel(launch.kernel.clone()))?;
        let descriptor =
            self.object
                .symbols
                .get(&kernel.symbol)
                .ok_or_else(|| LaunchError::NoDescriptor {
                    kernel: kernel.name.clone(),
                    symbol: kernel.symbol.clone(),
                })?;
        let arguments = lay_out(kernel, launch)?;
        let packet = DispatchPacket {
            workgroup_size: launch.block,
            grid_size: launch.grid,
            private_segment_size: kernel.private_segment_size as u32,
            group_segment_size: (kernel.group_segment_size as u32)
                .saturating_add(launch.dynamic_lds),
            kernel_object: descriptor.address,
            kernarg_address: self.arena.allocate(&arguments),
            completion_signal: 0,
        };
        let warnings = Mutex::new(Vec::new());
        let mistakes = Mutex::new(Vec::new());
        let note: &(dyn Fn(LdsMistake) + Sync) = &|mistake| push(&mistakes, mistake);
        let hazards = Mutex::new(Vec::new());
        let watch: &(dyn Fn(Hazard) + Sync) = &|hazard| push(&hazards, hazard);
        let stucks = Mutex::new(Vec::new());
        let interrupts = Mutex::new(Vec::new());
        let ticks = AtomicU64::new(1);
        let context = DispatchContext {
            state: None,
            packet_address: self.arena.allocate(&packet.to_bytes()),
            // The program has no queue. A kernel that reads the queue faults.
            queue_address: 0,
            shared_aperture: SHARED_APERTURE,
            private_aperture: PRIVATE_APERTURE,
            dispatch_id: self.launches,
            beyond_lds: &|warning| push(&warnings, warning),
            mistakes: self.watches_lds.then_some(note),
            hazards: self.watches_hazards.then_some(watch),
            stuck: &|stuck| push(&stucks, stuck),
            interrupt: &|data| push(&interrupts, data),
            // Each look takes a tick, so that results repeat.
            clock: &|| ticks.fetch_add(1, Ordering::Relaxed),
            files: &self.file,
            trace: self.trace.as_ref(),
            workers: &ScopedWorkers {
                threads: self.threads,
                alone: 0,
            },
            cancelled: &AtomicBool::new(false),
        };
        self.launches += 1;
        let result = dispatch(&mut self.code, &self.arena, &packet, &context);
        self.mnemonics.extend(self.code.mnemonics());
        let all = PoisonError::into_inner;
        self.warnings
            .extend(warnings.into_inner().unwrap_or_else(all));
        let all = PoisonError::into_inner;
        self.mistakes.extend(
            mistakes
                .into_inner()
                .unwrap_or_else(|mistakes| mistakes.into_inner()),
        );
        for hazard in hazards.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let is_known =
                |other: &Hazard| (other.site.pc, other.rule) == (hazard.site.pc, hazard.rule);
            if !self.hazards.iter().any(is_known) {
                self.hazards.push(hazard);
            }
        }
        self.stuck.extend(
            stucks
                .into_inner()
                .unwrap_or_else(|stucks| stucks.into_inner()),
        );
        self.interrupts
            .extend(interrupts.into_inner().unwrap_or_else(all));
        Ok(result?)
    }
}

fn push<T>(list: &Mutex<Vec<T>>, value: T) {
    list.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(value);
}

/// The kernel arguments' bytes.
fn lay_out(kernel: &KernelMetadata, launch: &Launch) -> Result<Vec<u8>, LaunchError> {
    let name = || kernel.name.clone();
    let explicit = kernel
        .parameters
        .iter()
        .filter(|parameter| parameter.kind == ParameterKind::Explicit);
    let (given, wanted) = (launch.arguments.len(), explicit.clone().count());
    if given != wanted {
        return Err(LaunchError::ArgumentCount {
            kernel: name(),
            given,
            wanted,
        });
    }
    let mut bytes = vec![0; kernel.kernarg_size as usize];
    let mut put = |parameter: &Parameter, value: &[u8]| {
        let outside = LaunchError::ParameterOutside {
            kernel: name(),
            offset: parameter.offset,
            size: parameter.size,
        };
        let start = parameter.offset as usize;
        let place = bytes
            .get_mut(start..start.saturating_add(value.len()))
            .ok_or(outside)?;
        place.copy_from_slice(value);
        Ok::<(), LaunchError>(())
    };
    for (index, (parameter, argument)) in explicit.zip(&launch.arguments).enumerate() {
        let value = match argument {
            Argument::Pointer(address) => &address.to_le_bytes()[..],
            Argument::Bytes(bytes) => bytes,
        };
        if value.len() as u64 != parameter.size {
            let (given, wanted) = (value.len(), parameter.size);
            return Err(LaunchError::ArgumentSize {
                kernel: name(),
                index,
                given,
                wanted,
            });
        }
        put(parameter, value)?;
    }
    for parameter in &kernel.parameters {
        if let ParameterKind::Hidden(hidden) = &parameter.kind {
            let value = hidden_argument(hidden, launch).to_le_bytes();
            put(
                parameter,
                &value[..(parameter.size as usize).min(value.len())],
            )?;
        }
    }
    Ok(bytes)
}

/// The value of a hidden argument (LLVM's AMDGPUUsage, "Code Object V5 Metadata"). It is 0, a null
/// pointer, for services that only a runtime has.
fn hidden_argument(kind: &str, launch: &Launch) -> u64 {
    let dimension = match kind.as_bytes().last() {
        Some(b'y') => 1,
        Some(b'z') => 2,
        _ => 0,
    };
    let (grid, block) = (launch.grid[dimension], launch.block[dimension]);
    match kind {
        // Whole workgroups only. The remainder arguments hold the rest.
        "block_count_x" | "block_count_y" | "block_count_z" => (grid / block.max(1)).into(),
        "group_size_x" | "group_size_y" | "group_size_z" => block.into(),
        "remainder_x" | "remainder_y" | "remainder_z" => (grid % block.max(1)).into(),
        "grid_dims" => 3,
        "dynamic_lds_size" => launch.dynamic_lds.into(),
        "shared_base" => SHARED_APERTURE >> 32,
        "private_base" => PRIVATE_APERTURE >> 32,
        _ => 0,
    }
}
