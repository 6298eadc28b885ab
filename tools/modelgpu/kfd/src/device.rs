//! One GPU, as its queues see it.

use std::fmt::Arguments;
use std::sync::{Mutex, PoisonError};

use modelgpu_amdgcn::code_object::{Files, Origin, entry_of};
use modelgpu_amdgcn::memory::AddressSpace;
use modelgpu_amdgcn::{Code, DispatchPacket, Statistics, Target, Trace};
use modelgpu_queue::gpu::{Gpu, Launch};
use modelgpu_queue::{DispatchThreads, Fault, kernel};

use crate::code::ProgramMemory;
use crate::drain;
use crate::gpu::{NS_PER_TICK, PRIVATE_APERTURE, SHARED_APERTURE, gpu_id};
use crate::journal::{self, Note};
use crate::log;
use crate::memory::{GpuMemory, Unreached};
use crate::model::Model;
use crate::sys;

/// A GPU of the model, for one of its queues.
pub(crate) struct Device {
    model: &'static Model,
    index: usize,
    target: Target,
    memory: GpuMemory,
    /// The decoded code of the queue's kernels. It is not thread-local: see the threads of
    /// `modelgpu-queue`.
    code: Mutex<Code>,
    warned: kernel::Warned,
}

impl Device {
    /// Creates GPU number `index`, which must exist.
    pub(crate) fn new(model: &'static Model, index: usize) -> Self {
        let target = model.config.gpus[index];
        Self {
            model,
            index,
            target,
            memory: GpuMemory {
                memory: &model.memory,
                gpu: index,
            },
            code: Mutex::new(Code::new(target)),
            warned: kernel::Warned::default(),
        }
    }

    /// A sentence about this GPU.
    fn about(&self, text: &str) -> String {
        format!("GPU {} ({}): {text}", self.index, self.target)
    }

    /// Finds the file of the kernel's code, for a trace, if no loader has put the code into memory.
    fn find_code(&self, trace: &Trace, launch: &Launch<'_>) {
        let object = DispatchPacket::parse(launch.packet).kernel_object;
        let entry = match launch.state {
            Some(state) => Some(state.entry),
            None => entry_of(&self.memory, object),
        };
        // The kernel's launch reports memory that is not mapped.
        let Some(entry) = entry else {
            return;
        };
        let (memory, index) = (&self.memory, self.index);
        let is_unknown = (self.model.placed).see(index, trace, memory, entry, || {
            Origin::find(memory, &ProgramMemory, entry)
        });
        if is_unknown {
            self.message(&format!(
                "no code object in the program's memory has the code at {entry:#x}, so the trace leaves this kernel out. To \
                 see its counts, keep the kernel's ELF file in memory, not compressed, until its first launch"
            ));
        }
    }

    /// Writes a note for the reports of the run.
    fn note(&self, note: Note, text: &str) {
        if let Some(file) = &self.model.config.journal {
            journal::append(file, note, &self.about(text));
        }
    }

    /// The fault with a message that names the owner of the memory.
    fn explained(&self, fault: Fault) -> Fault {
        let Fault::KernelMemory { message, address } = fault else {
            return fault;
        };
        let there = match self.model.memory.unreached(address, self.index) {
            Some(Unreached::OtherGpu(owner)) => {
                format!(
                    ": memory of GPU {owner}, which this GPU reaches after hipDeviceEnablePeerAccess"
                )
            }
            Some(Unreached::Program) if self.model.may_have_xnack() => {
                ": memory of the host, which this GPU reaches with HSA_XNACK=1".to_owned()
            }
            Some(Unreached::Program) => {
                ": memory of the host, which this GPU reaches after hipHostRegister".to_owned()
            }
            Some(Unreached::Freed) => ": the program has freed this memory".to_owned(),
            None => String::new(),
        };
        let message = message + &there;
        Fault::KernelMemory { message, address }
    }
}

/// The GPU's current clock, in ticks of 10 ns.
pub(crate) fn clock() -> u64 {
    sys::monotonic_ns() / NS_PER_TICK
}

impl Gpu for Device {
    fn memory(&self) -> &dyn AddressSpace {
        &self.memory
    }

    fn files(&self) -> &dyn Files {
        &ProgramMemory
    }

    fn raise_event(&self, id: u32) {
        // An event that no longer exists has no waiters.
        let _ = self.model.events.set(id);
    }

    fn interrupt(&self, id: u8) {
        self.model.events.set_ending_in(id);
    }

    fn clock(&self) -> u64 {
        clock()
    }

    fn run_kernel(&self, launch: &Launch<'_>) -> Result<Statistics, Fault> {
        let apertures = kernel::Apertures {
            shared: SHARED_APERTURE,
            private: PRIVATE_APERTURE,
        };
        if let Some(trace) = &self.model.trace {
            self.find_code(trace, launch);
        }
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = DispatchThreads(self.model.config.threads);
        let done = kernel::run(self, &mut code, apertures, &self.warned, threads, launch);
        if let Some(fidelity) = &self.model.fidelity {
            fidelity.add(self.target, code.mnemonics());
        }
        let done = done.map_err(|fault| self.explained(fault))?;
        if let Some(instructions) = &self.model.instructions {
            let symbol = kernel::Symbol::new(self, launch).to_string();
            instructions.add(self.target.name(), symbol, done);
        }
        Ok(done)
    }

    fn trace(&self) -> Option<&Trace> {
        self.model.trace.as_ref()
    }

    fn target(&self) -> Target {
        self.target
    }

    fn number(&self) -> usize {
        self.index
    }

    fn has_wide_windows(&self) -> bool {
        matches!(self.target, Target::Gfx1201 | Target::Gfx1250)
    }

    fn watches_lds(&self) -> bool {
        self.model.config.watches.lds
    }

    fn watches_hazards(&self) -> bool {
        self.model.config.watches.hazards
    }

    fn stopped(&self, reason: &str) {
        drain::drain_after(&self.about(reason));
    }

    fn mistake(&self, text: &str) {
        self.note(Note::Mistake, text);
        self.message(&format!(
            "{text}. Further ones of this kernel are not shown"
        ));
    }

    fn stuck(&self, text: &str) {
        self.note(Note::Stuck, text);
        // Before the message, as a user who sees it may end the program.
        drain::drain();
        self.message(text);
    }

    fn goes_on(&self, text: &str) {
        self.note(Note::GoesOn, text);
    }

    fn memory_fault(&self, address: u64) {
        let id = gpu_id(self.index);
        self.model.events.raise_memory_fault(id, address);
    }

    fn reset(&self) {
        self.model.events.raise_gpu_hang(gpu_id(self.index));
    }

    fn message(&self, text: &str) {
        log::message(&self.about(text));
        self.model.note(1, format_args!("message: {text}"));
    }

    fn log(&self, level: u8, text: Arguments<'_>) {
        self.model
            .note(level, format_args!("gpu {}: {text}", self.index));
    }
}
