//! Code objects: ELFs of AMD's and NVIDIA's GPUs, their identities, and their data about kernels.

mod counter_updates;
mod coverage_mapping;
pub mod cuda;
mod descriptor;
mod elf;
mod error;
mod functions;
mod identity;
mod kernel;
mod kernel_sources;
mod metadata;
pub(in crate::format) mod msgpack;
mod openmp;
mod segments;
mod target;
mod uri;

pub use coverage_mapping::{
    Counter, CoverageError, Expression, MappedFunction, MappedRegion, RegionKind, SourcePlace,
    mapped_functions,
};
pub use elf::{CodeObject, ElfRange, ElfSection, ProfileSections};
pub use error::{CodeObjectError, DescriptorError, MetadataError};
pub use functions::FunctionCode;
pub use identity::{Identity, sanitize_target};
pub use kernel::Kernel;
pub use kernel_sources::name_ref;
pub use openmp::{TARGET_REGION, without_host_functions};
pub use target::{is_generic, is_processor, processor_of_version, runs_on};
pub use uri::FileUri;
pub(crate) use uri::percent_decode;
