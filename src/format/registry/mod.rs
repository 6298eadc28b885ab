//! The registry document: the code objects that a process has loaded, their addresses, and their kernels.
//!
//! A profile names functions, a trace names kernel objects, and a report needs device ELFs. All three are
//! known when a code object is loaded. The registry keeps them together. [`model`] has the types of the
//! document, and [`Merged`] makes one document of many.

mod grouped;
mod groups;
mod hex;
mod json;
mod lookup;
mod merge;
pub mod model;
mod runs;

pub use grouped::Grouped;
pub use json::DocumentError;
pub use merge::Merged;
pub(crate) use merge::merge;
pub use runs::Runs;
