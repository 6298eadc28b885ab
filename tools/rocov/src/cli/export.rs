//! The command line of `rocov export`.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use super::{DEFAULT_DATA_DIRECTORY, usage_error};
use crate::dataset::RunCondition;

/// The most bytes of a commit or of the name of a run.
const MAX_NAME: usize = 128;

/// Write kernels or counts for other tools
///
/// The format rocpd is the SQLite database of ROCm's rocprofv3, schema version 3, with the contents of the kernel
/// registries in DIR: nodes, processes, agents, code objects and kernel symbols. You can join it with a database that
/// rocprofv3 wrote, by URI and kernel name.
///
/// The format parquet adds the counts in each DIR, as a run, to a data set, which consists of tables that DuckDB, Spark
/// and others can read, for the runs of a fleet. A run that is already in the data set is not added again. `rocov
/// report`, `rocov which` and the format profraw read a data set. It is a directory or, if rocov was built with the
/// feature s3, s3://BUCKET/PREFIX in an object store.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0; 1 if nothing could be written, or if a registry or a run could not be read, although the rest is \
written; 2 for a usage error.")]
pub(crate) struct ExportArguments {
    /// The directory that `rocov run` wrote to (for parquet, one or several; for profraw, a data set)
    #[arg(value_name = "DIR", default_value = DEFAULT_DATA_DIRECTORY)]
    pub(crate) directories: Vec<PathBuf>,

    /// rocpd: a database of kernels. parquet: a data set of counts. profraw: raw profiles and device ELFs from a data
    /// set
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) format: ExportFormat,

    /// The file to write, or the directory or s3://BUCKET/PREFIX [default for rocpd: rocpd.db in DIR]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the file if it already exists
    #[arg(long)]
    pub(crate) force: bool,

    /// parquet: the commit that was tested [default: the commit of the current work tree]
    #[arg(long, value_name = "COMMIT", value_parser = name_of)]
    pub(crate) commit: Option<String>,

    /// parquet: the date of the runs [default: when their first process started, in UTC]
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = date)]
    pub(crate) date: Option<String>,

    /// parquet: the name of the run, such as the job's name [default: a hash of its processes]
    #[arg(long, value_name = "RUN", value_parser = name_of)]
    pub(crate) run: Option<String>,

    /// parquet: also look for device ELFs in these files, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// profraw: use only runs with this commit, arch, run or date, or from or up to a date (date>=2026-11-01);
    /// can be repeated
    #[arg(long = "where", value_name = "KEY=VALUE")]
    pub(crate) conditions: Vec<RunCondition>,
}

/// A file format of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// ROCm's database of a profile.
    Rocpd,
    /// A data set.
    Parquet,
    /// Raw profiles of a data set.
    Profraw,
}

impl ExportArguments {
    /// Ends the process with a usage error if options do not fit the format.
    pub(crate) fn check(&self) {
        let is = |format| self.format == format;
        let fail = |message: &str| {
            usage_error("export", ErrorKind::ArgumentConflict, message.to_owned());
        };
        let of_runs = self.commit.is_some()
            || self.date.is_some()
            || self.run.is_some()
            || !self.objects.is_empty();
        if of_runs && !is(ExportFormat::Parquet) {
            fail("--commit, --date, --run and --object are for --format parquet");
        }
        if !self.conditions.is_empty() && !is(ExportFormat::Profraw) {
            fail("--where is for --format profraw");
        }
        if self.force && !is(ExportFormat::Rocpd) {
            fail(
                "--force is for --format rocpd: a data set keeps its runs, and a directory of raw profiles is replaced",
            );
        }
        if self.run.is_some() && self.directories.len() > 1 {
            fail("--run names one run, but each DIR is one: name one DIR");
        }
        if self.output.is_none() && !is(ExportFormat::Rocpd) {
            fail("name the directory to write with -o DIR");
        }
        if self.directories.len() > 1 && !is(ExportFormat::Parquet) {
            fail("name one DIR, or use --format parquet");
        }
    }

    /// The first directory.
    pub(crate) fn directory(&self) -> &Path {
        let first = self.directories.first().map(PathBuf::as_path);
        first.unwrap_or(Path::new(DEFAULT_DATA_DIRECTORY))
    }
}

/// Reads the name of a commit or run, which is in paths.
fn name_of(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    let is_name = (1..=MAX_NAME).contains(&text.len())
        && text.bytes().all(is_allowed)
        && !text.starts_with('.');
    is_name.then(|| text.to_owned()).ok_or_else(|| {
        format!("use 1 to {MAX_NAME} of A-Z a-z 0-9 . _ - +, and do not start with a dot")
    })
}

/// Reads a date.
fn date(text: &str) -> Result<String, String> {
    let parts: Vec<_> = text.split('-').collect();
    let is_number = |digits: usize, range: std::ops::RangeInclusive<u32>, part: &str| {
        part.len() == digits && part.parse().is_ok_and(|number| range.contains(&number))
    };
    let is_date = matches!(parts[..], [year, month, day]
        if is_number(4, 1970..=9999, year) && is_number(2, 1..=12, month) && is_number(2, 1..=31, day));
    is_date
        .then(|| text.to_owned())
        .ok_or_else(|| "use a date such as 2026-11-24".to_owned())
}
