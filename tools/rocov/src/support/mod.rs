//! The ground: files, paths, names and threads, without anything of rocov's own.

pub(crate) mod atomic;
pub(crate) mod demangle;
pub(crate) mod local_time;
pub(crate) mod mmap;
pub(crate) mod parallel;
pub(crate) mod paths;
