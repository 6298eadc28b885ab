//! The exit statuses of `rocov`, and the error that carries one.
//!
//! They follow the conventions of env(1) and timeout(1), so that a script that wraps a program in
//! `rocov run` can distinguish the program's status from rocov's own.

/// A report could not be printed: no profiles, no matching device ELF, no tool that reads them.
pub(crate) const FAILED: u8 = 1;
/// A usage error, also of clap's.
pub(crate) const USAGE: u8 = 2;
/// A report was printed, and something that it must reach was not. Or a program ran under `rocov run
/// --strict`, and counts are lost.
pub(crate) const GATE_BROKEN: u8 = 3;
/// `rocov run` failed before the program was started.
pub(crate) const RUN_FAILED: u8 = 125;
/// The program was found and could not be started.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program was not found.
pub(crate) const NOT_FOUND: u8 = 127;
/// Added to the number of the signal that ended the program, as shells do.
pub(crate) const SIGNAL_BASE: u8 = 128;

/// The result of a subcommand: an exit status, or an error and the status that goes with it.
pub(crate) type CommandResult = Result<u8, Failure>;

/// An error on its way to standard error, and the exit status it ends with.
pub(crate) struct Failure {
    /// Printed on one line, causes after their consequences.
    pub(crate) error: anyhow::Error,
    /// The exit status of the process.
    pub(crate) status: u8,
}

impl Failure {
    /// Gives `error` the exit status `status`.
    pub(crate) fn new(status: u8, error: anyhow::Error) -> Self {
        Self { error, status }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(FAILED, error)
    }
}
