//! amdgcn code objects: ELF files as compilers write them and images as loaders place them.
//!
//! Deliberately independent of the library `rocov`, whose reader is what the modelled GPU helps
//! to test.

mod descriptor;
mod image;
mod load;
mod metadata;
mod msgpack;

pub(crate) use descriptor::KernelDescriptor;
pub use image::{CodeObjectName, KernelIdentity};
pub use load::{LoadError, LoadedObject, Symbol};
pub use metadata::{KernelMetadata, Parameter, ParameterKind};
