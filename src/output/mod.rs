//! Where profiles go: the user's name pattern ([`pattern`]) and files that are whole or not there
//! ([`atomic`]).

mod atomic;
mod pattern;

pub use atomic::write_atomic;
pub use pattern::{Expansion, PatternError, expand};

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::codeobject::{Identity, sanitize_target};

/// Why a profile could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A step of writing failed. Nothing is left half written under the final name.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The step.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The pattern ends in a slash or names a directory only.
    #[error("the profile name {0:?} has no file name")]
    NoFileName(PathBuf),
}

/// The name of a profile: directory and base name from the user's pattern, and before the base
/// name what tells device profiles apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileName {
    directory: PathBuf,
    base: String,
}

impl ProfileName {
    /// Splits an expanded pattern into directory and base name.
    ///
    /// # Errors
    /// Fails where `path` has no file name.
    pub fn new(path: &Path) -> Result<ProfileName, OutputError> {
        let trailing_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match path.file_name() {
            Some(base) if !trailing_slash => Ok(ProfileName {
                directory: path.parent().unwrap_or(Path::new("")).to_owned(),
                base: base.to_string_lossy().into_owned(),
            }),
            _ => Err(OutputError::NoFileName(path.to_owned())),
        }
    }

    /// `<directory>/<arch>.<identity>.<agent index>.<base name>`: the same from run to run, and
    /// another for each code object and each GPU.
    #[must_use]
    pub fn for_load(&self, target: &str, identity: &Identity, agent: usize) -> PathBuf {
        let arch = sanitize_target(target);
        self.directory
            .join(format!("{arch}.{identity}.{agent}.{}", self.base))
    }
}
