//! One drainer among copies.
//!
//! librocov may be in a process several times: preloaded, and linked statically into libraries.
//! Each copy has hooks that see some of the events, and if each drained, counts would be written
//! over and over, or doubled. So the copy that sees the first event becomes the drainer, and the
//! others hand theirs on to it.
//!
//! The copies find each other by an exported symbol, a [`Control`] block. The one that counts is
//! in the first object of the dynamic linker's list that has one: a place that stays the first,
//! as objects are added at the end.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use rocov::device::Executable;

use crate::exports::RocovStatus;
use crate::{boundary, lifecycle};

/// What a hook has seen, or the program asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// An executable was frozen.
    Frozen(Executable),
    /// An executable is about to be destroyed.
    Destroying(Executable),
    /// HSA is about to be shut down, perhaps for good.
    ShuttingDown,
    /// It was.
    ShutDown,
    /// The process is about to end.
    Exiting,
    /// `rocov_drain`.
    Drain,
    /// `rocov_reset`.
    Reset,
    /// `rocov_set_file`, with its argument.
    SetFile(*const c_char),
}

impl Event {
    /// The event as copies of other builds understand it.
    fn encode(self) -> (c_int, u64) {
        match self {
            Event::Frozen(executable) => (0, executable.0),
            Event::Destroying(executable) => (1, executable.0),
            Event::ShuttingDown => (2, 0),
            Event::ShutDown => (3, 0),
            Event::Exiting => (4, 0),
            Event::Drain => (5, 0),
            Event::Reset => (6, 0),
            Event::SetFile(pattern) => (7, pattern as u64),
        }
    }

    /// `None` for a number of a later build.
    fn decode(number: c_int, argument: u64) -> Option<Event> {
        Some(match number {
            0 => Event::Frozen(Executable(argument)),
            1 => Event::Destroying(Executable(argument)),
            2 => Event::ShuttingDown,
            3 => Event::ShutDown,
            4 => Event::Exiting,
            5 => Event::Drain,
            6 => Event::Reset,
            7 => Event::SetFile(argument as *const c_char),
            _ => return None,
        })
    }
}

/// The block that the copies share. Its layout is an interface between versions of librocov: a
/// change gets a new symbol.
#[repr(C)]
struct Control {
    /// The drainer's [`receive`], null before the first event.
    drainer: AtomicPtr<c_void>,
}

#[unsafe(no_mangle)]
#[allow(
    non_upper_case_globals,
    reason = "a C symbol, lower case like the others"
)]
static rocov_control_v1: Control = Control {
    drainer: AtomicPtr::new(std::ptr::null_mut()),
};

/// Takes an event by number, and answers with a [`RocovStatus`] by number.
type ReceiveFn = unsafe extern "C" fn(event: c_int, argument: u64) -> c_int;

/// Hands an event to the drainer, which this copy becomes if there is none.
pub(crate) fn send(event: Event) -> RocovStatus {
    boundary::call("a hook", || {
        let drainer = &control().drainer;
        let mut receiver = drainer.load(Ordering::Acquire);
        if receiver.is_null() {
            if !matches!(event, Event::Frozen(_) | Event::SetFile(_)) {
                // Nothing was ever loaded. What came in past all hooks is for the late exit drain.
                return RocovStatus::Nothing;
            }
            let ours = receive as *mut c_void;
            let won = drainer.compare_exchange(
                std::ptr::null_mut(),
                ours,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            receiver = won.map_or_else(|other| other, |_| ours);
        }
        // SAFETY: only `receive` of some copy is ever stored, and the drainer stays loaded.
        let receiver = unsafe { std::mem::transmute::<*mut c_void, ReceiveFn>(receiver) };
        let (number, argument) = event.encode();
        // SAFETY: the argument is that of the event's kind.
        RocovStatus::of_number(unsafe { receiver(number, argument) })
    })
}

/// Whether another copy drains.
pub(crate) fn is_loser() -> bool {
    let drainer = control().drainer.load(Ordering::Acquire);
    !drainer.is_null() && !std::ptr::eq(drainer, receive as *const c_void)
}

/// The drainer's side of [`send`].
unsafe extern "C" fn receive(event: c_int, argument: u64) -> c_int {
    let status = boundary::call("the drain", || {
        let Some(event) = Event::decode(event, argument) else {
            return RocovStatus::Nothing;
        };
        match event {
            Event::Frozen(executable) => {
                pin();
                lifecycle::frozen(executable);
            }
            Event::Destroying(executable) => lifecycle::destroying(executable),
            Event::ShutDown => lifecycle::shut_down(),
            Event::ShuttingDown | Event::Exiting | Event::Drain => return lifecycle::draining(),
            Event::Reset => return lifecycle::reset(),
            // SAFETY: the argument of `rocov_set_file`, null or NUL terminated.
            Event::SetFile(pattern) => return unsafe { lifecycle::set_file(pattern) },
        }
        RocovStatus::Ok
    });
    status as c_int
}

/// The block in the first object that has one; our own where that cannot be found out.
fn control() -> &'static Control {
    static CONTROL: OnceLock<&'static Control> = OnceLock::new();
    CONTROL.get_or_init(|| {
        let mut names: Vec<Option<CString>> = Vec::new();
        // SAFETY: the callback matches the interface and gets the address of `names`.
        unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut names).cast()) };
        let block = names.iter().find_map(|name| block_of(name.as_deref()));
        block.unwrap_or(&rocov_control_v1)
    })
}

/// Collects the objects' names, `None` for the executable. Nothing else is done here: the dynamic
/// linker holds a lock that opening an object would take in another order.
unsafe extern "C" fn collect(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    names: *mut c_void,
) -> c_int {
    // SAFETY: the dynamic linker passes a valid object.
    let name = unsafe { (*object).dlpi_name };
    // SAFETY: the name is null or NUL terminated. The executable's is empty.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned());
    // SAFETY: `names` is the variable of `control`.
    let names = unsafe { &mut *names.cast::<Vec<Option<CString>>>() };
    names.push(name.filter(|name| !name.is_empty()));
    0
}

/// The block that the object `name` leads to, its own or that of what it depends on. The object
/// is kept loaded if it has one.
fn block_of(name: Option<&CStr>) -> Option<&'static Control> {
    let flags = libc::RTLD_NOLOAD | libc::RTLD_LAZY;
    // SAFETY: NOLOAD runs no initialiser; the name is NUL terminated or null.
    let handle = unsafe { libc::dlopen(name.map_or(std::ptr::null(), CStr::as_ptr), flags) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is open and the name NUL terminated.
    let block = unsafe { libc::dlsym(handle, c"rocov_control_v1".as_ptr()) };
    if block.is_null() {
        // SAFETY: opened above.
        unsafe { libc::dlclose(handle) };
    }
    // SAFETY: a symbol of this name is such a block, and its object stays.
    unsafe { block.cast::<Control>().as_ref() }
}

/// Keeps the drainer's code in the process: its exit handlers and hooks are called to the end.
fn pin() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: an all-zero Dl_info is valid, and dladdr fills it for an address of ours.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        if unsafe { libc::dladdr(receive as *const c_void, &raw mut info) } != 0 {
            let flags = libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_LAZY;
            // SAFETY: dladdr's name is NUL terminated; for the executable this finds nothing,
            // and nothing is needed.
            unsafe { libc::dlopen(info.dli_fname, flags) };
        }
    });
}
