//! First station: librocov as a guest in somebody else's process.
//!
//! Nothing here knows of a drain. The modules keep the program's state as it was ([`boundary`],
//! [`signal_shield`]), write to its standard error ([`log`]) and to the journal of `rocov run`
//! ([`journal`]), and answer questions about the process ([`environment`], [`settings`], [`process`],
//! [`stack`], [`elf_objects`]) and its machine ([`topology`]).

pub(crate) mod boundary;
pub(crate) mod elf_objects;
pub(crate) mod environment;
pub(crate) mod journal;
pub(crate) mod log;
pub(crate) mod process;
mod process_word;
pub(crate) mod settings;
pub(crate) mod signal_shield;
pub(crate) mod stack;
pub mod status;
pub(crate) mod topology;
