//! Reasons why a module gets no counters.

use std::borrow::Cow;

use thiserror::Error;

use crate::format::ptx::PtxError;
use crate::support::diagnostic::Remedy;

/// The reason why a module gets no counters. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PtxRefusal {
    /// The text cannot be read.
    #[error(transparent)]
    Unread(#[from] PtxError),
    /// The module is for GPUs that rocov does not instrument.
    #[error("line {line} of the PTX: the target is {found}, expected sm_30 or later")]
    Target {
        /// The line.
        line: usize,
        /// The target found.
        found: String,
    },
    /// The module has addresses of another size.
    #[error("line {line} of the PTX: addresses have {found} bits, expected 64")]
    AddressSize {
        /// The line.
        line: usize,
        /// The size found in bits.
        found: String,
    },
    /// The module is instrumented already: by clang's flags, or by rocov.
    #[error("line {line} of the PTX: the module contains {found}, so it is already instrumented")]
    Counts {
        /// The line.
        line: usize,
        /// The name.
        found: String,
    },
    /// The profile's version has no known records.
    #[error(
        "a raw profile of version {found} has no records that rocov supports, expected 8 to 11"
    )]
    Version {
        /// The version found.
        found: u64,
    },
    /// The counters take more memory than a drain accepts.
    #[error("the module's {found} basic blocks need too many counters, at most {max} are allowed")]
    TooMany {
        /// The number of blocks.
        found: usize,
        /// The most that are allowed.
        max: usize,
    },
}

impl Remedy for PtxRefusal {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Counts { .. } => "run it unchanged",
            Self::Target { .. } => "compile it for sm_30 or later",
            Self::TooMany { .. } => "split the module",
            _ => "report it",
        })
    }
}
