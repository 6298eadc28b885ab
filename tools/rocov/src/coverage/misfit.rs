//! The reasons why a source cannot be shown as it was compiled.

use std::fmt;

use super::function::Place;
use super::hiprtc;

/// The reason why a source cannot be shown as it was compiled.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// The source does not exist.
    Missing,
    Stale(Stale),
}

/// A source has changed since it was compiled: at this place code starts or ends, and the source has
/// none.
#[derive(Debug)]
pub(crate) struct Stale {
    pub(super) place: Place,
    pub(super) is_end: bool,
}

impl Misfit {
    /// A line about the source, with what to do next.
    pub(crate) fn about(&self, path: impl fmt::Display) -> String {
        match self {
            Self::Missing if hiprtc::is_temporary(&path.to_string()) => format!(
                "{path}: hipRTC compiled the source from memory, and the code object has no text of it: give hipRTC the options that `rocov flags --hiprtc` prints; a trace needs only -gline-tables-only and -gembed-source"
            ),
            Self::Missing => format!(
                "{path}: the source does not exist: put it back, give its place with --path-map, or take it from git with --source-revision"
            ),
            Self::Stale(stale) => format!(
                "{path}: stale: {stale}: take it from git with --source-revision, or build and run it again"
            ),
        }
    }

    /// The place that shows that the source has changed, if it has.
    pub(crate) fn stale(&self) -> Option<&Stale> {
        match self {
            Self::Missing => None,
            Self::Stale(stale) => Some(stale),
        }
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = if self.is_end { "ends" } else { "starts" };
        let Place { line, column } = self.place;
        write!(
            out,
            "it has changed since it was compiled (no code {does} at line {line}, column {column})"
        )
    }
}
