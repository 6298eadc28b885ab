//! Asking rocov in a running process for something: what librocov, which is asked, and the command,
//! which asks, have in common.
//!
//! A process that is told to (`ROCOV_CONTROL`) listens on a Unix socket ([`place`]). Whoever connects
//! sends one line, a [`Request`], and gets an [`Answer`]: text, so that any tool can ask.
//! [`words`] are the settings of all that happens without being asked each time.

mod answer;
pub mod peer;
pub mod place;
mod request;
pub mod words;

pub use answer::{Answer, AnswerError, Reply};
pub use request::{DumpRequest, REQUEST_MAX, Request, RequestError};

/// The first word of a request and of an answer. Another number is another protocol.
const PROTOCOL: &str = "rocov-1";
