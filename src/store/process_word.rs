//! The word in a file name that distinguishes a process from all others.
//!
//! A process id does not: it repeats in every container and on every host, and the system gives it to a later
//! process. The program that a process starts with `exec` has a word of its own, too.

use std::fmt;
use std::str::FromStr;

use crate::store::atomic::random;

/// The number of characters in a word, of 5 bits each.
const LEN: usize = 8;
/// The characters of words: lower-case letters and the digits that look like none of them.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A word of 40 random bits. The default is the empty word.
///
/// Two processes of one number have the same word in one of 10^12 cases. Even then, neither replaces a file of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessWord(String);

/// The error for a text that is not a word.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not the word of a process, expected {LEN} characters from a-z and 2-7")]
pub struct ProcessWordError(String);

impl ProcessWord {
    /// A new word.
    #[must_use]
    pub fn random() -> Self {
        Self::from_bits(random())
    }

    /// The word of these bits, the lowest 40 of which matter.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        let digit = |place: usize| ALPHABET[(bits >> (5 * place)) as usize % ALPHABET.len()];
        Self((0..LEN).map(|place| char::from(digit(place))).collect())
    }

    /// Random bits for a word, never 0.
    #[must_use]
    pub fn random_bits() -> u64 {
        random() | 1 << 63
    }

    /// Returns whether there is no word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `stem`, a name without its extension, without the word of a process, if it may have one.
    #[must_use]
    pub fn cut_off(stem: &str) -> &str {
        match stem.rsplit_once('-') {
            Some((stem, word)) if word.parse::<Self>().is_ok() => stem,
            _ => stem,
        }
    }

    /// `name` with this word before its extension: `4711-q3ovk2ya.profraw`. A reader finds files by their
    /// extension.
    pub(super) fn in_name(&self, name: &str) -> String {
        let (stem, extension) = name.split_at(name.rfind('.').unwrap_or(name.len()));
        match self.is_empty() {
            true => name.to_owned(),
            false => format!("{stem}-{self}{extension}"),
        }
    }
}

impl fmt::Display for ProcessWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ProcessWord {
    type Err = ProcessWordError;

    fn from_str(text: &str) -> Result<Self, ProcessWordError> {
        let is_word = text.len() == LEN && text.bytes().all(|byte| ALPHABET.contains(&byte));
        let word = || Self(text.to_owned());
        is_word
            .then(word)
            .ok_or_else(|| ProcessWordError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_are_put_into_names_and_taken_out() {
        let word: ProcessWord = "q3ovk2ya".parse().unwrap();
        for (name, expected) in [
            ("4711.profraw", "4711-q3ovk2ya.profraw"),
            ("x.y.profraw", "x.y-q3ovk2ya.profraw"),
            ("x", "x-q3ovk2ya"),
            (".profraw", "-q3ovk2ya.profraw"),
        ] {
            assert_eq!(word.in_name(name), expected);
            assert_eq!(ProcessWord::default().in_name(name), name);
        }
        for (stem, expected) in [
            ("4711-q3ovk2ya", "4711"),
            ("x.y-q3ovk2ya", "x.y"),
            ("x-q3ovk2ya-aaaaaaaa", "x-q3ovk2ya"),
            ("x-q3ovk2y", "x-q3ovk2y"),
            ("x-q3ovk218", "x-q3ovk218"),
        ] {
            assert_eq!(ProcessWord::cut_off(stem), expected);
        }
    }

    #[test]
    fn no_two_processes_have_one_word() {
        let words: BTreeSet<_> = (0..10_000).map(|_| ProcessWord::random()).collect();
        assert_eq!(words.len(), 10_000);
        assert!(words.iter().all(|word| {
            word.to_string()
                .parse()
                .is_ok_and(|parsed: ProcessWord| parsed == *word)
        }));
        assert!("".parse::<ProcessWord>().is_err());
    }
}
