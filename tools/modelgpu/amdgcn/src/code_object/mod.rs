//! amdgcn code objects: ELF files as compilers write them and images as loaders place them.
//!
//! This reader does not use the library `rocov`, because the modelled GPU helps to test that
//! library's reader.

mod descriptor;
mod image;
mod load;
mod metadata;
mod placed;
mod source;

pub(crate) use descriptor::KernelDescriptor;
pub use image::{CodeObjectName, KernelIdentity};
pub use load::{LoadError, LoadedObject, Symbol};
pub use metadata::{KernelMetadata, Parameter, ParameterKind};
pub use placed::{CodeSection, Origin, PlacedCode, entry_of, start_of_code};
pub use source::{Files, SourceLine};
