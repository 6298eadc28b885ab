//! The command line: what a user can type, and the help texts.

mod control;
mod launch;
mod look;
mod merge;
mod report;

pub(crate) use self::control::{DumpArguments, StatusArguments};
pub(crate) use self::launch::{DoctorArguments, FlagsArguments, RunArguments, USUAL_CONTROL};
pub(crate) use self::look::{
    CleanArguments, ExportArguments, ExtractArguments, Format, KernelsArguments, ShowArguments,
};
pub(crate) use self::merge::{FailureMode, MergeArguments};
pub(crate) use self::report::{DiffArguments, LineOfSource, ReportArguments, WhichArguments};
use crate::generated::{CompletionsArguments, ManArguments};
use clap::{Parser, Subcommand};

/// Where profiles go and are looked for when no directory is given.
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
    Diff(DiffArguments),
    Merge(MergeArguments),
    Kernels(KernelsArguments),
    Export(ExportArguments),
    Clean(CleanArguments),
    Extract(ExtractArguments),
    Show(ShowArguments),
    Flags(FlagsArguments),
    Doctor(DoctorArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}
