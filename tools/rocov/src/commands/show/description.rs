//! The description of a file.

use std::fmt::Display;

use rocov::format::profraw::Version;
use rocov::support::diagnostic::Diagnostic;

use crate::support::printable::printable;

/// The description of a file.
#[derive(Default)]
pub(super) struct Description {
    /// Indented lines; none for a file that is of no kind that is known.
    pub(super) text: String,
    /// The reasons why the file is damaged.
    pub(super) damage: Vec<Diagnostic>,
}

impl Description {
    /// Takes `line`, indented by `depth` steps.
    pub(super) fn line(&mut self, depth: usize, line: impl Display) {
        let line = line.to_string();
        self.text += &format!("{:2$}{}\n", "", printable(&line), 2 * depth);
    }

    /// Takes a reason why the file is damaged.
    pub(super) fn damaged(&mut self, reason: Diagnostic) {
        self.damage.push(reason);
    }
}

/// A version word in words: the number, and the variant bits if there are any.
pub(super) fn version(word: u64) -> String {
    let (number, variant) = Version::split(word);
    match variant >> 32 {
        0 => number.to_string(),
        variant => format!("{number} with variant bits {variant:#x}"),
    }
}
