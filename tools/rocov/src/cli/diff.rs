//! The command line of `rocov diff`.

use std::path::PathBuf;

use clap::Args;

use super::filters::Filters;

/// Compare the coverage of two data directories or reports
///
/// Prints totals of each arch and of all, files whose figures changed, lines newly covered and newly
/// missed, and functions that now run, no longer run, are new or are gone. The two may have been
/// compiled from different sources, in different directories: rocov knows a function by its symbol, and
/// compares its lines by their places in it if its regions begin and end on the same lines. If they do
/// not, the function has changed, and rocov compares only its figures. Line numbers are those of AFTER.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 if the comparison was printed; 1 if one of the two has nothing to compare or a tool \
failed; 2 for a usage error; 3 with --fail-on-loss if something was lost.")]
pub(crate) struct DiffArguments {
    /// The data directory of the earlier runs, or a file that `rocov report --json` wrote
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The data directory of the later runs, or a file that `rocov report --json` wrote
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    /// Look for device ELFs in these files too, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Take llvm-profdata and llvm-cov from this directory instead of looking for them
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,

    /// Fail when code that ran before and still exists does not run, or when an arch or a file that ran
    /// is gone
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
