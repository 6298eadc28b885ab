//! The next step after an error that does not name one: of the system, or of a file that is damaged.

use std::io::{self, ErrorKind};

use anyhow::Error;
use rocov::format::bundle::BundleError;
use rocov::format::codeobject::{CodeObjectError, CoverageError};
use rocov::format::profraw::ProfileError;
use rocov::format::registry::DocumentError;

/// The next step after damage of the program's code.
const BUILD: &str = "build it again";
/// The next step after damage of a file that librocov wrote.
const RUN: &str = "run the program again";

/// The error and its causes in one line, and the next step if the last cause needs one.
pub(crate) fn explained(error: &Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // An error of a library may end with its cause.
        if !line.ends_with(&cause) {
            line += &format!(": {cause}");
        }
    }
    match remedy(error) {
        Some(remedy) => format!("{line}: {remedy}"),
        None => line,
    }
}

fn remedy(error: &Error) -> Option<&'static str> {
    let cause = error.root_cause();
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return system_remedy(error.kind());
    }
    if let Some(error) = cause.downcast_ref() {
        return Some(match error {
            ProfileError::UnknownVersion { .. } => {
                "compile with clang 15 or later, or use a newer rocov"
            }
            _ => RUN,
        });
    }
    if cause.is::<DocumentError>() {
        return Some(RUN);
    }
    let is_of_code =
        cause.is::<BundleError>() || cause.is::<CodeObjectError>() || cause.is::<CoverageError>();
    is_of_code.then_some(BUILD)
}

/// The next step after an error of the system of this kind.
pub(crate) fn system_remedy(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Some("check the path, and make the directory if it is missing")
        }
        ErrorKind::PermissionDenied => Some("run as a user who may do that, or change its mode"),
        ErrorKind::ReadOnlyFilesystem => Some("give a place that can be written to"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("free some space"),
        ErrorKind::IsADirectory => Some("give a file"),
        ErrorKind::OutOfMemory => Some("run it with more memory"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use anyhow::Context;

    use super::*;

    #[test]
    fn errors_of_the_system_have_a_next_step() {
        let directory = tempfile::tempdir().unwrap();
        let absent = fs::read(directory.path().join("absent")).context("cannot read x");
        assert_eq!(
            explained(&absent.unwrap_err()),
            "cannot read x: No such file or directory (os error 2): check the path, and make the directory if \
             it is missing"
        );
        let read = fs::read(directory.path()).context("cannot read it");
        assert!(
            explained(&read.unwrap_err()).ends_with("Is a directory (os error 21): give a file")
        );
    }

    #[test]
    fn a_cause_is_printed_once() {
        let error = Error::msg("no room")
            .context("cannot write x: no room")
            .context("in y");
        assert_eq!(explained(&error), "in y: cannot write x: no room");
    }

    #[test]
    fn damaged_files_have_a_next_step() {
        let error = Error::new(ProfileError::OtherCode).context("left out");
        assert!(explained(&error).ends_with(": run the program again"));
        let error = Error::new(CodeObjectError::NoMemory { bytes: 1 });
        assert!(explained(&error).ends_with(": build it again"));
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        let error = Error::msg("no number: give one").context("in x");
        assert_eq!(explained(&error), "in x: no number: give one");
    }
}
