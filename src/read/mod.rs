//! Reading: a load's sections, copied from the device and checked.

pub(crate) mod copied_memory;
pub(crate) mod counted;
mod error;
pub(crate) mod snapshot;

pub use error::ReadError;
