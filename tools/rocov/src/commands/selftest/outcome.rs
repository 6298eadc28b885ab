//! The outcome of steps: one that holds prints its line at once, and the first wrong one ends the test.

use std::fmt::{self, Display};

use anyhow::{Error, Result};

use crate::support::printable::printable;
use crate::term::print;

/// A wrong step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) step: &'static str,
    /// The state that the step found.
    pub(super) found: String,
    pub(super) expected: String,
    /// The next step for the user.
    pub(super) remedy: String,
}

/// Displays it in lines like those of `rocov doctor`.
impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, .. } = self;
        writeln!(f, "WRONG    {step}: {}", printable(&self.found))?;
        writeln!(f, "         expected: {}", printable(&self.expected))?;
        writeln!(f, "         -> {}", printable(&self.remedy))
    }
}

/// The reason why the test ended early.
pub(super) enum Stopped {
    /// A step is wrong.
    Wrong(Wrong),
    /// rocov cannot test, for example because it cannot write a file.
    Failed(Error),
}

impl From<Wrong> for Stopped {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Prints the line of a step that holds.
///
/// # Errors
///
/// Fails if it cannot be printed.
pub(super) fn holds(step: &str, found: impl Display) -> Result<()> {
    let line = format!("ok       {step}: {}\n", printable(&found.to_string()));
    print::text(line.as_bytes())
}
