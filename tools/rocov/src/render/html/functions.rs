//! The page with all functions, and the entries of a source file in lists.

use std::io::Write;

use anyhow::Result;
use askama::Template;

use super::figures::{Count, Shown, classes};
use super::{Frame, Source, render};
use crate::coverage::file::File;
use crate::coverage::llvm_cov::symbol;
use crate::coverage::view::View;
use crate::support::demangle::shown;

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
    pub(super) fn of(view: &View, source: &'a Source<'a>, file: &File, shown: Shown) -> Self {
        Self {
            source,
            shown,
            functions: functions(view, file),
        }
    }
}

/// The functions of a file.
fn functions(view: &View, file: &File) -> Vec<Function> {
    let is_kernel = |name: &str| view.columns.iter().any(|it| it.kernels.contains(name));
    let functions = file.functions.iter().map(|it| Function {
        name: shown(symbol(&it.name)),
        line: it.line,
        is_kernel: is_kernel(&it.name),
        calls: it.calls.iter().map(|it| Count::of(*it, false)).collect(),
        classes: classes("x", it.calls.iter().map(|calls| *calls == Some(0))),
    });
    functions.collect()
}

#[derive(Template)]
#[template(path = "functions.html")]
struct Page<'a> {
    frame: &'a Frame<'a>,
    root: &'static str,
    listed: &'a [Listed<'a>],
}

impl Page<'_> {
    /// Kernels first, as programs launch them; each with its file.
    fn parts(&self) -> [(&'static str, Vec<(&Function, &Source<'_>)>); 2] {
        let all = |is_kernel: bool| {
            let files = self.listed.iter();
            let functions =
                files.flat_map(|file| file.functions.iter().map(|it| (it, file.source)));
            functions
                .filter(move |(it, _)| it.is_kernel == is_kernel)
                .collect()
        };
        [("Kernels", all(true)), ("Other functions", all(false))]
    }
}

pub(super) fn write(frame: &Frame<'_>, listed: &[Listed<'_>], out: &mut dyn Write) -> Result<()> {
    let root = "";
    render(
        &Page {
            frame,
            root,
            listed,
        },
        out,
    )
}
