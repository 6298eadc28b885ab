//! What a user can say about a report: its format, what is in it, and what it must reach.
//!
//! The names are those of cargo-llvm-cov where that has the same.

use super::changed::Change;
use super::gates::Gates;
use super::output::Format;
use super::select::Filters;
use super::texts::Texts;
use super::view::By;
use anstream::AutoStream;
use anyhow::Result;
use clap::{ArgGroup, Args, ColorChoice};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The options of a report.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("format").conflicts_with("show"))]
#[command(group = ArgGroup::new("git").multiple(true))]
pub(crate) struct Options {
    /// Write pages for a browser to DIR, and print which to open
    #[arg(
        long,
        value_name = "DIR",
        group = "format",
        conflicts_with = "output_path",
        help_heading = "Formats"
    )]
    pub(crate) html: Option<PathBuf>,

    /// Write LCOV's tracefile, for genhtml and editors
    #[arg(long, group = "format", help_heading = "Formats")]
    lcov: bool,

    /// Write Cobertura's XML, for GitLab, Jenkins and Azure
    #[arg(long, group = "format", help_heading = "Formats")]
    cobertura: bool,

    /// Write llvm-cov's JSON, an export for each arch
    #[arg(long, group = "format", help_heading = "Formats")]
    json: bool,

    /// With --json, write figures alone
    #[arg(long, requires = "json", help_heading = "Formats")]
    summary_only: bool,

    /// Write SonarQube's generic test coverage
    #[arg(long, group = "format", help_heading = "Formats")]
    sonar: bool,

    /// Write a summary in Markdown, for a pull request or $GITHUB_STEP_SUMMARY
    #[arg(long, group = "format", help_heading = "Formats")]
    markdown: bool,

    /// Color the table and annotated source: auto (on a terminal, unless NO_COLOR is set), always,
    /// never
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "Formats"
    )]
    color: ColorChoice,

    /// Write to FILE instead of standard output
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "show",
        help_heading = "Formats"
    )]
    pub(crate) output_path: Option<PathBuf>,

    /// Give figures for each arch, or for each binary on each arch
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "arch",
        hide_possible_values = true,
        conflicts_with = "show",
        help_heading = "What is reported",
        long_help = "Give figures for each `arch`, or for each `binary` on each arch"
    )]
    pub(crate) by: By,

    /// Report host code too: this program or library, with the host's profiles in DIR; can be
    /// repeated
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "show",
        help_heading = "What is reported"
    )]
    pub(crate) host_binary: Vec<PathBuf>,

    /// Only code that came from this library or executable; can be repeated, with totals for each
    #[arg(long, value_name = "FILE", help_heading = "What is reported")]
    pub(crate) component: Vec<PathBuf>,

    /// Say also what each test covers, and what it alone does: each label of `rocov run --label`
    #[arg(
        long,
        conflicts_with_all = ["show", "lcov", "cobertura", "sonar"],
        help_heading = "What is reported"
    )]
    pub(crate) per_test: bool,

    #[command(flatten)]
    pub(crate) filters: Filters,

    /// Report on the lines that changed too: since a git revision (main), in a range of them
    /// (main...), or in a file with a unified diff (- is standard input)
    #[arg(
        long,
        value_name = "BASE",
        group = "git",
        conflicts_with = "show",
        help_heading = "What is reported"
    )]
    diff: Option<OsString>,

    /// Take sources from git as they were at this revision, also when there is no work tree
    #[arg(
        long,
        value_name = "REV",
        group = "git",
        help_heading = "What is reported"
    )]
    source_revision: Option<OsString>,

    /// The git repository of the sources, instead of the one that is here
    #[arg(
        long,
        value_name = "DIR",
        requires = "git",
        help_heading = "What is reported"
    )]
    repository: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) gates: Gates,
}

impl Options {
    /// The format to write.
    pub(crate) fn format(&self) -> Format {
        let summary_only = self.summary_only;
        let formats = [
            (self.lcov, Format::Lcov),
            (self.cobertura, Format::Cobertura),
            (self.json, Format::Json { summary_only }),
            (self.sonar, Format::Sonar),
            (self.markdown, Format::Markdown),
        ];
        let chosen = formats.iter().find(|(is_chosen, _)| *is_chosen);
        let is_colored = self.is_colored();
        chosen.map_or(Format::Text { is_colored }, |(_, format)| *format)
    }

    /// Whether text is colored.
    pub(crate) fn is_colored(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                self.output_path.is_none()
                    && AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
            }
        }
    }

    /// The change whose lines are reported, if there is one.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn change(&self) -> Result<Option<Change>> {
        let base = self.diff.as_deref();
        base.map(|base| Change::of(base, self.repository.as_deref()))
            .transpose()
    }

    /// Where the text of source files is.
    ///
    /// # Errors
    ///
    /// When git does not know the revision that was asked for.
    pub(crate) fn texts(&self) -> Result<Texts> {
        let repository = self.repository.as_deref();
        match &self.source_revision {
            Some(revision) => Texts::of(revision, repository),
            None => Ok(Texts::default()),
        }
    }
}
