//! Tools that know nothing of GPUs or profiles.

#[cfg(feature = "drain")]
pub mod backoff;
#[cfg(feature = "drain")]
pub mod clock;
pub(crate) mod memory;
