//! Helpers for files, paths, names and threads that are independent of coverage.

pub(crate) mod atomic;
pub(crate) mod demangle;
pub(crate) mod failure;
pub(crate) mod mmap;
pub(crate) mod parallel;
pub(crate) mod paths;
pub(crate) mod printable;
pub(crate) mod temporary;
pub(crate) mod time;
