//! Clocks.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The times of some work.
#[derive(Clone, Copy, Default)]
pub(crate) struct Time {
    pub(crate) wall: Duration,
    /// CPU time of all threads of the process.
    pub(crate) cpu: Duration,
}

/// The result and the times of `work`. If calls have prices, the time is the CPU time plus the
/// prices in `spent`: nothing waits for them.
pub(crate) fn timed<T>(
    spent: impl Fn() -> Option<Duration>,
    work: impl FnOnce() -> T,
) -> (T, Time) {
    let (start, before) = (Instant::now(), computed());
    let result = work();
    let (wall, cpu) = (start.elapsed(), computed() - before);
    let wall = spent().map_or(wall, |spent| cpu + spent);
    (result, Time { wall, cpu })
}

/// The shortest of these times, each with a new directory: other load on the machine only adds
/// time.
pub(crate) fn best(times: usize, mut work: impl FnMut(&Path) -> Time) -> Time {
    let mut all: Vec<Time> = (0..times)
        .map(|_| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            work(directory.path())
        })
        .collect();
    all.sort_by_key(|time| time.wall);
    all[0]
}

pub(crate) fn median(times: usize, mut work: impl FnMut()) -> Duration {
    let mut all: Vec<Duration> = (0..times)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    all.sort();
    all[times / 2]
}

/// The process's CPU time so far.
pub(crate) fn computed() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The machine's clock, which all processes share.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The CPU time of all child processes that have ended, and of theirs.
pub(crate) fn children_time() -> Duration {
    let mut used = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, of which all bits may be zero.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, used.as_mut_ptr());
        used.assume_init()
    };
    let times = [used.ru_utime, used.ru_stime];
    let times = times.map(|time| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000));
    times.into_iter().sum()
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
