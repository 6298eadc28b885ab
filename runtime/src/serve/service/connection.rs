//! A connection to the socket. It takes a request as the bytes arrive, so that no client keeps the thread
//! waiting.

use std::fmt::Display;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rocov::control::{REQUEST_MAX, Reply, Request};

use super::owned_fd::Owner;
use super::socket;
use crate::guest::log;

/// The time for a request to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client that waits for an answer.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Owner<UnixStream>,
    received: Vec<u8>,
    pub(super) deadline: Instant,
}

impl Connection {
    /// Accepts a client; `None` for a client without the right to ask, which gets a refusal.
    pub(super) fn new(stream: UnixStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        let admitted = socket::admits(&stream);
        let connection = Self {
            stream: Owner::new(stream)?,
            received: Vec::new(),
            deadline: Instant::now() + PATIENCE,
        };
        match admitted {
            Ok(()) => Some(connection),
            Err(why) => {
                connection.refuse(&why);
                None
            }
        }
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.stream.number()
    }

    /// Returns whether the program has left the descriptor alone.
    pub(super) fn is_ours(&self) -> bool {
        self.stream.is_ours()
    }

    /// Reads the bytes that have arrived. `None` while the line is not complete and there is time left.
    ///
    /// # Errors
    /// Fails if no request can follow.
    pub(super) fn request(&mut self) -> Option<Result<Request, String>> {
        let mut bytes = [0; REQUEST_MAX];
        let mut stream = self.stream.get()?;
        loop {
            let end = self.received.iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let line = String::from_utf8_lossy(&self.received[..end]);
                return Some(Request::parse(&line).map_err(|error| error.to_string()));
            }
            let why = match stream.read(&mut bytes[self.received.len()..]) {
                Ok(0) if self.received.len() == REQUEST_MAX => {
                    "a request is a line of at most 4096 bytes"
                }
                Ok(0) => "a request ends with a line feed",
                Ok(more) => {
                    let start = self.received.len();
                    self.received.extend(&bytes[start..start + more]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) if Instant::now() < self.deadline => return None,
                Err(_) => "no request within 5 s",
            };
            return Some(Err(why.to_owned()));
        }
    }

    /// Answers with a refusal.
    pub(super) fn refuse(self, why: &dyn Display) {
        log::verbose(format_args!("control: refused: {why}"));
        self.answer(&Reply::refused(why));
    }

    /// Answers and closes the connection. Does not wait for a client that does not read: the socket has
    /// room for answers.
    pub(super) fn answer(self, reply: &Reply) {
        let Some(mut stream) = self.stream.get() else {
            return;
        };
        let _ = stream.write_all(reply.as_bytes());
        // Bytes that nobody reads would turn the end of the answer into an error for the client.
        let _ = stream.shutdown(Shutdown::Write);
        let mut rest = [0; 512];
        for _ in 0..64 {
            if !stream.read(&mut rest).is_ok_and(|more| more > 0) {
                break;
            }
        }
        // A child that was forked meanwhile has the descriptor too.
        let _ = stream.shutdown(Shutdown::Both);
    }
}
