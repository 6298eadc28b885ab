//! Checks that a source is the one that was compiled.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::misfit::{Lines, Misfit, Stale, misplaced};
use super::source_text::SourceTexts;
use super::view::View;

/// The source files of `view` that are not there as they were compiled.
pub(crate) fn misfits(view: &View) -> BTreeMap<Arc<str>, Misfit> {
    let misfits = view.paths.iter().filter_map(|path| {
        let misfit = misfit(view, path, &view.texts)?;
        Some((Arc::clone(path), misfit))
    });
    misfits.collect()
}

/// Checks the source that `texts` has at `path`. Returns a reason if it cannot be shown as it was
/// compiled.
pub(crate) fn misfit(view: &View, path: &str, texts: &SourceTexts) -> Option<Misfit> {
    if let Some(known) = view.misfits.get(path) {
        return Some(known.clone());
    }
    let Ok(text) = texts.read(Path::new(path)) else {
        return Some(Misfit::Missing);
    };
    let lines = Lines::new(&text);
    stale(view, path, |number| Some(lines.get(number))).map(Misfit::Stale)
}

/// Returns a sign that the source at `path` has changed since it was compiled or ran. `line` gives its lines; it returns `None` for lines that may be anything.
pub(super) fn stale<'a>(
    view: &View,
    path: &str,
    line: impl Fn(u32) -> Option<&'a [u8]>,
) -> Option<Stale> {
    if let Some(changed) = view.ran_lines.first_changed(path, &line) {
        return Some(Stale::since_run(changed));
    }
    let records = view.columns.iter().flat_map(|column| column.touching(path));
    records.into_iter().find_map(|record| {
        let function = record.description();
        let line = |file: u32, number: u32| match **function.path(file) == *path {
            true => line(number),
            false => None,
        };
        misplaced(function, line).next().map(|(_, stale)| stale)
    })
}
