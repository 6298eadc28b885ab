//! What a pass did, as a value.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;
use crate::output::{Label, OutputError};
use crate::registry::KeepError;
use crate::sections::RecordDefect;

/// What one pass did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// GPU agents.
    pub agents: usize,
    /// Pairs of code object and agent that were looked at in this pass.
    pub pairs: usize,
    /// Those of them that the filter kept out, unseen.
    pub skipped: usize,
    /// Instrumented loads in this pass.
    pub found: usize,
    /// What was copied from the device for each of them.
    pub copied: Vec<Copied>,
    /// Files that hold what this pass read.
    pub files: Vec<PathBuf>,
    /// What is missing from the files, or was doubtful.
    pub losses: Vec<Loss>,
    /// What could not be kept beside the files. No counts are lost by it.
    pub not_kept: Vec<KeepError>,
}

impl Outcome {
    /// Adds what another part of the same pass did.
    pub(super) fn absorb(&mut self, other: Outcome) {
        self.agents = self.agents.max(other.agents);
        self.pairs += other.pairs;
        self.losses.extend(other.losses);
        self.not_kept.extend(other.not_kept);
    }

    /// Code objects of which nothing was written, and walks that broke off.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.losses
            .iter()
            .filter(|loss| matches!(loss.cause, Cause::Failed(_)))
            .count()
    }
}

/// Sizes in bytes of the sections that were copied for one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Counters.
    pub counters: usize,
    /// Data records.
    pub data: usize,
    /// Function names.
    pub names: usize,
    /// Uniform counters, from raw version 11 on.
    pub uniform: usize,
}

/// Something that is to be said of one code object.
#[derive(Debug)]
pub struct Loss {
    /// Where the code object came from, its identity, and on which agent it is.
    pub code_object: String,
    /// What happened.
    pub cause: Cause,
}

/// What is to be said of a code object.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing of it was written.
    Failed(Error),
    /// One record of it was left out.
    Record(RecordDefect),
    /// This many more records of it were left out.
    MoreRecords(usize),
    /// What says where its sections are is in part unusable; all the same they were found.
    Doubt(Error),
    /// Its tables could not be blanked ([`super::Session::blank_tables`]).
    Unblanked(Error),
    /// The pool could not be added to: its counts are in a file of this process's own.
    Beside {
        /// Why.
        error: OutputError,
        /// The file.
        path: PathBuf,
    },
    /// What it counted for a label could not be written there: it goes to its own profile.
    Unlabelled {
        /// Why.
        error: Error,
        /// The label.
        label: Label,
    },
    /// No reader would take a profile of it: its sections were saved as they are.
    Saved {
        /// Why.
        error: Error,
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code_object)?;
        match &self.cause {
            Cause::Failed(error) => write!(f, "counts are lost: {error}"),
            Cause::Record(defect) => defect.fmt(f),
            Cause::MoreRecords(1) => f.write_str("… and 1 more record"),
            Cause::MoreRecords(more) => write!(f, "… and {more} more records"),
            Cause::Doubt(error) => error.fmt(f),
            Cause::Unblanked(error) => write!(
                f,
                "LLVM's own drain for HIP may write its counts, too: {error}"
            ),
            Cause::Beside { error, path } => {
                write!(f, "{error}; the counts are in {}", path.display())
            }
            Cause::Unlabelled { error, label } => write!(
                f,
                "{error}; what was counted for the label {label} goes to profiles without it"
            ),
            Cause::Saved { error, path } => {
                write!(f, "{error}; its sections are saved in {}", path.display())
            }
        }
    }
}
