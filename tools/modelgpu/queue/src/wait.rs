//! Waits of packets for memory that somebody else writes.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::fault::Fault;
use crate::pause::Pause;

/// The shortest and the longest time between two looks of a waiting packet at memory.
const LOOKS: (Duration, Duration) = (Duration::from_micros(5), Duration::from_millis(1));

/// Polls `ready` until it returns true or the queue is destroyed.
///
/// # Errors
/// Fails if `ready` does, or if the queue is destroyed.
pub(crate) fn wait_until(
    cancelled: &AtomicBool,
    mut ready: impl FnMut() -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let pause = Pause::between(LOOKS.0, LOOKS.1);
    while !ready()? {
        if cancelled.load(Ordering::Relaxed) {
            return Err(Fault::Cancelled);
        }
        pause.wait();
    }
    Ok(())
}

/// The comparison of a word with a reference, with the numbers that SDMA and PM4 packets share.
#[derive(Clone, Copy)]
pub(crate) struct Comparison {
    /// 0 for always, then less, at most, equal, different, at least, and greater.
    pub function: u32,
    /// The bits of the word that count.
    pub mask: u32,
    /// The value to compare them with.
    pub reference: u32,
}

impl Comparison {
    /// Returns whether the comparison is true for the word. `None` if there is no such function.
    fn holds(self, word: u32) -> Option<bool> {
        let (now, reference) = (word & self.mask, self.reference);
        Some(match self.function {
            0 => true,
            1 => now < reference,
            2 => now <= reference,
            3 => now == reference,
            4 => now != reference,
            5 => now >= reference,
            6 => now > reference,
            _ => return None,
        })
    }

    /// Waits until the comparison is true for the word that `word` finds. Looks for it each time, because the program may
    /// free its memory meanwhile. `unknown` is the fault if there is no such function.
    ///
    /// # Errors
    /// Fails if there is no such function or no word, or if the queue is destroyed.
    pub(crate) fn wait<'a>(
        self,
        word: impl Fn() -> Result<&'a AtomicU32, Fault>,
        cancelled: &AtomicBool,
        unknown: impl Fn() -> Fault,
    ) -> Result<(), Fault> {
        wait_until(cancelled, || {
            self.holds(word()?.load(Ordering::Acquire))
                .ok_or_else(&unknown)
        })
    }
}
