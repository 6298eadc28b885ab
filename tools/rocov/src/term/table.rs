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

/// The parts of a table that a narrow terminal has less of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrowing<'a> {
    /// The columns that are left out, the first of these first.
    pub(crate) left_out: &'a [usize],
    /// The column with names, which lose their middle.
    pub(crate) names: usize,
}

/// Leaves columns out of a table, and shortens names, so that it is as wide as `width` characters, if it can be.
pub(crate) fn fit(
    headings: &mut Vec<Heading<'_>>,
    rows: &mut [Vec<String>],
    width: usize,
    narrowing: Narrowing<'_>,
    mark: &str,
) {
    let Narrowing { left_out, names } = narrowing;
    let widths = headings.iter().enumerate().map(|(column, heading)| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let lengths = cells.map(|cell| printable(cell).chars().count());
        lengths.max().unwrap_or(0).max(heading.text.chars().count())
    });
    let widths: Vec<usize> = widths.collect();
    let mut stays = vec![true; widths.len()];
    // The room that the others leave for names; two spaces stand between columns.
    let room = |stays: &[bool]| {
        let others = widths.iter().zip(stays).enumerate();
        let others = others.filter(|(column, (_, stays))| *column != names && **stays);
        let taken: usize = others.map(|(_, (other, _))| other + 2).sum();
        width.saturating_sub(taken)
    };
    let needed = widths.get(names).copied().unwrap_or(0).min(NARROWEST);
    for column in left_out {
        if room(&stays) >= needed {
            break;
        }
        if let Some(stays) = stays.get_mut(*column) {
            *stays = false;
        }
    }
    let room = room(&stays).max(NARROWEST);
    for row in rows {
        if let Some(name) = row.get_mut(names) {
            *name = shortened(&printable(name), room, mark);
        }
        retain(row, &stays);
    }
    retain(headings, &stays);
}

/// Keeps the elements that stay, and those after them all.
fn retain<T>(elements: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    elements.retain(|_| stays.next().copied().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_leaves_columns_out_and_shortens_names() {
        let headings = [("N", true), ("NAME", false), ("M", true)];
        let headings = headings.map(|(text, is_number)| Heading { text, is_number });
        let rows = || {
            vec![
                ["123456", "abcdefghijklmnopqrst", "789"]
                    .map(str::to_owned)
                    .to_vec(),
            ]
        };
        let narrowing = Narrowing {
            left_out: &[0, 2],
            names: 1,
        };
        // 6, 20 and 3 characters, with two spaces between them.
        for (width, expected) in [
            (
                33,
                "     N  NAME                    M\n123456  abcdefghijklmnopqrst  789\n",
            ),
            (25, "     N  NAME            M\n123456  abcdef~pqrst  789\n"),
            (24, "NAME                   M\nabcdefghi~lmnopqrst  789\n"),
            (14, "NAME\nabcdefg~opqrst\n"),
        ] {
            let (mut headings, mut rows) = (headings.to_vec(), rows());
            fit(&mut headings, &mut rows, width, narrowing, "~");
            assert_eq!(table(&headings, &rows), expected, "{width}");
        }
    }

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
