//! One question to a process, and its answer.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result};
use rocov::control::{Answer, Request, peer};
use rocov::support::diagnostic::fail;

use super::process;
use super::process::Process;

/// Asks process `pid`, and waits for its answer: it may have kernels to wait for.
///
/// # Errors
///
/// Fails if it cannot be reached, or rejects the request.
pub(crate) fn ask(pid: u32, request: &Request) -> Result<Answer> {
    let process = Process::find(pid)?;
    let socket = process.socket()?;
    let mut stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            process::remove(&socket)?;
            fail!(
                "no process listens on {} any longer, so rocov removed it: process {pid} is not the program that \
                 created it, or has closed it",
                socket.display();
                "start it again with `rocov run --control`"
            );
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(process.not_yours());
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot connect to {}", socket.display()));
        }
    };
    let listening = peer::identify(&stream)?.pid;
    if listening != pid {
        fail!(
            "process {listening} listens on {}, and has the PID {pid} in another PID namespace",
            socket.display();
            "run the command there"
        );
    }
    // A process that rejects the user may have hung up already, after its reason.
    let sent = stream.write_all(format!("{request}\n").as_bytes());
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    if answer.is_empty() {
        sent.and(read.map(drop))?;
        fail!("process {pid} ended before it answered"; "`rocov report` shows its counts");
    }
    let answer = String::from_utf8_lossy(&answer);
    Answer::parse(&answer).with_context(|| format!("process {pid}"))
}
