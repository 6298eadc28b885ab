//! A line of a source file.

/// A line with code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The number of the line, from 1.
    pub(crate) number: u32,
    /// Its count in each column, `None` if the line has no code.
    pub(crate) counts: Vec<Option<u64>>,
}
