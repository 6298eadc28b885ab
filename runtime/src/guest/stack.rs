//! The stack of the calling thread: the file of the code that loads a code object, and the owner of
//! the thread.
//!
//! A code object that the program hands over in memory has no file of its own. Its origin is then the
//! first caller outside of HIP and ROCr, found on the stack of the hook.
#![expect(unsafe_code, reason = "calls the unwinder")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::path::Path;

use rocov::discover::Loader;

use super::{elf_objects, process};

/// HIP's library.
const HIP: &str = "libamdhip64.so";
/// The libraries between a program and the loader. They load code for others.
const RUNTIMES: [&str; 3] = [HIP, "libhsa-runtime64.so", "librocov.so"];

thread_local! {
    /// The hook that the thread is in, for [`loader`].
    static HOOK: Cell<*const c_void> = const { Cell::new(std::ptr::null()) };
}

/// Runs `work` in the function `hook`, at which a call of the program has arrived.
pub(crate) fn in_hook<T>(hook: *const c_void, work: impl FnOnce() -> T) -> T {
    // A thread that is already ending has no such place.
    let _ = HOOK.try_with(|place| place.set(hook));
    let result = work();
    let _ = HOOK.try_with(|place| place.set(std::ptr::null()));
    result
}

/// Returns the code that is loading an executable, below the thread's hook ([`in_hook`]). Reads the stack as far as that
/// code only: each load of a code object asks, and an interpreter has a deep stack.
pub(crate) fn loader() -> Loader {
    // Null if another copy of librocov has sent the event from its own hook.
    let hook = HOOK.try_with(Cell::get).unwrap_or(std::ptr::null());
    let of_callers = (!hook.is_null()).then(|| loader_below(Some(hook)));
    // The hook is not on the stack if its call was the last thing that it did.
    of_callers
        .flatten()
        .or_else(|| loader_below(None))
        .unwrap_or_default()
}

/// Returns the code that is loading an executable, from the calls that led to the function `hook`, or here. `None` if
/// `hook` is not on the stack.
fn loader_below(hook: Option<*const c_void>) -> Option<Loader> {
    let mut files = elf_objects::files();
    let mut found = hook.is_none().then(Loader::default);
    each_call(&mut |call| {
        let Some(found) = &mut found else {
            // The frames up to the hook are librocov's. If it is linked into the program, they lie in the program's file.
            if Some(call.function) == hook {
                found = Some(Loader::default());
            }
            return true;
        };
        if let Some(file) = files.at(call.address, is_runtime) {
            match is_runtime(file) {
                true => found.is_hip |= is_named(file, HIP),
                false => found.file = Some(file.to_owned()),
            }
        }
        found.file.is_none()
    });
    found
}

thread_local! {
    /// The answer of [`is_runtimes_thread`].
    static IS_RUNTIMES_THREAD: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Returns whether HIP or ROCr has started the calling thread, to call the program back. The GPU may
/// wait until this call returns.
pub(crate) fn is_runtimes_thread() -> bool {
    let look = || {
        // HIP and ROCr start threads of their own only.
        if process::is_main_thread() {
            return false;
        }
        let mut files = elf_objects::files();
        let mut outermost = stack().into_iter().rev();
        outermost
            // The C library starts threads.
            .find_map(|address| {
                Some(files.at(address, is_runtime)?)
                    .filter(|file| !is_named(file, "libc.so"))
                    .map(is_runtime)
            })
            .unwrap_or_default()
    };
    IS_RUNTIMES_THREAD.get().unwrap_or_else(|| {
        let answer = look();
        IS_RUNTIMES_THREAD.set(Some(answer));
        answer
    })
}

/// Notes that the calling thread is librocov's own. It looks like a thread of the runtimes, but
/// nothing waits for it.
pub(crate) fn this_is_our_thread() {
    IS_RUNTIMES_THREAD.set(Some(false));
}

/// A call on the stack.
struct Call {
    /// The byte before its return address.
    address: usize,
    /// The start of the function that makes it.
    function: *const c_void,
}

/// Returns the addresses of the calls that led here, the innermost first.
fn stack() -> Vec<usize> {
    let mut stack = Vec::new();
    each_call(&mut |call| {
        stack.push(call.address);
        true
    });
    stack
}

/// Hands the calls that led here to `visit`, the innermost first, until it returns false.
fn each_call(visit: &mut dyn FnMut(Call) -> bool) {
    let mut visit = visit;
    // SAFETY: the callback matches the interface and gets the address of `visit`.
    unsafe { _Unwind_Backtrace(visit_one, (&raw mut visit).cast()) };
}

/// Returns whether the name of a file starts with `name`.
fn is_named(file: &Path, name: &str) -> bool {
    let path = file.as_os_str().as_encoded_bytes();
    let found = path.rsplit(|byte| *byte == b'/').next();
    found.is_some_and(|found| found.starts_with(name.as_bytes()))
}

fn is_runtime(file: &Path) -> bool {
    RUNTIMES.iter().any(|runtime| is_named(file, runtime))
}

/// Hands a call to the function that `visit` points to.
unsafe extern "C" fn visit_one(context: *mut c_void, visit: *mut c_void) -> c_int {
    /// `_URC_NO_REASON`, and any other code, which ends the walk.
    const GO_ON: c_int = 0;
    const END: c_int = 5;
    // SAFETY: the unwinder passes a valid context.
    let (address, function) = unsafe { (_Unwind_GetIP(context), _Unwind_GetRegionStart(context)) };
    let call = Call {
        address: address.saturating_sub(1),
        function: function as *const c_void,
    };
    // SAFETY: `visit` is the variable of `each_call`.
    let visit = unsafe { &mut *visit.cast::<&mut dyn FnMut(Call) -> bool>() };
    if visit(call) { GO_ON } else { END }
}

// The unwinder that Rust's standard library links for panics ("Itanium C++ ABI: Exception Handling").
unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetRegionStart(context: *mut c_void) -> usize;
}
