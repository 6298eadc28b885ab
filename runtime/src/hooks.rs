//! The functions that the program's calls pass through here on their way: interposition.
//!
//! HIP calls ROCr through its exported stubs; a definition in a preloaded library, or in the
//! executable, is found before ROCr's own, even for libamdhip64's versioned references
//! (`@ROCR_1`). Where that does not hold, [`crate::table`] serves instead.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LAZY};
use rocov::hsa::HSA_LIBRARY;
use rocov::hsa::abi::Status;

use crate::calls::{
    self, DestroyFn, FreezeFn, InitFn, QueueCreateFn, QueueDestroyFn, QueueErrorFn, ShutDownFn,
};
use crate::election::{self, Event};
use crate::{control, objects, process};

/// The function by which we tell who gets the program's calls.
const FREEZE: &CStr = c"hsa_executable_freeze";

/// `HSA_STATUS_ERROR`: for a program that calls HSA where there is none.
const ERROR: Status = 0x1000;

type ExitFn = unsafe extern "C" fn(c_int) -> !;

/// See [`calls::init`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_init() -> Status {
    static NEXT: OnceLock<Option<InitFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function so.
    let Some(init) = *NEXT.get_or_init(|| unsafe { next(c"hsa_init") }) else {
        return ERROR;
    };
    // SAFETY: there are no arguments.
    calls::init(|| unsafe { init() })
}

/// See [`calls::freeze`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_executable_freeze(executable: u64, options: *const c_char) -> Status {
    static NEXT: OnceLock<Option<FreezeFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function so.
    let Some(freeze) = *NEXT.get_or_init(|| unsafe { next(FREEZE) }) else {
        return ERROR;
    };
    // SAFETY: the caller's arguments, passed on.
    calls::freeze(executable, || unsafe { freeze(executable, options) })
}

/// See [`calls::destroy`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_executable_destroy(executable: u64) -> Status {
    static NEXT: OnceLock<Option<DestroyFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function so.
    let Some(destroy) = *NEXT.get_or_init(|| unsafe { next(c"hsa_executable_destroy") }) else {
        return ERROR;
    };
    // SAFETY: the caller's argument, passed on.
    calls::destroy(executable, || unsafe { destroy(executable) })
}

/// See [`calls::shut_down`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_shut_down() -> Status {
    static NEXT: OnceLock<Option<ShutDownFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function so.
    let Some(shut_down) = *NEXT.get_or_init(|| unsafe { next(c"hsa_shut_down") }) else {
        return ERROR;
    };
    // SAFETY: there are no arguments.
    calls::shut_down(|| unsafe { shut_down() })
}

/// See [`calls::queue_create`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_queue_create(
    agent: u64,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorFn>,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    queue: *mut u64,
) -> Status {
    static NEXT: OnceLock<Option<QueueCreateFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function so.
    let Some(create) = *NEXT.get_or_init(|| unsafe { next(c"hsa_queue_create") }) else {
        return ERROR;
    };
    // SAFETY: the caller's arguments, passed on.
    let call = || unsafe {
        create(
            agent,
            size,
            kind,
            callback,
            data,
            private_segment_size,
            group_segment_size,
            queue,
        )
    };
    // SAFETY: HSA's function writes the queue's address there.
    unsafe { calls::queue_create(agent, queue, call) }
}

/// See [`calls::queue_destroy`].
///
/// # Safety
/// As for HSA's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsa_queue_destroy(queue: u64) -> Status {
    static NEXT: OnceLock<Option<QueueDestroyFn>> = OnceLock::new();
    // SAFETY: hsa.h declares the function so.
    let Some(destroy) = *NEXT.get_or_init(|| unsafe { next(c"hsa_queue_destroy") }) else {
        return ERROR;
    };
    // SAFETY: the caller's argument, passed on.
    calls::queue_destroy(queue, || unsafe { destroy(queue) })
}

/// Ends the process without exit handlers, as Python's `os._exit` and forked workers do.
///
/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    // SAFETY: the arguments are passed on.
    unsafe { exit_now(status) }
}

/// C99's name for `_exit`.
///
/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the arguments are passed on.
    unsafe { exit_now(status) }
}

