//! Lines for people. Names of files, kernels and tests can have any character; a line stays a line, and the terminal
//! as it is.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::Style;

use super::look::{Bars, Look};
use super::table::{Heading, Narrowing, fit, table};
use crate::support::printable::printable;

/// The largest number of characters of a message. Input that is repeated in one can be as long as a file.
const LONGEST: usize = 2000;
/// The characters that a longer message keeps at its end, where the next step is.
const KEPT_END: usize = 500;

/// Text that is written in lines.
pub(crate) struct Lines<'a>(&'a mut dyn Write);

impl<'a> Lines<'a> {
    /// Writes to `out`.
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self(out)
    }

    /// Writes a line, with line breaks and control characters in it escaped.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(crate) fn line(&mut self, line: impl Display) -> io::Result<()> {
        writeln!(self.0, "{}", printable(&line.to_string()))
    }

    /// Writes an empty line.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(crate) fn gap(&mut self) -> io::Result<()> {
        writeln!(self.0)
    }

    /// Writes a line of parts, some of which have a style.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(crate) fn styled(
        &mut self,
        parts: impl IntoIterator<Item = (Option<Style>, String)>,
    ) -> io::Result<()> {
        for (style, part) in parts {
            let part = printable(&part);
            match style {
                Some(style) => write!(self.0, "{style}{part}{style:#}")?,
                None => write!(self.0, "{part}")?,
            }
        }
        self.gap()
    }

    /// Writes lines under a heading, after an empty line. Writes nothing if there are none.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(crate) fn section(
        &mut self,
        heading: &str,
        lines: impl IntoIterator<Item = String>,
    ) -> io::Result<()> {
        for (number, line) in lines.into_iter().enumerate() {
            if number == 0 {
                self.gap()?;
                self.line(heading)?;
            }
            self.line(line)?;
        }
        Ok(())
    }

    /// Writes a table.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(crate) fn table(
        &mut self,
        headings: &[Heading<'_>],
        rows: &[Vec<String>],
    ) -> io::Result<()> {
        self.0.write_all(table(headings, rows).as_bytes())
    }

    /// Writes a table that a terminal has room for.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(crate) fn table_in(
        &mut self,
        mut headings: Vec<Heading<'_>>,
        mut rows: Vec<Vec<String>>,
        narrowing: Narrowing<'_>,
        look: Look,
    ) -> io::Result<()> {
        if let Some(width) = look.width {
            let mark = look.bars.unwrap_or(Bars::Ascii).ellipsis();
            fit(&mut headings, &mut rows, width, narrowing, mark);
        }
        self.table(&headings, &rows)
    }
}

/// A message as one line, without the middle if it is long.
pub(crate) fn message_line(message: &impl Display) -> String {
    let message = message.to_string();
    let line = printable(&message);
    let length = line.chars().count();
    if length <= LONGEST {
        return line.into_owned();
    }
    let start: String = line.chars().take(LONGEST - KEPT_END).collect();
    let end: String = line.chars().skip(length - KEPT_END).collect();
    format!("{start} [{} more characters] {end}", length - LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_start_and_its_end() {
        let whole = "x".repeat(LONGEST);
        assert_eq!(message_line(&whole), whole);
        let name = "A".repeat(70_000);
        let line = message_line(&format!("cannot read {name}: name a file"));
        assert!(line.starts_with("cannot read AAA"), "{line}");
        assert!(line.contains(" [68025 more characters] AAA"), "{line}");
        assert!(line.ends_with("AAA: name a file"), "{line}");
        assert_eq!(message_line(&"a\nb\x1b"), "a\\nb\\u{1b}");
    }
}
