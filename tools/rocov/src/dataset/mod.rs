//! Profiles and coverage into the rows of a [data set](rocov_fleet), and back.
//!
//! ```text
//! code: rows of a code object -> import: rows of a run -> back: raw profiles again -> inputs: of a report
//! ```

#[cfg(feature = "fleet")]
mod back;
#[cfg(feature = "fleet")]
mod code;
#[cfg(feature = "fleet")]
mod import;
mod inputs;
#[cfg(not(feature = "fleet"))]
mod without_fleet;

#[cfg(feature = "fleet")]
pub(crate) use self::back::{Taken, pool};
#[cfg(feature = "fleet")]
pub(crate) use self::import::{ImportOptions, import};
pub(crate) use self::inputs::DataSetInputs;
#[cfg(not(feature = "fleet"))]
pub(crate) use self::without_fleet::{RunCondition, without_data_sets};
#[cfg(feature = "fleet")]
pub(crate) use rocov_fleet::{DataSet, RunCondition};
