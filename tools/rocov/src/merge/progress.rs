//! How far a merge is, in one line on standard error.

use crate::words::count;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two lines.
const INTERVAL: Duration = Duration::from_millis(200);
/// Erases the line that the cursor is on.
const ERASE: &str = "\r\x1b[K";

/// What has been added so far.
#[derive(Default)]
pub(super) struct Progress {
    profiles: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Counts one profile of `bytes` bytes.
    pub(super) fn add(&self, bytes: usize) {
        self.profiles.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Does `work`, and shows the progress meanwhile where it `is_shown`.
    pub(super) fn shown<T>(&self, is_shown: bool, work: impl FnOnce() -> T) -> T {
        if !is_shown {
            return work();
        }
        thread::scope(|scope| {
            let (end, ended) = channel::<()>();
            scope.spawn(move || {
                let start = Instant::now();
                while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    eprint!("{ERASE}rocov: {}", self.line(start.elapsed()));
                }
                eprintln!("{ERASE}rocov: {}", self.line(start.elapsed()));
            });
            let result = work();
            drop(end);
            result
        })
    }

    /// The line after the time `passed`.
    fn line(&self, passed: Duration) -> String {
        let profiles = self.profiles.load(Ordering::Relaxed) as usize;
        let megabytes = self.bytes.load(Ordering::Relaxed) as f64 / 1e6;
        let seconds = passed.as_secs_f64().max(1e-3);
        format!(
            "{}, {megabytes:.1} MB in {seconds:.1} s: {:.0} profiles/s, {:.0} MB/s",
            count(profiles, "profile"),
            profiles as f64 / seconds,
            megabytes / seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_numbers_and_rates() {
        let progress = Progress::default();
        progress.add(1_500_000);
        progress.add(500_000);
        assert_eq!(
            progress.line(Duration::from_millis(500)),
            "2 profiles, 2.0 MB in 0.5 s: 4 profiles/s, 4 MB/s"
        );
    }
}
