//! The error of a setting.

use thiserror::Error;

/// The error for a word that a setting does not have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{found:?} is not known, use {expected}")]
pub struct SettingError {
    found: String,
    expected: &'static str,
}

pub(crate) fn refuse(found: &str, expected: &'static str) -> SettingError {
    SettingError {
        found: found.to_owned(),
        expected,
    }
}
