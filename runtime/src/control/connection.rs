//! One who has connected: what is asked for is read as it comes, so that nobody keeps the thread
//! waiting.

use std::fmt::Display;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rocov::control::{REQUEST_MAX, Reply, Request};

use super::own::Owner;
use super::socket;
use crate::log;

/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Somebody who has not been answered yet.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Owner<UnixStream>,
    received: Vec<u8>,
    pub(super) deadline: Instant,
}

impl Connection {
    /// `None` where that is somebody who may not ask, who is told so.
    pub(super) fn new(stream: UnixStream) -> Option<Connection> {
        stream.set_nonblocking(true).ok()?;
        let admitted = socket::admits(&stream);
        let connection = Connection {
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

    /// Whether the program has left it alone.
    pub(super) fn is_ours(&self) -> bool {
        self.stream.is_ours()
    }

    /// Reads what has come. `None` while there is no whole line, and time left.
    ///
    /// # Errors
    /// Fails where no request will come of it.
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
                    "a request is a line of 4096 bytes at most"
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

    /// Answers that this is not done.
    pub(super) fn refuse(self, why: &dyn Display) {
        log::verbose(format_args!("control: refused: {why}"));
        self.answer(&Reply::refused(why));
    }

    /// Answers, and hangs up. Who does not read is not waited for: the socket has room for answers.
    pub(super) fn answer(self, reply: &Reply) {
        let Some(mut stream) = self.stream.get() else {
            return;
        };
        let _ = stream.write_all(reply.as_bytes());
        // What is not read would make the answer's last part an error on the other side.
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
