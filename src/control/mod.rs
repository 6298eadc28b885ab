//! Requests to rocov in a running process: the parts that librocov, which answers, and the command, which
//! asks, have in common.
//!
//! With `ROCOV_CONTROL`, a process listens on a Unix socket ([`socket_path`]). A client connects, sends one
//! line, a [`Request`], and gets an [`Answer`]. Both are text, so any tool can be a client.

mod answer;
pub mod peer;
mod request;
pub mod socket_path;

pub use answer::{Answer, AnswerError, Reply};
pub use request::{DumpRequest, REQUEST_MAX, Request, RequestError};

/// The first word of a request and of an answer. Another number is another protocol.
const PROTOCOL: &str = "rocov-1";
