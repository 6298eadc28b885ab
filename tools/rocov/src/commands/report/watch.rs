//! `rocov report --watch`: prints the report again whenever the data changes, until Ctrl-C.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rocov::support::diagnostic::diagnostic;

use crate::data::changes::fingerprint;
use crate::system::interrupts::{Interrupts, output_is_closed};
use crate::term::exit_status::{CommandResult, Failure};
use crate::term::print;
use crate::term::remedy::explained;

/// The shortest time between two looks at the data.
const INTERVAL: Duration = Duration::from_millis(400);
/// The largest share of the time that looks take: one of so many.
const SHARE: u32 = 20;
/// The time that a report is given to end after Ctrl-C, so that it can remove its temporary files.
const GRACE: Duration = Duration::from_secs(2);
/// The time after which a report is printed of data that never comes to rest.
const RESTLESS: Duration = Duration::from_secs(5);
/// Clears a terminal, and puts the cursor at its start.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints `report` now, and after each change of `directories`. A report that fails is an error on standard error, and
/// the next change may fix it.
pub(super) fn watch(
    directories: &[PathBuf],
    report: impl Fn() -> CommandResult + Sync,
) -> CommandResult {
    let interrupts = Interrupts::block().context("cannot block signals");
    let interrupts = interrupts.map_err(Failure::from)?;
    let is_terminal = io::stdout().is_terminal();
    let mut is_first = true;
    loop {
        let before = fingerprint(directories);
        let is_interrupted = thread::scope(|scope| {
            let drawing = scope.spawn(|| draw(&report, is_terminal, is_first));
            let mut interrupted = None;
            while !drawing.is_finished() {
                if interrupts.wait(Duration::from_millis(10)) {
                    interrupted.get_or_insert_with(Instant::now);
                }
                if interrupted.is_some_and(|since| since.elapsed() > GRACE) {
                    process::exit(0);
                }
            }
            interrupted.is_some()
        });
        is_first = false;
        if is_interrupted || !changed(directories, before, &interrupts) {
            return Ok(0);
        }
    }
}

/// Prints the report: on a terminal instead of the one before it, else below it.
fn draw(report: &impl Fn() -> CommandResult, is_terminal: bool, is_first: bool) {
    if is_terminal {
        print::hold();
    } else if !is_first {
        let _ = print::text(b"\n");
    }
    let result = report();
    if is_terminal {
        print::release(CLEAR);
    }
    if let Err(failure) = result {
        print::message(explained(&failure.error));
    }
    if is_terminal {
        print::warn(&[diagnostic!("waiting for more data"; "press Ctrl-C to stop")]);
    }
}

/// Waits until the data is another than `before` and at rest. Returns false if an interrupt comes first, or if nobody reads
/// the report any more.
fn changed(directories: &[PathBuf], before: u64, interrupts: &Interrupts) -> bool {
    let mut last = before;
    let mut restless: Option<Instant> = None;
    loop {
        let start = Instant::now();
        let now = fingerprint(directories);
        let is_late = restless.is_some_and(|since| since.elapsed() > RESTLESS);
        if now != before && (now == last || is_late) {
            return true;
        }
        if now != before {
            restless.get_or_insert_with(Instant::now);
        }
        last = now;
        if interrupts.wait(INTERVAL.max(start.elapsed() * SHARE)) || output_is_closed() {
            return false;
        }
    }
}
