//! Checks that a source is the one that was compiled.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::misfit::{Misfit, Stale, misplaced};
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

/// The lines of a text.
pub(super) struct Lines<'a>(Vec<&'a [u8]>);

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self(text.split(|byte| *byte == b'\n').collect())
    }

    /// The line with this number, from 1; empty if there is none.
    pub(super) fn get(&self, number: u32) -> &'a [u8] {
        let index = number.checked_sub(1).map(|index| index as usize);
        let line = index.and_then(|index| self.0.get(index));
        line.copied().unwrap_or_default()
    }
}

/// Returns a place that shows that the source at `path` has changed since it was compiled. `line` gives
/// its lines; it returns `None` for lines that may be anything.
pub(super) fn stale<'a>(
    view: &View,
    path: &str,
    line: impl Fn(u32) -> Option<&'a [u8]>,
) -> Option<Stale> {
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
