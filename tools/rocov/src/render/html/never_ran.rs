//! The kernels that never ran on an architecture, and the tests that come nearest to them: the first thing that a
//! reader of the report acts on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::figures::Count;
use super::frame::{Source, page};
use super::per_test::LineTests;
use crate::coverage::file::{File, Instance};
use crate::coverage::function::symbol;
use crate::coverage::view::View;
use crate::support::demangle::{first_shown, shown};
use crate::term::plural::count;

/// The largest number of kernels that the first page lists.
const LISTED: usize = 15;

/// The largest number of tests that are named for a kernel.
const NEAREST: usize = 3;

/// The kernels of the files that were added.
pub(super) struct KernelList<'a> {
    view: &'a View,
    /// The number of all kernels.
    number: usize,
    never_ran: Vec<NeverRan<'a>>,
    /// The number of lines that each test reaches, of each folder.
    by_folder: HashMap<String, BTreeMap<usize, usize>>,
}

/// A kernel that did not run in a column.
struct NeverRan<'a> {
    source: &'a Source<'a>,
    line: u32,
    /// The demangled name.
    name: String,
    calls: Vec<Option<u64>>,
    /// The tests that reach lines of it, with the labels of the columns.
    of_lines: Vec<(usize, Vec<String>)>,
    /// The number of lines of its file that each test reaches.
    of_file: BTreeMap<usize, usize>,
}

/// The kernels that the first page shows.
pub(super) struct ShownKernels<'a> {
    /// The number of all kernels.
    pub(super) number: usize,
    /// The number of those that did not run in a column.
    pub(super) never_ran: usize,
    /// The first of these.
    pub(super) rows: Vec<Row<'a>>,
}

/// A kernel in a table.
pub(super) struct Row<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) line: u32,
    pub(super) name: &'a str,
    pub(super) calls: Vec<Count>,
    pub(super) nearest: Vec<Near<'a>>,
}

/// A test that comes near to a kernel.
pub(super) struct Near<'a> {
    pub(super) name: &'a str,
    pub(super) page: String,
    /// The code that it reaches: `runs it on gfx90a`.
    pub(super) reason: String,
}

/// An architecture that the code was compiled for, and on which nothing ran.
pub(super) struct IdleArch<'a> {
    pub(super) label: &'a str,
    /// The number of its kernels in the files shown.
    pub(super) kernels: usize,
    /// The names of the first of them.
    pub(super) names: String,
}

/// The architectures on which nothing ran, but those whose figures are carried forward.
pub(super) fn idle_archs(view: &View) -> Vec<IdleArch<'_>> {
    let archs = view.idle_columns().map(|(other, column)| {
        let records = other.paths.iter().flat_map(|path| column.entries(path));
        let names = records.map(|record| symbol(&record.function.name));
        let kernels: BTreeSet<_> = names
            .filter(|name| column.kernels.contains(*name))
            .collect();
        IdleArch {
            label: &column.label,
            kernels: kernels.len(),
            names: first_shown(&kernels),
        }
    });
    archs.filter(|arch| arch.kernels > 0).collect()
}

impl<'a> KernelList<'a> {
    pub(super) fn new(view: &'a View) -> Self {
        Self {
            view,
            number: 0,
            never_ran: Vec::new(),
            by_folder: HashMap::new(),
        }
    }

    /// Adds the kernels of a file, and the tests that reach its lines.
    pub(super) fn add(&mut self, source: &'a Source<'a>, file: &File, tests: &LineTests) {
        let mut of_file: BTreeMap<usize, usize> = BTreeMap::new();
        for test in tests.values().flatten() {
            *of_file.entry(*test).or_default() += 1;
        }
        if !of_file.is_empty() {
            let folder = self.by_folder.entry(folder(source).to_owned()).or_default();
            for (test, lines) in &of_file {
                *folder.entry(*test).or_default() += lines;
            }
        }
        let kernels = file.functions.iter();
        let kernels: Vec<_> = kernels
            .filter(|kernel| self.is_kernel(&kernel.name))
            .collect();
        self.number += kernels.len();
        for kernel in kernels {
            if !kernel.calls.contains(&Some(0)) {
                continue;
            }
            let ends = [kernel.line, self.end(source.path, kernel)];
            let of_lines = self.view.line_tests.reaching(source.path, ends).into_iter();
            let of_lines = of_lines.map(|(test, labels)| {
                let labels = labels.into_iter().map(str::to_owned);
                (test, labels.collect())
            });
            self.never_ran.push(NeverRan {
                source,
                line: kernel.line,
                name: shown(symbol(&kernel.name)),
                calls: kernel.calls.clone(),
                of_lines: of_lines.collect(),
                of_file: of_file.clone(),
            });
        }
    }

