//! Errors of the command with a next step: they are made of a [`Diagnostic`](rocov::support::diagnostic).

/// Makes the error of two format strings: `failure!(what happened; what to do next)`.
macro_rules! failure {
    ($($message:tt)*) => { ::anyhow::Error::new(::rocov::diagnostic!($($message)*)) };
}

pub(crate) use failure;
