//! librocov: what is put into a HIP program, by preload or by linking.
//!
//! It follows the program's executables as they are frozen ([`hooks`], or [`table`]), drains the
//! counters of their code objects when they are destroyed and at exit ([`lifecycle`]), and is
//! otherwise not there: no thread, no output unless asked for or something was lost, no HSA call
//! in a process that does not use a GPU. Of several copies one drains ([`election`]), and none
//! where LLVM's own drain does ([`neighbour`]). [`exports`] is for programs that want a say,
//! [`control`] for those outside, who get a thread for it.
//!
//! Everything that is process-wide lives in this crate; what a drain does is in the library
//! `rocov`.

mod boundary;
mod builds;
mod caller;
mod calls;
mod config;
mod control;
mod demangle;
mod election;
mod exec;
mod exit;
pub mod exports;
mod fat_binaries;
mod hidden;
mod hooks;
mod journal;
mod lifecycle;
mod log;
mod neighbour;
mod objects;
mod process;
mod queues;
mod requests;
mod roctx;
mod shield;
mod table;
mod topology;
mod zeros;

use std::alloc::System;

use rocov::reserve::Reserve;

/// Where memory is short, it is not for a guest to end the program.
#[global_allocator]
static ALLOCATOR: Reserve<System> = Reserve::of(System);
