//! The stack of the calling thread: the file of the code that loads a code object, and the owner of
//! the thread.
//!
//! A code object that the program hands over in memory has no file of its own. Its origin is then the
//! first caller outside of HIP and ROCr, found on the stack of the hook.
#![expect(unsafe_code, reason = "calls the unwinder")]

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};

use super::elf_objects;

/// The libraries between a program and the loader. They load code for others.
const RUNTIMES: [&str; 3] = ["libamdhip64.so", "libhsa-runtime64.so", "librocov.so"];

/// Returns the file of the code that is loading an executable, below a hook. `hooks` are the addresses
/// of the functions at which the program's call can have arrived. `None` if the stack cannot be read or
/// shows no such file.
pub(crate) fn loader(hooks: &[*const c_void]) -> Option<PathBuf> {
    let stack = stack();
    // If librocov is linked into the program, its frames lie in the program's file.
    let hook = stack.iter().rposition(|address| is_in(hooks, *address));
    let callers = &stack[hook.map_or(0, |last| last + 1)..];
    let mut files = callers
        .iter()
        .filter_map(|address| elf_objects::file_at(*address));
    files.find(|file| !is_runtime(file))
}

thread_local! {
    /// The answer of [`is_runtimes_thread`].
    static IS_RUNTIMES_THREAD: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Returns whether HIP or ROCr has started the calling thread, to call the program back. The GPU may
/// wait until this call returns.
pub(crate) fn is_runtimes_thread() -> bool {
    let look = || {
        let stack = stack().into_iter().rev();
        let files = stack.filter_map(elf_objects::file_at);
        // The C library starts threads.
        let mut first = files.skip_while(|file| file_name(file).starts_with("libc.so"));
        first.next().is_some_and(|file| is_runtime(&file))
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

/// Returns the addresses of the calls that led here, the innermost first.
fn stack() -> Vec<usize> {
    let mut stack: Vec<usize> = Vec::new();
    // SAFETY: the callback matches the interface and gets the address of `stack`.
    unsafe { _Unwind_Backtrace(collect, (&raw mut stack).cast()) };
    stack
}

fn file_name(file: &Path) -> Cow<'_, str> {
    file.file_name().unwrap_or_default().to_string_lossy()
}

fn is_runtime(file: &Path) -> bool {
    let name = file_name(file);
    RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
}

/// Returns whether code at `address` belongs to one of `functions`.
fn is_in(functions: &[*const c_void], address: usize) -> bool {
    // SAFETY: the unwinder accepts any address.
    let function = unsafe { _Unwind_FindEnclosingFunction(address as *mut c_void) };
    functions.contains(&function.cast_const())
}

/// Collects the address of a call: the byte before its return address.
unsafe extern "C" fn collect(context: *mut c_void, stack: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes a valid context.
    let address = unsafe { _Unwind_GetIP(context) };
    // SAFETY: `stack` is the vector of the function `stack`.
    unsafe { &mut *stack.cast::<Vec<usize>>() }.push(address.saturating_sub(1));
    0
}

// The unwinder that Rust's standard library links for panics ("Itanium C++ ABI: Exception Handling").
unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_FindEnclosingFunction(address: *mut c_void) -> *mut c_void;
}
