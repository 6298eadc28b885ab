//! The command line of `rocov diff`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::slice;

use clap::Args;
use clap::error::ErrorKind;

use super::filters::Filters;
use super::usage_error;
use crate::data::labels::LabelPattern;

/// Compare the coverage of two data directories or reports, or of two labels of one directory
///
/// Prints the totals for each arch and for all of them, the files whose figures changed, the lines that are newly
/// covered and newly missed, and the functions that now run, no longer run, are new or are gone. The two sides may have
/// been compiled from different sources, in different directories. rocov identifies a function by its symbol. If its
/// regions begin and end on the same lines in both, rocov compares its lines by their position in the function. If they
/// do not, the function has changed, and rocov compares only its figures. Line numbers are those in AFTER.
#[derive(Args)]
#[command(override_usage = "rocov diff BEFORE AFTER [OPTIONS]\n       \
                            rocov diff DIR --label BEFORE --label AFTER [OPTIONS]")]
#[command(after_help = "\
Exit status: 0 if the comparison was printed; 1 if one of the two has nothing to compare or a tool \
failed; 2 for a usage error; 3 with --fail-on-loss if something was lost.")]
pub(crate) struct DiffArguments {
    /// The data directory of the earlier runs, or a file that `rocov report --json` wrote
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The data directory of the later runs, or a file that `rocov report --json` wrote
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,

    /// Use only the counts of this label, a name or a glob; can be repeated. Without AFTER, name two labels in BEFORE
    /// to compare
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<LabelPattern>,

    /// Also look for device ELFs in these files, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Use llvm-profdata and llvm-cov from this directory for profiles with a raw version that rocov does not support
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,

    /// Fail when code that ran before and still exists no longer runs, or when an arch or a file that ran is missing
    #[arg(long)]
    pub(crate) fail_on_loss: bool,

    /// Write JSON
    #[arg(long, help_heading = "Formats")]
    pub(crate) json: bool,

    /// Write Markdown, for a pull request or $GITHUB_STEP_SUMMARY
    #[arg(long, conflicts_with = "json", help_heading = "Formats")]
    pub(crate) markdown: bool,

    /// Write to FILE instead of standard output
    #[arg(
        short,
        long,
        visible_alias = "output-path",
        value_name = "FILE",
        help_heading = "Formats"
    )]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) filters: Filters,
}

/// A side of the comparison.
#[derive(Clone, Copy)]
pub(crate) struct DiffSide<'a> {
    pub(crate) path: &'a Path,
    /// The labels that it has the counts of; none for all counts.
    pub(crate) labels: &'a [LabelPattern],
}

impl DiffArguments {
    /// Before and after. Ends the process with a usage error if there is one directory and not two labels.
    pub(crate) fn sides(&self) -> [DiffSide<'_>; 2] {
        let side = |path, labels| DiffSide { path, labels };
        match (&self.after, &self.labels[..]) {
            (Some(after), labels) => [&self.before, after].map(|path| side(path, labels)),
            (None, [before, after]) => {
                [before, after].map(|label| side(&self.before, slice::from_ref(label)))
            }
            (None, _) => {
                let before = self.before.display();
                let message =
                    format!("{before} is compared with nothing: name AFTER, or two labels");
                usage_error("diff", ErrorKind::MissingRequiredArgument, message)
            }
        }
    }
}

/// The path, and the labels.
impl fmt::Display for DiffSide<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        for label in self.labels {
            write!(f, ", label {label}")?;
        }
        Ok(())
    }
}
