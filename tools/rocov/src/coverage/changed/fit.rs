//! Whether a source is the one that was compiled.

use crate::coverage::function::{Kind, Place};
use crate::coverage::view::View;
use std::collections::BTreeMap;
use std::path::Path;

/// Where `path` is known not to be what was compiled: a place where code starts, and the source has
/// none.
///
/// A region of code starts with a token, so there is neither a blank nor the end of a line. The
/// source is what a diff says of it, `added` by line, and its text as far as that agrees with the
/// diff.
pub(super) fn misfit(view: &View, path: &str, added: &BTreeMap<u32, Vec<u8>>) -> Option<Place> {
    let contents = view.texts.read(Path::new(path)).unwrap_or_default();
    let lines: Vec<_> = contents.split(|byte| *byte == b'\n').collect();
    let line = |number: u32| lines.get(number.checked_sub(1)? as usize).copied();
    let is_diffs = added.iter().all(|(number, text)| {
        line(*number).is_some_and(|line| line.trim_ascii_end() == text.trim_ascii_end())
    });
    let is_code = |place: &Place| {
        let text = match added.get(&place.line) {
            Some(added) => added,
            None if is_diffs => line(place.line).unwrap_or_default(),
            None => return true,
        };
        let column = place.column.checked_sub(1);
        let byte = column.and_then(|column| text.get(column as usize));
        byte.is_some_and(|byte| !byte.is_ascii_whitespace())
    };
    let columns = view.columns.iter();
    let mut starts = columns.flat_map(|column| {
        column.touching(path).flat_map(|record| {
            let function = &record.function;
            let here = function.regions.iter().filter(|region| {
                region.kind == Kind::Code && &**function.path(region.location.file) == path
            });
            here.map(|region| region.location.span.start)
        })
    });
    starts.find(|place| !is_code(place))
}
