//! Tools that are independent of GPUs and profiles.

#[cfg(feature = "drain")]
pub mod backoff;
#[cfg(feature = "drain")]
pub mod clock;
pub mod counting;
pub mod diagnostic;
#[cfg(feature = "drain")]
pub mod file_part;
pub(crate) mod memory;
#[cfg(feature = "drain")]
pub mod own_memory;
#[cfg(feature = "drain")]
pub mod reserve;
#[cfg(feature = "drain")]
pub mod threads;
