//! The first page: the figures of all, and the tree of source files.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use askama::Template;

use super::figures::{Cell, Metric, Shown};
use super::functions::Listed;
use super::{Frame, Source, render};
use crate::render::breakdown::{Listing, listings};

/// A line of the tree: a directory or a file.
struct Row<'a> {
    /// The number of directories that it is in.
    depth: usize,
    /// The path from the directory above.
    name: String,
    /// `None` of a directory.
    source: Option<&'a Source<'a>>,
    shown: Shown,
}

impl Row<'_> {
    /// The path of the directory that a file is in, with a slash at its end.
    fn directory(&self) -> &str {
        let path = self.source.map_or("", |source| &source.name);
        path.strip_suffix(&self.name).unwrap_or_default()
    }

    /// The figures, and the link of each column.
    fn cells(&self) -> Vec<(Option<Cell>, String)> {
        let cells = self.shown.cells().into_iter().enumerate();
        cells
            .map(|(column, cell)| (cell, self.link(column)))
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
struct Tree<'a> {
    directories: BTreeMap<&'a str, Self>,
    files: Vec<(&'a str, &'a Listed<'a>)>,
    shown: Shown,
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

    /// Appends the contents of this directory, which is in `depth` others.
    fn list(&self, depth: usize, rows: &mut Vec<Row<'a>>) {
        for (name, tree) in &self.directories {
            let mut name = format!("{name}/");
            let mut tree = tree;
            // A directory with nothing but another one is one with it.
            while let (Some((inner, only)), 1, true) = (
                tree.directories.first_key_value(),
                tree.directories.len(),
                tree.files.is_empty(),
            ) {
                name += &format!("{inner}/");
                tree = only;
            }
            rows.push(Row {
                depth,
                name,
                source: None,
                shown: tree.shown.clone(),
            });
            tree.list(depth + 1, rows);
        }
        for (name, file) in &self.files {
            rows.push(Row {
                depth,
                name: (*name).to_owned(),
                source: Some(file.source),
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
    /// The tables of components and tests.
    listings: Vec<Listing<'a>>,
    rows: Vec<Row<'a>>,
    files: usize,
}

pub(super) fn write(
    frame: &Frame<'_>,
    listed: &[Listed<'_>],
    total: &Shown,
    out: &mut dyn Write,
) -> Result<()> {
    let mut tree = Tree::new(frame.columns.len());
    for file in listed {
        tree.add(&file.source.name, file);
    }
    let mut rows = Vec::new();
    tree.list(0, &mut rows);
    let page = Page {
        frame,
        root: "",
        total,
        metrics: total.metrics(),
        listings: listings(frame.view),
        rows,
        files: listed.len(),
    };
    render(&page, out)
}
