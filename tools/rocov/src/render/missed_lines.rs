//! The lines of a file that did not run.

use crate::coverage::line::Line;
use crate::coverage::view::View;
use crate::term::line_ranges::ranges;

/// Ranges of lines that are shown of a file: a comment may have 65,536 characters.
const MOST_RANGES: usize = 12;

/// The numbers of `lines` that ran in no column, then of those that ran in another one.
pub(super) fn missed(view: &View, lines: &[Line]) -> String {
    let missed = view.missed(lines);
    let mut parts = vec![shortened(ranges(missed.nowhere))];
    let here = missed.here.into_iter();
    parts.extend(here.map(|(label, lines)| format!("on {label}: {}", shortened(ranges(lines)))));
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

fn shortened(mut ranges: Vec<String>) -> String {
    if ranges.len() > MOST_RANGES {
        ranges.truncate(MOST_RANGES);
        ranges.push("…".to_owned());
    }
    ranges.join(", ")
}
