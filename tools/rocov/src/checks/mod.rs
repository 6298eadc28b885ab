//! Checks of this machine and of programs for coverage of GPU code.
//!
//! Each check is a function that returns [`Finding`](finding::Finding)s and prints nothing. [`runtime`] looks for the
//! libraries that programs run on, [`gpu`] and [`nvidia`] for GPUs, and [`compiler`] for compilers and LLVM's tools.
//! [`environment`] checks the variables that `rocov run` would pass on, and [`binary`] looks into programs. On a half
//! installed system these checks return findings, not errors.

pub(crate) mod binary;
mod compiled_later;
pub(crate) mod compiler;
pub(crate) mod environment;
pub(crate) mod finding;
pub(crate) mod gpu;
mod host_elf;
pub(crate) mod nvidia;
pub(crate) mod runtime;
mod shared_library;
