//! librocov: code coverage for HIP programs, preloaded into a program or linked with it.
//!
//! The source has four stations. A file imports its own station and earlier ones only.
//!
//! 1. [`guest`]: librocov is a guest in the process. It keeps the program's state and prints little.
//! 2. [`elect`]: of several copies of librocov one drains, and none if LLVM's own drain does.
//! 3. [`serve`]: the drainer follows loaded code, and writes its counts when code is unloaded, when the
//!    process ends, and on request. It starts a thread only for requests from outside.
//! 4. [`enter`]: hooks, exit handlers and the C interface. All exported symbols are here.
//!
//! A process without a GPU gets no HSA call, no thread and no output. The library crate `rocov` does the
//! drain itself; this crate holds everything that is process-wide. A module with unsafe code says why.

#![deny(unsafe_code)]

mod elect;
pub mod enter;
pub mod guest;
mod serve;

use std::alloc::System;

use rocov::support::reserve::Reserve;

/// An allocator with a reserve: a guest must not end the program because memory is short.
#[global_allocator]
static ALLOCATOR: Reserve<System> = Reserve::new(System);
