//! The journal of a run: lines by which each process tells `rocov run` what happened to it, in the file that
//! `ROCOV_JOURNAL` names. `rocov run` reads them at the end and reports on the whole run.
//!
//! Each line is `PID WORD`. librocov writes it at once, because a process may be killed at any time. Without
//! `rocov run` there is no such file.

use std::fs::OpenOptions;
use std::io::Write;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::config;

/// What has happened. The words are read by tools/rocov/src/journal.rs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// It has registered device code, or started HSA.
    Hip,
    /// It has loaded device code.
    Loaded,
    /// It has loaded device code that counts.
    Counts,
    /// ROCOV_ONLY or ROCOV_SKIP leave out device code that it has loaded.
    Skipped,
    /// It has written a profile of what was counted.
    Wrote,
    /// It has code that was never launched, which counts as zero.
    Zero,
    /// LLVM's own drain writes its profiles.
    Neighbour,
    /// Counts are lost.
    Lost,
    /// All is drained, and it is about to end.
    Ended,
}

impl Note {
    fn word(self) -> &'static str {
        match self {
            Note::Hip => "hip",
            Note::Loaded => "loaded",
            Note::Counts => "counts",
            Note::Skipped => "skipped",
            Note::Wrote => "wrote",
            Note::Zero => "zero",
            Note::Neighbour => "neighbour",
            Note::Lost => "lost",
            Note::Ended => "ended",
        }
    }
}

/// A bit for each note that was written.
static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// Writes a note down, once.
pub(crate) fn note(note: Note) {
    let bit = 1 << note as u32;
    if WRITTEN.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
        return;
    }
    let Some(path) = config::variable("ROCOV_JOURNAL").filter(|path| !path.is_empty()) else {
        return;
    };
    // It is gone if `rocov run` has ended before this process. One call of write(2) keeps the lines
    // of processes apart.
    if let Ok(mut file) = OpenOptions::new().append(true).open(path) {
        let line = format!("{} {}\n", process::id(), note.word());
        let _ = file.write_all(line.as_bytes());
    }
}

/// This is a forked child, of which nothing is known.
pub(crate) fn forked() {
    WRITTEN.store(0, Ordering::Relaxed);
}
