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

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use rocov::device::Executable;

use crate::exports::RocovStatus;
use crate::hooks::{self, First};
use crate::objects::{self, Object};
use crate::queues::{self, NewQueue};
use crate::{boundary, exit, lifecycle, process, requests};

/// What a hook has seen, or the program asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'a> {
    /// An executable was frozen.
    Frozen(Executable),
    /// An executable is about to be destroyed. [`RocovStatus::Loss`] if it must not be.
    Destroying(Executable),
    /// HSA is about to be shut down, perhaps for good. [`RocovStatus::Loss`] if it must not be.
    ShuttingDown,
    /// It was.
    ShutDown,
    /// The process is about to end.
    Exiting,
    /// Another program is about to take the process over, after `Exiting`.
    HandingOver,
    /// A queue was made.
    QueueCreated(&'a NewQueue),
    /// The queue at this address is about to be destroyed.
    QueueDestroying(u64),
    /// `rocov_drain`.
    Drain,
    /// `rocov_reset`.
    Reset,
    /// `rocov_set_file`, with its argument.
    SetFile(*const c_char),
    /// `rocov_start`.
    Start,
    /// `rocov_stop`.
    Stop,
    /// `rocov_dump`, with its argument.
    Dump(*const c_char),
    /// `rocov_label_push`, with its argument.
    LabelPush(*const c_char),
    /// `rocov_label_pop`.
    LabelPop,
    /// `rocov_code_loaded`.
    CodeLoaded,
    /// `rocov_code_unloading`.
    CodeUnloading,
}

impl Event<'_> {
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
            Event::HandingOver => (8, 0),
            Event::QueueCreated(queue) => (9, std::ptr::from_ref(queue) as u64),
            Event::QueueDestroying(queue) => (10, queue),
            Event::Start => (11, 0),
            Event::Stop => (12, 0),
            Event::Dump(label) => (13, label as u64),
            Event::LabelPush(label) => (14, label as u64),
            Event::LabelPop => (15, 0),
            Event::CodeLoaded => (16, 0),
            Event::CodeUnloading => (17, 0),
        }
    }

    /// Whether this is the program's wish, and not what a hook has seen.
    fn is_request(self) -> bool {
        !matches!(
            self,
            Event::Frozen(_)
                | Event::Destroying(_)
                | Event::ShuttingDown
                | Event::ShutDown
                | Event::Exiting
                | Event::HandingOver
                | Event::QueueCreated(_)
                | Event::QueueDestroying(_)
        )
    }

    /// Whether the event matters where nothing has been loaded yet: for what will be.
    fn is_to_be_remembered(self) -> bool {
        matches!(
            self,
            Event::Frozen(_)
                | Event::SetFile(_)
                | Event::QueueCreated(_)
                | Event::Start
                | Event::Stop
                | Event::LabelPush(_)
                | Event::LabelPop
        )
    }

    /// `None` for a number of a later build.
    ///
    /// # Safety
    /// Both are what a copy of librocov has encoded, which waits for the answer.
    unsafe fn decode(number: c_int, argument: u64) -> Option<Self> {
        Some(match number {
            0 => Event::Frozen(Executable(argument)),
            1 => Event::Destroying(Executable(argument)),
            2 => Event::ShuttingDown,
            3 => Event::ShutDown,
            4 => Event::Exiting,
            5 => Event::Drain,
            6 => Event::Reset,
            7 => Event::SetFile(argument as *const c_char),
            8 => Event::HandingOver,
            // SAFETY: an address that `encode` has taken, valid until the sender has its answer.
            9 => Event::QueueCreated(unsafe { &*(argument as *const NewQueue) }),
            10 => Event::QueueDestroying(argument),
            11 => Event::Start,
            12 => Event::Stop,
            13 => Event::Dump(argument as *const c_char),
            14 => Event::LabelPush(argument as *const c_char),
            15 => Event::LabelPop,
            16 => Event::CodeLoaded,
            17 => Event::CodeUnloading,
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
    /// The [`receive`] of the copy that hooks HSA's tool table, null before one does.
    table_hooker: AtomicPtr<c_void>,
}

#[unsafe(no_mangle)]
#[allow(
    non_upper_case_globals,
    reason = "a C symbol, lower case like the others"
)]
static rocov_control_v1: Control = Control {
    drainer: AtomicPtr::new(std::ptr::null_mut()),
    table_hooker: AtomicPtr::new(std::ptr::null_mut()),
};

/// Takes an event by number, and answers with a [`RocovStatus`] by number.
type ReceiveFn = unsafe extern "C" fn(event: c_int, argument: u64) -> c_int;

/// Hands an event to the drainer, which this copy becomes if there is none.
pub(crate) fn send(event: Event) -> RocovStatus {
    boundary::call("a hook", || {
        if matches!(event, Event::Frozen(_)) {
            // Every copy that sees the process use HSA remembers it, for its own hooks.
            process::claim();
        }
        let drainer = &control().drainer;
        let mut receiver = drainer.load(Ordering::Acquire);
        if receiver.is_null() {
            let is_late = || event.is_request() && process::claim_running();
            if !event.is_to_be_remembered() && !is_late() {
                // Nothing was ever loaded. What came in past all hooks is for the late exit drain.
                return RocovStatus::Nothing;
            }
            receiver = claim(drainer);
        }
        // SAFETY: only `receive` of some copy is ever stored, and the drainer stays loaded.
        let receiver = unsafe { std::mem::transmute::<*mut c_void, ReceiveFn>(receiver) };
        let (number, argument) = event.encode();
        // SAFETY: the argument is that of the event's kind.
        RocovStatus::of_number(unsafe { receiver(number, argument) })
    })
}

