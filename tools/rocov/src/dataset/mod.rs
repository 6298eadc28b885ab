//! Profiles and coverage into the rows of a [data set](rocov_fleet), and back.
//!
//! ```text
//! code: rows of a code object -> import: rows of a run -> back: raw profiles again
//! ```

mod back;
mod code;
mod import;

pub(crate) use rocov_fleet::{DataSet, RunCondition};

pub(crate) use self::back::{DataSetInputs, Taken, pool};
pub(crate) use self::import::{ImportOptions, import};
