//! The parts of a line that did not run.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::coverage::function::{Place, Span};

/// The spans of a file that did not run in one column, read line by line.
pub(super) struct Missed<'a> {
    /// The spans in order, without those that end before the current line.
    spans: &'a [Span],
}

impl<'a> Missed<'a> {
    pub(super) fn new(spans: &'a [Span]) -> Self {
        Self { spans }
    }

    /// The parts of line `number`, which has this text, as offsets of bytes. Call it for
    /// lines in their order.
    pub(super) fn in_line(&mut self, number: u32, text: &str) -> Vec<Range<usize>> {
        let is_over = |span: &&Span| span.end.line < number;
        self.spans = &self.spans[self.spans.iter().take_while(is_over).count()..];
        let here = self
            .spans
            .iter()
            .take_while(|span| span.start.line <= number);
        here.filter_map(|span| within(*span, number, text))
            .collect()
    }
}

/// The part of a span that is in line `number`, without space at its ends.
fn within(span: Span, number: u32, text: &str) -> Option<Range<usize>> {
    let start = if span.start.line < number {
        0
    } else {
        offset(span.start, text)
    };
    let end = if span.end.line > number {
        text.len()
    } else {
        offset(span.end, text)
    };
    let part = text.get(start..end)?;
    let start = start + part.len() - part.trim_start().len();
    let end = end - (part.len() - part.trim_end().len());
    (start < end).then_some(start..end)
}

/// The byte of a place in the text of its line, or the end of the line if it is shorter: the source may
/// have changed.
fn offset(place: Place, text: &str) -> usize {
    let column = place.column.saturating_sub(1) as usize;
    let mut offset = column.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The text between two places: up to the end of the line if they are on different lines.
pub(super) fn between(start: Place, end: Place, text: &str) -> &str {
    let from = offset(start, text);
    let to = if end.line == start.line {
        offset(end, text)
    } else {
        text.len()
    };
    text.get(from..to).unwrap_or_default()
}

/// Returns whether the text of a branch is a label of a `switch`: `case 1`, or `default`.
pub(super) fn is_label(text: &str) -> bool {
    let rest = text.strip_prefix("case").or(text.strip_prefix("default"));
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    rest.is_some_and(|rest| !rest.starts_with(is_of_name))
}

/// The name that starts at a place.
pub(super) fn name_at(start: Place, text: &str) -> &str {
    let rest = &text[offset(start, text)..];
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
    &rest[..end]
}

/// A part of a line and the columns that it did not run in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) missed: Vec<usize>,
}

/// A line in pieces, from the parts of it that were missed in each column.
pub(super) fn pieces<'a>(text: &'a str, missed: &[Vec<Range<usize>>]) -> Vec<Piece<'a>> {
    let ranges = missed.iter().flatten();
    let mut bounds: BTreeSet<_> = ranges.flat_map(|range| [range.start, range.end]).collect();
    bounds.extend([0, text.len()]);
    let bounds: Vec<_> = bounds.into_iter().collect();
    let pieces = bounds.windows(2).map(|pair| {
        let has = |ranges: &[Range<usize>]| ranges.iter().any(|range| range.contains(&pair[0]));
        let missed = missed.iter().enumerate();
        Piece {
            text: &text[pair[0]..pair[1]],
            missed: missed
                .filter(|(_, ranges)| has(ranges))
                .map(|(column, _)| column)
                .collect(),
        }
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_told_from_conditions() {
        assert!(is_label("case 1") && is_label("default") && is_label("case'a'"));
        assert!(!is_label("cases == 1") && !is_label("default_mode") && !is_label("mode"));
    }

    fn span(start: (u32, u32), end: (u32, u32)) -> Span {
        let place = |(line, column)| Place { line, column };
        Span {
            start: place(start),
            end: place(end),
        }
    }

    #[test]
    fn parts_of_lines_are_found_in_order() {
        let spans = [
            span((1, 3), (1, 5)),
            span((2, 4), (4, 3)),
            span((4, 6), (4, 99)),
        ];
        let mut missed = Missed::new(&spans);
        for (number, text, expected) in [
            (1, "abcdef", &["cd"][..]),
            (2, "abc  f ", &["f"]),
            (3, "  cd  ", &["cd"]),
            (4, "abcdefg", &["ab", "fg"]),
            (5, "abc", &[]),
        ] {
            let parts = missed.in_line(number, text).into_iter();
            assert_eq!(parts.map(|part| &text[part]).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_source_that_changed_is_cut_where_it_can_be() {
        let mut missed = Missed::new(&[]);
        assert!(missed.in_line(1, "").is_empty());
        // In the middle of a letter of two bytes, beyond the end, and before it starts.
        for (from, to, expected) in [(2, 9, Some(0..4)), (9, 12, None), (4, 2, None)] {
            assert_eq!(within(span((1, from), (1, to)), 1, "éé"), expected);
        }
        let start = Place { line: 1, column: 9 };
        assert_eq!(between(start, Place { line: 1, column: 2 }, "abc"), "");
        assert_eq!(name_at(start, "abc"), "");
        assert_eq!(name_at(Place { line: 1, column: 3 }, "  CHECK(x)"), "CHECK");
    }

    #[test]
    fn pieces_know_their_columns() {
        let missed = [1..4, 2..6].map(|range| vec![range]);
        let pieces = pieces("abcdef", &missed);
        let expected = [
            ("a", vec![]),
            ("b", vec![0]),
            ("cd", vec![0, 1]),
            ("ef", vec![1]),
        ];
        let expected = expected.map(|(text, missed)| Piece { text, missed });
        assert_eq!(pieces, expected);
        assert!(super::pieces("", &[]).is_empty());
    }
}
