//! Reading: a load's sections, copied from the device and checked.

pub(crate) mod copies;
pub(crate) mod counted;
mod error;
pub(crate) mod snapshot;

pub use error::ReadError;
