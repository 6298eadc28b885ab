//! Something before and after.

use serde::Serialize;

/// Something before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Pair<T> {
    pub(crate) before: T,
    pub(crate) after: T,
}

impl<T: PartialEq> Pair<T> {
    /// Returns whether both are equal.
    pub(crate) fn is_equal(&self) -> bool {
        self.before == self.after
    }
}
