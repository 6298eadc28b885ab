//! The options of `rocov report` that choose formats, and the place that each format goes to.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anstream::AutoStream;
use clap::error::ErrorKind;
use clap::{ArgGroup, Args, ColorChoice};
use rocov::store::layout::in_bucket;

use super::wrong_usage;
use crate::render::{Format, JsonContents, MissingLines, Order, TableStyle};
use crate::term::look::Look;

/// The option of a table.
const TABLE: &str = "--table";

/// The formats of a report.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("format").multiple(true).conflicts_with("show"))]
#[command(group = ArgGroup::new("counted").multiple(true))]
#[command(next_help_heading = "Formats")]
pub(crate) struct Formats {
    /// Write HTML pages to a folder, or all pages to a single file if PATH ends in `.html`. Prints the path of the
    /// first page if nothing else goes to standard output
    #[arg(long, value_name = "PATH", group = "format")]
    pub(crate) html: Option<PathBuf>,

    /// With --html, the title of the pages, such as the name of the project
    #[arg(long, value_name = "NAME", requires = "html")]
    pub(crate) title: Option<String>,

    /// With --html, open the first page in a browser
    #[arg(long, requires = "html")]
    pub(crate) open: bool,

    /// Write an LCOV tracefile, for genhtml and editors; with --per-test, a section for each test
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", groups = ["format", "counted"])]
    lcov: Option<Destination>,

    /// Write Cobertura XML, for GitLab, Jenkins and Azure
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", groups = ["format", "counted"])]
    cobertura: Option<Destination>,

    /// With --lcov or --cobertura, limit counts to N, because some services reject counts above 2147483647
    #[arg(long, value_name = "N", requires = "counted", conflicts_with = "show")]
    max_count: Option<NonZeroU64>,

    /// Write JSON in llvm-cov's format, with an export for each arch
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", group = "format")]
    json: Option<Destination>,

    /// With --json, write only figures
    #[arg(long, requires = "json")]
    summary_only: bool,

    /// With --json, leave out the counts of individual functions
    #[arg(long, requires = "json")]
    skip_functions: bool,

    /// Write SonarQube's generic test coverage
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", group = "format")]
    sonar: Option<Destination>,

    /// Write a summary in Markdown, for a pull request or $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", group = "format")]
    markdown: Option<Destination>,

    /// With --diff, write the changed lines that did not run as SARIF, for code scanning
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", group = "format", requires = "diff")]
    sarif: Option<Destination>,

    /// Write a badge (an SVG image) with the percentage of lines that ran
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", group = "format")]
    badge: Option<Destination>,

    /// Write the table that is printed if no format is given
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", group = "format")]
    table: Option<Destination>,

    /// Add a column with the lines that did not run to the table
    #[arg(long, conflicts_with = "show")]
    show_missing: bool,

    /// List the lines that did not run below the table
    #[arg(long, conflicts_with = "show")]
    show_missing_lines: bool,

    /// List the excluded lines below the table, with the reason for each
    #[arg(long, conflicts_with = "show")]
    show_excluded: bool,

    /// Color the table and annotated source: auto (on a terminal, unless NO_COLOR is set), always,
    /// never
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    color: ColorChoice,

    /// Sort the files of the table: name, worst (the smallest share of covered lines first) or missed (the most
    /// missed lines first)
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "name",
        hide_possible_values = true,
        conflicts_with = "show"
    )]
    sort: Order,

    /// Write the format that has no FILE to this file instead of standard output. If all formats have a FILE, write the
    /// table or annotated source to this file
    #[arg(short, long, visible_alias = "output-path", value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The place that the user gives for a format.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    /// None: that of `--output`, or standard output.
    Usual,
    /// `-`.
    Stdout,
    File(PathBuf),
}

impl From<OsString> for Destination {
    fn from(word: OsString) -> Self {
        match word.as_bytes() {
            b"" => Self::Usual,
            b"-" => Self::Stdout,
            _ => Self::File(word.into()),
        }
    }
}

impl Destination {
    /// The data directory that follows an option without a file, as in `--lcov rocov-data`. No format can be
    /// written to it.
    fn directory(&self) -> Option<&Path> {
        match self {
            Self::File(path) if path.is_dir() || in_bucket(path).is_some() => Some(path),
            _ => None,
        }
    }
}

/// A format that is written.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    pub(crate) format: Format,
    /// The file; `None` for standard output.
    pub(crate) path: Option<&'a Path>,
    option: &'static str,
}

/// The option.
impl fmt::Display for Output<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.option)
    }
}

impl Formats {
    /// The formats that have an option with an optional file, with their options.
    fn given(&self) -> impl Iterator<Item = (&'static str, Format, &Destination)> {
        let max_count = self.max_count.map_or(u64::MAX, NonZeroU64::get);
        let contents = match (self.summary_only, self.skip_functions) {
            (true, _) => JsonContents::Summary,
            (false, true) => JsonContents::Files,
            (false, false) => JsonContents::All,
        };
        let table = self.text(Look::default());
        let formats = [
            ("--lcov", Format::Lcov { max_count }, &self.lcov),
            (
                "--cobertura",
                Format::Cobertura { max_count },
                &self.cobertura,
            ),
            ("--json", Format::Json { contents }, &self.json),
            ("--sonar", Format::Sonar, &self.sonar),
            (
                "--markdown",
                Format::Markdown {
                    has_excluded: self.show_excluded,
                },
                &self.markdown,
            ),
            ("--sarif", Format::Sarif, &self.sarif),
            ("--badge", Format::Badge, &self.badge),
            (TABLE, table, &self.table),
        ];
        let formats = formats.into_iter();
        formats.filter_map(|(option, format, place)| Some((option, format, place.as_ref()?)))
    }

