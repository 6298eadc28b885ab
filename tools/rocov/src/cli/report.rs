//! The command line of `rocov report`. Options have the names that cargo-llvm-cov gives them, if it has
//! them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{ArgGroup, Args};
use rocov::support::diagnostic::Diagnostic;

use super::DEFAULT_DATA_DIRECTORY;
use super::component_sources::ComponentSources;
use super::filters::Filters;
use super::formats::Formats;
use super::gates::GateArguments;
use crate::coverage::{By, Change, Exclusions, Gates, Rules, SourceGlobs, SourceTexts};
use crate::data::labels::LabelPattern;
use crate::dataset::RunCondition;
use crate::profdata::{CountKind, CountUnit};

/// The largest number of blocks of which one counts.
const MAX_SCALE: u64 = 1 << 20;

/// Report which lines of the GPU code ran
///
/// Prints a table for each GPU architecture and, if there are several, one for all of them. The figures match those of
/// llvm-cov, except for lines and templates that llvm-cov reports wrongly (--as-llvm-cov). Searches each DIR and all
/// directories below it, such as those of ranks or labels, and those that `rocov merge` wrote. Uses the device ELFs
/// that librocov saved there when they were loaded, or otherwise those in the files that --object names. Does not write
/// to DIR.
#[derive(Args)]
#[command(override_usage = "rocov report [DIR]... [OPTIONS]")]
#[command(after_help = "\
Exit status: 0 if a report was printed, even if it had to leave out a damaged profile or a \
missing source, or if an option matches nothing, which standard error reports; 1 if there was nothing to report or a \
tool failed; 2 for a usage error; 3 if a gate failed: with gates, anything that is left out is a failure, too.")]
pub(crate) struct ReportArguments {
    /// The directories that `rocov run` wrote to, the directories that your own `LLVM_PROFILE_FILE` names, or data sets
    /// from `rocov export --format parquet` [default: rocov-data]
    #[arg(value_name = "DIR")]
    given: Vec<PathBuf>,

    /// Use only runs in a data set with this commit, arch, run or date, or from or up to a date
    /// (date>=2026-11-01); can be repeated
    #[arg(long = "where", value_name = "KEY=VALUE")]
    pub(crate) conditions: Vec<RunCondition>,

    /// Also look for device ELFs in these files: the program, libraries with kernels, or device
    /// ELFs (.hsaco, bundled or not)
    #[arg(long = "object", value_name = "FILE", num_args = 1..)]
    pub(crate) objects: Vec<PathBuf>,

    /// Print the annotated source of all files, or of these, instead of the table. A directory that `rocov run` wrote
    /// to is treated as a DIR, not as a source
    #[arg(
        long,
        visible_alias = "text",
        value_name = "SOURCE",
        num_args = 0..,
        conflicts_with_all = ["include", "exclude"]
    )]
    pub(crate) show: Option<Vec<PathBuf>>,

    /// Report only counts of this kind: mapping (clang's counters, with a coverage mapping), trace (instructions that
    /// the modelled GPU executed) or ptx (basic blocks of PTX)
    #[arg(long, value_name = "KIND", hide_possible_values = true)]
    pub(crate) counts: Option<CountKind>,

    /// Use llvm-profdata and llvm-cov from this directory for profiles with a raw version that rocov does not support
    #[arg(long, value_name = "DIR")]
    pub(crate) llvm_bin: Option<PathBuf>,

    /// Print the report without warnings and progress, so that standard error contains only errors and failed gates
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print the report again whenever the data changes, until you press Ctrl-C. The exit status is then 0. On a
    /// terminal, each report replaces the previous one
    #[arg(long, conflicts_with_all = ["open", "conditions"])]
    pub(crate) watch: bool,

    /// Print each code object above the table and annotated source
    #[arg(short, long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) options: ReportOptions,
}

impl ReportArguments {
    /// Makes those of the sources of `--show` that `is_data` directories of the report: `--show DIR`.
    pub(crate) fn take_data_from_show(&mut self, is_data: impl Fn(&Path) -> bool) {
        if let Some(sources) = &mut self.show {
            self.given
                .extend(sources.extract_if(.., |path| is_data(path)));
        }
    }

    /// The data directories.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let given = self.given.iter().map(PathBuf::as_path);
        let directories = self.options.formats.directories().chain(given);
        let directories: Vec<_> = directories.map(Path::to_owned).collect();
        match directories.is_empty() {
            true => vec![DEFAULT_DATA_DIRECTORY.into()],
            false => directories,
        }
    }
}

/// The options of a report.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("git").multiple(true))]
pub(crate) struct ReportOptions {
    #[command(flatten)]
    pub(crate) formats: Formats,

