//! Device code as files: amdgcn ELFs, what identifies them, and the bundles that carry them.

pub mod bundle;
mod elf;
mod identity;
mod kernel;
mod uri;

pub use elf::{CodeObject, CodeObjectError, ElfRange, ProfileSections};
pub use identity::{Identity, file_name, sanitize_target};
pub use kernel::Kernel;
pub use uri::FileUri;
