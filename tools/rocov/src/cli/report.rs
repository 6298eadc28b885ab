//! Reports.

use super::Cli;
use super::DEFAULT_DATA_DIRECTORY;
use crate::coverage::{Filters, Options, PathMap};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory};
use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Report which lines of the GPU code ran
///
/// Prints a table for each GPU architecture and, for several, of all, with the figures of llvm-cov. Each
/// DIR is searched with all directories in it: those of ranks or labels, and what `rocov merge` has
/// written. The device ELFs are those that librocov kept there when they were loaded, else those in the
/// objects that are given. Nothing is written to DIR.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 when a report was printed, also when it had to leave out a damaged profile, a source \
that is not there or what matches nothing, which standard error says; 1 when there was nothing to \
report or a tool failed; 2 for a usage error; 3 when a gate did not hold: then what had to be left \
out counts too.")]
pub(crate) struct ReportArguments {
    /// The directories that `rocov run` wrote to, or the program by its own `LLVM_PROFILE_FILE`
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directories: Vec<PathBuf>,

    /// Look in these files too: the program, libraries with kernels, or device ELFs (.hsaco,
    /// bundled or not)
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Print annotated source instead of the table, of all files or of these
    #[arg(
        long,
        value_name = "SOURCE",
        num_args = 0..,
        conflicts_with_all = ["include", "exclude"]
    )]
    pub(crate) show: Option<Vec<PathBuf>>,

    /// Take llvm-profdata and llvm-cov from this directory instead of looking for them
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,

    /// Say nothing on standard error but errors, and gates that do not hold
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) options: Options,
}

/// Say which tests reach a line, and how often
///
/// Tests are the labels that profiles have, as of `rocov run --label` or `--per-test`. FILE is a path
/// from here, or the end of the path of a source that is elsewhere.
#[derive(Args)]
#[command(override_usage = "rocov which FILE:LINE... [DIR] [OPTIONS]")]
#[command(after_help = "\
Exit status: 0, also when no test reaches the line; 1 when there is no such source or no GPU code on a \
line, which the answers for others do not suffer from, or nothing to report; 2 for a usage error.")]
pub(crate) struct WhichArguments {
    /// Lines of sources, and the directory that `rocov run` wrote to [default: rocov-data]
    #[arg(value_name = "FILE:LINE", required = true, num_args = 1..)]
    operands: Vec<Operand>,

    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Only this arch; can be repeated
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Vec<String>,

    /// Add up the runs of all builds of a program or library, not only those of the newest
    #[arg(long)]
    pub(crate) all_builds: bool,

    /// Sources that were in FROM when they were compiled are in TO; can be repeated
    #[arg(long, value_name = "FROM=TO")]
    pub(crate) path_map: Vec<PathMap>,

    /// Look for device ELFs in these files too, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Take llvm-profdata and llvm-cov from this directory instead of looking for them
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,
}

impl WhichArguments {
    /// The lines, at least one, and the data directory. Ends the process with a usage error where there
    /// is none, or are two directories.
    pub(crate) fn asked(&self) -> (Vec<&LineOfSource>, &Path) {
        let (mut lines, mut directories) = (Vec::new(), Vec::new());
        for operand in &self.operands {
            match operand {
                Operand::Line(line) => lines.push(line),
                Operand::Directory(path) => directories.push(path.as_path()),
            }
        }
        let wrong = |kind, message| {
            let mut cli = Cli::command();
            // So that it knows its name.
            cli.build();
            let which = cli.find_subcommand_mut("which");
            which
                .expect("it is this command")
                .error(kind, message)
                .exit()
        };
        match directories[..] {
            _ if lines.is_empty() => {
                let message = "no FILE:LINE is given: LINE is a number from 1";
                wrong(ErrorKind::MissingRequiredArgument, message.to_owned())
            }
            [] => (lines, Path::new(DEFAULT_DATA_DIRECTORY)),
            [directory] => (lines, directory),
            [first, second, ..] => {
                let [first, second] = [first, second].map(Path::display);
                let message = format!("neither {first} nor {second} is FILE:LINE, LINE from 1");
                wrong(ErrorKind::TooManyValues, message)
            }
        }
    }
}

/// A line of a source, or a directory.
#[derive(Clone, Debug)]
enum Operand {
    Line(LineOfSource),
    Directory(PathBuf),
}

impl FromStr for Operand {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let line = text.rsplit_once(':').and_then(|(file, line)| {
            let (file, line) = (file.into(), line.parse().ok()?);
            Some(LineOfSource { file, line })
        });
        Ok(line.map_or_else(|| Self::Directory(text.into()), Self::Line))
    }
}

/// A line of a source, by its number.
#[derive(Clone, Debug)]
pub(crate) struct LineOfSource {
    pub(crate) file: PathBuf,
    pub(crate) line: NonZeroU32,
}

impl fmt::Display for LineOfSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file.display(), self.line)
    }
}

/// Compare what ran in two data directories or reports: what was gained and what was lost
///
/// Totals of each arch and of all, files whose figures changed, lines newly covered and newly missed,
/// and functions that now run, no longer run, are new or are gone. The two may have been compiled from
/// different sources, in different directories: a function is known by its symbol, and its lines are
/// compared by their places in it where its regions begin and end on the same lines. Where they do
/// not, the function has changed, and its figures alone are compared. Lines have the numbers that
/// they have after.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 when the comparison was printed; 1 when one of the two has nothing to compare or a tool \
failed; 2 for a usage error; 3 with --fail-on-loss when something was lost.")]
pub(crate) struct DiffArguments {
    /// The data directory of the earlier runs, or what `rocov report --json` wrote of them
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The same of the later ones
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    /// Look for device ELFs in these files too, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Take llvm-profdata and llvm-cov from this directory instead of looking for them
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,

    /// Fail when what ran before and is still there does not run, or an arch or a file that ran is not
    /// there
    #[arg(long)]
    pub(crate) fail_on_loss: bool,

    /// Write JSON
    #[arg(long, help_heading = "Formats")]
    pub(crate) json: bool,

    /// Write Markdown, for a pull request or $GITHUB_STEP_SUMMARY
    #[arg(long, conflicts_with = "json", help_heading = "Formats")]
    pub(crate) markdown: bool,

    /// Write to FILE instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Formats")]
    pub(crate) output_path: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) filters: Filters,
}
