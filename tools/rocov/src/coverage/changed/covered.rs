//! The coverage of a change.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rocov::support::diagnostic::Diagnostic;

use crate::coverage::line::Line;

/// The coverage of a change.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// The name that the user gave to the change.
    pub(crate) base: String,
    /// The directory that the paths of the diff start from, if it is known.
    pub(crate) root: Option<PathBuf>,
    /// True if no line of any file was added or modified.
    pub(crate) is_empty: bool,
    /// The files with changed lines that have code.
    pub(crate) files: Vec<ChangedSource>,
    /// One line for each changed file that should be among them and is not, and for each whose lines
    /// are not those that were compiled.
    pub(crate) left_out: Vec<Diagnostic>,
    /// The sources that are left out because they have changed since they were compiled.
    pub(crate) stale: BTreeSet<Arc<str>>,
    /// One line for each that was matched with some doubt.
    pub(crate) doubts: Vec<Diagnostic>,
}

/// A changed file.
#[derive(Debug)]
pub(crate) struct ChangedSource {
    /// The path in the report.
    pub(crate) path: Arc<str>,
    /// The path in the diff, from the root of the repository on.
    pub(crate) name: String,
    /// The changed lines with code, with their counts in each column.
    pub(crate) lines: Vec<Line>,
}
