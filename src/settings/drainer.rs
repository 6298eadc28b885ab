//! The choice between two drains, for a program that has LLVM's own drain for HIP linked in.

use std::fmt;
use std::str::FromStr;

use super::error::{SettingError, refuse};

/// The drain of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drainer {
    /// rocov's drain. LLVM's own drain finds nothing to write.
    Rocov,
    /// LLVM's own drain. rocov writes no profiles, except of code that counts in copies of its counters.
    Llvm,
}

impl FromStr for Drainer {
    type Err = SettingError;

    fn from_str(word: &str) -> Result<Self, SettingError> {
        match word {
            "rocov" => Ok(Self::Rocov),
            "llvm" => Ok(Self::Llvm),
            _ => Err(refuse(word, "rocov or llvm")),
        }
    }
}

/// Writes the word that a user gives.
impl fmt::Display for Drainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rocov => "rocov",
            Self::Llvm => "llvm",
        })
    }
}
