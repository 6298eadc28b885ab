//! Reasons why code stays as it is, and damage of maps of counters.

use std::borrow::Cow;

use thiserror::Error;

use crate::format::codeobject::CodeObjectError;
use crate::support::diagnostic::Remedy;

/// The reason why a code object, or one of its functions, has no counters.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The code object is damaged.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The processor's instructions are not known.
    #[error("rocov does not instrument code for {target}")]
    Target {
        /// The processor, or `EF_AMDGPU_MACH` if it has no name here.
        target: String,
        /// The processors that are supported.
        supported: String,
    },
    /// It has a section that instrumented code has.
    #[error("it contains the section {section}, so it is already instrumented")]
    Instrumented {
        /// The section.
        section: &'static str,
    },
    /// The copies of functions lie after variables that take no room in the file, and the new file has room for both.
    #[error(
        "its uninitialized variables take up {bytes} bytes: at most {max} fit before the copies of its functions"
    )]
    Variables {
        /// The bytes between the end of the file's contents and the copies.
        bytes: u64,
        /// The bytes that are allowed.
        max: u64,
    },
    /// There is nothing to count.
    #[error("it has no function that can be instrumented")]
    NoFunction,
    /// Bytes of a function are not an instruction that rocov supports.
    #[error("rocov does not support the instruction at {address:#x}")]
    Undecoded {
        /// The ELF address.
        address: u64,
    },
    /// An instruction that a copy of the code cannot have.
    #[error("the copy of `{mnemonic}` at {address:#x} would behave differently")]
    Instruction {
        /// Its mnemonic.
        mnemonic: &'static str,
        /// The ELF address.
        address: u64,
    },
    /// A branch to an address that is not known, or to another function.
    #[error("the branch at {address:#x} goes to an unknown address")]
    Branch {
        /// The ELF address.
        address: u64,
    },
    /// A function that it may call stays as it is.
    #[error("it may call {callee}, which has no counters")]
    Callee {
        /// The function.
        callee: String,
    },
    /// Too few registers are free.
    #[error(
        "{counters} counters need more registers than it leaves free: it uses {vectors} VGPRs, {accumulators} AGPRs \
         and {scalars} SGPRs"
    )]
    Registers {
        /// The counters.
        counters: usize,
        /// The vector registers in use.
        vectors: u32,
        /// The accumulation registers in use.
        accumulators: u32,
        /// The scalar registers in use.
        scalars: u32,
    },
    /// Too few scalar registers are free, whatever is counted.
    #[error("it uses {used} of {all} SGPRs, which leaves too few for counters")]
    Scalars {
        /// The scalar registers in use.
        used: u32,
        /// The scalar registers that there are.
        all: u32,
    },
    /// A function has no room for the branch to its copy.
    #[error("at {size} bytes, it is too small for the branch to its copy")]
    Short {
        /// The size in bytes.
        size: u64,
    },
}

impl Remedy for Refusal {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Damaged(_) => "build it again",
            Self::Target { supported, .. } => {
                return format!("run it on one of {supported}").into();
            }
            Self::Instrumented { .. } => "instrument the code object that it was made from",
            _ => "count it with `rocov run --trace --gpu model`",
        })
    }
}

impl From<CodeObjectError> for Refusal {
    fn from(error: CodeObjectError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// A map of counters that cannot be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// A part is missing, or has a value that no map has.
    #[error("the map of counters is damaged at byte {at}")]
    Damaged {
        /// The offset in the section.
        at: usize,
    },
    /// Another release wrote it.
    #[error("the map of counters has version {found}, but this release reads version {expected}")]
    Version {
        /// The version of the map.
        found: u64,
        /// The version that is read.
        expected: u64,
    },
    /// The section with the original is missing.
    #[error("the code object has a map of counters, but not the section {section}")]
    NoOriginal {
        /// The section.
        section: &'static str,
    },
}

impl Remedy for MapError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed("instrument it with the release of rocov that drains it")
    }
}
