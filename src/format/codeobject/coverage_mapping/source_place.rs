//! Places in source files.

/// A place in a source file. Line and column count from 1, the column in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePlace {
    /// The line.
    pub line: u32,
    /// The column. [`u32::MAX`] is the end of a line.
    pub column: u32,
}
