//! Phrases in messages.

/// `number` and `noun`, in the plural where need be.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
