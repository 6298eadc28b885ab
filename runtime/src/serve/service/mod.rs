//! The service for requests from outside: over the control socket (`ROCOV_CONTROL`), at intervals
//! (`ROCOV_SNAPSHOT_EVERY`), by a signal (`ROCOV_SNAPSHOT_SIGNAL`).
//!
//! One thread ([`thread`]) serves all of them. It starts when the process is seen to use HSA, usually with
//! the first code object, and only if one of these variables is set. Then SIGTERM and SIGINT no longer lose
//! counts: their handlers ([`signals`]) have the thread drain before the program's own disposition takes
//! effect.

mod connection;
mod hsa_gate;
mod owned_fd;
mod settings;
mod signals;
mod socket;
mod thread;
mod wake;

use std::sync::Once;

use crate::guest::process;
use settings::Settings;

pub(super) use hsa_gate::{pause, resume};

/// Starts the thread, once, if the process uses HSA and the user asks for the thread.
pub(super) fn start() {
    static ONCE: Once = Once::new();
    if !process::uses_hsa() {
        return;
    }
    ONCE.call_once(|| {
        let settings = Settings::from_environment();
        if settings.need_a_thread() && wake::open() {
            let signal = settings.signal;
            if thread::start(settings) {
                signals::take(signal);
            }
        }
    });
}

/// Removes the socket and shuts the gate to HSA, because the process ends: the thread drains nothing more.
pub(crate) fn close() {
    hsa_gate::close();
    leave();
}

/// Removes the socket, because the process is about to end or to become another program.
/// Async-signal-safe.
pub(crate) fn leave() {
    if process::uses_hsa() {
        socket::remove();
    }
}

/// Gives up everything in a forked child, which has no thread. A fork handler.
pub(crate) extern "C" fn forked() {
    signals::give_back();
    socket::close_in_child();
    wake::close();
}
