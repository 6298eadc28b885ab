//! The kernel-name registry: which code objects a process has loaded, where, and what is in them.
//!
//! A profile names functions, a trace kernel objects, a report needs device ELFs. All three are
//! known at the moment a code object is loaded; here they are kept together.
//!
//! [`Registry`] is the record of a running process, [`model`] the document that it becomes.
//! [`Keeper`] writes that beside the profiles, and keeps device ELFs there.

pub mod clock;
mod document;
mod hex;
mod json;
mod keeper;
mod lookup;
pub mod model;
mod objects;
mod places;
mod pool;
mod record;
mod settings;

pub use document::Process;
pub use json::DocumentError;
pub use keeper::{KeepError, Keeper};
pub use pool::Merged;
pub use record::{Loaded, NeverLoaded, Registry, Resolved};
pub(crate) use settings::refuse;
pub use settings::{DocumentWhen, Keeping, ObjectsKept, SettingError, parse_bytes};