    /// Give figures for each arch, or for each binary on each arch
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "arch",
        hide_possible_values = true,
        conflicts_with = "show",
        help_heading = "Contents",
        long_help = "Report figures for each `arch`, or for each `binary` on each arch"
    )]
    pub(crate) by: By,

    /// Also report the host code of this program or library, with the host profiles in DIR; can be repeated
    #[arg(long, value_name = "FILE", help_heading = "Contents")]
    pub(crate) host_binary: Vec<PathBuf>,

    /// Report only code from this library or executable; can be repeated to get totals for each
    #[arg(long, value_name = "FILE", help_heading = "Contents")]
    pub(crate) component: Vec<PathBuf>,

    /// Report totals for the sources that match GLOB as a component with this name, which gates can refer to; can be
    /// repeated, even with the same NAME
    #[arg(
        long,
        value_name = "NAME=GLOB",
        conflicts_with = "show",
        help_heading = "Contents"
    )]
    component_sources: Vec<ComponentSources>,

    /// For each arch that did not run, show the figures in this file from `rocov baseline`, and how old they are
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "show",
        help_heading = "Contents"
    )]
    carry_forward: Option<PathBuf>,

    /// With --html, show the changes since BEFORE in the pages. BEFORE is a data directory or a file from `rocov report
    /// --json`, which contain lines, or a file from `rocov baseline`, which contains only figures. --baseline also
    /// shows changes of figures
    #[arg(
        long,
        value_name = "BEFORE",
        requires = "html",
        help_heading = "Contents"
    )]
    compare: Option<PathBuf>,

    /// Also show the coverage of each test, and the part that no other test covers. Tests are the labels from `rocov
    /// run --label`
    #[arg(long, conflicts_with = "show", help_heading = "Contents")]
    pub(crate) per_test: bool,

    /// Report only the counts of this label, a name or a glob such as `unit/**`; can be repeated. All other
    /// code is reported as not run
    #[arg(
        long = "label",
        value_name = "NAME",
        conflicts_with_all = ["per_test", "host_binary"],
        help_heading = "Contents"
    )]
    pub(crate) labels: Vec<LabelPattern>,

    /// Also show how many executions had all lanes of a wave active, and the lines that ran with idle lanes (text and
    /// --json; code from clang 23 or later, and `rocov flags --uniformity`)
    #[arg(long, conflicts_with = "show", help_heading = "Contents")]
    pub(crate) uniformity: bool,

    /// Report the figures of llvm-cov, even if rocov's own rules differ: a line that ran may have a count of 0, and
    /// a template has the figures of its best instance
    #[arg(long, help_heading = "Contents")]
    as_llvm_cov: bool,

    /// Multiply the counts of GPU code by this number, for code in which only one workgroup in N is counted. It does
    /// not change which lines are covered
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=MAX_SCALE),
        help_heading = "Contents"
    )]
    pub(crate) scale: Option<u64>,

    /// Count each `thread` that ran a line of PTX, or each `program` of Triton, which is a block of threads. Rounds up,
    /// and prints a line with the kernels whose code does not fix the number of threads
    #[arg(
        long,
        value_name = "UNIT",
        default_value = "thread",
        hide_possible_values = true,
        help_heading = "Contents"
    )]
    pub(crate) per: CountUnit,

    #[command(flatten)]
    pub(crate) filters: Filters,

    /// Also report on changed lines: since a git revision (main), in a range of revisions (main...), or in a file with
    /// a unified diff (- is standard input)
    #[arg(
        long,
        value_name = "BASE",
        group = "git",
        conflicts_with = "show",
        help_heading = "Contents"
    )]
    diff: Option<OsString>,

    /// Read sources from git at this revision, even without a work tree
    #[arg(long, value_name = "REV", group = "git", help_heading = "Contents")]
    source_revision: Option<OsString>,

    /// The git repository of the sources, instead of that of the current directory
    #[arg(long, value_name = "DIR", requires = "git", help_heading = "Contents")]
    repository: Option<PathBuf>,

    #[command(flatten)]
    gates: GateArguments,
}

impl ReportOptions {
    /// The rules for lines and templates.
    pub(crate) fn rules(&self) -> Rules {
        match self.as_llvm_cov {
            true => Rules::LlvmCov,
            false => Rules::Own,
        }
    }

    /// The exclusions of the report. llvm-cov has none.
    ///
    /// # Errors
    ///
    /// Fails if git does not have the revision.
    pub(crate) fn exclusions(&self) -> Result<Exclusions> {
        match self.as_llvm_cov {
            true => Ok(Exclusions::none()),
            false => Ok(self.filters.exclusions(self.texts()?)),
        }
    }

    /// The components that are made of sources, each with its name.
    ///
    /// # Errors
    ///
    /// Fails if one has no valid glob.
    pub(crate) fn source_components(&self) -> Result<Vec<(String, SourceGlobs)>> {
        ComponentSources::grouped(&self.component_sources)
    }

    /// The change whose lines are reported, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn change(&self) -> Result<Option<Change>> {
        let base = self.diff.as_deref();
        base.map(|base| Change::read(base, self.repository.as_deref()))
            .transpose()
    }

    /// The repository of the sources, if the user names it.
    pub(crate) fn repository(&self) -> Option<&Path> {
        self.repository.as_deref()
    }

    /// The text of source files.
    ///
    /// # Errors
    ///
    /// Fails if git does not find the revision.
    pub(crate) fn texts(&self) -> Result<SourceTexts> {
        let repository = self.repository.as_deref();
        match &self.source_revision {
            Some(revision) => SourceTexts::from_revision(revision, repository),
            None => Ok(SourceTexts::default()),
        }
    }

    /// A line for each gate that may be meant otherwise.
    pub(crate) fn doubts(&self) -> Vec<Diagnostic> {
        self.gates.doubts()
    }

    /// The file of the baseline that the report must reach.
    pub(crate) fn baseline(&self) -> Option<&Path> {
        self.gates.baseline.as_deref()
    }

    /// The file with the figures of archs that did not run.
    pub(crate) fn carried(&self) -> Option<&Path> {
        self.carry_forward.as_deref()
    }

    /// The report or the baseline that pages show the difference to.
    pub(crate) fn compared(&self) -> Option<&Path> {
        let baseline = self.baseline().filter(|_| self.formats.html.is_some());
        self.compare.as_deref().or(baseline)
    }

    /// The gates that the report must pass.
    pub(crate) fn gates(&self) -> Gates {
        self.gates.gates()
    }
}
