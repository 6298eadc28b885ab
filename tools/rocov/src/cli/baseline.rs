//! The command line of `rocov baseline`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::DEFAULT_DATA_DIRECTORY;
use super::component_sources::ComponentSources;
use super::filters::Filters;
use crate::coverage::SourceGlobs;

/// The name of the file if the user gives none.
const FILE: &str = "rocov-baseline.json";

/// Store the current figures, for `rocov report --baseline` to compare with
///
/// Writes the figures of each arch, component and source to a small file that you can commit. With --update, figures
/// only rise. If a percentage is lower than before, and more code did not run, rocov prints a message and does not
/// change the file. Archs that are not in this report keep their figures and their date. Applies the options of
/// `[report]` in rocov.toml that it supports.
#[derive(Args)]
#[command(override_usage = "rocov baseline [DIR]... [OPTIONS]")]
#[command(after_help = "\
Exit status: 0 if the file was written; 1 if there is nothing to report, a tool failed, or the file exists and \
--update is not given; 2 for a usage error; 3 with --update if a figure would drop.")]
pub(crate) struct BaselineArguments {
    /// The directories that `rocov run` wrote to, or a file that `rocov report --json` wrote [default: rocov-data]
    #[arg(value_name = "DIR")]
    given: Vec<PathBuf>,

    /// The baseline file
    #[arg(
        short,
        long,
        visible_alias = "output-path",
        value_name = "FILE",
        default_value = FILE
    )]
    pub(crate) output: PathBuf,

    /// Raise the figures of an existing file
    #[arg(long)]
    pub(crate) update: bool,

    /// With --update, write lower figures, too
    #[arg(long, requires = "update")]
    pub(crate) allow_drop: bool,

    /// Store totals of the sources that match GLOB as a component with this name; can be repeated, even with the same
    /// NAME
    #[arg(long, value_name = "NAME=GLOB", help_heading = "Contents")]
    component_sources: Vec<ComponentSources>,

    /// Also look for device ELFs in these files, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Use llvm-profdata and llvm-cov from this directory for profiles with a raw version that rocov does not support
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) filters: Filters,
}

impl BaselineArguments {
    /// The data directories, or a report.
    pub(crate) fn inputs(&self) -> Vec<&Path> {
        match self.given.is_empty() {
            true => vec![Path::new(DEFAULT_DATA_DIRECTORY)],
            false => self.given.iter().map(PathBuf::as_path).collect(),
        }
    }

    /// The components, each with its name.
    ///
    /// # Errors
    ///
    /// Fails if one has no valid glob.
    pub(crate) fn source_components(&self) -> Result<Vec<(String, SourceGlobs)>> {
        ComponentSources::grouped(&self.component_sources)
    }
}
