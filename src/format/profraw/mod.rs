//! The raw profile format: versions, reading, writing, adding up ([`Sum`]), adding to a file in place, and
//! sections of an unknown version ([`SavedSections`]).

mod count_kind;
mod counts;
mod error;
mod functions;
mod host_profile;
mod layout;
pub(crate) mod pool;
mod read;
mod records;
mod room;
mod saved_sections;
mod sum;
mod value_profile;
mod write;

pub use count_kind::{CountKind, MAX_COUNT};
pub use counts::Counts;
pub use error::{ProfileError, ValueProfileError};
pub use functions::{CountsByFunction, FunctionCounts};
pub use host_profile::HostProfile;
pub use layout::{RecordLayout, Version, VersionLayout, Word};
pub(crate) use pool::Pooled;
pub use read::{Header, RawProfile};
pub use records::RecordCount;
pub use saved_sections::{SavedSection, SavedSections};
pub use sum::Sum;
pub use value_profile::{ValueCount, ValueKind, ValueProfile};
pub use write::{Parts, encode};
