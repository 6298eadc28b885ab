//! The common parts of all pages, and the sources that have pages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use askama::Template;
use xxhash_rust::xxh3::xxh3_64;

use super::figures::{Before, Cell, Shown};
use crate::coverage::changed::covered::ChangedSource;
use crate::coverage::model::Side;
use crate::coverage::provenance::Runs;
use crate::coverage::report::too_low;
use crate::coverage::view::View;
use crate::coverage::{Earlier, Provenance};
use crate::profdata::kinds::in_words;
use crate::profdata::{CountKind, CountKinds, CountUnit};
use crate::support::paths::{below, common};
use crate::support::time;
use crate::term::plural::count;

/// Characters of a source's name that the name of its page starts with.
const NAME_LENGTH: usize = 60;

/// The largest number of command lines that a report shows.
const COMMANDS: usize = 5;

/// The largest number of characters of a command line that a report shows.
const COMMAND_LENGTH: usize = 500;

/// The common parts of all pages.
pub(super) struct Frame<'a> {
    pub(super) view: &'a View,
    /// The earlier report that this one is compared with, if the user names one.
    pub(super) earlier: Option<&'a Earlier>,
    pub(super) provenance: &'a Provenance,
    /// The name of the project, if the user gave one.
    pub(super) project: Option<&'a str>,
    pub(super) columns: Vec<Head>,
    /// The directory that paths are shown from.
    pub(super) base: PathBuf,
}

/// The head of a column.
pub(super) struct Head {
    pub(super) label: String,
    /// The code that the report is of.
    pub(super) origin: String,
    /// The files that the code is in.
    pub(super) binaries: Vec<String>,
    pub(super) kinds: CountKinds,
    /// The unit of the counts, if a user can choose it.
    pub(super) unit: Option<CountUnit>,
    /// The number of functions whose counts are too low.
    pub(super) non_atomic: usize,
}

impl Head {
    /// The reason why counts are too low, if they are.
    pub(super) fn too_low(&self) -> Option<String> {
        (self.non_atomic > 0).then(|| too_low(self.non_atomic))
    }

    /// The names of the kinds of counts, if there are others than a coverage mapping.
    pub(super) fn counted_by(&self) -> Option<String> {
        let has_others = self.kinds.iter().any(|kind| *kind != CountKind::Mapping);
        has_others.then(|| in_words(&self.kinds, self.unit))
    }
}

/// A source file and its page.
pub(super) struct Source<'a> {
    pub(super) path: &'a str,
    /// The path as it is shown.
    pub(super) name: String,
    /// The page, from the folder.
    pub(super) page: String,
}

impl<'a> Frame<'a> {
    pub(super) fn new(
        view: &'a View,
        earlier: Option<&'a Earlier>,
        provenance: &'a Provenance,
        project: Option<&'a str>,
    ) -> Self {
        let columns = view.columns.iter().map(|column| {
            let of = match column.side {
                Side::Device => "device code of",
                Side::Host => "host code of",
            };
            let binaries = column.binaries.iter();
            let binaries: Vec<_> = binaries
                .map(|binary| binary.display().to_string())
                .collect();
            Head {
                label: column.label.clone(),
                origin: format!("{of} {}", binaries.join(", ")),
                binaries,
                kinds: column.kinds.clone(),
                unit: column.unit,
                non_atomic: column.non_atomic,
            }
        });
        Self {
            view,
            earlier,
            provenance,
            project,
            columns: columns.collect(),
            base: common(view.paths_with_lines().map(|path| &**path)),
        }
    }

