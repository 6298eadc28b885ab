//! Tables for people: a heading, and columns that are aligned.

use std::borrow::Cow;

use super::shorten::shortened;
use crate::support::printable::printable;

/// A cell longer than this moves the rest of its row instead of the whole column.
const WIDEST: usize = 64;

/// The smallest number of characters of a name that is shortened.
const NARROWEST: usize = 12;

/// A column's heading, and whether it has numbers, which are aligned on the right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heading<'a> {
    /// The text above the column.
    pub(crate) text: &'a str,
    /// True if its cells are numbers.
    pub(crate) is_number: bool,
}

/// The table of `rows`, each with a cell for every heading.
pub(crate) fn table(headings: &[Heading<'_>], rows: &[Vec<String>]) -> String {
    // Names have any characters, and a row is a line.
    let rows: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| printable(cell)).collect())
        .collect();
    let headings: Vec<_> = headings
        .iter()
        .map(|heading| (printable(heading.text), heading.is_number))
        .collect();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |(column, (heading, _)): (usize, &(Cow<'_, str>, bool))| {
        let lengths = cells(column).map(|cell| cell.chars().count());
        let fitting = lengths.filter(|length| *length <= WIDEST);
        fitting.max().unwrap_or(0).max(heading.chars().count())
    };
    let widths: Vec<usize> = headings.iter().enumerate().map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for ((cell, width), (_, is_number)) in cells.zip(&widths).zip(&headings) {
            line += &match is_number {
                true => format!("{cell:>width$}  "),
                false => format!("{cell:<width$}  "),
            };
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    };
    let mut text = line(&mut headings.iter().map(|(heading, _)| &**heading));
    for row in &rows {
        text += &line(&mut row.iter().map(|cell| &**cell));
    }
    text
}

/// Shortens the names in the first column, so that the table is as wide as `width` characters, if it can be.
pub(crate) fn shorten_names(
    headings: &[Heading<'_>],
    rows: &mut [Vec<String>],
    width: usize,
    mark: &str,
) {
    let others = headings
        .iter()
        .enumerate()
        .skip(1)
        .map(|(column, heading)| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let lengths = cells.map(|cell| cell.chars().count());
            lengths.max().unwrap_or(0).max(heading.text.chars().count()) + 2
        });
    let room = width.saturating_sub(others.sum()).max(NARROWEST);
    for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
        *name = shortened(&printable(name), room, mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_on_the_right_and_long_cells_move_their_row_alone() {
        let headings = [("N", true), ("NAME", false), ("FILE", false)]
            .map(|(text, is_number)| Heading { text, is_number });
        let long = "x".repeat(WIDEST + 1);
        let rows = [["7", "a", "f"], ["1234", &long, "g"], ["", "longer", ""]]
            .map(|row| row.map(str::to_owned).to_vec());
        let expected =
            format!("   N  NAME    FILE\n   7  a       f\n1234  {long}  g\n      longer\n");
        assert_eq!(table(&headings, &rows), expected);
    }
}
