//! The client of librocov's control socket.

mod ask;
mod process;

pub(crate) use ask::ask;
