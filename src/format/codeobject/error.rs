//! The reasons why a code object cannot be read.

use std::borrow::Cow;

use object::elf::EM_AMDGPU;
use thiserror::Error;

use crate::format::codeobject::coverage_mapping::CoverageError;
use crate::format::codeobject::cuda::{CubinError, EM_CUDA};
use crate::support::diagnostic::Remedy;

/// The reason why bytes are not a code object.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodeObjectError {
    /// The ELF is damaged, or the bytes are not an ELF.
    #[error("not a code object: {0}")]
    Malformed(#[from] object::Error),
    /// The ELF is for another machine.
    #[error(
        "not a code object: ELF machine {found:#x}, expected {:#x} (AMDGPU) or {EM_CUDA:#x} (CUDA)",
        EM_AMDGPU.0
    )]
    WrongMachine {
        /// The `e_machine` field as found.
        found: u16,
    },
    /// The ELF has more program headers than a linker writes. All of them could name the same bytes.
    #[error("the code object has {found} program headers, at most {MAX_SEGMENTS} are allowed")]
    Segments {
        /// The number of program headers.
        found: usize,
    },
    /// Some parts share bytes with each other.
    #[error("the {parts} of the code object have {found} bytes, but the whole object has {len}")]
    Shared {
        /// The name of the parts.
        parts: &'static str,
        /// The bytes of all of them together.
        found: u64,
        /// The bytes of the file.
        len: u64,
    },
    /// An allocation failed.
    #[error("out of memory: the code object needs {bytes} bytes")]
    NoMemory {
        /// The size of the allocation in bytes.
        bytes: u64,
    },
    /// A segment is not wholly in the file, or its contents are longer than its memory.
    #[error("a segment of the code object is cut short")]
    Cut,
    /// A segment reaches too far.
    #[error("the code object needs more than {max:#x} bytes of memory")]
    Oversized {
        /// The most bytes of memory that it may take.
        max: u64,
    },
    /// Neither the metadata nor the ELF's flags name a known processor.
    #[error(
        "a code object for an unknown processor: ELF flags {found:#x}, expected those of a GCN GPU or a CUDA architecture"
    )]
    UnknownProcessor {
        /// The `e_flags` field as found.
        found: u32,
    },
    /// The variables of a cubin are damaged.
    #[error(transparent)]
    Cubin(#[from] CubinError),
    /// The metadata of its kernels is damaged or absent.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A kernel descriptor is damaged or absent.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// The coverage mapping is damaged.
    #[error(transparent)]
    Coverage(#[from] CoverageError),
}

impl Remedy for CodeObjectError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::NoMemory { .. } => "give the program more memory",
            _ => "build it again",
        })
    }
}

/// The most program headers that are allowed. lld writes a dozen for this machine.
pub(super) const MAX_SEGMENTS: usize = 256;

/// The error for a damaged kernel descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// No symbol names it.
    #[error("no kernel descriptor {symbol}: expected a symbol of that name in .dynsym")]
    Absent {
        /// The symbol that the metadata names.
        symbol: String,
    },
    /// It is not within its symbol's section.
    #[error(
        "kernel descriptor {symbol} at {address:#x}: expected {DESCRIPTOR_BYTES} bytes within its section, \
         which has {len} bytes from {start:#x}"
    )]
    Outside {
        /// The symbol.
        symbol: String,
        /// The ELF address of the symbol.
        address: u64,
        /// The ELF address of the section.
        start: u64,
        /// The number of the section's bytes that are in the file.
        len: usize,
    },
    /// The first instruction is not in an executable segment.
    #[error(
        "kernel descriptor {symbol}: entry {entry:#x}, expected an address in an executable segment"
    )]
    Entry {
        /// The symbol.
        symbol: String,
        /// The ELF address of the first instruction, as found.
        entry: u64,
    },
}

/// The size of a kernel descriptor in bytes.
pub(super) const DESCRIPTOR_BYTES: usize = 64;

/// The error for the metadata of a code object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// There is no note, or the code object has version 2.
    #[error("no AMDGPU metadata: expected a note `AMDGPU` of type 32")]
    Absent,
    /// The note ends too early.
    #[error("AMDGPU metadata is cut short after {len} bytes")]
    Cut {
        /// The size of the note in bytes.
        len: usize,
    },
    /// The note is not MessagePack.
    #[error("AMDGPU metadata of {len} bytes: found 0xc1 at byte {at}, expected a value")]
    NoValue {
        /// The size of the note in bytes.
        len: usize,
        /// The offset in the note.
        at: usize,
    },
    /// A field is missing or wrong.
    #[error("AMDGPU metadata of {of}: {key} is {found}, expected {expected}")]
    Field {
        /// The kernel, or the code object.
        of: String,
        /// The field, such as `.sgpr_count`.
        key: &'static str,
        /// The value as found.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
}
