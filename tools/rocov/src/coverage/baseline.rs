//! The stored figures of earlier runs: a gate compares a report with them, and a report carries them forward for an arch
//! that it has no runs of.
//!
//! A file has them as JSON, with one line for each source, so that a difference in git can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::store::read_input;
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};
use serde::{Deserialize, Serialize};

use super::baseline_column::{BaselineColumn, Carried, Shares};
use super::figures::{Figure, Figures, Measure};
use super::part::Part;
use super::view::View;
use crate::support::paths::{below, here};
use crate::support::time;
use crate::system::git::Repository;

/// The version of the file.
const VERSION: u32 = 1;
/// The limit in bytes for the file.
const MAX: u64 = 1 << 28;
/// The number of sources that a message about a loss names.
const NAMED: usize = 3;

/// The figures of each column of a report, and of all columns joined.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Baseline {
    rocov_baseline: u32,
    columns: BTreeMap<String, BaselineColumn>,
    /// `None` if there is one column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all: Option<BaselineColumns>,
}

/// The figures of several columns joined.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct BaselineColumns {
    of: Vec<String>,
    #[serde(flatten)]
    figures: BaselineColumn,
}

/// The command that stores lower figures of `inputs` in the baseline at `file`.
pub(crate) fn lowering<P: AsRef<Path>>(file: &Path, inputs: &[P]) -> String {
    let inputs = inputs
        .iter()
        .map(|input| format!("{} ", input.as_ref().display()));
    let inputs: String = inputs.collect();
    format!(
        "rocov baseline {inputs}-o {} --update --allow-drop",
        file.display()
    )
}

