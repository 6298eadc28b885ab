//! The reasons why a dispatch ends early, in the words that a user sees.

use std::fmt;

use modelgpu_isa::File;

use crate::code_object::SourceLine;
use crate::wave::MAX_SCRATCH;

/// The reason why a dispatch did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// An instruction could not be executed.
    #[error("{site}: {fault}")]
    Fault {
        /// The place of the instruction.
        site: Box<Site>,
        /// The mistake, or the feature that is not modelled.
        fault: Fault,
    },
    /// The packet or the kernel descriptor asks for a launch that is not possible.
    #[error("kernel {kernel}: {reason}")]
    Launch {
        /// The kernel. If its name is unknown, the address of its descriptor.
        kernel: String,
        /// The problem, with the bad value.
        reason: LaunchProblem,
    },
    /// The dispatch was cancelled because its queue was destroyed.
    #[error("the dispatch was cancelled")]
    Cancelled,
}

impl DispatchError {
    /// Returns whether the GPU would raise a memory exception event for this fault.
    pub fn is_memory_fault(&self) -> bool {
        self.fault_address().is_some()
    }

    /// The device address that could not be accessed; `None` for faults without an address.
    pub fn fault_address(&self) -> Option<u64> {
        match self {
            Self::Fault { fault, .. } => fault.address(),
            Self::Launch { reason, .. } => match reason {
                LaunchProblem::UnreadableDescriptor { address } => Some(*address),
                _ => None,
            },
            Self::Cancelled => None,
        }
    }
}

/// The place in the program where a fault happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The kernel's name as in the code object's symbol table (mangled), without `.kd`.
    pub kernel: String,
    /// The code object, as [`crate::code_object::CodeObjectName`] prints it.
    pub code_object: String,
    /// Device address of the instruction.
    pub pc: u64,
    /// The instruction's offset in the code object, as a disassembly of the ELF file prints it.
    /// `None` if it is unknown.
    pub offset: Option<u64>,
    /// The source line of the instruction, if the code object's file is known and has debug information.
    pub source: Option<SourceLine>,
    /// The workgroup's coordinates in the grid.
    pub workgroup: [u32; 3],
    /// The wave's number in its workgroup.
    pub wave: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(
            f,
            "kernel {}, workgroup ({x}, {y}, {z}), wave {}, pc {:#x}",
            self.kernel, self.wave, self.pc
        )?;
        if let Some(offset) = self.offset {
            write!(f, " (offset {offset:#x})")?;
        }
        write!(f, " of {}", self.code_object)?;
        match &self.source {
            Some(source) => write!(f, ", at {source}"),
            None => Ok(()),
        }
    }
}

/// A kernel's mistake, or a feature that the interpreter does not model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The instruction, or the form of it that the program uses, is not modelled.
    #[error("the instruction {mnemonic} is not modelled{}", detail.map(|d| format!(" with {d}")).unwrap_or_default())]
    Unmodelled {
        /// The instruction's mnemonic, without an encoding suffix such as `_e64`.
        mnemonic: &'static str,
        /// The operand or modifier that is not modelled, if the plain instruction is modelled.
        detail: Option<&'static str>,
    },
    /// The model refuses the instruction on purpose.
    #[error("the instruction {mnemonic} is not modelled: it {reason}")]
    Refused {
        /// The instruction's mnemonic, without an encoding suffix such as `_e64`.
        mnemonic: &'static str,
        /// The ability that the model lacks, as the end of a sentence about the instruction.
        reason: &'static str,
    },
    /// The bytes do not encode an instruction of this processor.
    #[error("illegal instruction: {:#010x} {:#010x} is no {target} instruction", words[0], words[1])]
    IllegalInstruction {
        /// The two dwords at the program counter.
        words: [u32; 2],
        /// The processor's name.
        target: &'static str,
    },
    /// The program counter left mapped memory or is not a multiple of 4.
    #[error("instruction fetch from an unmapped or misaligned address")]
    Fetch {
        /// The program counter.
        address: u64,
    },
    /// An access outside of mapped or allotted memory.
    #[error("{mnemonic}: out-of-bounds {access} of {size} bytes at {space} address {address:#x}{}",
        limit.map(|limit| format!(" ({limit:#x} bytes are allotted)")).unwrap_or_default() + &by_lane(*lane))]
    OutOfBounds {
        /// The instruction that accessed memory.
        mnemonic: &'static str,
        /// The kind of memory.
        space: Space,
        /// Read, write or atomic.
        access: Access,
        /// Bytes accessed at once.
        size: u64,
        /// A device address for global memory; otherwise an offset.
        address: u64,
        /// Size of a work-item's scratch in bytes.
        limit: Option<u64>,
        /// The lane of the wave; `None` for a scalar access.
        lane: Option<u8>,
    },
    /// A register that the kernel's descriptor does not allot to its waves.
    #[error("{mnemonic}: {} is beyond the {allotted} {} that the kernel's descriptor allots; raise {} to {needed} or more",
        register(*file, needed - 1), files(*file).0, files(*file).1)]
    BeyondRegisters {
        /// The instruction.
        mnemonic: &'static str,
        /// The kind of register.
        file: File,
        /// The number of registers that the instruction needs.
        needed: u16,
        /// The number that a wave has.
        allotted: u16,
    },
    /// An atomic whose address is not a multiple of its size.
    #[error("{mnemonic}: misaligned atomic of {size} bytes at address {address:#x}{}", by_lane(*lane))]
    MisalignedAtomic {
        /// The instruction.
        mnemonic: &'static str,
        /// Its size in bytes.
        size: u64,
        /// Its address.
        address: u64,
        /// The lane of the wave; `None` for a scalar access.
        lane: Option<u8>,
    },
    /// `s_trap`: the program stopped itself (`__builtin_trap`, `abort`, a failed assertion).
    #[error("s_trap {number}{}: the kernel aborted itself", by_lane(*lane))]
    Trap {
        /// The number in the instruction.
        number: u16,
        /// The first active lane of the wave.
        lane: Option<u8>,
    },
}

