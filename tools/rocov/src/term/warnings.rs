//! The lines that a step collects about files and counts that it leaves out.

use super::print;

/// Lines for standard error. A step collects them, and the command prints them.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Vec<String>);

impl Warnings {
    /// Runs `step`, and prints the warnings that it collects, even if it fails.
    pub(crate) fn printing<T>(step: impl FnOnce(&mut Self) -> T) -> T {
        let mut warnings = Self::default();
        let result = step(&mut warnings);
        print::warn(&warnings.0);
        result
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, line: impl Into<String>) {
        self.0.push(line.into());
    }

    /// Adds lines.
    pub(crate) fn extend(&mut self, lines: impl IntoIterator<Item = String>) {
        self.0.extend(lines);
    }

    /// The lines.
    #[cfg(feature = "fleet")]
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.0
    }
}