/// The directory that paths of a baseline start from: the root of `repository`, or of the one that the current directory
/// is in; else the current directory.
pub(crate) fn root(repository: Option<&Path>) -> PathBuf {
    let found = Repository::discover(repository.unwrap_or(Path::new("."))).ok();
    found.and_then(|found| found.root).unwrap_or_else(here)
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or is none that this version of rocov can use.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            rocov_baseline: u32,
        }
        let name = path.display();
        let text = match read_input(path, MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fail!("there is no baseline {name}"; "`rocov baseline -o {name}` writes one")
            }
            text => text.with_context(|| format!("cannot read the baseline {name}"))?,
        };
        let is_none = || diagnostic!("{name} is not a baseline"; "`rocov baseline` writes one");
        let Version { rocov_baseline } = serde_json::from_slice(&text).with_context(is_none)?;
        if rocov_baseline != VERSION {
            fail!(
                "{name} is a baseline of version {rocov_baseline}, expected {VERSION}";
                "use the rocov that wrote it, or write it again with `rocov baseline`"
            );
        }
        let baseline: Self = serde_json::from_slice(&text).with_context(is_none)?;
        let joined = baseline.all.iter().map(|all| &all.figures);
        let mut columns = baseline.columns.values().chain(joined);
        let is_valid = |column: &BaselineColumn| {
            time::days(&column.date).is_some() && column.shares().all(Shares::is_valid)
        };
        if !columns.all(is_valid) {
            fail!(
                "{name} contains an impossible date or figure";
                "write it again with `rocov baseline`"
            );
        }
        if baseline.columns.is_empty() {
            fail!(
                "{name} has no figures for any arch, so every report would pass";
                "remove it, and write it again with `rocov baseline -o {name}`"
            );
        }
        Ok(baseline)
    }

    /// The figures of `view` at a date. Paths are from `root` on.
    pub(crate) fn new(view: &View, root: &Path, date: &str) -> Self {
        let labels = view.columns.iter().map(|column| column.label.clone());
        let column = |index: Option<usize>| {
            let figures = |columns: &[Option<Figures>], all: &Figures| match index {
                Some(index) => columns[index].as_ref().map(Shares::from_figures),
                None => Some(Shares::from_figures(all)),
            };
            let total = &view.table().total;
            let components = view.components.iter().filter_map(|part| {
                let label = index.map(|index| &*view.columns[index].label);
                Some((
                    part.name.clone(),
                    Shares::from_figures(&part_figures(part, label)?),
                ))
            });
            let files = view.rows().filter_map(|(path, row)| {
                let shares = figures(&row.columns, &row.all)?;
                let is_empty = shares == Shares::default();
                (!is_empty).then(|| (below(path, root).into_owned(), shares))
            });
            BaselineColumn {
                date: date.to_owned(),
                total: figures(&total.columns, &total.all).unwrap_or_default(),
                components: components.collect(),
                files: files.collect(),
            }
        };
        let labels: Vec<_> = labels.collect();
        let columns = labels.iter().enumerate();
        let columns = columns.map(|(index, label)| (label.clone(), column(Some(index))));
        Self {
            rocov_baseline: VERSION,
            columns: columns.collect(),
            all: (labels.len() > 1).then(|| BaselineColumns {
                figures: column(None),
                of: labels,
            }),
        }
    }

    /// Returns whether a file is meant to be a baseline, and not a report.
    pub(crate) fn is_at(path: &Path) -> bool {
        #[derive(Deserialize)]
        struct Marked {
            #[serde(rename = "rocov_baseline")]
            _version: serde::de::IgnoredAny,
        }
        let text = path.is_file().then(|| read_input(path, MAX));
        let text = text.and_then(Result::ok).unwrap_or_default();
        serde_json::from_slice::<Marked>(&text).is_ok()
    }

    /// The figures of a column.
    pub(crate) fn column(&self, label: &str) -> Option<&BaselineColumn> {
        self.columns.get(label)
    }

    /// The figures of these columns joined.
    pub(crate) fn joined(&self, labels: &[&str]) -> Option<&BaselineColumn> {
        if let [label] = labels {
            return self.column(label);
        }
        let all = self.all.as_ref().filter(|all| all.of == labels);
        all.map(|all| &all.figures)
    }

    /// This baseline with the columns of a later one instead of its own.
    pub(crate) fn with(mut self, later: Self) -> Self {
        self.columns.extend(later.columns);
        let is_whole = |all: &BaselineColumns| all.of.iter().eq(self.columns.keys());
        self.all = [later.all, self.all.take()]
            .into_iter()
            .flatten()
            .find(is_whole);
        self
    }

    /// A line for each figure that is worse in `now`: a lower share of a kind ran, and more things did not. So code that
    /// ran and is removed is no loss. `lowering` is the command that stores the lower figures.
    pub(crate) fn losses(&self, now: &Self, lowering: &str) -> Vec<Diagnostic> {
        let columns = self
            .columns
            .iter()
            .filter_map(|(label, before)| Some((label.as_str(), before, now.columns.get(label)?)));
        let joined = match (&self.all, &now.all) {
            (Some(before), Some(now)) if before.of == now.of => {
                Some(("all", &before.figures, &now.figures))
            }
            _ => None,
        };
        let columns = columns.chain(joined);
        columns
            .flat_map(|(label, before, now)| losses_of(label, before, now, lowering))
            .collect()
    }

    /// This baseline with those of its sources that `is_wanted`, by their paths below `root`, and the number of the
    /// others. Its totals are those of the sources that stay. Components are of all sources, and do not stay.
    pub(crate) fn with_sources(
        mut self,
        root: &Path,
        is_wanted: impl Fn(&str) -> bool,
    ) -> (Self, usize) {
        let mut left_out = BTreeSet::new();
        let joined = self.all.iter_mut().map(|all| &mut all.figures);
        for column in self.columns.values_mut().chain(joined) {
            let before = column.files.len();
            column.files.retain(|path, _| {
                let is_wanted = is_wanted(&root.join(path).to_string_lossy());
                if !is_wanted {
                    left_out.insert(path.clone());
                }
                is_wanted
            });
            if column.files.len() < before {
                let files = column.files.values();
                column.total = files.fold(Shares::default(), |sum, file| sum.plus(file));
                column.components.clear();
            }
        }
        (self, left_out.len())
    }

    /// A line for each column of both that lacks sources in `now`, though they are still there below `root`. `lowering` is
    /// the command that stores the figures without them.
    pub(crate) fn absent_sources(
        &self,
        now: &Self,
        root: &Path,
        lowering: &str,
    ) -> Vec<Diagnostic> {
        let columns = self.columns.iter();
        let both = columns.filter_map(|(label, before)| Some((label, before, now.column(label)?)));
        let lines = both.filter_map(|(label, before, now)| {
            let paths = before.files.keys();
            let absent = paths.filter(|path| !now.files.contains_key(*path));
            let absent: Vec<_> = absent.filter(|path| root.join(path).exists()).collect();
            let named: Vec<&str> = absent.iter().take(NAMED).map(|path| path.as_str()).collect();
            let more = match absent.len() - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (!absent.is_empty()).then(|| {
                diagnostic!(
                    "{label}: {}{more} not in this report, but in the baseline of {}",
                    named.join(", "), before.date;
                    "run the programs with this code, leave it out with --exclude, or write the baseline without it \
                     with `{lowering}`"
                )
            })
        });
        lines.collect()
    }

    /// A line for each column that `now` lacks, and that `is_wanted`.
    pub(crate) fn absent(&self, now: &Self, is_wanted: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
        let columns = self.columns.iter();
        let absent =
            columns.filter(|(label, _)| !now.columns.contains_key(*label) && is_wanted(label));
        let lines = absent.map(|(label, column)| {
            diagnostic!(
                "{label}: the baseline of {} contains it, but this report does not", column.date;
                "run the tests on it as well, use --arch to name the archs that they ran on, or use --carry-forward"
            )
        });
        lines.collect()
    }

    /// The columns that `view` lacks, and that are wanted, with their ages on a day.
    pub(crate) fn carried(
        self,
        view: &View,
        is_wanted: impl Fn(&str) -> bool,
        today: &str,
    ) -> Vec<Carried> {
        let is_absent = |label: &str| view.columns.iter().all(|column| column.label != label);
        let columns = self.columns.into_iter();
        let columns = columns.filter(|(label, _)| is_absent(label) && is_wanted(label));
        let day = |date: &str| time::days(date).unwrap_or_default();
        let carried = columns.map(|(label, column)| Carried {
            days: day(today).saturating_sub(day(&column.date)),
            label,
            column,
        });
        carried.collect()
    }

    /// Writes it as JSON, each set of figures in a line.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{{\n  \"rocov_baseline\": {},", self.rocov_baseline)?;
        writeln!(out, "  \"columns\": {{")?;
        for (number, (label, column)) in self.columns.iter().enumerate() {
            let end = end(number, self.columns.len());
            write!(out, "    {}: ", serde_json::to_string(label)?)?;
            write_column(column, None, out)?;
            writeln!(out, "{end}")?;
        }
        write!(out, "  }}")?;
        if let Some(all) = &self.all {
            write!(out, ",\n  \"all\": ")?;
            write_column(&all.figures, Some(&all.of), out)?;
        }
        writeln!(out, "\n}}")
    }

    /// A line for each column: its share of each kind.
    pub(crate) fn summary(&self) -> impl Iterator<Item = String> {
        let joined = self.all.iter().map(|all| ("all", &all.figures));
        let columns = self
            .columns
            .iter()
            .map(|(label, column)| (&**label, column));
        columns.chain(joined).map(|(label, column)| {
            let shares = Measure::ALL.map(|measure| {
                let share = column.total.figure(measure).percent_text();
                format!("{share} of {}", measure.name())
            });
            format!("{label}: {}", shares.join(", "))
        })
    }
}

