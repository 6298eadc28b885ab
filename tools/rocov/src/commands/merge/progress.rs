//! The progress of a merge, in one line on standard error.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::term::plural::count;
use crate::term::progress;
use crate::term::progress::Last;

/// The profiles and bytes that have been added so far.
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

    /// Does `work`, and shows the progress meanwhile if it `is_shown`.
    pub(super) fn shown<T>(&self, is_shown: bool, work: impl FnOnce() -> T) -> T {
        progress::shown(is_shown, |passed| self.line(passed), Last::Line, work)
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
