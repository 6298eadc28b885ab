//! The functions by which librocov reads the executions of each instruction (`src/device/hsa/executions.rs`).

use std::ffi::c_int;

use modelgpu_amdgcn::Trace;

use super::target::guard;
use crate::model::{Model, config};
use crate::sys::Errno;

/// Calls `action` with the counts of this process. Does nothing if there are none.
fn with_trace(action: impl FnOnce(&Trace)) {
    let _ = guard(|| {
        if let Some(trace) = Model::existing().and_then(|model| model.trace.as_ref()) {
            action(trace);
        }
        Ok::<(), Errno>(())
    });
}

/// Writes two counters for each of `words` words of code from `address` on: the waves that executed the instruction
/// there, and their active lanes. Returns 1 if the modelled GPU counts executions, else 0, and then writes nothing.
///
/// # Safety
/// `counters` has room for two counters of each word, which hold 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocov_modelgpu_executions(
    address: u64,
    words: u64,
    counters: *mut u64,
) -> c_int {
    let counts = guard(|| Ok(config().is_some_and(|config| config.traces)));
    if !counts.unwrap_or(false) {
        return 0;
    }
    with_trace(|trace| {
        trace.read(address, words, |word, executed| {
            // SAFETY: the word is one of `words`, and the caller has room for its counters.
            let place = unsafe { counters.add(2 * word as usize) };
            // SAFETY: the word's two counters.
            unsafe {
                place
                    .cast::<[u64; 2]>()
                    .write([executed.waves, executed.lanes])
            };
        });
    });
    1
}

/// Forgets the executions in `words` words of code from `address` on.
#[unsafe(no_mangle)]
extern "C" fn rocov_modelgpu_forget(address: u64, words: u64) {
    with_trace(|trace| trace.clear(address, words));
}
