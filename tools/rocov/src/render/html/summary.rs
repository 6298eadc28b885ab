//! The first page: the figures of all, and the tree of source files.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use askama::Template;

use super::figures::{Before, Cell, Metric, Shown};
use super::functions::Listed;
use super::never_ran::{KernelList, ShownKernels};
use super::since::Since;
use super::treemap::{Tile, tiles};
use super::{Frame, Source, render};
use crate::render::breakdown::{Listing, components};
use crate::render::excluded;

/// The largest number of files of which the directories are open at first.
const OPEN: usize = 50;

/// A line of the tree: a directory or a file.
struct Row<'a> {
    /// The number of directories that it is in.
    depth: usize,
    /// The path from the directory above.
    name: String,
    /// `None` of a directory.
    source: Option<&'a Source<'a>>,
    /// The path and the number of a directory.
    directory: Option<(String, usize)>,
    /// Classes of the directories that it is in: `in0` and `in3`, with a space after each.
    within: String,
    shown: Shown,
}

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

/// A directory.
pub(super) struct Tree<'a> {
    pub(super) directories: BTreeMap<&'a str, Self>,
    pub(super) files: Vec<(&'a str, &'a Listed<'a>)>,
    pub(super) shown: Shown,
}

impl<'a> Tree<'a> {
    fn new(columns: usize) -> Self {
        Self {
            directories: BTreeMap::new(),
            files: Vec::new(),
            shown: Shown::none(columns),
        }
    }

    /// Adds a file whose path from here is `path`.
    fn add(&mut self, path: &'a str, file: &'a Listed<'a>) {
        let mut tree = self;
        let mut rest = path;
        while let Some((directory, inner)) = rest.split_once('/') {
            tree.shown.add(&file.shown);
            let columns = tree.shown.columns.len();
            let known = tree.directories.entry(directory);
            tree = known.or_insert_with(|| Self::new(columns));
            rest = inner;
        }
        tree.shown.add(&file.shown);
        tree.files.push((rest, file));
    }

    /// Adds the earlier figures of a file that is gone to the directories that it was in.
    fn add_gone(&mut self, path: &str, shown: &Shown) {
        let mut tree = self;
        let mut rest = path;
        loop {
            tree.shown.add(shown);
            let Some((directory, inner)) = rest.split_once('/') else {
                return;
            };
            let Some(inside) = tree.directories.get_mut(directory) else {
                return;
            };
            (tree, rest) = (inside, inner);
        }
    }

    /// The directory and its name with a slash. A directory with nothing but another one is one with it.
    pub(super) fn without_only_folders(&self, name: &str) -> (String, &Self) {
        let mut name = format!("{name}/");
        let mut tree = self;
        while let (Some((inner, only)), 1, true) = (
            tree.directories.first_key_value(),
            tree.directories.len(),
            tree.files.is_empty(),
        ) {
            name += &format!("{inner}/");
            tree = only;
        }
        (name, tree)
    }

    /// The number of directories inside one another, with this one.
    pub(super) fn depth(&self) -> usize {
        let inner = self.directories.iter();
        let inner = inner.map(|(name, tree)| tree.without_only_folders(name).1.depth());
        1 + inner.max().unwrap_or_default()
    }

    /// The number of files, and of directories that are `depth` levels below, where the tree is cut.
    pub(super) fn number_at(&self, depth: usize) -> usize {
        let inner = self.directories.iter().map(|(name, tree)| match depth {
            0 | 1 => 1,
            _ => tree.without_only_folders(name).1.number_at(depth - 1),
        });
        self.files.len() + inner.sum::<usize>()
    }

    /// Appends the contents of this directory. `around` has the names of those that it is in, and itself.
    fn list(
        &self,
        around: &mut Vec<(String, usize)>,
        directories: &mut usize,
        rows: &mut Vec<Row<'a>>,
    ) {
        let depth = around.len();
        let within = |around: &[(String, usize)]| {
            let classes = around.iter().map(|(_, number)| format!("in{number} "));
            classes.collect::<String>()
        };
        for (name, tree) in &self.directories {
            let (name, tree) = tree.without_only_folders(name);
            let number = *directories;
            *directories += 1;
            let names = around.iter().map(|(name, _)| &**name);
            rows.push(Row {
                depth,
                directory: Some((names.chain([&*name]).collect(), number)),
                within: within(around),
                name: name.clone(),
                source: None,
                shown: tree.shown.clone(),
            });
            around.push((name, number));
            tree.list(around, directories, rows);
            around.pop();
        }
        for (name, file) in &self.files {
            rows.push(Row {
                depth,
                name: (*name).to_owned(),
                source: Some(file.source),
                directory: None,
                within: within(around),
                shown: file.shown.clone(),
            });
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
        since: Since::of(frame, listed, gone),
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