unsafe fn exit_now(status: c_int) -> ! {
    before_leaving(&[Event::Exiting]);
    // Also in a signal handler.
    control::leave();
    // SAFETY: <unistd.h> declares the function so.
    if let Some(exit) = unsafe { next::<ExitFn>(c"_exit") } {
        // SAFETY: the caller's argument, passed on.
        unsafe { exit(status) }
    }
    // SAFETY: ends the process: all that is asked for.
    unsafe {
        libc::syscall(libc::SYS_exit_group, status);
        libc::abort()
    }
}

/// Sends what is to be done before a call that ends the program there and then; but not in a
/// signal handler, which may have interrupted anything: an allocation, HIP, a drain. It would wait
/// for itself for ever.
pub(crate) fn before_leaving(events: &[Event<'_>]) {
    // Asked first, and without a lock: most callers are children of vfork on their way to exec.
    if process::is_user() && !is_in_signal_handler() {
        for event in events {
            election::send(*event);
        }
    }
}

/// Whether this looks like a handler of a signal that ends programs: while it runs, its signal is
/// blocked. A thread that has blocked one for another reason is taken for a handler too.
fn is_in_signal_handler() -> bool {
    const ENDING: [c_int; 10] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGABRT,
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
        libc::SIGALRM,
    ];
    // SAFETY: an all-zero set is valid.
    let mut blocked: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: no set is given, so nothing is changed, and the old one is stored in `blocked`.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked) };
    // SAFETY: the set is valid, and so are the numbers.
    let is_blocked = |signal| unsafe { libc::sigismember(&raw const blocked, signal) } == 1;
    ENDING.into_iter().any(is_blocked)
}

/// Where the program's calls of `hsa_executable_freeze` arrive.
pub(crate) fn freeze_entry() -> *const c_void {
    hsa_executable_freeze as *const c_void
}

/// Who gets the program's calls of HSA: who is first in the search order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// Our hooks, or another copy's.
    Hooks,
    /// HSA itself, or another tool's hooks.
    Others,
    /// Nobody that we see: our hooks are not exported, or are where none of HSA's callers looks.
    Nobody,
}

/// Who is first now. A runtime that is loaded later is behind us.
pub(crate) fn first() -> First {
    let seen = |name: &CStr| {
        // SAFETY: the name is NUL terminated.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let found = seen(FREEZE);
    if found.is_null() {
        First::Nobody
    } else if !election::is_a_copys(found) {
        First::Others
    } else if is_global(FREEZE) || !seen(c"hsa_iterate_agents").is_null() {
        First::Hooks
    } else {
        // ROCr has loaded us as a tool, and was itself loaded with `RTLD_LOCAL`: we see ourselves.
        First::Nobody
    }
}

/// Whether `name` is defined where every object looks first.
fn is_global(name: &CStr) -> bool {
    // SAFETY: the address is not used.
    unsafe { Library::this().get::<*const c_void>(name.to_bytes_with_nul()) }.is_ok()
}

/// The function `name` behind ours: the next in the search order, so that another tool's hook is
/// kept; else the runtime's own, for a runtime that was loaded with `RTLD_LOCAL` (Python's
/// ctypes) and so is in no search order.
///
/// # Safety
/// `T` is the type of a pointer to that function.
pub(crate) unsafe fn next<T: Copy>(name: &CStr) -> Option<T> {
    let found = find_next(name)?;
    // SAFETY: a function pointer of the type that the caller promises.
    Some(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&found) })
}

/// The next definition of `name` in the search order behind this library.
pub(crate) fn find_behind(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is NUL terminated.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The function that a call is meant for: behind us in the search order, or in a library that was
/// loaded with `RTLD_LOCAL`, as below a Python extension.
pub(crate) fn find_meant(name: &CStr) -> Option<*mut c_void> {
    find_behind(name).or_else(|| {
        let objects = objects::all().into_iter();
        objects
            .filter_map(|object| object.defines(name))
            .find(|address| !election::is_a_copys(*address))
    })
}

fn find_next(name: &CStr) -> Option<*mut c_void> {
    if let Some(found) = find_behind(name) {
        return Some(found);
    }
    // SAFETY: NOLOAD runs no initialiser.
    let library =
        unsafe { Library::open(Some(HSA_LIBRARY), libc::RTLD_NOLOAD | RTLD_LAZY) }.ok()?;
    // SAFETY: an address, whatever is there.
    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }
        .ok()
        .map(|found| *found);
    // The reference stays: the function must outlive us.
    std::mem::forget(library);
    symbol
}
