//! A session's memory, and its time when code objects come and go.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::Path;

use rocov::device::{Device, Executable};
use rocov::drain::Session;
use rocov::store::{Expansion, ProfileName};
use rocov_tests::allocated::{allocated, peak_of};

use crate::clock::{Time, micros, timed};
use crate::fake::{Fake, Prices};

/// A session, and the name of profiles in `directory`.
pub(crate) fn session(directory: &Path) -> (Session, ProfileName) {
    let name = ProfileName::parse("app.profraw", &Expansion::default(), directory);
    (Session::default(), name.expect("a good pattern"))
}

/// Prints time and memory of loads, a drain, a second drain and unloads, on one agent and on eight.
pub(crate) fn measure(image: &[u8], counts: &[usize]) {
    println!(
        "\na session, in memory, CPU time for each code object; the drain's memory beyond the"
    );
    println!("session's own, and what that has for each code object");
    println!("    n  agents  load us  drain us  again us  unload us  peak KiB  B/object");
    for agents in [1, 8] {
        for count in counts {
            let fake = Fake::new(image, *count, agents, Prices::default());
            let row = row(&fake);
            println!(
                "{count:>5} {agents:>7} {:>8.1} {:>9.1} {:>9.1} {:>10.1} {:>9} {:>9}",
                row.load,
                row.drain,
                row.again,
                row.unload,
                row.peak / 1024,
                row.held,
            );
        }
    }
}

struct Row {
    /// Microseconds for each code object, as in the fields below.
    load: f64,
    drain: f64,
    /// A drain without new counts since the last.
    again: f64,
    unload: f64,
    /// The drain's peak memory in bytes, without earlier and remaining bytes.
    peak: usize,
    /// Bytes that remain for each code object.
    held: usize,
}

fn row(fake: &Fake) -> Row {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let executables: Vec<Executable> = fake.executables().expect("executables");
    let count = executables.len();
    let each = |time: Time| micros(time.cpu) / count as f64;
    let nothing = || None;

    let before = allocated();
    let (mut session, name) = session(directory.path());
    let ((), load) = timed(nothing, || {
        for executable in &executables {
            session.loaded(fake, *executable).expect("it is loaded");
        }
    });
    let loaded = allocated();
    let (((), drain), peak) = peak_of(|| {
        timed(nothing, || {
            let outcome = session.drain(fake, &name);
            assert_eq!(outcome.files.len(), count, "{:?}", outcome.losses);
        })
    });
    let after = allocated();
    let ((), again) = timed(nothing, || drop(session.drain(fake, &name)));
    let ((), unload) = timed(nothing, || {
        for executable in &executables {
            session.unloading(fake, *executable, &name);
        }
    });
    Row {
        load: each(load),
        drain: each(drain),
        again: each(again),
        unload: each(unload),
        peak: peak - (after - loaded),
        held: (after - before) / count,
    }
}