/// Gives `office` to this copy if it is free; tells who has it.
fn claim(office: &AtomicPtr<c_void>) -> *mut c_void {
    let ours = receive as *mut c_void;
    let won = office.compare_exchange(
        std::ptr::null_mut(),
        ours,
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    won.map_or_else(|other| other, |_| ours)
}

/// Whether it is for this copy to hook HSA's tool table: for one alone.
pub(crate) fn hooks_table() -> bool {
    std::ptr::eq(claim(&control().table_hooker), receive as *const c_void)
}

/// Whether a copy's hooks see what is loaded and unloaded.
fn sees_calls() -> bool {
    let hooker = control().table_hooker.load(Ordering::Acquire);
    !hooker.is_null() || hooks::first() == First::Hooks
}

/// Whether it is for this copy to drain, which it is if no copy has seen an event.
pub(crate) fn drains() -> bool {
    std::ptr::eq(claim(&control().drainer), receive as *const c_void)
}

/// Returns whether this copy may drain. It does not become the drainer if there is none yet.
pub(crate) fn may_drain() -> bool {
    let drainer = control().drainer.load(Ordering::Acquire);
    drainer.is_null() || std::ptr::eq(drainer, receive as *const c_void)
}

/// The drainer's side of [`send`].
unsafe extern "C" fn receive(event: c_int, argument: u64) -> c_int {
    let status = boundary::call("the drain", || {
        // SAFETY: only `send` of some copy calls this.
        let Some(event) = (unsafe { Event::decode(event, argument) }) else {
            return RocovStatus::Nothing;
        };
        if event.is_request() {
            if !process::may_use_hsa() {
                // A thread of the parent's may have had any lock when it forked.
                return RocovStatus::Nothing;
            }
            if process::claim_running() {
                pin();
                crate::control::start();
            }
        }
        match event {
            Event::Frozen(executable) => {
                pin();
                lifecycle::frozen(executable);
                crate::control::start();
            }
            Event::Destroying(executable) => return lifecycle::destroying(executable),
            Event::ShutDown => {
                lifecycle::shut_down();
                crate::control::resume();
            }
            Event::HandingOver => lifecycle::handing_over(),
            Event::QueueCreated(queue) => {
                pin();
                queues::created(queue);
            }
            Event::QueueDestroying(queue) => queues::destroying(queue),
            Event::ShuttingDown => {
                crate::control::pause();
                return lifecycle::shutting_down();
            }
            Event::Exiting => {
                let status = lifecycle::leaving();
                crate::control::leave();
                return status;
            }
            Event::Drain => return lifecycle::draining(),
            Event::Reset => return lifecycle::reset(),
            Event::SetFile(pattern) => {
                // SAFETY: the argument of `rocov_set_file`, null or NUL terminated; likewise below.
                let pattern = unsafe { requests::text("rocov_set_file", pattern) };
                return pattern.map_or_else(|status| status, lifecycle::set_file);
            }
            Event::Start => return requests::start(),
            Event::Stop => return requests::stop(),
            Event::Dump(label) => {
                // SAFETY: as above.
                let label = unsafe { requests::text("rocov_dump", label) };
                return label.map_or_else(|status| status, requests::dump_of_program);
            }
            Event::LabelPush(label) => {
                // SAFETY: as above.
                let label = unsafe { requests::text("rocov_label_push", label) };
                return label.map_or_else(|status| status, requests::label_push);
            }
            Event::LabelPop => return requests::label_pop(),
            Event::CodeLoaded if !sees_calls() => return lifecycle::look(),
            Event::CodeUnloading if !sees_calls() => return lifecycle::ending(),
            Event::CodeLoaded | Event::CodeUnloading => return RocovStatus::Nothing,
        }
        RocovStatus::Ok
    });
    status as c_int
}

/// The block in the first object that has one; our own where no object exports any.
fn control() -> &'static Control {
    static CONTROL: OnceLock<&'static Control> = OnceLock::new();
    CONTROL.get_or_init(|| {
        let first = objects::all().into_iter().find_map(|object| {
            let block = block_of(&object)?;
            if !exit::is_under_way() {
                object.keep();
            }
            // SAFETY: a symbol of this name is such a block, and its object stays.
            unsafe { block.as_ref() }
        });
        first.unwrap_or(&rocov_control_v1)
    })
}

fn block_of(object: &Object) -> Option<*mut Control> {
    object
        .defines(c"rocov_control_v1")
        .map(|address| address.cast())
}

/// Whether `address` is in an object that has a copy. Asked by every process as it starts, so the
/// usual answer costs next to nothing.
pub(crate) fn is_a_copys(address: *const c_void) -> bool {
    objects::are_together(address, receive as *const c_void)
        || objects::containing(address).is_some_and(|object| block_of(&object).is_some())
}

/// The object that this copy is in. Asked by a private function: an exported one's address may be
/// that of another object's function.
pub(crate) fn own_object() -> Option<Object> {
    objects::containing(receive as *const c_void)
}

/// Keeps the drainer's code in the process: its exit handlers and hooks are called to the end.
fn pin() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if let Some(object) = own_object() {
            object.keep();
        }
    });
}
