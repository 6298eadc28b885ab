//! The first page: the figures of all, and the tree of source files.

use std::io::Write;

use anyhow::Result;
use askama::Template;

use super::figures::{Before, Cell, Metric, Shown};
use super::frame::{Frame, render};
use super::functions::Listed;
use super::never_ran::{IdleArch, KernelList, ShownKernels, idle_archs};
use super::since::Since;
use super::tree::{Row, Tree};
use super::treemap::{Tile, tiles};
use crate::render::breakdown::{Listing, carried_total, components};
use crate::render::excluded::excluded;

/// The largest number of files of which the directories are open at first.
const OPEN: usize = 50;

impl Row<'_> {
    /// The path of the directory that a file is in, with a slash at its end.
    fn parent(&self) -> &str {
        let path = self.source.map_or("", |source| &source.name);
        path.strip_suffix(&self.name).unwrap_or_default()
    }

    /// The figures of each column, the earlier ones, and the link of those of lines.
    fn cells(&self, metric: &Metric) -> Vec<(Option<Cell>, Before, String)> {
        let cells = self.shown.cells().into_iter().enumerate();
        let link = |column| match metric.key {
            "lines" => self.link(column),
            _ => String::new(),
        };
        cells
            .map(|(column, (cell, before))| (cell, before, link(column)))
            .collect()
    }

    /// The target of a cell: the first place that the file misses in that column. Empty if it misses
    /// none.
    fn link(&self, column: usize) -> String {
        let missed = self.shown.columns.get(column).copied().flatten();
        match (self.source, missed) {
            (Some(source), Some(cell)) if cell.misses_lines() => {
                let only = match self.shown.columns.len() {
                    1 => "any".to_owned(),
                    _ => column.to_string(),
                };
                format!("{}#only-{only}", source.page)
            }
            _ => String::new(),
        }
    }
}

#[derive(Template)]
#[template(path = "summary.html")]
struct Page<'a> {
    frame: &'a Frame<'a>,
    root: &'static str,
    total: &'a Shown,
    metrics: Vec<&'static Metric>,
    components: Option<Listing<'a>>,
    /// The number of lines that are left out, if there are any.
    excluded: Option<String>,
    kernels: ShownKernels<'a>,
    idle_archs: Vec<IdleArch<'a>>,
    /// The figures of architectures that ran earlier.
    carried: Vec<String>,
    since: Option<Since<'a>>,
    tiles: Vec<Tile<'a>>,
    /// The number of files in which nothing is missed.
    whole: usize,
    /// The number of files of which a lower share of the lines ran than before.
    worse: usize,
    rows: Vec<Row<'a>>,
    files: usize,
    /// The number of directories.
    directories: usize,
    /// True if directories are open at first.
    are_open: bool,
}

pub(super) fn write(
    frame: &Frame<'_>,
    listed: &[Listed<'_>],
    gone: &[(String, Shown)],
    total: &Shown,
    kernels: &KernelList<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut tree = Tree::new(frame.columns.len());
    for file in listed {
        tree.add(&file.source.name, file);
    }
    for (path, shown) in gone {
        tree.add_gone(path, shown);
    }
    let mut rows = Vec::new();
    let mut directories = 0;
    tree.list(&mut Vec::new(), &mut directories, &mut rows);
    let page = Page {
        frame,
        root: "",
        total,
        metrics: total.metrics(),
        components: components(frame.view),
        excluded: excluded(frame.view),
        kernels: kernels.shown(),
        idle_archs: idle_archs(frame.view),
        carried: frame.view.carried.iter().map(carried_total).collect(),
        since: Since::find(frame, listed, gone),
        tiles: tiles(&tree),
        whole: listed.iter().filter(|file| file.shown.is_whole()).count(),
        worse: listed.iter().filter(|file| file.shown.is_worse()).count(),
        rows,
        files: listed.len(),
        directories,
        are_open: listed.len() <= OPEN,
    };
    render(&page, out)
}
