//! Cubins: the ELFs of NVIDIA GPUs, with the profile data that clang puts into them.
//!
//! PTX has no sections of its own, so ptxas puts every variable into `.nv.global` (zeros) or `.nv.global.init`
//! (contents). The counters, records, names and coverage mapping of a cubin are symbols in there. [`laid_out`] makes
//! the ELF of it that a linker would have made for AMD GPUs, and the rest of rocov reads that.

mod elf;
mod layout;
mod linked;

use thiserror::Error;

pub use elf::is_instrumented;
pub use layout::{CountedVariable, LaidOut, laid_out};

/// `EM_CUDA`: the machine of NVIDIA GPUs.
pub(crate) const EM_CUDA: u16 = 190;

/// The reason why a cubin cannot be laid out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The ELF is damaged, or the bytes are no ELF.
    #[error("not a cubin: {0}")]
    Malformed(#[from] object::Error),
    /// The ELF is for another machine.
    #[error("not a cubin: ELF machine {found:#x}, expected {EM_CUDA:#x} (NVIDIA CUDA)")]
    WrongMachine {
        /// The `e_machine` field as found.
        found: u16,
    },
    /// The headers are not wholly in the file.
    #[error("the headers of the cubin are cut short")]
    Cut,
    /// A variable is not inside its section.
    #[error("{name} has {size} bytes at {value:#x} of a section of {section} bytes")]
    Outside {
        /// The variable.
        name: String,
        /// Its place in the section.
        value: u64,
        /// Its size in bytes.
        size: u64,
        /// The size of the section in bytes.
        section: u64,
    },
    /// A variable contains an address in an unknown form.
    #[error(
        "{name} has a relocation of type {found} at byte {at}, expected {allowed} (a 64-bit address)"
    )]
    Relocation {
        /// The variable.
        name: String,
        /// The place in the variable.
        at: u64,
        /// The type of the relocation.
        found: u32,
        /// The known types.
        allowed: &'static str,
    },
    /// A data record has an unknown size.
    #[error("{name} has {found} bytes, a data record has {allowed}")]
    Record {
        /// The variable.
        name: String,
        /// Its size in bytes.
        found: u64,
        /// The known sizes in bytes.
        allowed: &'static str,
    },
    /// The version word has an unknown size.
    #[error("{name} has {found} bytes, expected 8")]
    Version {
        /// The variable.
        name: String,
        /// Its size in bytes.
        found: u64,
    },
    /// The variables take more memory than those of any real program.
    #[error("the profile data of the cubin takes more than {max:#x} bytes")]
    Oversized {
        /// The most bytes that it may take.
        max: u64,
    },
    /// An allocation failed.
    #[error("no memory for the cubin: {bytes} bytes are needed")]
    NoMemory {
        /// The size of the allocation in bytes.
        bytes: u64,
    },
}