    pub(super) fn sources(&self) -> Vec<Source<'a>> {
        let paths = self.view.paths.iter();
        let sources = paths.map(|path| {
            let name = below(path, &self.base).into_owned();
            let page = page("source", &name);
            Source { path, name, page }
        });
        sources.collect()
    }

    /// The changed lines of a source.
    pub(super) fn changed(&self, source: &Source<'_>) -> Option<&'a ChangedSource> {
        let files = &self.view.changed.as_ref()?.files;
        let found = files.binary_search_by(|file| (*file.path).cmp(source.path));
        found.ok().map(|index| &files[index])
    }

    /// The names of the columns of figures.
    pub(super) fn labels(&self) -> Vec<String> {
        self.view.labels("all")
    }

    /// The names of the sources that only the earlier report has, each with its earlier figures.
    pub(super) fn gone(&self) -> Vec<(String, Shown)> {
        let earlier = self.earlier.iter();
        let gone = earlier.flat_map(|earlier| {
            let gone = earlier.gone(self.view);
            gone.map(|(path, shares)| {
                (
                    below(path, &self.base).into_owned(),
                    Shown::gone(earlier, shares),
                )
            })
        });
        gone.collect()
    }

    /// The figures of each column with its name, which code it is of, and the earlier ones.
    pub(super) fn figures(&self, shown: &Shown) -> Vec<(String, &str, Option<Cell>, Before)> {
        let origins = self.columns.iter().map(|column| &*column.origin);
        let origins = origins.chain(["all of these combined: code that ran on any of them"]);
        let labels = self.labels().into_iter().zip(origins);
        let cells = labels.zip(shown.cells());
        cells
            .map(|((label, origin), (cell, before))| (label, origin, cell, before))
            .collect()
    }

    /// The kinds of counts of the code, as a sentence has them.
    pub(super) fn counted_by(&self) -> String {
        let kinds = self.columns.iter().flat_map(|column| &column.kinds);
        let names: BTreeSet<_> = kinds.copied().collect();
        let unit = self.columns.iter().filter_map(|column| column.unit).max();
        let others = names.iter().filter(|kind| **kind != CountKind::Mapping);
        let others = others.map(|kind| kind.name_with(unit));
        let others = others.collect::<Vec<_>>().join(" and ");
        match (names.contains(&CountKind::Mapping), &*others) {
            (_, "") => "Figures by the rules of llvm-cov".to_owned(),
            (true, others) => format!("Figures by the rules of llvm-cov, and of {others}"),
            (false, others) => format!("Counted by {others}"),
        }
    }

    /// The title of the report.
    pub(super) fn title(&self) -> &str {
        self.project.unwrap_or("Coverage of GPU code")
    }

    pub(super) fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The time of the report: as it is shown, and for programs.
    pub(super) fn written(&self) -> (String, String) {
        let shown = time::utc(self.provenance.written);
        let (day, minute) = shown.split_once(' ').unwrap_or_default();
        let exact = format!("{day}T{minute}Z");
        (shown, exact)
    }

    /// The number of processes that ran, and when.
    pub(super) fn ran(&self, runs: &Runs) -> String {
        let [first, last] = runs.started.map(time::utc);
        let processes = count(runs.processes, "process");
        match first == last {
            true => format!("{processes}, started {first} UTC"),
            false => format!("{processes}, started {first} to {last} UTC"),
        }
    }

    /// The first command lines, or the start of a long one, each with its number of processes.
    pub(super) fn first_commands(&self, runs: &Runs) -> Vec<(String, usize)> {
        let commands = runs.commands.iter().take(COMMANDS);
        let shown = commands.map(|(command, processes)| {
            let cut = command.char_indices().nth(COMMAND_LENGTH);
            let shown =
                cut.map_or_else(|| command.clone(), |(at, _)| format!("{}…", &command[..at]));
            (shown, *processes)
        });
        shown.collect()
    }

    /// The number of the other command lines, if there are some.
    pub(super) fn more_commands(&self, runs: &Runs) -> Option<String> {
        let more = runs.commands.len().checked_sub(COMMANDS)?;
        (more > 0).then(|| format!("{more} more"))
    }

    /// Returns whether the report has tests.
    pub(super) fn has_tests(&self) -> bool {
        !self.view.tests.is_empty()
    }
}

/// The path of the page of source or test `name` in `folder`. Every report gives it this path, and no two
/// names share one. It has plain characters only.
pub(super) fn page(folder: &str, name: &str) -> String {
    let file = Path::new(name).file_name().unwrap_or_default();
    let file = file.to_string_lossy();
    let plain = file.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || "._-".contains(c) => c,
        _ => '_',
    });
    let plain: String = plain.take(NAME_LENGTH).collect();
    format!("{folder}/{plain}.{:016x}.html", xxh3_64(name.as_bytes()))
}

/// Writes a page as it is made.
pub(super) fn render(page: &impl Template, out: &mut dyn std::io::Write) -> Result<()> {
    Template::write_into(page, out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_plain_names_of_their_own() {
        let names = ["a/x.hip", "b/x.hip", "../../x.hip", "/", "a b/<é>\".h", ""];
        let pages = names.map(|name| page("source", name));
        for page in &pages {
            let name = page.strip_prefix("source/").unwrap();
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            );
        }
        assert!(pages[0].starts_with("source/x.hip."), "{pages:?}");
        let distinct: std::collections::BTreeSet<_> = pages.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(page("source", &"x".repeat(4096)).len() < 100);
    }
}
