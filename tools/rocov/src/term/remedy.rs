//! The next step after an error of the system.

use std::io::{self, ErrorKind};

use anyhow::Error;

/// The error and its causes in one line. If the last cause is an error of the system, the next step follows.
pub(crate) fn explained(error: &Error) -> String {
    let cause = error.root_cause().downcast_ref::<io::Error>();
    match cause.and_then(|cause| remedy(cause.kind())) {
        Some(remedy) => format!("{error:#}: {remedy}"),
        None => format!("{error:#}"),
    }
}

fn remedy(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Some("check the path, and make the directory if it is missing")
        }
        ErrorKind::PermissionDenied => Some("run as a user who may do that, or change its mode"),
        ErrorKind::ReadOnlyFilesystem => Some("give a place that can be written to"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("remove files there"),
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
    fn other_errors_stay_as_they_are() {
        let error = Error::msg("no number: give one").context("in x");
        assert_eq!(explained(&error), "in x: no number: give one");
    }
}
