//! The progress of long work, in one line on standard error.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::plural::count;
use super::print;

/// Time between two lines.
const INTERVAL: Duration = Duration::from_millis(200);
/// Erases the line that the cursor is on.
const ERASE: &str = "\r\x1b[K";

/// The line that is left when the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// The line as it was last.
    Line,
    /// Nothing.
    Nothing,
}

/// Does `work` on `total` things of this kind, and shows how many are done meanwhile, if somebody reads that. The work
/// adds up those that are done.
pub(crate) fn counted<T>(total: usize, noun: &str, work: impl FnOnce(&AtomicUsize) -> T) -> T {
    let done = AtomicUsize::new(0);
    let line = |_| {
        let done = done.load(Ordering::Relaxed);
        format!("{done} of {}", count(total, noun))
    };
    shown(print::shows_progress(), line, Last::Nothing, || work(&done))
}

/// Does `work`. If the progress `is_shown`, prints `line` meanwhile, which takes the time that has
/// passed.
pub(crate) fn shown<T>(
    is_shown: bool,
    line: impl Fn(Duration) -> String + Send,
    last: Last,
    work: impl FnOnce() -> T,
) -> T {
    if !is_shown {
        return work();
    }
    thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        scope.spawn(move || {
            let start = Instant::now();
            let mut has_shown = false;
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                print::progress(&format!("{ERASE}rocov: {}", line(start.elapsed())));
                has_shown = true;
            }
            match last {
                Last::Line => {
                    print::progress(&format!("{ERASE}rocov: {}\n", line(start.elapsed())))
                }
                Last::Nothing if has_shown => print::progress(ERASE),
                Last::Nothing => {}
            }
        });
        let result = work();
        drop(end);
        result
    })
}
