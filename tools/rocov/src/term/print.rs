//! Standard output and standard error of the command.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use rocov::support::diagnostic::Diagnostic;
use serde::Serialize;

use super::lines::{Lines, message_line};
use crate::support::atomic::replace;

/// Writes `bytes` to standard output, to no effect when its reader has seen enough.
///
/// # Errors
///
/// Fails if it cannot be written for another reason.
pub(crate) fn text(bytes: &[u8]) -> Result<()> {
    let written = Stdout.write_all(bytes).and_then(|()| Stdout.flush());
    written.context("cannot write to standard output")
}

/// Prints text in lines, as [`text`] does.
///
/// # Errors
///
/// Fails if it cannot be written.
pub(crate) fn lines(write: impl FnOnce(&mut Lines<'_>) -> io::Result<()>) -> Result<()> {
    to_file_or_stdout(None, |out| {
        write(&mut Lines::new(out))?;
        Ok(out.flush()?)
    })
}

/// Prints a document as JSON, as [`text`] does.
///
/// # Errors
///
/// Fails if it cannot be written.
pub(crate) fn json(document: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(document).context("cannot write JSON")?;
    text.push(b'\n');
    self::text(&text)
}

/// Runs `write` on a writer to the file at `path`, which it replaces at once when it is complete, or to
/// standard output if there is no path.
///
/// # Errors
///
/// Fails if `write` fails, or the file cannot be written.
pub(crate) fn to_file_or_stdout(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match path {
        Some(path) => replace(path, |file| {
            let file = File::create(file).context("cannot open a temporary file")?;
            let written = flushed(BufWriter::new(file), write);
            written.with_context(|| format!("cannot write {}", path.display()))
        }),
        None => flushed(BufWriter::new(Stdout), write).context("cannot write to standard output"),
    }
}

/// Runs `write` on `out`, with all that it buffers. A buffer that is dropped does not report an error.
fn flushed(mut out: impl Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    write(&mut out)?;
    Ok(out.flush()?)
}

/// The text for standard output and standard error that is held back, while it is.
static HELD: Mutex<Option<[Vec<u8>; 2]>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<[Vec<u8>; 2]>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds back all text from now on, until [`release`].
pub(crate) fn hold() {
    *held() = Some(Default::default());
}

/// Prints `start` on standard output, and then the text that was held back.
pub(crate) fn release(start: &str) {
    let [output, errors] = held().take().unwrap_or_default();
    let text = [start.as_bytes(), &output].concat();
    let _ = self::text(&text);
    let _ = io::stderr().write_all(&errors);
}

/// Standard output, to no effect when its reader has seen enough.
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some([output, _]) = &mut *held() {
            output.extend(bytes);
            return Ok(bytes.len());
        }
        unless_closed(io::stdout().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(io::stdout().flush(), ())
    }
}

fn unless_closed<T>(result: io::Result<T>, done: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(done),
        result => result,
    }
}

/// True if the command prints errors only: `--quiet`.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Prints only errors from now on.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Returns whether standard error is read by somebody who wants to know how far long work is.
pub(crate) fn shows_progress() -> bool {
    !IS_QUIET.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// Prints warnings on standard error, unless the command is quiet.
pub(crate) fn warn(messages: &[Diagnostic]) {
    if IS_QUIET.load(Ordering::Relaxed) {
        return;
    }
    messages.iter().for_each(message);
}

/// Prints a fact on standard error that asks for nothing, unless the command is quiet.
pub(crate) fn note(line: impl Display) {
    if !IS_QUIET.load(Ordering::Relaxed) {
        message(line);
    }
}

/// Prints a line of the command on standard error: an error, or a note that `--quiet` keeps.
pub(crate) fn message(line: impl Display) {
    aside(&format!("rocov: {}\n", message_line(&line)));
}

/// Prints a part of a line of progress on standard error, at once.
pub(super) fn progress(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints the text of another tool, one that gives way to the flags on standard output, or progress, on standard
/// error.
///
/// A text that cannot be written there is lost: there is no other place to report that, and the command must still
/// end with the status of the user's program. `eprint!` would panic.
pub(crate) fn aside(text: &str) {
    if let Some([_, errors]) = &mut *held() {
        errors.extend(text.as_bytes());
        return;
    }
    let _ = io::stderr().write_all(text.as_bytes());
}
