//! Settings that a user chooses with environment variables: words and their values.

mod counters;
mod drainer;
mod error;
mod keeping;
mod moments;
mod uncounted;
pub mod variables;

pub use crate::support::counting::Counting;
pub use drainer::Drainer;
pub use error::SettingError;
pub(crate) use error::refuse;
pub use keeping::{DocumentWhen, Keeping, ObjectsKept, parse_bytes};
pub use moments::{Interval, SnapshotSignal, parse_wait};
pub use uncounted::Uncounted;
pub use variables::{DefaultValue, Reader, SETTINGS, Setting};
