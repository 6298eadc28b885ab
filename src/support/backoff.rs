//! Waits with a limit.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// The most that one look at the clock adds to a wait. A caller that waits looks far more often. So a clock that jumps ahead,
/// as after the sleep of a virtual machine, ends no wait.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// The time that a wait has taken, by a clock that may jump.
#[derive(Debug)]
pub struct Stopwatch {
    last: Instant,
    spent: Duration,
}

impl Stopwatch {
    /// Starts a wait.
    #[must_use]
    pub fn start() -> Self {
        Self::after(Duration::ZERO)
    }

    /// Continues with a wait that has taken this time.
    #[must_use]
    pub fn after(spent: Duration) -> Self {
        Self {
            last: Instant::now(),
            spent,
        }
    }

    /// The time since the start. The wait has taken `at_least` so long since the last look.
    pub fn look(&mut self, at_least: Duration) -> Duration {
        let now = Instant::now();
        let elapsed = now.saturating_duration_since(self.last);
        self.last = now;
        // A clock that stands still or goes backwards cannot make a wait endless.
        let counted = elapsed
            .min(at_least.saturating_add(LONGEST_LOOK))
            .max(at_least);
        self.spent = self.spent.saturating_add(counted);
        self.spent
    }
}

/// Pauses that become longer, until the patience is over. Most waits end at once.
///
/// The patience is over when the clock says so, or when the pauses add up to it. A jump of the clock does not end it.
#[derive(Debug)]
pub struct Pauses {
    patience: Duration,
    watch: Stopwatch,
    /// The time of the last pause.
    paused: Duration,
    first: Duration,
    next: Duration,
    longest: Duration,
}

impl Pauses {
    /// Makes pauses from `first` to `longest`, for `patience` from now on.
    #[must_use]
    pub fn new(patience: Duration, first: Duration, longest: Duration) -> Self {
        Self {
            patience,
            watch: Stopwatch::start(),
            paused: Duration::ZERO,
            first,
            next: first,
            longest,
        }
    }

    /// Pauses. Returns false if the patience is over.
    pub fn take(&mut self) -> bool {
        if self.watch.look(std::mem::take(&mut self.paused)) >= self.patience {
            return false;
        }
        sleep(self.next);
        self.paused = self.next;
        self.next = (self.next * 2).min(self.longest);
        true
    }

    /// Makes the pauses short again, for another wait within the patience that is left.
    pub fn start_short(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends() {
        let [patience, first, longest] = [20, 1, 4].map(Duration::from_millis);
        let since = Instant::now();
        let mut pauses = Pauses::new(patience, first, longest);
        let taken = (0..100).take_while(|_| pauses.take()).count();
        assert!((1..=7).contains(&taken), "{taken}");
        assert!(since.elapsed() >= patience);
        pauses.start_short();
        assert!(!pauses.take());
    }

    #[test]
    fn a_clock_that_goes_backwards_ends_it_too() {
        let [patience, first, longest] = [5, 1, 1].map(Duration::from_millis);
        let mut pauses = Pauses::new(patience, first, longest);
        pauses.watch.last += Duration::from_secs(3600);
        let mut take = || {
            pauses.watch.last += Duration::from_secs(3600);
            pauses.take()
        };
        assert_eq!((0..100).take_while(|_| take()).count(), 5);
    }

    #[test]
    fn a_clock_that_jumps_ahead_does_not_end_it() {
        let [patience, pause] = [10_000, 1].map(Duration::from_millis);
        let mut pauses = Pauses::new(patience, pause, pause);
        for _ in 0..5 {
            pauses.watch.last = pauses
                .watch
                .last
                .checked_sub(Duration::from_secs(60))
                .unwrap();
            assert!(pauses.take());
        }
        assert!(pauses.watch.spent < patience, "{pauses:?}");
    }

    #[test]
    fn no_patience_is_too_long() {
        let mut pauses = Pauses::new(Duration::MAX, Duration::ZERO, Duration::ZERO);
        assert!(pauses.take());
    }
}
