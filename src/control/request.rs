//! Requests, as a line of text.
//!
//! `rocov-1 status`, or `rocov-1 dump` and any of `reset`, `window=MILLISECONDS` and `label=LABEL`, with
//! single spaces between them. A label is written like its directory.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::PROTOCOL;
use crate::format::codeobject::percent_decode;
use crate::settings::{Interval, SettingError};
use crate::store::{LABELS, Label, LabelError};

/// The most bytes of a request, with its line feed. Every label fits.
pub const REQUEST_MAX: usize = 4096;

/// A request to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks for the state: the loads to drain, and the place of the files.
    Status,
    /// Asks for a dump of the counts.
    Dump(DumpRequest),
}

/// The options of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpRequest {
    /// The label of the counts. The process makes one up if there is none.
    pub label: Option<Label>,
    /// True if counters start from zero after the dump.
    pub reset: bool,
    /// The length of a window: only counts within it, from now on, are dumped.
    pub window: Option<Duration>,
}

/// The error for a line that is not a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The line does not start with the protocol's name.
    #[error("not a request in the protocol {PROTOCOL}")]
    Protocol,
    /// A word is unknown.
    #[error(
        "unknown request {0:?}: use status, or dump with reset, window=MILLISECONDS, label=LABEL"
    )]
    Unknown(String),
    /// The time of a window is not valid.
    #[error("window: {0}")]
    Window(#[from] SettingError),
    /// The label of a dump is not valid.
    #[error(transparent)]
    Label(#[from] LabelError),
}

impl Request {
    /// Parses a line, without its line feed.
    ///
    /// # Errors
    /// Fails if the line is not a request.
    pub fn parse(line: &str) -> Result<Self, RequestError> {
        let mut words = line.split(' ');
        if words.next() != Some(PROTOCOL) {
            return Err(RequestError::Protocol);
        }
        let unknown = |word: &str| RequestError::Unknown(word.to_owned());
        let mut dump = DumpRequest::default();
        let what = words.next().unwrap_or_default();
        match what {
            "status" => {
                return words
                    .next()
                    .map_or(Ok(Self::Status), |word| Err(unknown(word)));
            }
            "dump" => {}
            _ => return Err(unknown(what)),
        }
        for word in words {
            match word.split_once('=') {
                None if word == "reset" => dump.reset = true,
                Some(("window", ms)) => {
                    let Interval(window) = format!("{ms}ms").parse()?;
                    dump.window = Some(window);
                }
                Some(("label", label)) => dump.label = Some(percent_decode(label).parse()?),
                _ => return Err(unknown(word)),
            }
        }
        Ok(Self::Dump(dump))
    }
}

/// Writes the form that [`Request::parse`] reads.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PROTOCOL)?;
        let Self::Dump(dump) = self else {
            return f.write_str(" status");
        };
        f.write_str(" dump")?;
        if dump.reset {
            f.write_str(" reset")?;
        }
        if let Some(window) = dump.window {
            write!(f, " window={}", window.as_millis())?;
        }
        if let Some(label) = &dump.label {
            let directory = label.directory();
            let written = directory.strip_prefix(LABELS).unwrap_or(&directory);
            write!(f, " label={}", written.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        let dump = |label: Option<&str>, reset, window: Option<u64>| {
            Request::Dump(DumpRequest {
                label: label.map(|label| label.parse().unwrap()),
                reset,
                window: window.map(Duration::from_millis),
            })
        };
        for (request, line) in [
            (Request::Status, "rocov-1 status"),
            (dump(None, false, None), "rocov-1 dump"),
            (
                dump(Some("unit tests/é\n=%"), true, Some(1500)),
                "rocov-1 dump reset window=1500 label=unit%20tests/%C3%A9%0A%3D%25",
            ),
        ] {
            assert_eq!(request.to_string(), line);
            assert_eq!(Request::parse(line), Ok(request));
        }
        let longest = ["é".repeat(42), "x".repeat(2)].concat();
        let longest = dump(
            Some(&[longest.as_str(); 8].join("/")),
            true,
            Some(86_400_000),
        );
        assert!(longest.to_string().len() < REQUEST_MAX);
    }

    #[test]
    fn what_is_not_known_is_said_with_what_is() {
        let error = Request::parse("rocov-1 dump all=1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown request \"all=1\": use status, or dump with reset, window=MILLISECONDS, label=LABEL"
        );
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (line, error) in [
            ("", "not a request in the protocol rocov-1"),
            ("rocov-2 status", "not a request in the protocol rocov-1"),
            ("GET / HTTP/1.1\r", "not a request in the protocol rocov-1"),
            ("rocov-1", "unknown request \"\": "),
            ("rocov-1 status now", "unknown request \"now\": "),
            ("rocov-1 stop", "unknown request \"stop\": "),
            ("rocov-1 dump  reset", "unknown request \"\": "),
            ("rocov-1 dump all=1", "unknown request \"all=1\": "),
            (
                "rocov-1 dump window=1",
                "window: \"1ms\" is not valid: use a time ",
            ),
            (
                "rocov-1 dump label=a/../b",
                "the label \"a/../b\" cannot be used: ",
            ),
        ] {
            let found = Request::parse(line).unwrap_err().to_string();
            assert!(found.starts_with(error), "{line:?}: {found}");
        }
    }
}
