//! Markdown as GitHub and GitLab have it, whatever characters the names in it have.

use std::io::{self, Write};

use crate::coverage::view::View;
use crate::support::printable::printable;

/// Text within a line or a cell of a table. It ends neither.
#[derive(Debug, Clone)]
pub(super) struct Inline(String);

impl Inline {
    /// Plain text.
    pub(super) fn text(text: &str) -> Self {
        let text = printable(text);
        let mut escaped = String::with_capacity(text.len());
        let mut letters = text.chars().peekable();
        let mut before = None;
        while let Some(letter) = letters.next() {
            let is_in_word =
                |other: Option<&char>| other.is_some_and(|letter| letter.is_alphanumeric());
            match letter {
                // Tables split cells before anything else is read. HTML has no backslashes.
                '|' | '\\' | '`' | '<' | '&' => escaped += &reference(letter),
                '_' if is_in_word(before.as_ref()) && is_in_word(letters.peek()) => {
                    escaped.push(letter);
                }
                '*' | '_' | '[' | ']' | '~' => escaped.extend(['\\', letter]),
                _ => escaped.push(letter),
            }
            before = Some(letter);
        }
        Self(escaped)
    }

    /// A name in the type of code.
    pub(super) fn code(name: &str) -> Self {
        let name = printable(name);
        let is_plain = !name.contains(['`', '|', '\\']) && !name.trim().is_empty();
        if is_plain && name.trim() == name {
            return Self(format!("`{name}`"));
        }
        // A code span has no escapes.
        let letters = name.chars().map(|letter| match letter {
            letter if letter.is_ascii_punctuation() => reference(letter),
            letter => letter.to_string(),
        });
        Self(format!("<code>{}</code>", letters.collect::<String>()))
    }

    /// Bold text of rocov's own.
    pub(super) fn bold(text: &'static str) -> Self {
        Self(format!("**{text}**"))
    }

    /// The names of the columns of a report, and of all of them if there are several.
    pub(super) fn labels(view: &View) -> Vec<Self> {
        let column = |index: usize| Self::text(&view.columns[index].label);
        view.each(column, Self::bold("all"))
    }
}

/// The character reference of a letter.
fn reference(letter: char) -> String {
    format!("&#{};", u32::from(letter))
}

/// A document that is being written.
pub(super) struct Markdown<'a>(&'a mut dyn Write);

impl<'a> Markdown<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self(out)
    }

    /// Writes a line of rocov's own Markdown.
    pub(super) fn own(&mut self, line: &'static str) -> io::Result<()> {
        writeln!(self.0, "{line}")
    }

    /// Writes a heading of rocov's own in bold, and an empty line.
    pub(super) fn title(&mut self, heading: &'static str) -> io::Result<()> {
        writeln!(self.0, "**{heading}**\n")
    }

    /// Writes an empty line and a paragraph with a bold start.
    pub(super) fn note(&mut self, start: &str, text: &str) -> io::Result<()> {
        let [Inline(start), Inline(text)] = [start, text].map(Inline::text);
        writeln!(self.0, "\n**{start}**: {text}")
    }

    /// Writes the head of a table. Columns that are numbers are aligned on the right.
    pub(super) fn head(
        &mut self,
        headings: &[Inline],
        is_number: impl Fn(usize) -> bool,
    ) -> io::Result<()> {
        self.row(headings)?;
        let rules = (0..headings.len()).map(|column| match is_number(column) {
            true => "---:|",
            false => "---|",
        });
        writeln!(self.0, "|{}", rules.collect::<String>())
    }

    /// Writes a row of a table.
    pub(super) fn row(&mut self, cells: &[Inline]) -> io::Result<()> {
        for Inline(cell) in cells {
            let gap = if cell.is_empty() { "" } else { " " };
            write!(self.0, "|{gap}{cell} ")?;
        }
        writeln!(self.0, "|")
    }

    /// Writes an item of a list.
    pub(super) fn item(&mut self, text: &str) -> io::Result<()> {
        let Inline(text) = Inline::text(text);
        // An item can have blocks in it.
        let escape = if text.starts_with(['#', '+', '-', '>']) {
            "\\"
        } else {
            ""
        };
        writeln!(self.0, "- {escape}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_stay_as_they_are() {
        for text in [
            "57.14% (8/14)",
            "12-13, 16; on gfx942: 1",
            "part_of_a_block, on gfx90a: 1 -> 2 lines",
        ] {
            let Inline(escaped) = Inline::text(text);
            assert_eq!(escaped, text);
        }
        assert_eq!(Inline::code("src/a_b.hip").0, "`src/a_b.hip`");
        assert_eq!(Inline::code("f<int>(char*)").0, "`f<int>(char*)`");
    }

    #[test]
    fn odd_names_are_escaped() {
        assert_eq!(Inline::code("a|b`c").0, "<code>a&#124;b&#96;c</code>");
        assert_eq!(Inline::code("a\nb").0, "<code>a&#92;nb</code>");
        let odd = "void f<int>(_x *, y[1])|`\\";
        let escaped = "void f&#60;int>(\\_x \\*, y\\[1\\])&#124;&#96;&#92;";
        assert_eq!(Inline::text(odd).0, escaped);
        let mut list = Vec::new();
        Markdown::new(&mut list).item("# a").unwrap();
        assert_eq!(list, b"- \\# a\n");
    }
}