    /// The data directories among the values of these options.
    pub(super) fn directories(&self) -> impl Iterator<Item = &Path> {
        self.given().filter_map(|(_, _, place)| place.directory())
    }

    /// The formats to write in addition to pages, each with its place.
    ///
    /// # Errors
    ///
    /// Fails if two of them have one place, or no format is left for `--output`.
    pub(crate) fn outputs(&self) -> Result<Vec<Output<'_>>, clap::Error> {
        let usual = self.output();
        let outputs = self.given().map(|(option, format, place)| Output {
            format,
            path: match place {
                Destination::File(path) if place.directory().is_none() => Some(path),
                Destination::Stdout => None,
                _ => usual,
            },
            option,
        });
        let mut outputs: Vec<_> = outputs.collect();
        if self.html.as_deref() == Some(Path::new("-")) {
            let message = "--html cannot go to standard output: name a folder for the pages, or a file whose name \
            ends in .html";
            return Err(conflict(message.to_owned()));
        }
        let is_usual =
            |place: &Destination| *place == Destination::Usual || place.directory().is_some();
        let takes_output = self.given().any(|(_, _, place)| is_usual(place));
        let is_alone = outputs.is_empty() && self.html.is_none();
        if !takes_output && (self.output.is_some() || is_alone) {
            if self.table.is_some() {
                let message =
                    "no format is left for --output: leave it out, or use --table without a file";
                return Err(conflict(message.to_owned()));
            }
            outputs.push(Output {
                format: self.text(Look::default()),
                path: usual,
                option: TABLE,
            });
        }
        for output in &mut outputs {
            if let Format::Text(_) = output.format {
                output.format = self.text(self.look(output.path));
            }
        }
        check_places(&outputs, self.html.as_deref())?;
        self.check_table_options(&outputs)?;
        Ok(outputs)
    }

    /// Checks that each option of the table has a table.
    fn check_table_options(&self, outputs: &[Output<'_>]) -> Result<(), clap::Error> {
        let has = |is_it: fn(&Format) -> bool| outputs.iter().any(|output| is_it(&output.format));
        let has_table = has(|format| matches!(format, Format::Text(_)));
        let has_list = has_table || has(|format| matches!(format, Format::Markdown { .. }));
        let options = [
            ("--sort", self.sort != Order::default(), has_table),
            ("--show-missing", self.show_missing, has_table),
            ("--show-missing-lines", self.show_missing_lines, has_table),
            ("--show-excluded", self.show_excluded, has_list),
        ];
        let mut idle = options
            .iter()
            .filter(|(_, given, has_effect)| *given && !has_effect);
        match idle.next() {
            Some((option, ..)) => Err(conflict(format!(
                "{option} applies to the table, but no table is written: also use --table FILE, or leave {option} out"
            ))),
            None => Ok(()),
        }
    }

    /// The look of text that goes to this file, or to standard output.
    fn look(&self, path: Option<&Path>) -> Look {
        let is_colored = self.is_colored(path);
        match path {
            None => Look::for_stdout(is_colored),
            Some(_) => Look {
                is_colored,
                ..Look::default()
            },
        }
    }

    /// The format of the table.
    fn text(&self, look: Look) -> Format {
        Format::Text(TableStyle {
            look,
            order: self.sort,
            missing: MissingLines {
                in_rows: self.show_missing,
                at_end: self.show_missing_lines,
                excluded: self.show_excluded,
            },
        })
    }

    /// The file of annotated source; `None` for standard output.
    pub(crate) fn output(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|path| path.as_os_str() != "-")
    }

    /// Returns whether text that goes to this file, or to standard output, is colored.
    pub(crate) fn is_colored(&self, path: Option<&Path>) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                path.is_none() && AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
            }
        }
    }
}

/// The error that options do not go together.
fn conflict(message: String) -> clap::Error {
    wrong_usage("report", ErrorKind::ArgumentConflict, message)
}

/// Checks that no two formats have one place, of which `pages` is the one of pages.
fn check_places(outputs: &[Output<'_>], pages: Option<&Path>) -> Result<(), clap::Error> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or(path.into());
    let pages = pages.map(|path| (Some(absolute(path)), "--html".to_owned()));
    let mut places: BTreeMap<Option<PathBuf>, String> = pages.into_iter().collect();
    for output in outputs {
        let Some(other) = places.insert(output.path.map(absolute), output.to_string()) else {
            continue;
        };
        let place = output
            .path
            .map_or("standard output".into(), |path| path.display().to_string());
        let message = format!(
            "{other} and {output} both go to {place}: use another file for one of them, as in `{output} FILE`"
        );
        return Err(conflict(message));
    }
    Ok(())
}
