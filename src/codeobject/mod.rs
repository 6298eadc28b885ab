//! Device code as files: amdgcn ELFs, what identifies them, and the bundles that carry them.

pub mod bundle;
mod coverage;
mod descriptor;
mod elf;
mod functions;
mod identity;
mod kernel;
mod memory;
mod metadata;
mod msgpack;
mod target;
mod unpack;
mod uri;

pub use coverage::CoverageError;
pub(crate) use coverage::uleb128;
pub use descriptor::DescriptorError;
pub use elf::{CodeObject, CodeObjectError, ElfRange, ProfileSections, Section};
pub use identity::{Identity, file_name, sanitize_target};
pub use kernel::Kernel;
pub use metadata::MetadataError;
pub use target::{is_generic, processor_of_version, runs_on};
pub(crate) use unpack::Inflate;
pub use uri::FileUri;
pub(crate) use uri::percent_decode;
