//! The kinds of counters, which settings choose and formats have.

/// The kind of counters that rocov puts into GPU code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// How often each block ran.
    #[default]
    Exact,
    /// Counters of a byte, as clang's, which only say that a block ran.
    Reached,
}
