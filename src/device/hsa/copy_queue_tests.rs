//! Copies on a made-up runtime that answers late, never or with an error.

use std::cell::Cell;
use std::ffi::c_void;

use super::*;
use crate::device::hsa::runtime::SignalApi;

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
/// ago that the wait does not continue.
fn waited(copying: &Copying, copies: usize, value: impl Fn(i64) -> i64) -> Lane {
    let mut lane = Lane::new(&API, AGENT).unwrap();
    for _ in 0..copies {
        lane.signal(&API).unwrap();
        lane.note_sent(RANGE);
    }
    VALUE.set(value(VALUE.get()));
    let mut since = Stopwatch::after(Duration::from_secs(60));
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
        lane.note_sent(RANGE);
        lane
    });
    let long_ago = || Stopwatch::after(Duration::from_secs(60));
    lanes[0].wait(&API, &copying, &mut long_ago());
    assert!(copying.check(AGENT).is_err());
    // The wait looks at the agent's other copies once more, whenever they began.
    let before = WAITS.get();
    lanes[1].wait(&API, &copying, &mut Stopwatch::start());
    assert_eq!(lanes[1].ended(), Ended::Never);
    assert_eq!(WAITS.get() - before, 1);
}
