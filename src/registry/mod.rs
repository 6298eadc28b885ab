//! The kernel-name registry: which code objects a process has loaded, where, and what is in them.
//!
//! A profile names functions, a trace kernel objects, a report needs device ELFs. All three are
//! known at the moment a code object is loaded; here they are kept together.

mod hex;
mod json;
mod lookup;
pub mod model;

pub use json::DocumentError;
