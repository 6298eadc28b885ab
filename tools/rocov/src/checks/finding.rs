//! The findings of checks, as values.

use std::fmt::{self, Display};

use serde::Serialize;

use crate::support::printable::printable;

/// The state of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// All is well.
    Ok,
    /// Coverage works, with a caveat.
    Warning,
    /// Coverage cannot be had without it.
    Missing,
}

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) state: State,
    /// The subject of the finding, in a word or two; or the file.
    pub(crate) subject: String,
    /// The state that the check found.
    pub(crate) found: String,
    /// The next step for the user, unless all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn ok(subject: impl Display, found: impl Display) -> Self {
        Self::new(State::Ok, subject, found, None)
    }

    pub(crate) fn warning(
        subject: impl Display,
        found: impl Display,
        remedy: impl Display,
    ) -> Self {
        Self::new(State::Warning, subject, found, Some(remedy.to_string()))
    }

    pub(crate) fn missing(
        subject: impl Display,
        found: impl Display,
        remedy: impl Display,
    ) -> Self {
        Self::new(State::Missing, subject, found, Some(remedy.to_string()))
    }

    fn new(
        state: State,
        subject: impl Display,
        found: impl Display,
        remedy: Option<String>,
    ) -> Self {
        Self {
            state,
            subject: subject.to_string(),
            found: found.to_string(),
            remedy,
        }
    }
}

/// One line, and one for the remedy.
impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Missing => "MISSING",
        };
        let (subject, found) = (printable(&self.subject), printable(&self.found));
        writeln!(f, "{state:<8} {subject}: {found}")?;
        match &self.remedy {
            Some(remedy) => writeln!(f, "         -> {}", printable(remedy)),
            None => Ok(()),
        }
    }
}

/// The next step to code for this target that counts. nvcc cannot make code count.
pub(crate) fn compile_with(target: &str) -> String {
    match target.starts_with("sm_") {
        true => format!(
            "compile it with clang, not nvcc, and with the flags that `rocov flags --offload-arch={target}` prints, \
             or run it unchanged with `rocov run --instrument`"
        ),
        false => "compile it with the flags that `rocov flags` prints, or run it unchanged with `rocov run \
                  --instrument`"
            .to_owned(),
    }
}