impl Fault {
    fn address(&self) -> Option<u64> {
        match self {
            Self::OutOfBounds { address, .. }
            | Self::MisalignedAtomic { address, .. }
            | Self::Fetch { address } => Some(*address),
            _ => None,
        }
    }
}

/// The name of a register.
fn register(file: File, number: u16) -> String {
    let prefix = match file {
        File::Scalar => 's',
        File::Vector => 'v',
        File::Accumulator => 'a',
    };
    format!("{prefix}{number}")
}

/// The name of a kind of registers, and the assembler's directive for their number.
fn files(file: File) -> (&'static str, &'static str) {
    match file {
        File::Scalar => ("SGPRs", ".amdhsa_next_free_sgpr"),
        File::Vector => ("VGPRs", ".amdhsa_next_free_vgpr or .amdhsa_accum_offset"),
        File::Accumulator => ("accumulation VGPRs", ".amdhsa_next_free_vgpr"),
    }
}

/// The end of a message about a lane.
fn by_lane(lane: Option<u8>) -> String {
    lane.map(|lane| format!(" by lane {lane}"))
        .unwrap_or_default()
}

/// The kinds of memory that an instruction addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The GPU's virtual address space.
    Global,
    /// The workgroup's local data share.
    Lds,
    /// The work-item's private memory.
    Scratch,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Lds => "LDS",
            Self::Scratch => "scratch",
        })
    }
}

/// The direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write.
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic",
        })
    }
}

/// The reason why a kernel could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchProblem {
    /// The kernel object is not in mapped memory.
    #[error("its descriptor at {address:#x} is not mapped")]
    UnreadableDescriptor {
        /// The packet's `kernel_object`.
        address: u64,
    },
    /// The packet's workgroup is empty or too large.
    #[error("a workgroup of {} x {} x {} work-items; 1 to 1024 are possible", .0[0], .0[1], .0[2])]
    WorkgroupSize(
        /// The packet's workgroup size.
        [u32; 3],
    ),
    /// The packet's grid is empty in some dimension.
    #[error("a grid of {} x {} x {} work-items", .0[0], .0[1], .0[2])]
    GridSize(
        /// The packet's grid size.
        [u32; 3],
    ),
    /// More LDS than a workgroup can have.
    #[error("{size} bytes of LDS; at most {limit} are possible")]
    LdsSize {
        /// The packet's group segment size in bytes.
        size: u32,
        /// The most bytes on the target.
        limit: u32,
    },
    /// More scratch than the interpreter models.
    #[error("{0} bytes of scratch per work-item; at most {max} are possible", max = MAX_SCRATCH)]
    ScratchSize(
        /// Bytes per work-item.
        u64,
    ),
    /// The kernel descriptor sets a rounding mode other than nearest even.
    #[error("rounding mode {0:#x} is not modelled; only 0, to nearest even, is")]
    RoundingMode(
        /// The FLOAT_ROUND_MODE fields of COMPUTE_PGM_RSRC1.
        u32,
    ),
}
