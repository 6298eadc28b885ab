//! librocov: what is put into a HIP program, by preload or by linking.
//!
//! It follows the program's executables as they are frozen ([`hooks`]), drains the counters of
//! their code objects when they are destroyed and at exit ([`lifecycle`]), and is otherwise not
//! there: no thread, no output unless asked for or something was lost, no HSA call in a process
//! that does not use a GPU.
//!
//! Everything that is process-wide lives in this crate; what a drain does is in the library
//! `rocov`.

mod boundary;
mod config;
mod exit;
mod hooks;
mod lifecycle;
mod log;
