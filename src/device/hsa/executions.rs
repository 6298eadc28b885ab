//! The counts of executed instructions of the modelled GPU, if that is under ROCr.
//!
//! `librocov_modelgpu.so` is preloaded then, and exports two functions for this.

use std::ffi::c_void;

use crate::device::{DeviceRange, Executions};
use crate::format::blocks::trace::WORD_BYTES;

/// `rocov_modelgpu_executions`: writes two counters for each of `words` words of code from `address` on. Returns 0 if
/// nothing is counted.
type CountFn = unsafe extern "C" fn(address: u64, words: u64, counters: *mut u64) -> i32;
/// `rocov_modelgpu_forget`: forgets the counts of `words` words of code from `address` on.
type ForgetFn = extern "C" fn(address: u64, words: u64);

/// The modelled GPU of this process. It counts executed instructions.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct ModelledGpu {
    count: CountFn,
    forget: ForgetFn,
}

impl ModelledGpu {
    /// Finds the modelled GPU. `None` if there is none, or if it counts nothing.
    pub(in crate::device) fn traced() -> Option<Self> {
        // SAFETY: C strings; the default search order only reads addresses.
        let [count, forget] = [c"rocov_modelgpu_executions", c"rocov_modelgpu_forget"]
            .map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
        if count.is_null() || forget.is_null() {
            return None;
        }
        // SAFETY: tools/modelgpu/kfd/src/interpose/trace.rs defines these functions with these types.
        let model = unsafe {
            Self {
                count: std::mem::transmute::<*mut c_void, CountFn>(count),
                forget: std::mem::transmute::<*mut c_void, ForgetFn>(forget),
            }
        };
        // SAFETY: no word, so no counter is written.
        let is_counting = unsafe { (model.count)(0, 0, std::ptr::null_mut()) };
        (is_counting != 0).then_some(model)
    }
}

/// Returns whether this process has a modelled GPU that counts executed instructions.
#[must_use]
pub fn counts_executions() -> bool {
    ModelledGpu::traced().is_some()
}

impl Executions for ModelledGpu {
    fn count(&self, start: u64, counters: &mut [u64]) {
        let words = counters.len() as u64 / 2;
        // SAFETY: `counters` has room for two counters of each word.
        unsafe { (self.count)(start, words, counters.as_mut_ptr()) };
    }

    fn forget(&self, range: DeviceRange) {
        (self.forget)(range.start, range.len.div_ceil(WORD_BYTES));
    }
}
