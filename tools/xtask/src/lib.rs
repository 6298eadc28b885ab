//! The commands of work on rocov that are more than a few lines of shell.

pub mod beside;
pub mod bless;
pub mod log;
pub mod mutants;
pub mod process;
pub mod stages;
pub mod suite;

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The reason why a command failed.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The command line is wrong: the usage, or what is wrong.
    Usage(String),
    /// Something that was checked is wrong.
    Check(String),
}

impl Failure {
    /// Returns the exit status of the command.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Check(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Check(text) => formatter.write_str(text),
        }
    }
}

/// The outcome of a command, or of a part of it.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Prints a line. It is no failure if nobody reads it.
pub fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Returns a path in the repository.
#[must_use]
pub fn repository(path: &str) -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .and_then(Path::parent);
    tools
        .expect("this crate is in the repository's folder tools/xtask")
        .join(path)
}

/// Returns the directory that cargo builds in.
#[must_use]
pub fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").filter(|path| !path.is_empty());
    repository("").join(named.unwrap_or_else(|| "target".into()))
}
