//! Who is calling: the file of the code that loads a code object, and whose thread it is.
//!
//! A code object that is handed over in memory has no file of its own. Its origin is then that of
//! the first caller outside HIP and ROCr, found on the stack of the hook.

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::{hooks, table};

/// The libraries between a program and the loader, which load on behalf of others.
const RUNTIMES: [&str; 3] = ["libamdhip64.so", "libhsa-runtime64.so", "librocov.so"];

/// The file of the code that is loading an executable, called below a hook. `None` where the
/// stack cannot be read or leads nowhere.
pub(crate) fn loader() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let stack = stack();
    // Where librocov is linked into the program, its frames are in the program's file.
    let ours = stack.iter().rposition(|address| is_hook(*address));
    let callers = &stack[ours.map_or(0, |last| last + 1)..];
    let files = callers.iter().filter_map(|it| file_at(*it, &maps));
    files.into_iter().find(|file| !is_runtime(file))
}

thread_local! {
    /// What [`is_runtimes_thread`] has found.
    static IS_RUNTIMES_THREAD: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether the calling thread is one of HIP's or ROCr's own, in which they call the program back:
/// what the GPU waits for may be that this call returns.
pub(crate) fn is_runtimes_thread() -> bool {
    let look = || {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let files = stack()
            .into_iter()
            .rev()
            .filter_map(|it| file_at(it, &maps));
        // The C library starts threads.
        let mut first = files.skip_while(|file| file_name(file).starts_with("libc.so"));
        Some(is_runtime(&first.next()?))
    };
    IS_RUNTIMES_THREAD.get().unwrap_or_else(|| {
        let answer = look().unwrap_or(false);
        IS_RUNTIMES_THREAD.set(Some(answer));
        answer
    })
}

/// The calling thread is librocov's own, which looks like one of theirs: nobody waits for it to return.
pub(crate) fn this_is_our_thread() {
    IS_RUNTIMES_THREAD.set(Some(false));
}

/// The addresses of the calls that led here, the innermost first.
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
    RUNTIMES.iter().any(|it| name.starts_with(it))
}

/// Whether code at `address` belongs to the hook that the program's call arrived at.
fn is_hook(address: usize) -> bool {
    // SAFETY: any address may be asked about.
    let function = unsafe { _Unwind_FindEnclosingFunction(address as *mut c_void) };
    [hooks::freeze_entry(), table::freeze_entry()].contains(&function.cast_const())
}

/// The file mapped at `address`, by the lines of /proc/self/maps; the name that it had if it was removed.
pub(crate) fn file_at(address: usize, maps: &str) -> Option<PathBuf> {
    let mapping = maps.lines().filter_map(mapping);
    let (_, file) = { mapping }.find(|(range, _)| range.contains(&address))?;
    file.map(PathBuf::from)
}

/// Where parts of `file` are mapped, by the same lines: their first addresses.
pub(crate) fn mappings_of<'a>(file: &'a Path, maps: &'a str) -> impl Iterator<Item = usize> + 'a {
    let mappings = maps.lines().filter_map(mapping);
    let of_file = mappings.filter(move |(_, it)| it.is_some_and(|it| Path::new(it) == file));
    of_file.map(|(range, _)| range.start)
}

/// The name of a file without the mark that the kernel puts behind one that was removed.
pub(crate) fn without_mark(file: &str) -> &str {
    file.strip_suffix(" (deleted)").unwrap_or(file)
}

/// A line of /proc/self/maps: `START-END PERMISSIONS OFFSET DEVICE INODE PATH`, hexadecimal addresses,
/// spaces in paths as they are, and a word behind those that were removed.
fn mapping(line: &str) -> Option<(Range<usize>, Option<&str>)> {
    let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let file = rest.find('/').map(|at| &rest[at..]);
    let file = file.map(without_mark);
    Some((hexadecimal(start)?..hexadecimal(end)?, file))
}

/// Notes the address of a call: the byte before the one that it returns to.
unsafe extern "C" fn collect(context: *mut c_void, stack: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes a valid context.
    let address = unsafe { _Unwind_GetIP(context) };
    // SAFETY: `stack` is the vector in the function of that name.
    unsafe { &mut *stack.cast::<Vec<usize>>() }.push(address.saturating_sub(1));
    0
}

// Of the unwinder that Rust's standard library links for panics ("Itanium C++ ABI: Exception
// Handling").
unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_FindEnclosingFunction(address: *mut c_void) -> *mut c_void;
}
