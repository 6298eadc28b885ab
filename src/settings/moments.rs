//! Settings for times and signals: durations and signals as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::{SettingError, refuse};

/// The shortest [`Interval`], in milliseconds: drains take time.
const MIN_MS: u64 = 10;
/// The longest [`Interval`], in milliseconds: a day.
const MAX_MS: u64 = 24 * 60 * 60 * 1000;

/// A time between 10 ms and a day: a whole number and `ms`, `s` or `m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval(pub Duration);

impl FromStr for Interval {
    type Err = SettingError;

    fn from_str(word: &str) -> Result<Self, SettingError> {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = word.split_at(digits);
        let unit = match unit {
            "ms" => Some(1),
            "s" => Some(1000),
            "m" => Some(60 * 1000),
            _ => None,
        };
        let number = number.parse::<u64>().ok();
        number
            .zip(unit)
            .and_then(|(number, unit)| number.checked_mul(unit))
            .filter(|ms| (MIN_MS..=MAX_MS).contains(ms))
            .map(|ms| Self(Duration::from_millis(ms)))
            .ok_or_else(|| refuse(word, "a time from 10ms to 1440m, such as 500ms, 30s or 5m"))
    }
}

/// Parses the limit of a wait: a whole number of seconds, from 0 to 86400 (a day).
///
/// # Errors
/// Fails if `word` is anything else: the sum of a moment and the limit must be in the range of a clock.
pub fn parse_wait(word: &str) -> Result<Duration, SettingError> {
    let seconds = word.parse::<u64>().ok();
    seconds
        .map(Duration::from_secs)
        .filter(|wait| wait.as_millis() <= MAX_MS.into())
        .ok_or_else(|| refuse(word, "a whole number of seconds, 86400 at most"))
}

/// Writes the form that a user gives.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            ms if ms % 1000 == 0 => write!(f, "{}s", ms / 1000),
            ms => write!(f, "{ms}ms"),
        }
    }
}

/// A signal that can request a snapshot. Programs leave these signals to their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSignal {
    name: &'static str,
    number: i32,
}

/// The signals with their numbers on Linux, x86-64.
const SIGNALS: [SnapshotSignal; 3] = [
    SnapshotSignal {
        name: "HUP",
        number: 1,
    },
    SnapshotSignal {
        name: "USR1",
        number: 10,
    },
    SnapshotSignal {
        name: "USR2",
        number: 12,
    },
];

impl SnapshotSignal {
    /// Its number.
    #[must_use]
    pub fn number(self) -> i32 {
        self.number
    }
}

/// Reads the name with or without `SIG`.
impl FromStr for SnapshotSignal {
    type Err = SettingError;

    fn from_str(word: &str) -> Result<Self, SettingError> {
        let name = word.strip_prefix("SIG").unwrap_or(word);
        let signal = SIGNALS.into_iter().find(|signal| signal.name == name);
        signal.ok_or_else(|| refuse(word, "HUP, USR1 or USR2"))
    }
}

impl fmt::Display for SnapshotSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_units() {
        for (word, ms, shown) in [
            ("10ms", 10, "10ms"),
            ("1500ms", 1500, "1500ms"),
            ("30s", 30_000, "30s"),
            ("5m", 300_000, "300s"),
            ("1440m", 86_400_000, "86400s"),
        ] {
            let interval: Interval = word.parse().unwrap();
            assert_eq!(interval, Interval(Duration::from_millis(ms)), "{word}");
            assert_eq!(interval.to_string(), shown);
            assert_eq!(shown.parse(), Ok(interval));
        }
        for word in [
            "",
            "s",
            "30",
            "30h",
            "-1s",
            "+1s",
            "1.5s",
            "1 s",
            "9ms",
            "0s",
            "1441m",
            "18446744073709551615m",
        ] {
            let error = word.parse::<Interval>().unwrap_err().to_string();
            let expected = "is not valid: use a time from 10ms to 1440m, such as 500ms, 30s or 5m";
            assert_eq!(error, format!("{word:?} {expected}"));
        }
    }

    #[test]
    fn signals_have_their_numbers() {
        for (word, number) in [("HUP", 1), ("SIGUSR1", 10), ("USR2", 12)] {
            let signal: SnapshotSignal = word.parse().unwrap();
            assert_eq!(signal.number(), number);
            assert_eq!(signal.to_string(), word.trim_start_matches("SIG"));
        }
        for word in ["", "SIG", "usr2", "12", "TERM", "KILL", "SIGSIGUSR2"] {
            let error = word.parse::<SnapshotSignal>().unwrap_err().to_string();
            assert_eq!(
                error,
                format!("{word:?} is not valid: use HUP, USR1 or USR2")
            );
        }
    }
}
