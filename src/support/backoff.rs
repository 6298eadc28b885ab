//! Waits with a limit.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pauses that become longer, until the patience is over. Most waits end at once.
///
/// The patience is over when the clock says so, or when the pauses add up to it. So a clock that stands still
/// or goes backwards cannot make a wait endless.
#[derive(Debug)]
pub struct Pauses {
    patience: Duration,
    since: Instant,
    slept: Duration,
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
            since: Instant::now(),
            slept: Duration::ZERO,
            first,
            next: first,
            longest,
        }
    }

    /// Pauses. Returns false if the patience is over.
    pub fn take(&mut self) -> bool {
        if self.since.elapsed().max(self.slept) >= self.patience {
            return false;
        }
        sleep(self.next);
        self.slept += self.next;
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
        let mut pauses = Pauses::new(patience, first, longest);
        let taken = (0..100).take_while(|_| pauses.take()).count();
        assert!((1..=7).contains(&taken), "{taken}");
        assert!(pauses.since.elapsed() >= patience);
        pauses.start_short();
        assert!(!pauses.take());
    }

    #[test]
    fn a_clock_that_goes_backwards_ends_it_too() {
        let [patience, first, longest] = [5, 1, 1].map(Duration::from_millis);
        let mut pauses = Pauses::new(patience, first, longest);
        pauses.since += Duration::from_secs(3600);
        assert_eq!((0..100).take_while(|_| pauses.take()).count(), 5);
    }

    #[test]
    fn no_patience_is_too_long() {
        let mut pauses = Pauses::new(Duration::MAX, Duration::ZERO, Duration::ZERO);
        assert!(pauses.take());
    }
}
