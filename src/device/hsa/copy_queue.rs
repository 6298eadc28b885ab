//! The copies of one agent that are under way together, and their results.

use std::time::Duration;

use crate::device::hsa::abi;
use crate::device::hsa::runtime::CopyApi;
use crate::device::hsa::stuck_agents::Copying;
use crate::device::{DeviceError, DeviceRange};
use crate::support::backoff::Stopwatch;

/// The length of one wait in the runtime between two looks at the clock, in its own ticks: 10 to 100
/// milliseconds, as a tick is 1 to 10 nanoseconds.
const SLICE: u64 = 10_000_000;

/// More copies than can ever be under way. A signal counts down from here.
const MANY: i64 = 1 << 32;

/// The result of a group of copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ended {
    Well,
    /// One has failed. If there are others, nobody knows when these are done.
    Badly,
    /// One is still under way, and there was no progress for a long time.
    Never,
}

/// Copies from or to one agent.
#[derive(Debug)]
pub(super) struct Lane {
    /// The agent's handle.
    pub(super) agent: u64,
    /// The signal. It counts down from [`MANY`] with each finished copy, and is negative if a copy has
    /// failed.
    signal: u64,
    /// The device ranges of copies that may be under way.
    sent: Vec<DeviceRange>,
    /// The result of the copies that were waited for.
    ended: Ended,
}

impl Lane {
    /// Makes a lane without copies.
    pub(super) fn new(api: &CopyApi, agent: u64) -> Result<Self, DeviceError> {
        Ok(Self {
            agent,
            signal: api.signals.make(MANY)?,
            sent: Vec::new(),
            ended: Ended::Well,
        })
    }

    /// The signal for one more copy. `None` if a copy may be under way that rocov cannot wait for.
    pub(super) fn signal(&mut self, api: &CopyApi) -> Option<u64> {
        if self.is_free() {
            // SAFETY: the signal is ours, and no copy that uses it is under way.
            unsafe { api.signals.set(self.signal, MANY) };
            self.ended = Ended::Well;
        }
        (self.ended == Ended::Well).then_some(self.signal)
    }

    /// Records a started copy from or to `range` with that signal.
    pub(super) fn note_sent(&mut self, range: DeviceRange) {
        self.sent.push(range);
    }

    /// Waits until all copies have arrived, or there is no more progress. `since` is the time of the last
    /// progress, shared by all lanes of one wait: several stuck lanes take no longer than one.
    pub(super) fn wait(&mut self, api: &CopyApi, copying: &Copying, since: &mut Stopwatch) {
        let done = MANY - self.sent.len() as i64;
        let mut last = MANY;
        while !self.is_free() && self.ended == Ended::Well {
            // SAFETY: the signal is ours.
            let value = unsafe {
                let (less, how) = (abi::SIGNAL_LESS, abi::WAIT_BLOCKED);
                (api.wait_signal)(self.signal, less, done + 1, SLICE, how)
            };
            if value == done {
                self.sent.clear();
            } else if value < done {
                self.ended = Ended::Badly;
                if self.sent.len() == 1 {
                    // No other copy could still arrive.
                    self.sent.clear();
                }
            } else if last != value {
                last = value;
                *since = Stopwatch::start();
            } else if since.look(Duration::ZERO) >= copying.patience_with(self.agent) {
                self.ended = Ended::Never;
                copying.give_up(self.agent);
            }
        }
    }

    /// The result of the copies that were waited for.
    pub(super) fn ended(&self) -> Ended {
        self.ended
    }

    /// Returns whether no copy is under way.
    pub(super) fn is_free(&self) -> bool {
        self.sent.is_empty()
    }

    /// Destroys the signal if no copy is under way. If one may be, abandons it. Returns whether none is.
    pub(super) fn close(self, api: &CopyApi, copying: &Copying) -> bool {
        if self.is_free() {
            // SAFETY: the signal is ours and goes with this lane. All its copies have been waited for.
            unsafe { api.signals.destroy(self.signal) };
        } else {
            copying.abandon(&self.sent);
        }
        self.is_free()
    }
}

#[cfg(test)]
#[path = "copy_queue_tests.rs"]
mod tests;
