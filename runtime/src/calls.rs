//! HSA's functions that the program's calls pass through us on their way to, by whichever way they
//! come ([`crate::hooks`], [`crate::table`]): what they look like, and what is told before and after.

use std::ffi::{c_char, c_void};

use rocov::device::Executable;
use rocov::hsa::abi::{SUCCESS, Status};

use crate::election::{self, Event};
use crate::exports::RocovStatus;
use crate::process;
use crate::queues::NewQueue;

pub(crate) type InitFn = unsafe extern "C" fn() -> Status;
pub(crate) type FreezeFn = unsafe extern "C" fn(u64, *const c_char) -> Status;
pub(crate) type DestroyFn = unsafe extern "C" fn(u64) -> Status;
pub(crate) type ShutDownFn = unsafe extern "C" fn() -> Status;
pub(crate) type QueueErrorFn = unsafe extern "C" fn(Status, u64, *mut c_void);
/// Agent, size, kind, what is told of errors with its data, sizes of segments, where the queue's
/// address goes.
pub(crate) type QueueCreateFn = unsafe extern "C" fn(
    u64,
    u32,
    u32,
    Option<QueueErrorFn>,
    *mut c_void,
    u32,
    u32,
    *mut u64,
) -> Status;
pub(crate) type QueueDestroyFn = unsafe extern "C" fn(u64) -> Status;

/// Known from its beginning: a child that is forked meanwhile inherits half of HSA.
pub(crate) fn init(call: impl FnOnce() -> Status) -> Status {
    process::starting();
    let status = call();
    if status != SUCCESS {
        process::stopped();
    }
    status
}

/// Loads are remembered once an executable is frozen: symbols have addresses from then on.
///
/// Always inlined: [`crate::caller`] looks for the hook on the stack, where it would not be if this
/// were called as the last that it does.
#[inline(always)]
pub(crate) fn freeze(executable: u64, call: impl FnOnce() -> Status) -> Status {
    let status = call();
    if status == SUCCESS {
        election::send(Event::Frozen(Executable(executable)));
    }
    status
}

/// The authoritative drain: HIP destroys the executables of static fat binaries in its module
/// destructors, before a preloaded library's exit handler runs, and those of a module when it is
/// unloaded.
///
/// An executable that a copy may still read stays as it is, which the program need not know: nobody
/// uses its handle again, and HSA gives it to no other executable.
pub(crate) fn destroy(executable: u64, call: impl FnOnce() -> Status) -> Status {
    match election::send(Event::Destroying(Executable(executable))) {
        RocovStatus::Loss => SUCCESS,
        _ => call(),
    }
}

/// The program's own shutdown, or HIP's: from 6.2 on it does so in a static destructor. If it is
/// the last reference, all executables go with the runtime.
pub(crate) fn shut_down(call: impl FnOnce() -> Status) -> Status {
    let status = match election::send(Event::ShuttingDown) {
        // HSA goes on: memory that a copy may still read would be freed with it.
        RocovStatus::Loss => SUCCESS,
        _ => {
            let status = call();
            if status == SUCCESS {
                process::stopped();
            }
            status
        }
    };
    election::send(Event::ShutDown);
    status
}

/// Queues are remembered: kernels that still run in them are waited for.
///
/// # Safety
/// A successful call has written the queue's address to `queue`.
pub(crate) unsafe fn queue_create(
    agent: u64,
    queue: *const u64,
    call: impl FnOnce() -> Status,
) -> Status {
    let status = call();
    if status == SUCCESS {
        // SAFETY: as the caller promises.
        let address = unsafe { *queue };
        election::send(Event::QueueCreated(&NewQueue { agent, address }));
    }
    status
}

/// A queue that goes is not waited for any more.
pub(crate) fn queue_destroy(queue: u64, call: impl FnOnce() -> Status) -> Status {
    election::send(Event::QueueDestroying(queue));
    call()
}
