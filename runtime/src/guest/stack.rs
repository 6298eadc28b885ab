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
use rocov::support::own_memory;

use super::{elf_objects, process};

/// HIP's library.
const HIP: &str = "libamdhip64.so";
/// The libraries between a program and the loader. They load code for others.
const RUNTIMES: [&str; 3] = [HIP, "libhsa-runtime64.so", "librocov.so"];

/// A hook that a call of the program has arrived at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hook {
    function: *const c_void,
    /// An address in the stack, at a distance from the hook's own frame that depends on the hook only.
    place: usize,
}

thread_local! {
    /// The hook that the thread is in, for [`loader`].
    static HOOK: Cell<Option<Hook>> = const { Cell::new(None) };
    /// The way to the code that the thread last found to load an executable.
    static LAST_WAY: Cell<Option<Way>> = const { Cell::new(None) };
}

/// Runs `work` in the function `hook`, at which a call of the program has arrived.
pub(crate) fn in_hook<T>(hook: *const c_void, work: impl FnOnce() -> T) -> T {
    let in_frame = 0_u8;
    let hook = Hook {
        function: hook,
        place: (&raw const in_frame).addr(),
    };
    // A thread that is already ending has no such place.
    let _ = HOOK.try_with(|current| current.set(Some(hook)));
    let result = work();
    let _ = HOOK.try_with(|current| current.set(None));
    result
}

/// Returns the code that is loading an executable, below the thread's hook ([`in_hook`]). Reads the stack as far as that
/// code only: each load of a code object asks, and an interpreter has a deep stack.
pub(crate) fn loader() -> Loader {
    // `None` if another copy of librocov has sent the event from its own hook.
    let hook = HOOK.try_with(Cell::get).unwrap_or_default();
    let Some(hook) = hook else {
        return find_loader(None).0;
    };
    let opened = elf_objects::opened();
    // Taken out meanwhile: a signal handler may load code during the walk.
    let last = LAST_WAY.try_with(Cell::take).unwrap_or_default();
    let way = last.filter(|way| way.is_from(hook, opened));
    let (loader, way) = match way {
        Some(way) => (way.loader.clone(), Some(way)),
        None => {
            let (loader, calls) = find_loader(Some(hook.function));
            let way = Way::new(hook, opened, calls, &loader);
            (loader, way)
        }
    };
    let _ = LAST_WAY.try_with(|last| last.set(way));
    loader
}

/// Walks the stack to the code that is loading an executable. Returns that, and the calls from the hook to it.
fn find_loader(hook: Option<*const c_void>) -> (Loader, Vec<Call>) {
    let mut files = elf_objects::files();
    let mut of_all = Loader::default();
    let mut of_callers = None;
    let mut calls = Vec::new();
    each_call(&mut |call| {
        if Some(call.function) == hook {
            // If librocov is linked into the program, its frames lie in the program's file.
            of_callers = Some(Loader::default());
            return true;
        }
        let found = of_callers.as_mut().unwrap_or(&mut of_all);
        if found.file.is_none()
            && let Some(file) = files.at(call.address, is_runtime)
        {
            match is_runtime(file) {
                true => found.is_hip |= is_named(file, HIP),
                false => found.file = Some(file.to_owned()),
            }
        }
        if of_callers.is_some() {
            calls.push(call);
        }
        of_callers
            .as_ref()
            .is_none_or(|loader| loader.file.is_none())
    });
    (of_callers.unwrap_or(of_all), calls)
}

/// The most calls of a [`Way`].
const MOST_CALLS: usize = 64;

/// The calls from a hook to the code that loads an executable. A program often loads many code objects from one place, and
/// to compare the return addresses takes a small part of the time of another walk.
///
/// The address of a call determines the size of its frame, so equal addresses at equal places are the same calls. Only a
/// function whose frame has no fixed size may have another caller, and an old address would have to lie there by chance.
#[derive(Debug)]
struct Way {
    hook: Hook,
    /// The number of objects that were ever opened. Others may be at the same addresses later.
    opened: u64,
    calls: Vec<Call>,
    loader: Loader,
}

impl Way {
    /// `None` if the walk has found no file, which may become known, or if the return addresses are not all at their places
    /// on the stack, which depends on the processor.
    fn new(hook: Hook, opened: u64, calls: Vec<Call>, loader: &Loader) -> Option<Self> {
        if loader.file.is_none() || !(1..=MOST_CALLS).contains(&calls.len()) {
            return None;
        }
        let way = Self {
            hook,
            opened,
            calls,
            loader: loader.clone(),
        };
        way.is_from(hook, opened).then_some(way)
    }

