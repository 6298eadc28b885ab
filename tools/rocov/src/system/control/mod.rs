//! The client of librocov's control socket.

mod ask;
mod process;

pub(crate) use ask::ask;
pub(crate) use process::CONTROL_VARIABLE;
