//! The functions of the C library, and one of ROCr, that this library replaces in the process.
//!
//! Programs call these functions very early (before any constructor has run), on every thread, and
//! between fork and exec. This library's own use of the standard library calls them too. So the
//! code for other files neither allocates nor locks: it compares the path with a few prefixes and
//! passes it to the kernel. Only the driver's paths reach the model.
//!
//! mmap, read, close, dup and readdir need no replacement: device nodes are real files and the
//! generated tree is a real directory.
//!
//! Functions that are variadic in C (`open`, `ioctl`) have their optional argument here: the x86-64
//! calling convention passes integers to variadic functions in fixed registers. If the caller did
//! not pass the argument, it holds garbage. Use it only if the other arguments say that it exists.

mod directory;
mod ioctl;
mod next;
mod open;
mod signal;
mod stat;
mod target;
mod trace;

use crate::model::{Model, config};
use target::guard;

/// Runs when the library is loaded. It looks up the C library's functions, reports a bad
/// configuration at once, makes forked children start without their parent's model, and has the
/// counts of instructions and the evidence of opcodes written at exit. Handlers of the program run before this one.
#[ctor::ctor(unsafe)]
fn start() {
    directory::resolve();
    let Ok(Some(config)) = guard(|| Ok(config())) else {
        return;
    };
    // SAFETY: the handler only stores a null pointer.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    if config.instructions.is_some() || config.fidelity.is_some() {
        // SAFETY: the handler does not unwind, and this library is never unloaded.
        unsafe { libc::atexit(at_exit) };
    }
}

unsafe extern "C" fn in_child() {
    Model::forget();
}

extern "C" fn at_exit() {
    let _ = guard(|| {
        let model = Model::existing();
        if let Some(instructions) = model.and_then(|model| model.instructions.as_ref()) {
            instructions.write();
        }
        if let Some(fidelity) = model.and_then(|model| model.fidelity.as_ref()) {
            fidelity.write();
        }
        Ok(())
    });
}
