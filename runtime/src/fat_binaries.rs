//! The fat binaries that the program and its libraries register with HIP, by functions that clang has
//! their constructors and destructors call.
//!
//! The calls pass through here ([`crate::hooks`] says how that can be), so that code that is never
//! launched is known: also that of a library which is closed long before the program ends.

use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::journal::{self, Note};
use crate::{boundary, config, exit, hooks, objects, zeros};

/// What clang calls a `__CudaFatBinaryWrapper` (clang/lib/CodeGen/CGCUDANV.cpp).
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    binary: *const u8,
    _unused: *const c_void,
}

/// `HIPF`.
const MAGIC: u32 = 0x4849_5046;
const VERSION: u32 = 1;

type Handle = *mut *mut c_void;
type RegisterFn = unsafe extern "C" fn(*const Wrapper) -> Handle;
type UnregisterFn = unsafe extern "C" fn(Handle);

/// A fat binary that is registered.
#[derive(Clone, Copy)]
struct Registered {
    handle: usize,
    /// The address of its bundle.
    binary: usize,
}

static REGISTERED: Mutex<Vec<Registered>> = Mutex::new(Vec::new());
/// Whether there ever was one.
static ARE_SEEN: AtomicBool = AtomicBool::new(false);

/// Takes note of a fat binary, and has HIP register it.
///
/// # Safety
/// As for HIP's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __hipRegisterFatBinary(wrapper: *const Wrapper) -> Handle {
    // SAFETY: HIP declares the function so.
    let register = find(c"__hipRegisterFatBinary")
        .map(|it| unsafe { transmute::<*mut c_void, RegisterFn>(it) });
    let Some(register) = register else {
        // Without HIP, a program would not have been started.
        return std::ptr::null_mut();
    };
    // SAFETY: the caller's argument, passed on.
    let handle = unsafe { register(wrapper) };
    boundary::guest("the registration of a fat binary", || {
        journal::note(Note::Hip);
        // SAFETY: HIP has read the same wrapper, whose first word says what it is.
        if let Some(binary) = unsafe { binary(wrapper) }
            && config::zero()
        {
            registered().push(Registered {
                handle: handle as usize,
                binary: binary as usize,
            });
            ARE_SEEN.store(true, Ordering::Relaxed);
        }
    });
    handle
}

/// Has HIP forget a fat binary, whose library is closed or whose process ends. What was never
/// launched of it counts as zero.
///
/// # Safety
/// As for HIP's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __hipUnregisterFatBinary(handle: Handle) {
    // SAFETY: HIP declares the function so.
    let unregister = find(c"__hipUnregisterFatBinary")
        .map(|it| unsafe { transmute::<*mut c_void, UnregisterFn>(it) });
    if let Some(unregister) = unregister {
        // SAFETY: the caller's argument, passed on.
        unsafe { unregister(handle) }
    }
    // Once the program ends, this waits until all else is done: HIP 5.2 and 5.7 write to memory that
    // they have freed if a destructor launches a kernel, and use of the heap makes that worse.
    if exit::is_under_way() {
        return;
    }
    boundary::guest("the end of a fat binary", || {
        let mut all = registered();
        // The latest is unregistered first.
        let place = all.iter().rposition(|it| it.handle == handle as usize);
        let gone = place.map(|place| all.remove(place));
        drop(all);
        if let Some(bytes) = gone.and_then(|gone| bytes(gone.binary)) {
            zeros::of_closed(bytes);
        }
    });
}

/// Calls `look` with each fat binary that is registered, and with what follows it. Returns whether
/// any ever was: if not, the program's calls do not pass here.
pub(crate) fn each(mut look: impl FnMut(&[u8])) -> bool {
    let all = registered().clone();
    for bytes in all.into_iter().filter_map(|it| bytes(it.binary)) {
        look(bytes);
    }
    ARE_SEEN.load(Ordering::Relaxed)
}

fn registered() -> MutexGuard<'static, Vec<Registered>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address of the bundle that `wrapper` is of, if it is of a kind that is known.
///
/// # Safety
/// `wrapper` is null, or the address of one of any kind, which starts with two words that tell it.
unsafe fn binary(wrapper: *const Wrapper) -> Option<*const u8> {
    if wrapper.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let (magic, version) = unsafe { ((*wrapper).magic, (*wrapper).version) };
    if (magic, version) != (MAGIC, VERSION) {
        return None;
    }
    // SAFETY: a wrapper of this version has the address.
    let binary = unsafe { (*wrapper).binary };
    (!binary.is_null()).then_some(binary)
}

/// The bytes from `address` to the end of the segment that it lies in; `None` if its object is gone.
fn bytes(address: usize) -> Option<&'static [u8]> {
    let end = objects::segment_end(address)?;
    // SAFETY: the segment is mapped, and constant: clang puts bundles among read-only data. It stays as
    // long as the library that is being closed runs its destructors, or as the process that ends
    // closes none.
    Some(unsafe { std::slice::from_raw_parts(address as *const u8, end - address) })
}

/// HIP's function of this name.
fn find(name: &CStr) -> Option<*mut c_void> {
    hooks::find_meant(name)
}
