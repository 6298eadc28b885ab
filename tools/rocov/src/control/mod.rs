//! `rocov dump` and `rocov status`: asking the librocov in a running program.

mod ask;
mod dump;
mod process;
mod state;

pub(crate) use dump::dump;
pub(crate) use process::CONTROL_VARIABLE;
pub(crate) use state::state;
