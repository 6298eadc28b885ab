//! The program's calls of HSA, whichever way they come ([`super::interpose`], [`super::tool_table`]): the
//! types of the functions, and the events before and after each call.
//!
//! A call can come both ways: the interposed function calls ROCr's, and ROCr's calls the one in the table.
//! The outer one sends the events.
#![expect(unsafe_code, reason = "reads the result of hsa_queue_create")]

use std::ffi::{c_char, c_void};

use rocov::device::Executable;
use rocov::device::hsa::abi::{SUCCESS, Status};

use super::code_objects;
use super::copy::send;
use super::nesting::{inside, is_inside};
use crate::elect::event::{Event, NewQueue};
use crate::guest::status::RocovStatus;
use crate::guest::{process, stack};

pub(super) type InitFn = unsafe extern "C" fn() -> Status;
pub(super) type FreezeFn = unsafe extern "C" fn(u64, *const c_char) -> Status;
pub(super) type DestroyFn = unsafe extern "C" fn(u64) -> Status;
pub(super) type ShutDownFn = unsafe extern "C" fn() -> Status;
pub(super) type QueueErrorFn = unsafe extern "C" fn(Status, u64, *mut c_void);
/// Takes agent, size, kind, the callback for errors and its data, the sizes of segments, and the place for
/// the queue's address.
pub(super) type QueueCreateFn = unsafe extern "C" fn(
    u64,
    u32,
    u32,
    Option<QueueErrorFn>,
    *mut c_void,
    u32,
    u32,
    *mut u64,
) -> Status;
pub(super) type QueueDestroyFn = unsafe extern "C" fn(u64) -> Status;

/// Starts HSA. Notes the start before the call, because a child that is forked meanwhile inherits half of
/// HSA.
pub(super) fn init(call: impl FnOnce() -> Status) -> Status {
    process::starting();
    let status = call();
    if status != SUCCESS {
        process::stopped();
    }
    status
}

/// Freezes an executable, then has its loads remembered: from now on symbols have addresses.
///
/// Always inlined: [`crate::guest::stack`] looks for the hook on the stack. A tail call of this function
/// would remove the hook from the stack.
#[inline(always)]
pub(super) fn freeze(
    hook: *const c_void,
    executable: u64,
    call: impl FnOnce() -> Status,
) -> Status {
    if is_inside() {
        return call();
    }
    let status = inside(call);
    if status == SUCCESS {
        stack::in_hook(hook, || send(Event::Frozen(Executable(executable))));
    }
    status
}

/// Drains an executable, then destroys it. This is the authoritative drain: HIP destroys the executables
/// of static fat binaries in its module destructors, before the exit handler of a preloaded library runs,
/// and those of a module when it is unloaded.
///
/// An executable that a copy from the GPU may still read is not destroyed. The program does not learn
/// this: nothing uses the handle again, and HSA gives it to no other executable.
pub(super) fn destroy(executable: u64, call: impl FnOnce() -> Status) -> Status {
    if is_inside() {
        return call();
    }
    match send(Event::Destroying(Executable(executable))) {
        RocovStatus::Loss => SUCCESS,
        _ => {
            let status = inside(call);
            if status == SUCCESS {
                code_objects::destroyed(executable);
            }
            status
        }
    }
}

/// Drains everything, then shuts HSA down for the program or for HIP, which from 6.2 on does it in a
/// static destructor. With the last reference, all executables go with the runtime.
pub(super) fn shut_down(call: impl FnOnce() -> Status) -> Status {
    if is_inside() {
        return call();
    }
    let status = match send(Event::ShuttingDown) {
        // HSA stays: it would free memory that a copy from the GPU may still read.
        RocovStatus::Loss => SUCCESS,
        _ => {
            let status = inside(call);
            if status == SUCCESS {
                process::stopped();
            }
            status
        }
    };
    send(Event::ShutDown);
    status
}

/// Creates a queue, then has it remembered: drains wait for its kernels.
///
/// # Safety
/// A successful call has written the queue's address to `queue`.
pub(super) unsafe fn queue_create(
    agent: u64,
    queue: *const u64,
    call: impl FnOnce() -> Status,
) -> Status {
    if is_inside() {
        return call();
    }
    let status = inside(call);
    if status == SUCCESS {
        // SAFETY: the call has written it, as the caller promises.
        let address = unsafe { *queue };
        send(Event::QueueCreated(&NewQueue { agent, address }));
    }
    status
}

/// Has a queue forgotten, then destroys it.
pub(super) fn queue_destroy(queue: u64, call: impl FnOnce() -> Status) -> Status {
    if is_inside() {
        return call();
    }
    send(Event::QueueDestroying(queue));
    inside(call)
}
