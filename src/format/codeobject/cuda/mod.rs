//! Code objects of NVIDIA GPUs: cubins.
//!
//! A cubin is an ELF for [`EM_CUDA`]. PTX has no sections, so clang's instrumentation is not in `__llvm_prf_data` and
//! its like, but in variables of its own, each with a symbol (LLVM's InstrProfData.inc has their names):
//!
//! | variable | contents | section |
//! |---|---|---|
//! | `__profc_NAME` | counters of a function | `.nv.global`, which has no bytes in the file |
//! | `__profbm_NAME` | MC/DC bitmap of a function | `.nv.global` |
//! | `__profd_NAME` | data record of a function | `.nv.global.init` |
//! | `__llvm_prf_nm` | names of all functions | `.nv.global.init` |
//! | `__covrec_HASH`, `__covrec_HASHu` | coverage mapping of a function | `.nv.global.init` |
//! | `__llvm_coverage_mapping` | list of source files of a unit | `.nv.global.init` |
//! | `__llvm_profile_raw_version`, `__rocov_raw_version` | version word | `.nv.global.init` |
//! | `__rocov_copies_table_UNIT` | table of copies, by rocov's plugin | `.nv.global.init` |
//!
//! The values of symbols count from the start of their section. Sections have no addresses: the driver places each
//! variable by itself, and returns its address by name.
//!
//! The sections `.rela.nv.global.init` or `.rel.nv.global.init` say which words are addresses of which variables. Their
//! types are [`ADDRESS_64`] and [`GENERIC_64`]. For global variables both are the address of 8 bytes, as PTX has one
//! address space for all but shared and local memory. nvlink names the types (R_CUDA_64 and R_CUDA_G64); what they do
//! was seen in cubins of ptxas 12.9 and 13.5.

mod error;
mod info;
mod kernels;
mod laid_out;
mod linked;
mod target;
mod variables;

pub use error::CubinError;
pub use laid_out::{
    CountedVariable, LaidOut, is_instrumented, laid_out, with_sections, without_code,
};
pub use target::rank;
pub(super) use target::runs_on;

/// The `e_machine` of a cubin (`EM_CUDA` in LLVM's BinaryFormat/ELF.h).
pub const EM_CUDA: u16 = 190;

/// The bytes of an ELF's header.
pub const ELF_HEADER: usize = 64;

/// The size of a cubin by its header: its tables are its last parts.
#[must_use]
pub fn file_size(header: &[u8; ELF_HEADER]) -> usize {
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default());
    let half = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    // e_phoff and e_phentsize, e_phnum; e_shoff and e_shentsize, e_shnum.
    let tables = [(32, 54), (40, 58)];
    let ends = tables.map(|(start, sizes)| {
        let bytes = half(sizes) * half(sizes + 2);
        word(start).saturating_add(bytes)
    });
    let end = ends[0].max(ends[1]).max(ELF_HEADER as u64);
    usize::try_from(end).unwrap_or(ELF_HEADER)
}

/// `R_CUDA_64`: a word of 8 bytes is the address of the symbol plus the addend.
pub const ADDRESS_64: u32 = 2;
/// `R_CUDA_G64`: a word of 8 bytes is the generic address of the symbol plus the addend. ptxas writes it for an
/// initializer `generic(SYMBOL)`, which clang writes for every pointer.
pub const GENERIC_64: u32 = 4;
