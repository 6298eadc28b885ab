//! Pages for a browser: a folder or a single file that needs nothing else, neither a server nor a network.
//!
//! [`summary`] is the first page, with the tree of source files; [`source`] makes one for each of
//! these, with [`instances`] of templates and colours of its [`syntax`], [`functions`] those with all functions, and
//! [`per_test`] those of tests. The templates, the style and the script are in
//! `tools/rocov/html`. The pages hold all text; the script adds search, sorting and keys.

mod escape;
mod figures;
mod folder;
mod functions;
mod instances;
mod marks;
mod never_ran;
mod per_test;
mod search;
mod since;
mod single;
mod source;
mod summary;
mod syntax;
mod treemap;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Result;
use askama::Template;
use xxhash_rust::xxh3::xxh3_64;

use super::html::figures::{Before, Cell, Shown};
use super::html::functions::Listed;
use super::html::never_ran::KernelList;
use super::html::per_test::{TestSets, Tests};
use super::html::single::Site;
use crate::coverage::Provenance;
use crate::coverage::changed::covered::ChangedSource;
use crate::coverage::model::Side;
use crate::coverage::provenance::Runs;
use crate::coverage::report::too_low;
use crate::coverage::view::View;
use crate::profdata::{CountKind, CountKinds};
use crate::support::paths::{below, common};
use crate::support::time;
use crate::term::plural::count;
use crate::term::progress;

const STYLE: &str = include_str!("../../../html/report.css");
const SCRIPT: &str = include_str!("../../../html/report.js");

/// Characters of a source's name that the name of its page starts with.
const NAME_LENGTH: usize = 60;

/// The largest number of command lines that a report shows.
const COMMANDS: usize = 5;

/// The largest number of characters of a command line that a report shows.
const COMMAND_LENGTH: usize = 500;

/// Writes the report to the folder `path`, or to a single file if that is the name of one. Returns the path of its first
/// page.
///
/// # Errors
///
/// Fails if there is something else, or a file cannot be written.
pub(crate) fn write(
    view: &View,
    provenance: &Provenance,
    title: Option<&str>,
    path: &Path,
) -> Result<PathBuf> {
    let site = Site::new(path)?;
    if let Site::Folder(folder) = &site {
        folder.write("assets/report.css", |out| {
            Ok(out.write_all(STYLE.as_bytes())?)
        })?;
        folder.write("assets/report.js", |out| {
            Ok(out.write_all(SCRIPT.as_bytes())?)
        })?;
    }

    let frame = Frame::new(view, provenance, title);
    let sources = frame.sources();
    let mut listed = Vec::new();
    let mut tests = Tests::of(view);
    let mut kernels = KernelList::of(view);
    let mut total = Shown::none(view.columns.len());
    // One page after the other: after a page is written, only its entries in lists are kept.
    progress::counted(sources.len(), "page", |done| {
        for (index, (source, (_, row))) in sources.iter().zip(view.rows()).enumerate() {
            let file = view.file(source.path);
            let shown = Shown::of(view, source.path, row, &file, frame.changed(source));
            let before = index.checked_sub(1).map(|before| &sources[before]);
            let neighbours = [before, sources.get(index + 1)];
            total.add(&shown);
            let file_listed = Listed::of(view, source, &file, shown);
            let line_tests = view.line_tests.lines(source.path);
            kernels.add(source, &file, &line_tests);
            tests.add(view, source, &file, &line_tests);
            let sets = TestSets::of(view, &line_tests);
            source::write(&frame, &file_listed, neighbours, &file, &sets, &site)?;
            listed.push(file_listed);
            done.fetch_add(1, Ordering::Relaxed);
        }
        anyhow::Ok(())
    })?;
    let gone = frame.gone();
    for (_, shown) in &gone {
        total.add(shown);
    }
    functions::write(&frame, &listed, &site)?;
    tests.write(&frame, &site)?;
    site.write("assets/search.js", |out| search::write(&listed, out))?;
    site.write(folder::INDEX, |out| {
        summary::write(&frame, &listed, &gone, &total, &kernels, out)
    })?;
    site.publish()
}

/// The common parts of all pages.
struct Frame<'a> {
    view: &'a View,
    provenance: &'a Provenance,
    /// The name of the project, if the user gave one.
    project: Option<&'a str>,
    columns: Vec<Head>,
    /// The directory that paths are shown from.
    base: PathBuf,
}

/// The head of a column.
struct Head {
    label: String,
    /// The code that the report is of.
    origin: String,
    /// The files that the code lies in.
    binaries: Vec<String>,
    kinds: CountKinds,
    /// The number of functions whose counts are too low.
    non_atomic: usize,
}

impl Head {
    /// The reason why counts are too low, if they are.
    fn too_low(&self) -> Option<String> {
        (self.non_atomic > 0).then(|| too_low(self.non_atomic))
    }

