//! The counters that GPU code gets while a program loads it.

use super::error::{SettingError, refuse};
use crate::support::counting::Counting;

impl Counting {
    /// The value of `ROCOV_INSTRUMENT` that asks for these counters.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "1",
            Self::Reached => "reached",
        }
    }

    /// The counters that a value of `ROCOV_INSTRUMENT` asks for. `None`: GPU code stays as it is.
    ///
    /// # Errors
    /// Fails if the word is not known.
    pub fn parse(word: &str) -> Result<Option<Self>, SettingError> {
        let all = [Self::Exact, Self::Reached];
        match (
            word,
            all.into_iter().find(|counting| counting.word() == word),
        ) {
            ("0", _) => Ok(None),
            (_, Some(counting)) => Ok(Some(counting)),
            _ => Err(refuse(word, "0, 1 or reached")),
        }
    }
}
