//! Calls of HSA that come both ways ([`super::interpose`], [`super::tool_table`]): the outer hook does the work.

use std::cell::Cell;

use rocov::device::hsa::abi::Status;

thread_local! {
    /// Set while this thread is in a function of HSA that one of our hooks has called.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether another of our hooks is already on this thread's stack.
pub(super) fn is_inside() -> bool {
    IS_INSIDE.get()
}

/// Calls HSA's function.
#[inline(always)]
pub(super) fn inside(call: impl FnOnce() -> Status) -> Status {
    let before = IS_INSIDE.replace(true);
    let status = call();
    IS_INSIDE.set(before);
    status
}
