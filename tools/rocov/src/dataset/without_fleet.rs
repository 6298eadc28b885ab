//! Data sets in a command that was built without the feature `fleet`: each use of one fails.

use std::fmt;
use std::str::FromStr;

use rocov::support::diagnostic::{Diagnostic, diagnostic};

/// The reason why a data set cannot be used.
pub(crate) fn without_data_sets() -> Diagnostic {
    diagnostic!(
        "this rocov was built without support for data sets";
        "build it with `ROCOV_PARTS= cargo install --path tools/rocov` in a clone of rocov"
    )
}

/// No condition can be given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunCondition {}

impl FromStr for RunCondition {
    type Err = Diagnostic;

    fn from_str(_: &str) -> Result<Self, Diagnostic> {
        Err(without_data_sets())
    }
}

impl fmt::Display for RunCondition {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
