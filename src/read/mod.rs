//! Reading: a load's sections, copied from the device, with all copies of its counters summed, and checked.

pub(crate) mod copied_memory;
pub(crate) mod counted;
mod counter_copies;
mod error;
pub(crate) mod inserted;
pub(crate) mod snapshot;
pub(crate) mod traced;

pub use error::ReadError;
pub use traced::TraceError;
