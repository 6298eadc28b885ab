//! The exit handlers.
//!
//! Handlers run in the reverse order of their registration (tested with glibc 2.36):
//!
//! | registered | runs |
//! |---|---|
//! | by the constructor of a preloaded library | after HIP's module destructors have destroyed the executables of static fat binaries, possibly after `hsa_shut_down` |
//! | when HSA starts or code is loaded | before them: executables are alive |
//!
//! So librocov registers a handler at each of these times:
//!
//! - [`at_load`](super::load::at_load) registers the late drain, for kernels that destructors still launch.
//! - [`register_early`](super::early_exit::register_early) registers the early drain, in case a destructor crashes (HIP and its libraries have
//!   done so).
//! - [`register_at_start`] registers a drain for a process whose loads no hook sees.
//!
//! Each drain skips code if it knows that the code has not run since the drain before.

use std::sync::Once;

use super::copy::COPY;
use super::early_exit::{at_exit, has_run_kernels, register};
use super::{injection, losses};
use crate::guest::{boundary, process};
use crate::serve::drain;

/// Registers an exit drain when HSA starts, for a process whose loads no hook sees. If a hook has seen one,
/// this drain does nothing: HIP registers its own takedown later, and copying amid it makes HIP 5.7 corrupt
/// its heap if a destructor launches a kernel after that.
pub(super) fn register_at_start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register(unseen));
}

/// Drains everything that was seen, and looks for code that was loaded past the hooks.
fn leave() {
    drain::leaving();
}

extern "C" fn unseen() {
    if !process::uses_hsa() {
        boundary::guest("the exit drain", || at_exit(|| COPY.claim_drain(), leave));
    }
}

/// Registers the late exit drain.
pub(super) fn register_late() {
    register(late);
}

extern "C" fn late() {
    process::exit_begins();
    injection::report_other_tool();
    losses::report();
    // A program without a GPU may be in a sandbox that allows few calls.
    if !process::uses_hsa() && !has_run_kernels() {
        return;
    }
    boundary::guest("the late exit drain", || {
        at_exit(|| COPY.claim_drain(), leave)
    });
}
