//! HIP's functions for fat binaries, which clang has the program's constructors and destructors call.
//!
//! The calls pass through these hooks as described in [`super::interpose`].
#![expect(unsafe_code, reason = "defines and calls functions of HIP")]

use std::ffi::c_void;
use std::mem::transmute;

use super::copy::COPY;
use super::next_symbol;
use crate::guest::journal::{self, Note};
use crate::guest::{boundary, environment, process, settings};
use crate::serve::fat_binaries;

/// clang's `__CudaFatBinaryWrapper` (clang/lib/CodeGen/CGCUDANV.cpp).
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    bundle: *const u8,
    _unused: *const c_void,
}

/// `HIPF`.
const MAGIC: u32 = 0x4849_5046;
const VERSION: u32 = 1;

type Handle = *mut *mut c_void;
type RegisterFn = unsafe extern "C" fn(*const Wrapper) -> Handle;
type UnregisterFn = unsafe extern "C" fn(Handle);

/// Has HIP register a fat binary, and notes it.
///
/// # Safety
/// As for HIP's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __hipRegisterFatBinary(wrapper: *const Wrapper) -> Handle {
    // SAFETY: HIP declares the function with this type.
    let register = next_symbol::find_meant(c"__hipRegisterFatBinary")
        .map(|address| unsafe { transmute::<*mut c_void, RegisterFn>(address) });
    let Some(register) = register else {
        // Without HIP, the program would not have started.
        return std::ptr::null_mut();
    };
    // SAFETY: the caller's argument, passed on.
    let handle = unsafe { register(wrapper) };
    boundary::guest("the registration of a fat binary", || {
        journal::note(Note::Hip);
        // SAFETY: HIP has read the same wrapper, whose first words are its kind.
        if let Some(bundle) = unsafe { bundle(wrapper) }
            && settings::zero()
        {
            fat_binaries::note(handle as usize, bundle as usize);
        }
    });
    handle
}

/// Has HIP forget a fat binary, because its library is closed or the process ends. librocov remembers the
/// library, whose code may never have been launched.
///
/// # Safety
/// As for HIP's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __hipUnregisterFatBinary(handle: Handle) {
    // SAFETY: HIP declares the function with this type.
    let unregister = next_symbol::find_meant(c"__hipUnregisterFatBinary")
        .map(|address| unsafe { transmute::<*mut c_void, UnregisterFn>(address) });
    if let Some(unregister) = unregister {
        // SAFETY: the caller's argument, passed on.
        unsafe { unregister(handle) }
    }
    // The last exit handler does this work when the program ends. HIP 5.2 and 5.7 write to freed memory
    // if a destructor launches a kernel, and use of the heap here makes that worse.
    if process::is_exiting() {
        return;
    }
    boundary::guest("the end of a fat binary", || {
        let is_drainer =
            || process::may_use_hsa() && !environment::is_privileged() && COPY.may_drain();
        fat_binaries::forget(handle as usize, is_drainer);
    });
}

/// Returns the address of a wrapper's bundle; `None` for a wrapper of another kind.
///
/// # Safety
/// `wrapper` is null, or the address of a wrapper of any kind. All kinds start with two words that tell
/// them apart.
unsafe fn bundle(wrapper: *const Wrapper) -> Option<*const u8> {
    if wrapper.is_null() {
        return None;
    }
    // SAFETY: the wrapper has these words, as the caller promises.
    let (magic, version) = unsafe { ((*wrapper).magic, (*wrapper).version) };
    if (magic, version) != (MAGIC, VERSION) {
        return None;
    }
    // SAFETY: a wrapper of this version has the address.
    let bundle = unsafe { (*wrapper).bundle };
    (!bundle.is_null()).then_some(bundle)
}
