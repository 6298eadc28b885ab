//! The status that functions of librocov return.

use std::ffi::c_int;

/// The result of a function in this library. The meaning of a number never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RocovStatus {
    /// The function succeeded.
    Ok = 0,
    /// There was nothing to do. For example, this process does not use a GPU, nothing was counted, no label or window
    /// is open, or LLVM's own runtime drains this program.
    Nothing = 1,
    /// rocov could not read or write some counts. A line on standard error names them and explains the reason.
    Loss = 2,
    /// The argument is not UTF-8, or is not a valid name pattern or label. A line on standard error explains the
    /// reason.
    Invalid = 3,
    /// An internal error of this library.
    Internal = 4,
}

impl RocovStatus {
    /// Returns the status for a number that a copy of another build has returned.
    pub(crate) fn from_number(number: c_int) -> Self {
        match number {
            0 => Self::Ok,
            1 => Self::Nothing,
            2 => Self::Loss,
            3 => Self::Invalid,
            _ => Self::Internal,
        }
    }
}
