//! Drains that are asked for from outside: over a socket (`ROCOV_CONTROL`), at times
//! (`ROCOV_SNAPSHOT_EVERY`), on a signal (`ROCOV_SNAPSHOT_SIGNAL`).
//!
//! One thread does it all ([`thread`]), started with the first code object that is loaded, and only
//! where one of these is set. With it there, SIGTERM and SIGINT no longer lose what was counted:
//! their handlers ([`signals`]) have it drained before the program's own disposition happens.

mod asked;
mod connection;
mod gate;
mod own;
mod signals;
mod socket;
mod thread;
mod wake;

use std::sync::Once;

use crate::process;
use asked::Asked;
pub(crate) use gate::{pause, resume};

/// Code objects are loaded: from now on there is something to drain.
pub(crate) fn start() {
    static ONCE: Once = Once::new();
    if !process::is_user() {
        return;
    }
    ONCE.call_once(|| {
        let asked = Asked::by_environment();
        if asked.is_something() && wake::open() {
            let signal = asked.signal;
            if thread::start(asked) {
                signals::take(signal);
            }
        }
    });
}

/// The process ends: nothing more is drained here, and nobody can ask for it.
pub(crate) fn close() {
    gate::close();
    leave();
}

/// The process is about to end, or to become another program. Async-signal-safe.
pub(crate) fn leave() {
    if process::is_user() {
        socket::remove();
    }
}

/// In a forked child, which has none of this: no thread, and nobody is to wait for it.
pub(crate) fn forked() {
    signals::give_back();
    socket::close_in_child();
    wake::close();
}