    fn is_kernel(&self, name: &str) -> bool {
        let mut columns = self.view.columns.iter();
        columns.any(|column| column.kernels.contains(name))
    }

    /// The last line of a function.
    fn end(&self, path: &str, function: &Instance) -> u32 {
        let columns = self.view.columns.iter();
        let records = columns.flat_map(|column| column.defined_in(path));
        let here = records.filter(|record| *record.function.name == *function.name);
        let ends = here.map(|record| record.function.end().line);
        ends.max().unwrap_or(function.line)
    }

    /// The kernels for the first page: those that ran nowhere first.
    pub(super) fn shown(&self) -> ShownKernels<'_> {
        let mut never_ran: Vec<_> = self.never_ran.iter().collect();
        never_ran.sort_by_key(|kernel| kernel.calls.iter().any(|calls| *calls > Some(0)));
        let rows = never_ran.iter().take(LISTED).map(|kernel| Row {
            source: kernel.source,
            line: kernel.line,
            name: &kernel.name,
            calls: kernel
                .calls
                .iter()
                .map(|call| Count::new(*call, false))
                .collect(),
            nearest: self.nearest(kernel),
        });
        ShownKernels {
            number: self.number,
            never_ran: never_ran.len(),
            rows: rows.collect(),
        }
    }

    /// The tests that come nearest to a kernel: those that run it elsewhere, or another instance of it; those that
    /// reach most lines of its file; those that reach most lines of its folder.
    fn nearest(&self, kernel: &NeverRan<'_>) -> Vec<Near<'_>> {
        let missed = |label: &String| {
            let columns = self.view.columns.iter().zip(&kernel.calls);
            let mut here = columns.filter(|(column, _)| column.label == *label);
            here.any(|(_, calls)| *calls == Some(0))
        };
        let lines = |test: &usize| kernel.of_file.get(test).copied().unwrap_or_default();
        let mut of_lines: Vec<_> = kernel.of_lines.iter().collect();
        of_lines.sort_by_key(|(test, labels)| (labels.iter().all(missed), Reverse(lines(test))));
        let of_lines = of_lines.into_iter().map(|(test, labels)| {
            let elsewhere: Vec<_> = labels.iter().filter(|label| !missed(label)).collect();
            let reason = match elsewhere.as_slice() {
                [] => "runs another instance".to_owned(),
                [label] => format!("runs it on {label}"),
                [first, ..] => format!("runs it on {first} and others"),
            };
            (*test, reason)
        });
        let most = |lines: &BTreeMap<usize, usize>, place: &str| {
            let mut tests: Vec<_> = lines.iter().map(|(test, lines)| (*test, *lines)).collect();
            tests.sort_by_key(|(_, lines)| Reverse(*lines));
            let reasons = tests.into_iter().map(|(test, lines)| {
                (test, format!("reaches {} of {place}", count(lines, "line")))
            });
            reasons.collect::<Vec<_>>()
        };
        let folder = folder(kernel.source);
        let of_folder = self.by_folder.get(folder).map(|lines| match folder {
            "" => most(lines, "this folder"),
            folder => most(lines, folder),
        });
        let mut nearest: Vec<(usize, String)> = Vec::new();
        let candidates = of_lines
            .chain(most(&kernel.of_file, "this file"))
            .chain(of_folder.into_iter().flatten());
        for (test, reason) in candidates {
            if nearest.len() < NEAREST && nearest.iter().all(|(known, _)| *known != test) {
                nearest.push((test, reason));
            }
        }
        let nearest = nearest.into_iter().map(|(test, reason)| {
            let name = &*self.view.tests[test].name;
            Near {
                name,
                page: page("test", name),
                reason,
            }
        });
        nearest.collect()
    }
}

/// The folder of a source, as it is shown.
fn folder<'a>(source: &'a Source<'_>) -> &'a str {
    let end = source.name.rfind('/').map_or(0, |slash| slash + 1);
    &source.name[..end]
}