/// The figures of a part in the column of this label, or of all columns joined.
fn part_figures(part: &Part, label: Option<&str>) -> Option<Figures> {
    let Some(label) = label else {
        return part.all;
    };
    let column = part.columns.iter().find(|column| column.label == label);
    column.map(|column| column.figures)
}

/// A line for each figure of a column that is worse.
fn losses_of(
    label: &str,
    before: &BaselineColumn,
    now: &BaselineColumn,
    lowering: &str,
) -> Vec<Diagnostic> {
    let components = before.components.iter();
    let components = components.filter_map(|(name, shares)| {
        Some((Some(name.as_str()), *shares, *now.components.get(name)?))
    });
    let parts = [(None, before.total, now.total)]
        .into_iter()
        .chain(components);
    let mut losses = Vec::new();
    for (place, earlier, later) in parts {
        for measure in Measure::ALL {
            let (earlier, later) = (earlier.figure(measure), later.figure(measure));
            if !is_loss(earlier, later) {
                continue;
            }
            let what = match place {
                Some(place) => format!("{} in {place}", measure.name()),
                None => measure.name().to_owned(),
            };
            let files = match place {
                None => worse_files(before, now, measure),
                Some(_) => String::new(),
            };
            losses.push(diagnostic!(
                "{label}: {} of {what} ran ({} of {} did not run), less than {} ({} of {} did not run) in the baseline \
                 of {}{files}",
                later.percent_text(),
                later.missed(),
                later.total,
                earlier.percent_text(),
                earlier.missed(),
                earlier.total,
                before.date;
                "cover them, or write the lower figures with `{lowering}`"
            ));
        }
    }
    losses
}

