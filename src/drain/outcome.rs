//! The outcome of a pass, as a value.

use std::fmt;
use std::path::PathBuf;

use crate::device::DeviceError;
use crate::drain::error::Error;
use crate::format::sections::PerSection;
use crate::read::TraceError;
use crate::store::{KeepError, Label, OutputError};
use crate::support::diagnostic::{Diagnostic, Remedy, diagnostic};
use crate::validate::{CopiesError, RecordDefect};

/// The outcome of one pass.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The number of GPU agents.
    pub agents: usize,
    /// The number of examined pairs of code object and agent.
    pub pairs: usize,
    /// The number of them that the filter rejected.
    pub skipped: usize,
    /// The number of instrumented loads in this pass.
    pub found: usize,
    /// The copied bytes of each of them.
    pub copied: Vec<Copied>,
    /// The files that hold the counts of this pass.
    pub files: Vec<PathBuf>,
    /// The files that this pass has made under other names, because other processes have theirs.
    pub taken: Vec<Taken>,
    /// The losses and doubts of this pass.
    pub losses: Vec<Loss>,
    /// The files next to the profiles that could not be kept. This costs no counts.
    pub not_kept: Vec<KeepError>,
}

impl Outcome {
    /// Adds the outcome of another part of this pass.
    pub(super) fn absorb(&mut self, other: Self) {
        self.agents = self.agents.max(other.agents);
        self.pairs += other.pairs;
        self.losses.extend(other.losses);
        self.not_kept.extend(other.not_kept);
    }

    /// The number of code objects without any written counts, and of walks that broke off.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.losses
            .iter()
            .filter(|loss| matches!(loss.cause, Cause::Failed(_)))
            .count()
    }

    /// Returns whether counts were not written: all of a code object, or those of some copies.
    #[must_use]
    pub fn loses_counts(&self) -> bool {
        self.losses.iter().any(Loss::loses_counts)
    }
}

/// A file whose name another process has. That process keeps its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The name.
    pub path: PathBuf,
    /// The file that has the counts.
    pub place: PathBuf,
}

/// The copied bytes of one code object.
#[derive(Clone, Copy, Debug)]
pub struct Copied {
    /// The bytes of each section. For the records, only the good ones.
    pub sections: PerSection<usize>,
    /// The bytes of the copies of its counters.
    pub copies: u64,
}

/// A report about one code object.
#[derive(Debug)]
pub struct Loss {
    /// The URI of the code object, its identity and its agent.
    pub code_object: String,
    /// The event to report.
    pub cause: Cause,
}

/// The event to report about a code object.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// None of its counts were written.
    Failed(Error),
    /// One of its records was left out.
    Record(RecordDefect),
    /// This many more of its records were left out.
    MoreRecords(usize),
    /// Some data about the places of its sections is unusable, but they were found.
    Doubt(Error),
    /// Some copies of its counters were left out: its profile lacks their counts.
    Partial(CopiesError),
    /// Its executed instructions are not in its profile.
    Untraced(TraceError),
    /// Its tables could not be blanked ([`super::Session::blank_tables`]).
    Unblanked(Error),
    /// rocov could not add to the pool: its counts are in a file of this process's own.
    Beside {
        /// The reason.
        error: OutputError,
        /// The file.
        path: PathBuf,
    },
    /// Its counts for a label could not be written there: they go to its own profile.
    Unlabelled {
        /// The reason.
        error: Error,
        /// The label.
        label: Label,
    },
    /// No reader would accept a profile of it: its raw sections were saved.
    Saved {
        /// The reason.
        error: Error,
        /// The file.
        path: PathBuf,
    },
}

impl Loss {
    /// Returns whether counts were not written: all of a code object, or those of some copies.
    #[must_use]
    pub fn loses_counts(&self) -> bool {
        matches!(
            self.cause,
            Cause::Failed(_) | Cause::Partial(_) | Cause::Untraced(_)
        )
    }

    /// The line about counts that a later drain can still write: they are in the GPU's memory. `None` if this is no such
    /// loss. After a fault of a kernel, nothing can be read any more.
    #[must_use]
    pub fn not_yet(&self) -> Option<Diagnostic> {
        match &self.cause {
            Cause::Failed(Error::Device(DeviceError::Faulted { .. })) => None,
            Cause::Failed(error) => Some(diagnostic!(
                "{}: counts are not written yet: {error}", self.code_object;
                "rocov will try again at the next drain"
            )),
            _ => None,
        }
    }

    /// The message about this loss.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = match &self.cause {
            Cause::Failed(error) => error.diagnostic().within("counts are lost"),
            Cause::Record(defect) => diagnostic!("{defect}"; "build it again"),
            Cause::MoreRecords(1) => diagnostic!("… and 1 more record"; "build it again"),
            Cause::MoreRecords(more) => diagnostic!("… and {more} more records"; "build it again"),
            Cause::Doubt(error) => error.diagnostic(),
            Cause::Partial(error) => error.diagnostic().within("the profile is partial"),
            Cause::Untraced(error) => error
                .diagnostic()
                .within("its executed instructions are not counted"),
            Cause::Unblanked(error) => diagnostic!(
                "LLVM's own drain for HIP may write its counts, too: {error}";
                "remove these profiles"
            ),
            Cause::Beside { error, path } => diagnostic!(
                "{error}; the counts are in {}", path.display();
                "{}", error.step()
            ),
            Cause::Unlabelled { error, label } => diagnostic!(
                "{error}; the counts for the label {label} go to profiles without it";
                "{}", error.remedy()
            ),
            Cause::Saved { error, path } => diagnostic!(
                "{error}; its sections are saved in {}", path.display();
                "{}", error.remedy()
            ),
        };
        diagnostic.within(&self.code_object)
    }
}

/// The message about it, in one line.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostic().fmt(f)
    }
}
