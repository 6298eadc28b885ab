//! The system around the command: other programs, git, ctest, running processes, and rocov's own files.

pub(crate) mod child_process;
pub(crate) mod command;
mod contained;
pub(crate) mod control;
pub(crate) mod ctest;
pub(crate) mod git;
pub(crate) mod http;
pub(crate) mod installed;
pub(crate) mod interrupts;
pub(crate) mod journal;
mod journal_process;
pub(crate) mod writable;
