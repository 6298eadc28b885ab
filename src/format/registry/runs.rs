//! Sets of processes, as small as can be: 8 bytes for each.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

/// Hexadecimal digits of a process in text.
const DIGITS: usize = 16;

/// A set of processes. Each is the 64-bit XXH3 of its host's name, its number and its start. As text, the hashes
/// stand one after another, in 16 hexadecimal digits each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs(BTreeSet<u64>);

impl Runs {
    /// The set of one process: of its host, its number, and its start in nanoseconds of the host's boot clock.
    #[must_use]
    pub fn new(host: &str, pid: u32, start: u64) -> Self {
        let key = [
            host.as_bytes(),
            b"\0",
            &pid.to_le_bytes(),
            &start.to_le_bytes(),
        ]
        .concat();
        Self(BTreeSet::from([xxh3_64(&key)]))
    }

    /// The number of processes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether it has no process.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the processes of another set.
    pub fn add(&mut self, others: &Self) {
        self.0.extend(&others.0);
    }

    /// The number of processes that are in `others` too.
    #[must_use]
    pub fn shared_with(&self, others: &Self) -> usize {
        self.0.iter().filter(|run| others.0.contains(run)).count()
    }
}

impl Serialize for Runs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(DIGITS * self.0.len());
        for run in &self.0 {
            // Memory takes any text.
            let _ = write!(text, "{run:016x}");
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Runs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let hashes = text.as_bytes().chunks(DIGITS).map(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            let is_whole = digits.len() == DIGITS && !digits.starts_with('+');
            is_whole.then(|| u64::from_str_radix(digits, 16).ok())?
        });
        let hashes = hashes.collect::<Option<_>>();
        hashes.map(Self).ok_or_else(|| {
            Error::custom(format!(
                "processes of {} characters, expected {DIGITS} hexadecimal digits for each",
                text.len()
            ))
        })
    }
}
