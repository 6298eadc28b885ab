//! The journal of a run: each process writes its own events into the file that `ROCOV_JOURNAL`
//! names. `rocov run` reads the file at the end and reports on the whole run.
//!
//! Each line is `PID WORD`, or `PID registry PATH`. librocov writes it at once, because a process may be killed at any time.
//! Without `rocov run` there is no such file.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::environment;

/// An event. tools/rocov reads the words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// The process has registered device code, or started HSA.
    Hip,
    /// The process has started CUDA.
    Cuda,
    /// The process has loaded device code.
    Loaded,
    /// The process has loaded instrumented device code.
    Counts,
    /// ROCOV_ONLY or ROCOV_SKIP leaves out device code that the process has loaded.
    Skipped,
    /// The process has written a profile with counts.
    Wrote,
    /// LLVM's own drain writes the profiles of the process.
    Neighbour,
    /// Counts are lost.
    Lost,
    /// The process has drained everything and is about to end.
    Ended,
}

impl Note {
    fn word(self) -> &'static str {
        match self {
            Self::Hip => "hip",
            Self::Cuda => "cuda",
            Self::Loaded => "loaded",
            Self::Counts => "counts",
            Self::Skipped => "skipped",
            Self::Wrote => "wrote",
            Self::Neighbour => "neighbour",
            Self::Lost => "lost",
            Self::Ended => "ended",
        }
    }
}

/// One bit for each note that was written.
static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// Writes a note, once.
pub(crate) fn note(note: Note) {
    let bit = 1 << note as u32;
    if WRITTEN.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        write(note.word().as_bytes());
    }
}

/// Notes the registry that this process has left at `path`, for `rocov run` to look for code in it that was
/// never launched.
pub(crate) fn note_registry(path: &Path) {
    write(&[b"registry ", path.as_os_str().as_bytes()].concat());
}

fn write(words: &[u8]) {
    let Some(path) = environment::variable("ROCOV_JOURNAL").filter(|path| !path.is_empty()) else {
        return;
    };
    // The file is gone if `rocov run` has ended before this process. One call of write(2) keeps the
    // lines of processes apart.
    if let Ok(mut file) = OpenOptions::new().append(true).open(path) {
        let line = [process::id().to_string().as_bytes(), b" ", words, b"\n"].concat();
        let _ = file.write_all(&line);
    }
}

/// Starts anew in a forked child, which has written nothing yet.
pub(crate) fn forked() {
    WRITTEN.store(0, Ordering::Relaxed);
}
