//! Data sets in a command that was built without the feature `fleet`: each use of one fails.

use std::fmt;
use std::str::FromStr;

/// The reason why a data set cannot be used.
pub(crate) const WITHOUT_DATA_SETS: &str = "this rocov was built without data sets: build it with `ROCOV_PARTS= cargo \
                                            install --path tools/rocov` in a clone of rocov";

/// No condition can be given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunCondition {}

impl FromStr for RunCondition {
    type Err = String;

    fn from_str(_: &str) -> Result<Self, String> {
        Err(WITHOUT_DATA_SETS.to_owned())
    }
}

impl fmt::Display for RunCondition {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
