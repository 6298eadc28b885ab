//! The terminal: what the command prints, and the status that it ends with.

pub(crate) mod exit_status;
pub(crate) mod line_ranges;
pub(crate) mod lines;
pub(crate) mod look;
pub(crate) mod plural;
pub(crate) mod print;
pub(crate) mod progress;
pub(crate) mod remedy;
pub(crate) mod shell_line;
pub(crate) mod shorten;
pub(crate) mod table;
pub(crate) mod warnings;
