//! The next step after an error that does not name one: of the system, or of a file that is damaged.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use anyhow::Error;
use rocov::discover::filter::FilterError;
use rocov::format::bundle::BundleError;
use rocov::format::codeobject::{CodeObjectError, CoverageError};
use rocov::format::profraw::ProfileError;
use rocov::format::registry::DocumentError;
use rocov::store::{OutputError, PatternError, system_step};
use rocov::support::diagnostic::{Diagnostic, Remedy};
use rocov::validate::SectionsError;

use crate::support::paths::Absent;

/// The message about an error: the error and its causes, and the next step of the first of them that has one.
pub(crate) fn explained(error: &Error) -> Diagnostic {
    let own = error.downcast_ref::<Diagnostic>();
    let mut what = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // A message that is a context cannot be found as one, but by its text.
        let cause = match (diagnostic_in(cause), own) {
            (Some(diagnostic), _) => diagnostic.what(),
            (None, Some(own)) if own.to_string() == text => own.what(),
            _ => &*text,
        };
        // An error of a library may end with its cause.
        if what.is_empty() {
            what += cause;
        } else if !what.ends_with(cause) {
            what += &format!(": {cause}");
        }
    }
    let next = own.map(Diagnostic::remedy);
    let next = next.or_else(|| error.chain().find_map(remedy));
    Diagnostic::new(what, next.unwrap_or_default())
}

/// The message that a cause is, or that an error of the system carries.
fn diagnostic_in<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a Diagnostic> {
    let carried = || cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref();
    cause.downcast_ref().or_else(carried)
}

/// The next step after a cause, if it names one or its type has one.
fn remedy(cause: &(dyn StdError + 'static)) -> Option<Cow<'static, str>> {
    if let Some(diagnostic) = diagnostic_in(cause) {
        return Some(diagnostic.remedy());
    }
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return system_remedy(error).map(Cow::Borrowed);
    }
    remedy_of::<Absent>(cause)
        .or_else(|| remedy_of::<ProfileError>(cause))
        .or_else(|| remedy_of::<DocumentError>(cause))
        .or_else(|| remedy_of::<PatternError>(cause))
        .or_else(|| remedy_of::<FilterError>(cause))
        .or_else(|| remedy_of::<OutputError>(cause))
        .or_else(|| remedy_of::<SectionsError>(cause))
        .or_else(|| remedy_of::<BundleError>(cause))
        .or_else(|| remedy_of::<CodeObjectError>(cause))
        .or_else(|| remedy_of::<CoverageError>(cause))
}

/// The next step after an error, if it is of the type `E`.
fn remedy_of<E: StdError + Remedy + 'static>(
    cause: &(dyn StdError + 'static),
) -> Option<Cow<'static, str>> {
    cause.downcast_ref::<E>().map(Remedy::remedy)
}

/// The next step after an error of the system about an input.
pub(crate) fn system_remedy(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Some("check the path, and create the directory if it is missing")
        }
        ErrorKind::PermissionDenied => {
            Some("run as a user who is allowed to do that, or change the file's permissions")
        }
        ErrorKind::IsADirectory => Some("name a file"),
        _ => system_step(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use anyhow::Context;

    use super::*;
    use crate::support::failure::failure;

    #[test]
    fn errors_of_the_system_have_a_next_step() {
        let directory = tempfile::tempdir().unwrap();
        let absent = fs::read(directory.path().join("absent")).context("cannot read x");
        assert_eq!(
            explained(&absent.unwrap_err()).to_string(),
            "cannot read x: No such file or directory (os error 2); check the path, and create the directory if it is \
            missing"
        );
        let read = fs::read(directory.path()).context("cannot read it");
        assert!(
            explained(&read.unwrap_err())
                .to_string()
                .ends_with("Is a directory (os error 21); name a file")
        );
    }

    #[test]
    fn a_cause_is_printed_once() {
        let error = Error::msg("no room")
            .context("cannot write x: no room")
            .context("in y");
        assert_eq!(
            explained(&error).to_string(),
            "in y: cannot write x: no room"
        );
    }

    #[test]
    fn damaged_files_have_a_next_step() {
        let error = Error::new(ProfileError::OtherCode).context("left out");
        assert!(
            explained(&error)
                .to_string()
                .ends_with("; run the program again")
        );
        let error = Error::new(CodeObjectError::NoMemory { bytes: 1 });
        assert!(
            explained(&error)
                .to_string()
                .ends_with("; give the program more memory")
        );
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        let error = Error::msg("no number").context("in x");
        assert_eq!(explained(&error).to_string(), "in x: no number");
    }

    #[test]
    fn a_message_keeps_its_next_step_at_the_end() {
        let error = failure!("no number"; "give one").context("in x");
        assert_eq!(explained(&error).to_string(), "in x: no number; give one");
        let twice = failure!("no number"; "give one").context(Diagnostic::new("in x", "fix x"));
        assert_eq!(explained(&twice).to_string(), "in x: no number; fix x");
        let damaged = Diagnostic::new("x is damaged", "restore it");
        let error = Error::msg("short").context(damaged).context("in y");
        assert_eq!(
            explained(&error).to_string(),
            "in y: x is damaged: short; restore it"
        );
    }
}