    /// Returns whether this is the way from `hook`, if `opened` objects were ever opened.
    fn is_from(&self, hook: Hook, opened: u64) -> bool {
        if self.hook != hook || self.opened != opened {
            return false;
        }
        let mut there = [0; MOST_CALLS * WORD];
        let there = &mut there[..self.calls.len() * WORD];
        let places: Vec<_> = (self.calls.iter())
            .map(|call| (call.place as u64, WORD))
            .collect();
        // The stack may be another one by now, of a coroutine for example, and end before.
        let read = own_memory::load(&places, there);
        let (words, _) = there.as_chunks();
        read.is_ok_and(|len| len == there.len())
            && (words.iter().zip(&self.calls))
                .all(|(word, call)| usize::from_ne_bytes(*word) == call.address + 1)
    }
}

/// The size of an address in bytes.
const WORD: usize = size_of::<usize>();

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
#[derive(Clone, Copy, Debug)]
struct Call {
    /// The byte before its return address.
    address: usize,
    /// The start of the function that makes it.
    function: *const c_void,
    /// The place of its return address: a call of x86-64 puts it onto the stack.
    place: usize,
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
    let (address, function, frame) = unsafe {
        (
            _Unwind_GetIP(context),
            _Unwind_GetRegionStart(context),
            _Unwind_GetCFA(context),
        )
    };
    let call = Call {
        address: address.saturating_sub(1),
        function: function as *const c_void,
        place: frame.saturating_sub(WORD),
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
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    fn _Unwind_GetRegionStart(context: *mut c_void) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hook: returns the loader, and the calls that are kept for the next one, by their place and their first caller.
    #[inline(never)]
    extern "C" fn hook() -> (Loader, usize, *const c_void) {
        let function = hook as *const c_void;
        in_hook(function, || {
            let found = loader();
            let way = LAST_WAY.take().expect("a way");
            let (place, caller) = (way.calls.as_ptr().addr(), way.calls[0].function);
            LAST_WAY.set(Some(way));
            (found, place, caller)
        })
    }

    // Functions with equal code may become one.
    #[inline(never)]
    fn one() -> (Loader, usize, *const c_void) {
        std::hint::black_box(1);
        std::hint::black_box(hook())
    }

    #[inline(never)]
    fn other() -> (Loader, usize, *const c_void) {
        std::hint::black_box("other");
        std::hint::black_box(hook())
    }

    #[test]
    fn the_way_to_a_caller_is_kept_until_another_calls() {
        let own = std::env::current_exe().expect("a file");
        let mut ways = Vec::new();
        // One loop for all calls, so that the stack is equally deep at each.
        for call in [one, one, other, other, one] {
            let (loader, way, caller) = call();
            assert_eq!(loader.file.as_deref(), Some(own.as_path()));
            assert!(!loader.is_hip);
            assert_eq!(caller, call as *const c_void);
            ways.push(way);
        }
        assert_eq!(ways[0], ways[1]);
        assert_eq!(ways[2], ways[3]);
    }

    #[test]
    fn a_way_that_has_changed_or_is_gone_is_not_taken() {
        let (loader, ..) = one();
        let way = LAST_WAY.take().expect("a way");
        let (hook, opened) = (way.hook, way.opened);
        let moved = Hook {
            place: hook.place - WORD,
            ..hook
        };
        assert!(!way.is_from(moved, opened));
        assert!(!way.is_from(hook, opened + 1));
        // A stack of our own, with the return addresses of the way, and with another.
        let mut words: Vec<usize> = way.calls.iter().map(|call| call.address + 1).collect();
        let calls = (way.calls.iter().zip(&words)).map(|(call, word)| Call {
            place: (&raw const *word).addr(),
            ..*call
        });
        let mut way = Way::new(hook, opened, calls.collect(), &loader).expect("a way");
        assert!(way.is_from(hook, opened));
        words[0] += 1;
        std::hint::black_box(&words);
        assert!(!way.is_from(hook, opened));
        // The page at 0 is never mapped.
        way.calls[0].place = WORD;
        assert!(!way.is_from(hook, opened));
        assert!(Way::new(hook, opened, Vec::new(), &loader).is_none());
    }
}
