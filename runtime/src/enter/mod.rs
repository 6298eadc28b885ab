//! Fourth station: the ways into librocov.
//!
//! All exported symbols are here, and nowhere else. The program's calls arrive at hooks ([`interpose`],
//! [`tool_table`], [`hip_hooks`], [`link_hooks`], [`roctx`], [`nvtx`], [`exec`], [`immediate_exit`]), at exit handlers ([`exit`])
//! or at the C interface ([`c_api`]). Each way sends an event, and other copies of librocov send theirs
//! to [`receive`].
#![expect(unsafe_code, reason = "exports the block of this copy")]

pub mod c_api;
mod cupti;
mod exchange;
mod exec;
mod exit;
mod hip_hooks;
mod hsa_hooks;
mod immediate_exit;
mod injection;
mod interpose;
mod link_hooks;
mod next_symbol;
mod nvtx;
mod roctx;
mod tool_table;

use std::ffi::c_int;

use rocov::discover::Loader;

use crate::elect::event::Event;
use crate::elect::{Candidate, Roles};
use crate::guest::status::RocovStatus;
use crate::guest::{boundary, stack};
use crate::serve::{self, Entrances};

#[unsafe(no_mangle)]
#[allow(
    non_upper_case_globals,
    reason = "a C symbol, lower case like the others"
)]
static rocov_roles_v1: Roles = Roles::new();

/// This copy of librocov.
static COPY: Candidate = Candidate {
    block: &rocov_roles_v1,
    receive,
};

static ENTRANCES: Entrances = Entrances {
    loader,
    register_early_exit: exit::register_early,
    see_calls: || COPY.sees_calls(),
};

/// Hands an event to the copy that drains.
fn send(event: Event<'_>) -> RocovStatus {
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

/// Returns the code that is loading an executable, below one of our hooks.
fn loader() -> Loader {
    stack::loader(&[interpose::freeze_entry(), tool_table::freeze_entry()])
}
