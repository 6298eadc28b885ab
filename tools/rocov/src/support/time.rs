//! Times of day and dates for messages and reports.

use std::env;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rocov::support::diagnostic::diagnostic;

/// The time of a report in seconds since 1970: `SOURCE_DATE_EPOCH` if it is set, so that two reports can be
/// equal byte by byte, else the present time.
///
/// # Errors
///
/// Fails if the variable is not a number of seconds.
pub(crate) fn report_time() -> Result<u64> {
    let Some(fixed) = env::var_os("SOURCE_DATE_EPOCH") else {
        return Ok(present());
    };
    let seconds = fixed.to_str().and_then(|text| text.parse().ok());
    seconds.with_context(|| {
        diagnostic!(
            "SOURCE_DATE_EPOCH is '{}'", fixed.display();
            "set it to seconds since 1970, or unset it"
        )
    })
}

/// The present time in seconds since 1970.
fn present() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map(|now| now.as_secs()).unwrap_or_default()
}

/// A moment in seconds since 1970, in UTC: `2026-07-31 13:45`.
pub(crate) fn utc(seconds: u64) -> String {
    formatted(seconds, libc::gmtime_r, c"%Y-%m-%d %H:%M")
}

/// The day of a moment in seconds since 1970, in UTC: `2026-07-31`.
pub(crate) fn day(seconds: u64) -> String {
    formatted(seconds, libc::gmtime_r, c"%Y-%m-%d")
}

/// The number of a day such as `2026-07-31`: the days since 1970-01-01. `None` if it is none.
pub(crate) fn days(date: &str) -> Option<u64> {
    let mut parts = date.splitn(3, '-').map(str::parse::<u64>);
    let mut next = || parts.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month.checked_sub(1)?).ok()?;
    if !(1970..=9999).contains(&year) || day == 0 || day > *months.get(index)? {
        return None;
    }
    let years: u64 = (1970..year)
        .map(|year| if is_leap(year) { 366 } else { 365 })
        .sum();
    Some(years + months[..index].iter().sum::<u64>() + day - 1)
}

/// A moment in nanoseconds since 1970, in the local time: of today `13:45`, else with the date,
/// `2026-07-31 13:45`.
pub(crate) fn local(nanoseconds: u64) -> String {
    let now = present();
    let then = nanoseconds / 1_000_000_000;
    let day = |seconds| formatted(seconds, libc::localtime_r, c"%Y-%m-%d");
    let format = match day(then) == day(now) {
        true => c"%H:%M",
        false => c"%Y-%m-%d %H:%M",
    };
    formatted(then, libc::localtime_r, format)
}

/// A function that breaks a time down: `localtime_r` or `gmtime_r`.
type BreakDown = unsafe extern "C" fn(*const libc::time_t, *mut libc::tm) -> *mut libc::tm;

fn formatted(seconds: u64, break_down: BreakDown, format: &CStr) -> String {
    let seconds = libc::time_t::try_from(seconds).unwrap_or_default();
    let mut broken_down = MaybeUninit::<libc::tm>::uninit();
    let mut text = [0_u8; 32];
    // SAFETY: both are valid for the call.
    let is_known = unsafe { !break_down(&raw const seconds, broken_down.as_mut_ptr()).is_null() };
    if !is_known {
        return String::new();
    }
    // SAFETY: `break_down` has filled it; the text has room for what is given as its size, and the format
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
    fn by_date(seconds: u64, arguments: &[&str]) -> String {
        let mut date = Command::new("date");
        date.arg(format!("--date=@{seconds}")).args(arguments);
        let said = date.output();
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
        assert_eq!(local(then * 1_000_000_000), by_date(then, &["+%H:%M"]));
        let expected = by_date(before, &["+%Y-%m-%d %H:%M"]);
        assert_eq!(local(before * 1_000_000_000 + 1), expected);
    }

    #[test]
    fn reports_have_dates_in_utc() {
        for seconds in [0, 951_782_399, 1_000_000_000, 4_102_444_800] {
            let expected = by_date(seconds, &["--utc", "+%Y-%m-%d %H:%M"]);
            assert_eq!(utc(seconds), expected);
        }
    }
}
