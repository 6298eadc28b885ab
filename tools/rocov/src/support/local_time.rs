//! Times of day and dates for messages.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::time::{SystemTime, UNIX_EPOCH};

/// A moment in nanoseconds since 1970, in the local time: of today `13:45`, else with the date,
/// `2026-07-31 13:45`.
pub(crate) fn of(nanoseconds: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map(|now| now.as_secs()).unwrap_or_default();
    let then = nanoseconds / 1_000_000_000;
    let day = |seconds| formatted(seconds, c"%Y-%m-%d");
    let format = match day(then) == day(now) {
        true => c"%H:%M",
        false => c"%Y-%m-%d %H:%M",
    };
    formatted(then, format)
}

fn formatted(seconds: u64, format: &std::ffi::CStr) -> String {
    let seconds = libc::time_t::try_from(seconds).unwrap_or_default();
    let mut broken_down = MaybeUninit::<libc::tm>::uninit();
    let mut text = [0_u8; 32];
    // SAFETY: both are valid for the call.
    let is_known =
        unsafe { !libc::localtime_r(&raw const seconds, broken_down.as_mut_ptr()).is_null() };
    if !is_known {
        return String::new();
    }
    // SAFETY: localtime_r has filled it; the text has room for what is given as its size, and the format
    // is NUL terminated.
    let len = unsafe {
        let place = text.as_mut_ptr().cast::<c_char>();
        libc::strftime(place, text.len(), format.as_ptr(), broken_down.as_ptr())
    };
    String::from_utf8_lossy(&text[..len]).into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The output of date(1).
    fn by_date(seconds: u64, format: &str) -> String {
        let mut date = Command::new("date");
        let said = date.arg(format!("--date=@{seconds}")).arg(format).output();
        let said = String::from_utf8(said.unwrap().stdout).unwrap();
        said.trim().to_owned()
    }

    #[test]
    fn today_needs_no_date() {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let [then, before] = [now, 1_000_000_000];
        assert_eq!(of(then * 1_000_000_000), by_date(then, "+%H:%M"));
        let expected = by_date(before, "+%Y-%m-%d %H:%M");
        assert_eq!(of(before * 1_000_000_000 + 1), expected);
    }
}
