//! The host's clocks, in nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The boot clock (`CLOCK_BOOTTIME`). HSA's time stamps use it too. It continues while the machine sleeps.
#[must_use]
pub fn now() -> u64 {
    nanoseconds(clock_gettime(ClockId::Boottime))
}

/// The nanoseconds to add to a time of the boot clock for a time since 1970. 0 if the wall clock puts the
/// start of the machine before 1970.
#[must_use]
pub fn epoch() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime)).saturating_sub(now())
}

fn nanoseconds(time: Timespec) -> u64 {
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
