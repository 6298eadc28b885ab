//! Answers: `rocov-1 ok` and lines with a key, a space and a value, or `rocov-1 error` and the reason.

use std::fmt::{Display, Write};

use thiserror::Error;

use super::PROTOCOL;

/// An answer to write.
#[derive(Debug)]
pub struct Reply(String);

impl Reply {
    /// The answer for success.
    #[must_use]
    pub fn done() -> Self {
        Self(format!("{PROTOCOL} ok\n"))
    }

    /// The answer for a refusal, with the reason.
    #[must_use]
    pub fn refused(why: &dyn Display) -> Self {
        Self(format!("{PROTOCOL} error")).with("", why)
    }

    /// Adds a line. A line feed in the value becomes a space.
    #[must_use]
    pub fn with(mut self, key: &str, value: &dyn Display) -> Self {
        let start = self.0.len();
        let _ = write!(self.0, "{key} {value}");
        let line = self.0.split_off(start).replace('\n', " ");
        self.0.push_str(&line);
        self.0.push('\n');
        self
    }

    /// The bytes to send.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// An answer that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    lines: Vec<(String, String)>,
}

/// The error for a refusal, or for a text that is not an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The process refuses the request.
    #[error("{0}")]
    Refused(String),
    /// No process with this version of librocov answers like this.
    #[error("the answer {0:?} is not part of the protocol {PROTOCOL}")]
    Protocol(String),
}

impl Answer {
    /// Parses a whole answer.
    ///
    /// # Errors
    /// Fails if it is a refusal, or not an answer.
    pub fn parse(text: &str) -> Result<Self, AnswerError> {
        let first = text.lines().next().unwrap_or_default();
        let said = first.strip_prefix(PROTOCOL).unwrap_or_default();
        match said.trim_start().split_once(' ') {
            None if said == " ok" => {}
            Some(("error", why)) => return Err(AnswerError::Refused(why.to_owned())),
            _ => return Err(AnswerError::Protocol(first.to_owned())),
        }
        let lines = text.lines().skip(1);
        let pair = |line: &str| {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            (key.to_owned(), value.to_owned())
        };
        Ok(Self {
            lines: lines.map(pair).collect(),
        })
    }

    /// The values of this key, in their order.
    pub fn all<'a, 'k>(&'a self, key: &'k str) -> impl Iterator<Item = &'a str> + use<'a, 'k> {
        let lines = self.lines.iter();
        lines.filter_map(move |(its, value)| (its == key).then_some(value.as_str()))
    }

    /// The first value of this key. Empty if there is none.
    #[must_use]
    pub fn get(&self, key: &str) -> &str {
        self.all(key).next().unwrap_or_default()
    }

    /// The first value of this key as a number. Zero if there is none.
    #[must_use]
    pub fn number(&self, key: &str) -> u64 {
        self.get(key).parse().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reply: &Reply) -> Result<Answer, AnswerError> {
        Answer::parse(std::str::from_utf8(reply.as_bytes()).unwrap())
    }

    #[test]
    fn answers_are_read_as_they_are_written() {
        let reply = Reply::done()
            .with("files", &3)
            .with("label", &"a b")
            .with("label", &"two\nlines");
        let text = "rocov-1 ok\nfiles 3\nlabel a b\nlabel two lines\n";
        assert_eq!(reply.as_bytes(), text.as_bytes());
        let answer = read(&reply).unwrap();
        assert_eq!(answer.number("files"), 3);
        assert_eq!(
            answer.all("label").collect::<Vec<_>>(),
            ["a b", "two lines"]
        );
        assert_eq!(answer.get("else"), "");
        assert_eq!(answer.number("else"), 0);
    }

    #[test]
    fn what_is_no_answer_is_said_as_it_came() {
        let error = Answer::parse("HTTP/1.1 400 Bad Request\r\nmore\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the answer \"HTTP/1.1 400 Bad Request\" is not part of the protocol rocov-1"
        );
        let refused = AnswerError::Refused("a window is open".into());
        assert_eq!(refused.to_string(), "a window is open");
    }

    #[test]
    fn what_is_refused_says_why() {
        let why = "a window is open\nalready".to_owned();
        let refused = Reply::refused(&why);
        assert_eq!(
            refused.as_bytes(),
            b"rocov-1 error a window is open already\n"
        );
        let why = "a window is open already".to_owned();
        assert_eq!(read(&refused), Err(AnswerError::Refused(why)));
        for text in ["", "ok", "rocov-2 ok\n", "rocov-1 okay\n", "rocov-1\n"] {
            let first = text.trim_end().to_owned();
            assert_eq!(Answer::parse(text), Err(AnswerError::Protocol(first)));
        }
    }
}
