//! The wait for completion callbacks, which HIP has ROCr call when kernels are complete.
//!
//! HIP 7.2.4 does not wait for its callbacks when a program ends. A callback that comes late frees command
//! buffers while HIP's static destructors and `hsa_shut_down` free them too: glibc then reports a
//! "corrupted double-linked list", or the program crashes. This needs 16 launches or more, kernels that end
//! just before the program does, and a busy machine. An exit drain makes it likelier, because it waits for
//! the kernels and takes time.
//!
//! ROCr has one thread for callbacks, and calls them in the order of their registration. So one more
//! callback shows that the earlier ones have ended.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use crate::device::DeviceError;
use crate::device::hsa::runtime::check;
use crate::device::hsa::{HsaDevice, abi};

impl HsaDevice {
    /// Waits until the callbacks of all kernels that are complete now have ended, but no longer than `patience`.
    /// Returns whether they have ended. Must not be called in a callback.
    ///
    /// # Errors
    /// Fails if the runtime lacks a function, or cannot make a signal or call back.
    pub fn wait_for_callbacks(&self, patience: Duration) -> Result<bool, DeviceError> {
        let (api, call_back) = self.api.callbacks()?;
        // It is 0 from the start, so ROCr calls back as soon as it can.
        let signal = api.make(0)?;
        let (sender, receiver) = sync_channel::<()>(1);
        let sender = Box::into_raw(Box::new(sender));
        // SAFETY: the signal is new. `ended` takes the sender, and ROCr calls it at most once, because it
        // returns false.
        let status = unsafe { call_back(signal, abi::SIGNAL_LESS, 1, ended, sender.cast()) };
        if let Err(error) = check("hsa_amd_signal_async_handler", status) {
            // SAFETY: ROCr has taken neither of the two.
            unsafe {
                drop(Box::from_raw(sender));
                api.destroy(signal);
            }
            return Err(error);
        }
        let have_ended = receiver.recv_timeout(patience).is_ok();
        if have_ended {
            // ROCr holds a reference of its own until the callback has returned.
            // SAFETY: the signal is ours, and nothing is to follow on it.
            unsafe { api.destroy(signal) };
        }
        Ok(have_ended)
    }
}

/// Sends word that earlier callbacks have ended. Returns false: once is enough.
unsafe extern "C" fn ended(_value: i64, sender: *mut std::ffi::c_void) -> bool {
    // SAFETY: `wait_for_callbacks` passes the sender and leaves it to this call.
    let sender = unsafe { Box::from_raw(sender.cast::<SyncSender<()>>()) };
    // If it took too long, nobody receives.
    let _ = sender.try_send(());
    false
}
