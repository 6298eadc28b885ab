//! The socket by which a running librocov is asked.

mod ask;
mod process;

pub(crate) use ask::ask;
pub(crate) use process::CONTROL_VARIABLE;
