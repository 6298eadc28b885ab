//! Who drains a program that has LLVM's own drain for HIP linked into it.

use std::fmt;
use std::str::FromStr;

use crate::registry::{SettingError, refuse};

/// Who drains the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drainer {
    /// This library. LLVM's own drain finds nothing to write.
    Rocov,
    /// LLVM's own drain. This library writes no profiles.
    Llvm,
}

impl FromStr for Drainer {
    type Err = SettingError;

    fn from_str(word: &str) -> Result<Self, SettingError> {
        match word {
            "rocov" => Ok(Drainer::Rocov),
            "llvm" => Ok(Drainer::Llvm),
            _ => Err(refuse(word, "rocov or llvm")),
        }
    }
}

/// As it can be given.
impl fmt::Display for Drainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Drainer::Rocov => "rocov",
            Drainer::Llvm => "llvm",
        })
    }
}
