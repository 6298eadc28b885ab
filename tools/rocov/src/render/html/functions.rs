//! The pages with all functions, and the entries of a source file in lists.

use anyhow::Result;
use askama::Template;

use super::figures::{Count, Shown, classes};
use super::frame::{Frame, Source, render};
use super::single::Site;
use crate::coverage::file::File;
use crate::coverage::function::symbol;
use crate::coverage::view::View;
use crate::support::demangle::shown;

/// The largest number of functions of a page.
const ON_PAGE: usize = 500;

/// A source file with its entries in lists.
pub(super) struct Listed<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) shown: Shown,
    pub(super) functions: Vec<Function>,
}

/// A function, or one instance of a template.
pub(super) struct Function {
    /// The demangled name.
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) is_kernel: bool,
    pub(super) calls: Vec<Count>,
    /// In which columns it did not run.
    pub(super) classes: String,
}

impl<'a> Listed<'a> {
    pub(super) fn new(view: &View, source: &'a Source<'a>, file: &File, shown: Shown) -> Self {
        Self {
            source,
            shown,
            functions: functions(view, file),
        }
    }
}

/// The functions of a file.
fn functions(view: &View, file: &File) -> Vec<Function> {
    let is_kernel = |name: &str| {
        view.columns
            .iter()
            .any(|column| column.kernels.contains(name))
    };
    let functions = file.functions.iter().map(|function| Function {
        name: shown(symbol(&function.name)),
        line: function.line,
        is_kernel: is_kernel(&function.name),
        calls: function
            .calls
            .iter()
            .map(|call| Count::new(*call, false))
            .collect(),
        classes: classes("x", function.calls.iter().map(|calls| *calls == Some(0))),
    });
    functions.collect()
}

/// A function with its file.
type Entry<'a> = (&'a Function, &'a Source<'a>);

/// A part of all functions.
#[derive(Template)]
#[template(path = "functions.html")]
struct Page<'a> {
    frame: &'a Frame<'a>,
    root: &'static str,
    /// The number of the page, from 0, and of all pages.
    number: usize,
    pages: usize,
    /// The number of all functions.
    total: usize,
    /// Titles, the number of all functions below each, and those on this page.
    parts: Vec<(&'static str, usize, &'a [Entry<'a>])>,
}

/// Writes the pages: kernels first, as programs launch them, then other functions.
pub(super) fn write(frame: &Frame<'_>, listed: &[Listed<'_>], site: &Site) -> Result<()> {
    let all = listed.iter().flat_map(|file| {
        file.functions
            .iter()
            .map(|function| (function, file.source))
    });
    let (kernels, others): (Vec<Entry<'_>>, Vec<Entry<'_>>) =
        all.partition(|entry| entry.0.is_kernel);
    let parts = [("Kernels", kernels), ("Other functions", others)];
    let total: usize = parts.iter().map(|(_, functions)| functions.len()).sum();
    let pages = total.div_ceil(ON_PAGE).max(1);
    for number in 0..pages {
        let mut first = number * ON_PAGE;
        let mut room = ON_PAGE;
        let mut here = Vec::new();
        for (title, functions) in &parts {
            let rest = functions.get(first..).unwrap_or_default();
            first = first.saturating_sub(functions.len());
            let shown = &rest[..rest.len().min(room)];
            room -= shown.len();
            if !shown.is_empty() {
                here.push((*title, functions.len(), shown));
            }
        }
        let page = Page {
            frame,
            root: "",
            number,
            pages,
            total,
            parts: here,
        };
        site.write(&name(number), |out| render(&page, out))?;
    }
    Ok(())
}

/// The path of a page from the folder.
fn name(number: usize) -> String {
    match number {
        0 => "functions.html".to_owned(),
        _ => format!("functions-{}.html", number + 1),
    }
}

impl Page<'_> {
    /// The other pages with their numbers, from 1; no path for this one.
    fn pager(&self) -> impl Iterator<Item = (usize, Option<String>)> {
        let pages = 0..self.pages;
        pages.map(|page| (page + 1, (page != self.number).then(|| name(page))))
    }

    /// The number of the first function here and of the last one, from 1.
    fn range(&self) -> [usize; 2] {
        let here: usize = self
            .parts
            .iter()
            .map(|(_, _, functions)| functions.len())
            .sum();
        let before = self.number * ON_PAGE;
        [before + 1, before + here]
    }
}
