//! This copy of librocov: its block, and the function that takes the events of all copies.
#![expect(unsafe_code, reason = "exports the block of this copy")]

use std::ffi::c_int;

use super::early_exit;
use crate::elect::event::Event;
use crate::elect::{Candidate, Roles};
use crate::guest::boundary;
use crate::guest::status::RocovStatus;
use crate::serve::{self, Entrances};

#[unsafe(no_mangle)]
#[allow(
    non_upper_case_globals,
    reason = "a C symbol, lower case like the others"
)]
static rocov_roles_v1: Roles = Roles::new();

/// This copy of librocov.
pub(super) static COPY: Candidate = Candidate {
    block: &rocov_roles_v1,
    receive,
};

static ENTRANCES: Entrances = Entrances {
    register_early_exit: early_exit::register_early,
    see_calls: || COPY.sees_calls(),
};

/// Hands an event to the copy that drains.
pub(super) fn send(event: Event<'_>) -> RocovStatus {
    COPY.send(event)
}

/// Takes the events of all copies if this one drains.
unsafe extern "C" fn receive(event: c_int, argument: u64) -> c_int {
    let status = boundary::call("the drain", || {
        // SAFETY: only `Candidate::send` of some copy calls this function.
        let event = unsafe { Event::decode(event, argument) };
        event.map_or(RocovStatus::Nothing, |event| {
            serve::dispatch(event, &ENTRANCES)
        })
    });
    status as c_int
}
