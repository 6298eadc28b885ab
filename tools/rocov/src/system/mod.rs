//! The system around the command: other programs, git, tests, running processes, and rocov's own files.

pub(crate) mod child_process;
pub(crate) mod command;
mod contained;
pub(crate) mod control;
pub(crate) mod ctest;
pub(crate) mod git;
mod gtest;
pub(crate) mod http;
pub(crate) mod installed;
pub(crate) mod interrupts;
pub(crate) mod journal;
mod journal_process;
pub(crate) mod per_test;
pub(crate) mod writable;
