//! The messages that a step collects about files and counts that it leaves out.

use rocov::support::diagnostic::Diagnostic;

use super::print;

/// Messages for standard error. A step collects them, and the command prints them.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Vec<Diagnostic>);

impl Warnings {
    /// Runs `step`, and prints the warnings that it collects, even if it fails.
    pub(crate) fn printing<T>(step: impl FnOnce(&mut Self) -> T) -> T {
        let mut warnings = Self::default();
        let result = step(&mut warnings);
        print::warn(&warnings.0);
        result
    }

    /// Adds a message.
    pub(crate) fn add(&mut self, message: Diagnostic) {
        self.0.push(message);
    }

    /// Adds messages.
    pub(crate) fn extend(&mut self, messages: impl IntoIterator<Item = Diagnostic>) {
        self.0.extend(messages);
    }

    /// The messages.
    #[cfg(feature = "fleet")]
    pub(crate) fn into_messages(self) -> Vec<Diagnostic> {
        self.0
    }
}