/// Returns whether a lower share ran, and more things did not.
fn is_loss(before: Figure, now: Figure) -> bool {
    let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
    let is_lower = product(now.covered, before.total) < product(before.covered, now.total);
    is_lower && now.missed() > before.missed()
}

/// The sources in which most more things did not run, as the end of a message.
fn worse_files(before: &BaselineColumn, now: &BaselineColumn, measure: Measure) -> String {
    let files = now.files.iter().filter_map(|(path, shares)| {
        let earlier = before.files.get(path).copied().unwrap_or_default();
        let earlier = earlier.figure(measure).missed();
        let more = shares.figure(measure).missed().checked_sub(earlier)?;
        (more > 0).then_some((more, path))
    });
    let mut files: Vec<_> = files.collect();
    files.sort_by_key(|(more, path)| (u64::MAX - more, *path));
    let named = files.iter().take(NAMED);
    let named: Vec<_> = named
        .map(|(more, path)| format!("{path} ({more} more)"))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!(", most in {}", named.join(", ")),
    }
}

/// Writes a column, which starts in the present line.
fn write_column(
    column: &BaselineColumn,
    of: Option<&[String]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{{")?;
    if let Some(of) = of {
        writeln!(out, "      \"of\": {},", serde_json::to_string(of)?)?;
    }
    let date = serde_json::to_string(&column.date)?;
    writeln!(out, "      \"date\": {date},")?;
    let total = serde_json::to_string(&column.total)?;
    writeln!(out, "      \"total\": {total},")?;
    if !column.components.is_empty() {
        write_parts("components", &column.components, out)?;
        writeln!(out, ",")?;
    }
    write_parts("files", &column.files, out)?;
    write!(out, "\n    }}")
}

fn write_parts(
    name: &str,
    parts: &BTreeMap<String, Shares>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "      \"{name}\": {{")?;
    for (number, (part, shares)) in parts.iter().enumerate() {
        let (part, shares) = (serde_json::to_string(part)?, serde_json::to_string(shares)?);
        let end = end(number, parts.len());
        writeln!(out, "        {part}: {shares}{end}")?;
    }
    write!(out, "      }}")
}

/// The end of an item of so many.
fn end(number: usize, items: usize) -> &'static str {
    if number + 1 < items { "," } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(covered: u64, total: u64) -> Figure {
        Figure { total, covered }
    }

    #[test]
    fn a_loss_is_a_lower_share_with_more_that_did_not_run() {
        for (before, now, expected) in [
            ((90, 100), (90, 100), false),
            ((90, 100), (89, 100), true),
            // Code that ran is removed.
            ((90, 100), (40, 50), false),
            // More code of the same share, or of a higher one.
            ((90, 100), (99, 110), false),
            ((50, 100), (59, 110), false),
            ((100, 100), (100, 101), true),
            ((0, 0), (0, 1), false),
            ((1, 1), (0, 0), false),
        ] {
            let [before, now] = [before, now].map(|(covered, total)| figure(covered, total));
            assert_eq!(is_loss(before, now), expected, "{before:?} {now:?}");
        }
    }

    fn column(date: &str, files: &[(&str, (u64, u64))]) -> BaselineColumn {
        let shares = |lines| Shares {
            lines,
            ..Shares::default()
        };
        let sum = |of: fn(&(u64, u64)) -> u64| files.iter().map(|(_, lines)| of(lines)).sum();
        BaselineColumn {
            date: date.to_owned(),
            total: shares((sum(|share| share.0), sum(|share| share.1))),
            components: BTreeMap::new(),
            files: files
                .iter()
                .map(|(path, lines)| ((*path).to_owned(), shares(*lines)))
                .collect(),
        }
    }

    fn baseline(columns: &[(&str, BaselineColumn)]) -> Baseline {
        let columns = columns.iter().cloned();
        Baseline {
            rocov_baseline: VERSION,
            columns: columns
                .map(|(name, column)| (name.to_owned(), column))
                .collect(),
            all: None,
        }
    }

    #[test]
    fn losses_name_the_files() {
        let before = column("2026-11-21", &[("a.hip", (9, 10)), ("b.hip", (5, 10))]);
        let now = column(
            "2026-11-28",
            &[("a.hip", (6, 10)), ("b.hip", (6, 10)), ("c.h", (0, 1))],
        );
        let losses =
            baseline(&[("gfx90a", before)]).losses(&baseline(&[("gfx90a", now)]), "command");
        let start = "gfx90a: 57.14% of lines ran (9 of 21 did not run), less than 70.00% (6 of 20 did not run) in the baseline of \
                     2026-11-21, most in a.hip (3 more), c.h (1 more)";
        assert_eq!(losses.len(), 1);
        assert_eq!(losses[0].what(), start);
        assert!(losses[0].next().ends_with(" with `command`"), "{losses:?}");
    }

    #[test]
    fn columns_that_are_not_reported_stay() {
        let one = column("2026-11-21", &[("a.hip", (9, 10))]);
        let other = column("2026-11-28", &[("a.hip", (10, 10))]);
        let all = |of: &[&str], figures: &BaselineColumn| {
            let of = of.iter().map(ToString::to_string).collect();
            let figures = figures.clone();
            Some(BaselineColumns { of, figures })
        };
        let mut before = baseline(&[("gfx90a", one.clone()), ("gfx942", one.clone())]);
        before.all = all(&["gfx90a", "gfx942"], &one);
        let after = before.with(baseline(&[("gfx942", other.clone())]));
        assert_eq!(after.columns["gfx90a"].date, "2026-11-21");
        assert_eq!(after.columns["gfx942"].date, "2026-11-28");
        assert_eq!(after.all.as_ref().unwrap().figures.date, "2026-11-21");
        // The figures of two archs are not those of three.
        let after = after.with(baseline(&[("gfx1100", other)]));
        assert!(after.all.is_none());
        let mut text = Vec::new();
        after.write(&mut text).unwrap();
        let expected = serde_json::to_value(&after).unwrap();
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&text).unwrap(),
            expected
        );
    }
}
