//! The command line: the arguments that a user can type, and the help texts.

mod baseline;
mod clean;
mod comment;
mod component_sources;
mod diff;
mod doctor;
mod dump;
mod exclusions;
mod export;
mod extract;
mod filters;
mod flags;
mod formats;
mod gates;
mod gpu;
mod kernels;
mod merge;
mod packaging;
mod pass;
pub(crate) mod project_file;
mod query;
mod report;
mod run;
mod selftest;
mod show;
mod status;
pub(crate) mod tips;
mod which;

pub(crate) use baseline::BaselineArguments;
pub(crate) use clean::CleanArguments;
pub(crate) use comment::CommentArguments;
pub(crate) use diff::{DiffArguments, DiffSide};
pub(crate) use doctor::DoctorArguments;
pub(crate) use dump::DumpArguments;
pub(crate) use export::{ExportArguments, ExportFormat};
pub(crate) use extract::ExtractArguments;
pub(crate) use flags::{Counters, FlagsArguments, Hiprtc};
pub(crate) use formats::Output;
pub(crate) use gpu::ModelGpus;
pub(crate) use kernels::{Address, KernelColumn, KernelsArguments};
pub(crate) use merge::{FailureMode, IfExists, MergeArguments, ShardNumber};
pub(crate) use packaging::{CompletionsArguments, ManArguments};
pub(crate) use pass::{PassArguments, PassBuildArguments, PassCommand};
#[cfg(feature = "query")]
pub(crate) use query::AnswerFormat;
pub(crate) use query::QueryArguments;
pub(crate) use report::{ReportArguments, ReportOptions};
pub(crate) use run::{InstrumentCounters, PerTestKind, RunArguments, USUAL_CONTROL};
pub(crate) use selftest::SelftestArguments;
pub(crate) use show::ShowArguments;
pub(crate) use status::StatusArguments;
pub(crate) use which::{LineOfSource, WhichArguments};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

/// The data directory if the user gives none.
pub(crate) const DEFAULT_DATA_DIRECTORY: &str = "rocov-data";

/// Coverage of GPU code: which lines of a HIP program's kernels ran.
#[derive(Parser)]
#[command(name = "rocov", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Dump(DumpArguments),
    Status(StatusArguments),
    Report(Box<ReportArguments>),
    Which(WhichArguments),
    Query(QueryArguments),
    Diff(DiffArguments),
    Baseline(BaselineArguments),
    Comment(CommentArguments),
    Merge(MergeArguments),
    Kernels(KernelsArguments),
    Export(ExportArguments),
    Clean(CleanArguments),
    Extract(ExtractArguments),
    Show(ShowArguments),
    Flags(FlagsArguments),
    Pass(PassArguments),
    Doctor(DoctorArguments),
    Selftest(SelftestArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Reads the number of a process.
fn process_id(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| {
        format!("a process id is a number; `pgrep -x {word}` prints that of a program by its name")
    })
}

/// Ends the process with a usage error of a subcommand.
fn usage_error(subcommand: &str, kind: ErrorKind, message: String) -> ! {
    wrong_usage(subcommand, kind, message).exit()
}

/// A usage error of a subcommand.
fn wrong_usage(subcommand: &str, kind: ErrorKind, message: String) -> clap::Error {
    let mut cli = Cli::command();
    // So that the subcommand prints its full name.
    cli.build();
    let subcommand = cli.find_subcommand_mut(subcommand);
    let subcommand = subcommand.expect("it is the one that runs");
    subcommand.error(kind, message)
}
