//! Errors in PTX text.

use thiserror::Error;

/// The reason why PTX text cannot be read. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PtxError {
    /// The text does not follow the grammar at this place.
    #[error("line {line} of the PTX: expected {expected}, found {found}")]
    Syntax {
        /// The line.
        line: usize,
        /// The construct that rocov expects at this place.
        expected: &'static str,
        /// The text found.
        found: String,
    },
    /// A branch leads to a label that its scope does not have.
    #[error("line {line} of the PTX: {found} is not a label in this scope")]
    UnknownLabel {
        /// The line of the branch.
        line: usize,
        /// The name.
        found: String,
    },
    /// A label is defined twice in a scope.
    #[error("line {line} of the PTX: the label {found} is defined twice in this scope")]
    RepeatedLabel {
        /// The line of the second.
        line: usize,
        /// The name.
        found: String,
    },
    /// An instruction names a label, but is not a known branch: the next block of the threads is unknown.
    #[error(
        "line {line} of the PTX: {opcode} names the label {label}, expected bra, brx.idx or call"
    )]
    UnknownBranch {
        /// The line.
        line: usize,
        /// The instruction.
        opcode: String,
        /// The label.
        label: String,
    },
    /// Two functions of the module have the same name.
    #[error("line {line} of the PTX: the function {found} has a second body")]
    RepeatedFunction {
        /// The line of the second.
        line: usize,
        /// The symbol.
        found: String,
    },
}
