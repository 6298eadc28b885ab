//! Pauses between two looks at memory that somebody else writes without a word.

use std::thread;
use std::time::{Duration, Instant};

/// A pause is the time waited so far, divided by this. So a look comes late by at most this part.
const PART: u32 = 16;

/// A wait by looks at memory. Its pauses grow with the time since it began.
pub struct Pause {
    since: Instant,
    shortest: Duration,
    longest: Duration,
}

impl Pause {
    /// Begins a wait with pauses between these two.
    #[must_use]
    pub fn between(shortest: Duration, longest: Duration) -> Self {
        Self {
            since: Instant::now(),
            shortest,
            longest,
        }
    }

    /// Begins again.
    pub(crate) fn restart(&mut self) {
        self.since = Instant::now();
    }

    /// Sleeps until the next look.
    pub fn wait(&self) {
        let part = self.since.elapsed() / PART;
        thread::sleep(part.clamp(self.shortest, self.longest));
    }
}
