//! The count of executed instructions (`ROCOV_MODELGPU_INSTRUCTIONS`).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

use modelgpu_amdgcn::Statistics;

use crate::config::Destination;
use crate::log;
use crate::sys;

/// The instructions that waves have executed, by kernel.
pub(crate) struct Instructions {
    fd: RawFd,
    kernels: Mutex<BTreeMap<Kernel, Counts>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kernel {
    target: &'static str,
    /// The name in the symbol table.
    symbol: String,
}

#[derive(Default)]
struct Counts {
    instructions: u64,
    waves: u64,
    dispatches: u64,
}

impl Instructions {
    /// Starts to count. If the destination cannot be opened, prints a message and returns `None`.
    pub(crate) fn open(destination: &Destination) -> Option<Self> {
        Some(Self {
            fd: log::open(destination, "the file for counts of instructions")?,
            kernels: Mutex::default(),
        })
    }

    /// Adds a finished dispatch of the kernel `symbol`.
    pub(crate) fn add(&self, target: &'static str, symbol: String, done: Statistics) {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = kernels.entry(Kernel { target, symbol }).or_default();
        counts.instructions += done.instructions;
        counts.waves += done.waves;
        counts.dispatches += 1;
    }

    /// Writes a line for each kernel, in one write, so that the lines of a process stay together.
    pub(crate) fn write(&self) {
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = String::new();
        for (Kernel { target, symbol }, counts) in &*kernels {
            let Counts {
                instructions,
                waves,
                dispatches,
            } = counts;
            // Writes to a string cannot fail.
            let _ = writeln!(
                lines,
                "{target} {symbol}: {instructions} instructions in {waves} waves of {dispatches} \
                 dispatches"
            );
        }
        sys::write(self.fd, lines.as_bytes());
    }
}
