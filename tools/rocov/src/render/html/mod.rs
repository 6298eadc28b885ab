//! Pages for a browser: a folder or a single file that needs nothing else, neither a server nor a network.
//!
//! [`summary`] is the first page, with the tree of source files; [`source`] makes one for each of
//! these, with [`instances`] of templates and colours of its [`syntax`], [`functions`] those with all functions, and
//! [`per_test`] those of tests. The templates, the style and the script are in
//! `tools/rocov/html`. The pages hold all text; the script adds search, sorting and keys.

mod assets;
mod escape;
mod figures;
mod folder;
mod frame;
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
mod tree;
mod treemap;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Result;

use self::assets::{SCRIPT, STYLE};
use self::figures::Shown;
use self::frame::Frame;
use self::functions::Listed;
use self::never_ran::KernelList;
use self::per_test::{TestSets, Tests};
use self::single::Site;
use crate::coverage::view::View;
use crate::coverage::{Earlier, Provenance};
use crate::term::progress;

/// Writes the report to the folder `path`, or to a single file if that is the name of one. Returns the path of its first
/// page.
///
/// # Errors
///
/// Fails if there is something else, or a file cannot be written.
pub(crate) fn write(
    view: &View,
    earlier: Option<&Earlier>,
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

    let frame = Frame::new(view, earlier, provenance, title);
    let sources = frame.sources();
    let mut listed = Vec::new();
    let mut tests = Tests::new(view);
    let mut kernels = KernelList::new(view);
    let mut total = Shown::none(view.columns.len());
    // One page after the other: after a page is written, only its entries in lists are kept.
    progress::counted(sources.len(), "page", |done| {
        for (index, (source, (_, row))) in sources.iter().zip(view.rows()).enumerate() {
            let file = view.file(source.path);
            let shown = Shown::new(
                view,
                earlier,
                source.path,
                row,
                &file,
                frame.changed(source),
            );
            let before = index.checked_sub(1).map(|before| &sources[before]);
            let neighbours = [before, sources.get(index + 1)];
            total.add(&shown);
            let file_listed = Listed::new(view, source, &file, shown);
            let line_tests = view.line_tests.lines(source.path);
            kernels.add(source, &file, &line_tests);
            tests.add(view, source, &file, &line_tests);
            let sets = TestSets::new(view, &line_tests);
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