    /// The names of the kinds of counts, if there are others than a coverage mapping.
    fn counted_by(&self) -> Option<String> {
        let names = self.kinds.iter().map(|kind| kind.name());
        let has_others = self.kinds.iter().any(|kind| *kind != CountKind::Mapping);
        has_others.then(|| names.collect::<Vec<_>>().join(", "))
    }
}

/// A source file and its page.
struct Source<'a> {
    path: &'a str,
    /// The path as it is shown.
    name: String,
    /// The page, from the folder.
    page: String,
}

impl<'a> Frame<'a> {
    fn new(view: &'a View, provenance: &'a Provenance, project: Option<&'a str>) -> Self {
        let columns = view.columns.iter().map(|column| {
            let of = match column.side {
                Side::Device => "device code of",
                Side::Host => "host code of",
            };
            let binaries = column.binaries.iter();
            let binaries: Vec<_> = binaries.map(|it| it.display().to_string()).collect();
            Head {
                label: column.label.clone(),
                origin: format!("{of} {}", binaries.join(", ")),
                binaries,
                kinds: column.kinds.clone(),
                non_atomic: column.non_atomic,
            }
        });
        Self {
            view,
            provenance,
            project,
            columns: columns.collect(),
            base: common(view.paths_with_lines().map(|path| &**path)),
        }
    }

    fn sources(&self) -> Vec<Source<'a>> {
        let paths = self.view.paths.iter();
        let sources = paths.map(|path| {
            let name = below(path, &self.base).into_owned();
            let page = page("source", &name);
            Source { path, name, page }
        });
        sources.collect()
    }

    /// The changed lines of a source.
    fn changed(&self, source: &Source<'_>) -> Option<&'a ChangedSource> {
        let files = &self.view.changed.as_ref()?.files;
        let found = files.binary_search_by(|file| (*file.path).cmp(source.path));
        found.ok().map(|index| &files[index])
    }

    /// The names of the columns of figures.
    fn labels(&self) -> Vec<String> {
        self.view.labels("all")
    }

    /// The names of the sources that only the earlier report has, each with its earlier figures.
    fn gone(&self) -> Vec<(String, Shown)> {
        let earlier = self.view.earlier.iter();
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
    fn figures(&self, shown: &Shown) -> Vec<(String, &str, Option<Cell>, Before)> {
        let origins = self.columns.iter().map(|it| &*it.origin);
        let origins = origins.chain(["all of these joined: code that ran on any of them"]);
        let labels = self.labels().into_iter().zip(origins);
        let cells = labels.zip(shown.cells());
        cells
            .map(|((label, origin), (cell, before))| (label, origin, cell, before))
            .collect()
    }

    /// The kinds of counts of the code, as a sentence has them.
    fn counted_by(&self) -> String {
        let kinds = self.columns.iter().flat_map(|it| &it.kinds);
        let names: BTreeSet<_> = kinds.copied().collect();
        let names = names.into_iter().map(|kind| match kind {
            CountKind::Mapping => "llvm-cov",
            other => other.name(),
        });
        match names.collect::<Vec<_>>().as_slice() {
            ["llvm-cov"] | [] => "Counted as llvm-cov counts".to_owned(),
            ["llvm-cov", others @ ..] => {
                format!("Counted as llvm-cov counts and by {}", others.join(" and "))
            }
            names => format!("Counted by {}", names.join(" and ")),
        }
    }

    /// The title of the report.
    fn title(&self) -> &str {
        self.project.unwrap_or("Coverage of GPU code")
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The time of the report: as it is shown, and for programs.
    fn written(&self) -> (String, String) {
        let shown = time::utc(self.provenance.written);
        let (day, minute) = shown.split_once(' ').unwrap_or_default();
        let exact = format!("{day}T{minute}Z");
        (shown, exact)
    }

    /// The number of processes that ran, and when.
    fn ran(&self, runs: &Runs) -> String {
        let [first, last] = runs.started.map(time::utc);
        let processes = count(runs.processes, "process");
        match first == last {
            true => format!("{processes}, started {first} UTC"),
            false => format!("{processes}, started {first} to {last} UTC"),
        }
    }

    /// The first command lines, or the start of a long one, each with its number of processes.
    fn first_commands(&self, runs: &Runs) -> Vec<(String, usize)> {
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
    fn more_commands(&self, runs: &Runs) -> Option<String> {
        let more = runs.commands.len().checked_sub(COMMANDS)?;
        (more > 0).then(|| format!("{more} more"))
    }

    /// Returns whether the report has tests.
    fn has_tests(&self) -> bool {
        !self.view.tests.is_empty()
    }
}

/// The path of the page of source or test `name` in `folder`. Every report gives it this path, and no two
/// names share one. It has plain characters only.
fn page(folder: &str, name: &str) -> String {
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
fn render(page: &impl Template, out: &mut dyn std::io::Write) -> Result<()> {
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
