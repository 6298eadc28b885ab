//! The command line of `rocov which`.

use std::convert::Infallible;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use clap::error::ErrorKind;

use super::exclusions::ExclusionArguments;
use super::filters::MovedSources;
use super::{DEFAULT_DATA_DIRECTORY, usage_error};
use crate::dataset::RunCondition;

/// List the tests that reach a line, with their counts
///
/// Tests are the labels of profiles, from `rocov run --label` or `--per-test`. FILE is a relative path or, for a source
/// elsewhere, the last part of its path. A column number after LINE, as editors write it, is ignored. If reports
/// exclude the line, the answer also contains the reason. The exclusions in the table `[report]` of rocov.toml apply.
#[derive(Args)]
#[command(override_usage = "rocov which FILE:LINE... [DIR] [OPTIONS]")]
#[command(after_help = "\
Exit status: 0, even if no test reaches the line; 1 if there is nothing to report, or if a source does not exist \
or a line has no GPU code, although the other lines are reported; 2 for a usage error.")]
pub(crate) struct WhichArguments {
    /// Lines of sources, and the directory that `rocov run` wrote to [default: rocov-data]
    #[arg(value_name = "FILE:LINE", required = true, num_args = 1..)]
    operands: Vec<Operand>,

    /// Use only runs in a data set with this commit, arch, run or date, or from or up to a date
    /// (date>=2026-11-01); can be repeated
    #[arg(long = "where", value_name = "KEY=VALUE")]
    pub(crate) conditions: Vec<RunCondition>,

    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Report only this arch; can be repeated
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Vec<String>,

    /// Add up the runs of all builds of a program or library, not only those of the newest
    #[arg(long)]
    pub(crate) all_builds: bool,

    #[command(flatten)]
    pub(crate) exclusions: ExclusionArguments,

    #[command(flatten)]
    pub(crate) moved: MovedSources,

    /// Also look for device ELFs in these files, as `rocov report` does
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Use llvm-profdata and llvm-cov from this directory for profiles with a raw version that rocov does not support
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,
}

impl WhichArguments {
    /// The lines, at least one, and the data directory. Ends the process with a usage error if there is
    /// no line, or there are two directories.
    pub(crate) fn asked(&self) -> (Vec<&LineOfSource>, &Path) {
        let (mut lines, mut directories) = (Vec::new(), Vec::new());
        for operand in &self.operands {
            match operand {
                Operand::Line(line) => lines.push(line),
                Operand::Directory(path) => directories.push(path.as_path()),
            }
        }
        match directories[..] {
            _ if lines.is_empty() => {
                let message = no_line(&directories);
                usage_error("which", ErrorKind::MissingRequiredArgument, message)
            }
            [] => (lines, Path::new(DEFAULT_DATA_DIRECTORY)),
            [directory] => (lines, directory),
            [first, second, ..] => {
                let [first, second] = [first, second].map(Path::display);
                let message =
                    format!("neither {first} nor {second} is FILE:LINE: add LINE, a number from 1");
                usage_error("which", ErrorKind::TooManyValues, message)
            }
        }
    }
}

/// The error that none of the operands is a line. It names the first that is no directory either.
fn no_line(operands: &[&Path]) -> String {
    match operands.iter().find(|path| !path.is_dir()) {
        Some(path) => format!(
            "{0} is not FILE:LINE: add LINE, a number from 1, as in {1}:12",
            path.display(),
            path.to_string_lossy().split(':').next().unwrap_or_default()
        ),
        None => {
            let directory = operands.first().copied().unwrap_or(Path::new(""));
            format!(
                "{0} is a directory: name FILE:LINE before it, as in `rocov which src/kernel.hip:12 {0}`",
                directory.display()
            )
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
        // Editors and compilers write a column after the line, and grep a colon.
        let is_column = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let before_column = text
            .rsplit_once(':')
            .filter(|(_, column)| is_column(column));
        let with_column = before_column.and_then(|(place, _)| LineOfSource::parse(place));
        let line = with_column.or_else(|| LineOfSource::parse(text));
        Ok(line.map_or_else(|| Self::Directory(text.into()), Self::Line))
    }
}

/// A line of a source, by its number.
#[derive(Clone, Debug)]
pub(crate) struct LineOfSource {
    pub(crate) file: PathBuf,
    pub(crate) line: NonZeroU32,
}

impl LineOfSource {
    /// Reads `FILE:LINE`.
    fn parse(text: &str) -> Option<Self> {
        let (file, line) = text.rsplit_once(':')?;
        let (file, line) = (file.into(), line.parse().ok()?);
        Some(Self { file, line })
    }
}

impl fmt::Display for LineOfSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file.display(), self.line)
    }
}
