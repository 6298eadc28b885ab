//! The functions by which librocov reads the executions of each instruction (`src/device/hsa/executions.rs`).

use std::ffi::{c_int, c_void};

use modelgpu_amdgcn::{Executed, Trace};

use super::target::guard;
use crate::model::{Model, config};
use crate::placed;
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

/// Reads the counts at an address of the GPU, or at one of a file of which the program has placed the code.
fn read_at(trace: &Trace, address: u64, words: u64, visit: impl FnMut(u64, Executed)) {
    match (placed::is_placed(address), Model::existing()) {
        (true, Some(model)) => model.placed.read(trace, address, words, visit),
        _ => trace.read(address, words, visit),
    }
}

/// Receives a code object: its number, the number of its GPU, the name of the GPU's target, and the bytes of the file. Both
/// stay until the process ends.
type Visit = unsafe extern "C" fn(
    context: *mut c_void,
    number: u64,
    gpu: u32,
    target: *const u8,
    target_len: usize,
    file: *const u8,
    file_len: usize,
);

/// Calls `visit` with each code object of which the program has placed code in memory without a loader, and has run a
/// kernel. The counts of number `n` have the addresses of the ELF, plus `n << 32 | 1 << 61`.
///
/// # Safety
/// `visit` accepts `context`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocov_modelgpu_code_objects(visit: Visit, context: *mut c_void) {
    with_trace(|_| {
        let Some(model) = Model::existing() else {
            return;
        };
        for (number, gpu, file) in model.placed.files() {
            let target = model.config.gpus[gpu].name();
            // SAFETY: the caller's promise.
            unsafe {
                visit(
                    context,
                    number,
                    gpu as u32,
                    target.as_ptr(),
                    target.len(),
                    file.as_ptr(),
                    file.len(),
                );
            }
        }
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
        read_at(trace, address, words, |word, executed| {
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
    with_trace(
        |trace| match (placed::is_placed(address), Model::existing()) {
            (true, Some(model)) => model.placed.forget(trace, address, words),
            _ => trace.clear(address, words),
        },
    );
}
