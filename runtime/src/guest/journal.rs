//! The journal of a run: each process writes its own events into the file that `ROCOV_JOURNAL`
//! names. `rocov run` reads the file at the end and reports on the whole run.
//!
//! Each line is `PROCESS WORD`, or `PROCESS` and one of these: `program`, the label and the command line; `name` and
//! the word in the names of the process's files; `registry` and a path; `uncounted`, a number, what it counts, its file
//! and the reason. Tabs separate the parts of a list. PROCESS is `PID:START:NAMESPACE`, because a number alone may be
//! that of several processes. librocov writes a line at once, because a process may be killed at any time. Without
//! `rocov run` there is no such file.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use rocov::settings::Uncounted;
use rocov::settings::variables::{JOURNAL, LABEL};

use super::environment;
use super::process_word::word;

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
    let written = WRITTEN.fetch_or(bit, Ordering::Relaxed);
    if written & bit != 0 {
        return;
    }
    if written == 0 {
        note_program();
    }
    // The name of its files comes first, for notes in its registry. After `exec`, another program with another name has the
    // process.
    if let Note::Counts = note {
        write(format!("name {}", word()).as_bytes());
    }
    write(note.word().as_bytes());
}

/// Notes the label and the command line of the process, so that `rocov run` can name it after it was killed.
fn note_program() {
    /// A part of a long command line names it, too.
    const MOST_WORDS: usize = 64;
    const MOST_LETTERS: usize = 256;
    let label = environment::variable(LABEL.name).unwrap_or_default();
    let words = env::args_os().take(MOST_WORDS);
    let words = [label].into_iter().chain(words).map(|word| {
        let word = word.to_string_lossy();
        let letters = word.chars().take(MOST_LETTERS);
        letters
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect::<String>()
    });
    let words: Vec<_> = words.collect();
    write(format!("program {}", words.join("\t")).as_bytes());
}

/// Notes the registry that this process has left at `path`, for `rocov run` to look for code in it that was
/// never launched.
pub(crate) fn note_registry(path: &Path) {
    write(&[b"registry ", path.as_os_str().as_bytes()].concat());
}

/// Notes that so many modules or code objects of a file ran uncounted, and the reason. Returns whether `rocov run` will read
/// it, and print one line for all processes.
pub(crate) fn note_uncounted(what: Uncounted, file: &str, reason: &str, count: usize) -> bool {
    let [file, reason] = [file, reason].map(|text| text.replace(['\n', '\t'], " "));
    let parts = [count.to_string(), what.word().to_owned(), file, reason].join("\t");
    write(["uncounted ", &parts].concat().as_bytes())
}

/// Returns whether there is a journal, and the words are in it.
fn write(words: &[u8]) -> bool {
    let Some(path) = environment::variable(JOURNAL.name).filter(|path| !path.is_empty()) else {
        return false;
    };
    // The file is gone if `rocov run` has ended before this process. One call of write(2) keeps the
    // lines of processes apart.
    let Ok(mut file) = OpenOptions::new().append(true).open(path) else {
        return false;
    };
    let line = [this_process().as_bytes(), b" ", words, b"\n"].concat();
    file.write_all(&line).is_ok()
}

/// Returns `PID:START:NAMESPACE`: the start is that of proc_pid_stat(5), the namespace the inode of that of process ids.
/// Each is 0 if the system does not show it.
fn this_process() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name before the last parenthesis may contain anything. The start is the 20th word behind it.
    let start = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(19));
    let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino());
    format!("{}:{}:{namespace}", process::id(), start.unwrap_or("0"))
}

/// Starts again in a forked child, which has written nothing yet.
pub(crate) fn forked() {
    WRITTEN.store(0, Ordering::Relaxed);
}
