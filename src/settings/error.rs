//! The error of a setting.

use std::borrow::Cow;
use std::fmt::{self, Display};

use thiserror::Error;

use crate::support::diagnostic::{Diagnostic, Remedy, diagnostic};

/// The error for a word that a setting does not have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub struct SettingError {
    found: String,
    expected: &'static str,
}

/// With the next step, as a parser of arguments prints it.
impl Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostic().fmt(f)
    }
}

impl Remedy for SettingError {
    fn remedy(&self) -> Cow<'static, str> {
        self.diagnostic().remedy()
    }

    fn diagnostic(&self) -> Diagnostic {
        diagnostic!("{:?} is not valid", self.found; "use {}", self.expected)
    }
}

pub(crate) fn refuse(found: &str, expected: &'static str) -> SettingError {
    SettingError {
        found: found.to_owned(),
        expected,
    }
}
