//! The copies of one agent that are under way together, and their results.

use std::time::Instant;

use crate::device::hsa::abi;
use crate::device::hsa::runtime::CopyApi;
use crate::device::hsa::stuck_agents::Copying;
use crate::device::{DeviceError, DeviceRange};

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
    pub(super) fn has_sent(&mut self, range: DeviceRange) {
        self.sent.push(range);
    }

    /// Waits until all copies have arrived, or there is no more progress. `since` is the time of the last
    /// progress, shared by all lanes of one wait: several stuck lanes take no longer than one.
    pub(super) fn wait(&mut self, api: &CopyApi, copying: &Copying, since: &mut Instant) {
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
                *since = Instant::now();
            } else if since.elapsed() >= copying.patience_with(self.agent) {
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
mod tests {
    use super::*;
    use crate::device::hsa::runtime::SignalApi;
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::time::Duration;

    const AGENT: u64 = 0xa000;
    /// The source of the copies.
    const RANGE: DeviceRange = DeviceRange {
        start: 0x1000,
        len: 0x100,
    };

    thread_local! {
        /// The value of the signal.
        static VALUE: Cell<i64> = const { Cell::new(0) };
        /// The number of waits, and the number of live signals.
        static WAITS: Cell<usize> = const { Cell::new(0) };
        static SIGNALS: Cell<usize> = const { Cell::new(0) };
    }

    unsafe extern "C" fn create(value: i64, _: u32, _: *const u64, signal: *mut u64) -> u32 {
        VALUE.set(value);
        SIGNALS.set(SIGNALS.get() + 1);
        // SAFETY: the caller passes a place for the handle.
        unsafe { *signal = 1 };
        abi::SUCCESS
    }

    unsafe extern "C" fn destroy(_: u64) -> u32 {
        SIGNALS.set(SIGNALS.get() - 1);
        abi::SUCCESS
    }

    unsafe extern "C" fn store(_: u64, value: i64) {
        VALUE.set(value);
    }

    unsafe extern "C" fn wait(_: u64, _: u32, _: i64, _: u64, _: u32) -> i64 {
        WAITS.set(WAITS.get() + 1);
        VALUE.get()
    }

    unsafe extern "C" fn copy(
        _: *mut c_void,
        _: u64,
        _: *const c_void,
        _: u64,
        _: usize,
        _: u32,
        _: *const u64,
        _: u64,
    ) -> u32 {
        unreachable!("lanes do not copy themselves")
    }

    unsafe extern "C" fn lock(
        _: *mut c_void,
        _: usize,
        _: *const u64,
        _: i32,
        _: *mut *mut c_void,
    ) -> u32 {
        unreachable!("nor do they lock")
    }

    unsafe extern "C" fn unlock(_: *mut c_void) -> u32 {
        unreachable!("nor unlock")
    }

    const API: CopyApi = CopyApi {
        async_copy: copy,
        lock_memory: lock,
        unlock_memory: unlock,
        wait_signal: wait,
        signals: SignalApi {
            create,
            destroy,
            store,
        },
    };

    /// A lane with `copies` copies after a wait that saw the signal at `value`. The last progress was so long
    /// ago that the wait does not go on.
    fn waited(copying: &Copying, copies: usize, value: impl Fn(i64) -> i64) -> Lane {
        let mut lane = Lane::new(&API, AGENT).unwrap();
        for _ in 0..copies {
            lane.signal(&API).unwrap();
            lane.has_sent(RANGE);
        }
        VALUE.set(value(VALUE.get()));
        let mut since = Instant::now() - Duration::from_secs(60);
        lane.wait(&API, copying, &mut since);
        lane
    }

    #[test]
    fn copies_that_have_ended_leave_nothing() {
        let copying = Copying::default();
        // In the last case, the copy that fails is the only one.
        for (copies, value, ended) in [
            (3, MANY - 3, Ended::Well),
            (0, MANY, Ended::Well),
            (1, -1, Ended::Badly),
        ] {
            let mut lane = waited(&copying, copies, |_| value);
            assert_eq!(lane.ended(), ended);
            assert!(lane.is_free());
            assert_eq!(lane.signal(&API), Some(1), "it may be used again");
            assert_eq!(VALUE.get(), MANY);
            assert!(lane.close(&API, &copying));
            assert_eq!(SIGNALS.get(), 0);
        }
        assert!(copying.check(AGENT).is_ok());
        assert!(!copying.may_touch(None));
    }

    #[test]
    fn copies_that_may_be_under_way_keep_their_signal() {
        let copying = Copying::default();
        let mut lane = waited(&copying, 2, |_| -1);
        assert_eq!(lane.ended(), Ended::Badly);
        assert_eq!(lane.signal(&API), None);
        assert!(!copying.may_touch(None), "it is not given up yet");
        assert!(!lane.close(&API, &copying));
        assert!(copying.check(AGENT).is_ok());
        assert!(copying.may_touch(None));
        let mut lane = waited(&copying, 2, |value| value);
        assert_eq!(lane.ended(), Ended::Never);
        assert_eq!(lane.signal(&API), None);
        assert!(!lane.close(&API, &copying));
        assert_eq!(SIGNALS.get(), 2);
        for (start, len, touched) in [
            (0x10ff, 1, true),
            (0xf00, 0x101, true),
            (0xf00, 0x100, false),
            (0x1100, 0x100, false),
        ] {
            let range = DeviceRange { start, len };
            assert_eq!(copying.may_touch(Some(range)), touched, "{range}");
        }
        copying.forget_all();
        assert!(!copying.may_touch(None));
    }

    #[test]
    fn an_agent_that_is_stuck_is_waited_for_once() {
        let copying = Copying::default();
        let mut lanes = [(); 2].map(|()| {
            let mut lane = Lane::new(&API, AGENT).unwrap();
            lane.signal(&API).unwrap();
            lane.has_sent(RANGE);
            lane
        });
        let long_ago = || Instant::now() - Duration::from_secs(60);
        lanes[0].wait(&API, &copying, &mut long_ago());
        assert!(copying.check(AGENT).is_err());
        // The wait looks at the agent's other copies once more, whenever they began.
        let before = WAITS.get();
        lanes[1].wait(&API, &copying, &mut Instant::now());
        assert_eq!(lanes[1].ended(), Ended::Never);
        assert_eq!(WAITS.get() - before, 1);
    }
}
