//! Messages for users: what happened, and what to do next.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Display};

/// A message for users, in one line: what happened, and what to do next. Neither can be left out.
///
/// The next step follows a colon, or a semicolon if the first part has a colon:
///
/// ```
/// use rocov::support::diagnostic::diagnostic;
///
/// let status = 3;
/// let failed = diagnostic!("the run failed with status {status}"; "run it again");
/// assert_eq!(failed.to_string(), "the run failed with status 3: run it again");
///
/// let path = "cov";
/// let failed = diagnostic!("cannot write {path}: no space left"; "make room");
/// assert_eq!(failed.to_string(), "cannot write cov: no space left; make room");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    what: String,
    next: Cow<'static, str>,
}

impl Diagnostic {
    /// Makes a message of what happened and of the next step.
    pub fn new(what: impl Into<String>, next: impl Into<Cow<'static, str>>) -> Self {
        let (what, next) = (what.into(), next.into());
        Self { what, next }
    }

    /// Makes a message of two formatted texts. Out of line, because each message of librocov would have the code.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn formatted(what: fmt::Arguments<'_>, next: fmt::Arguments<'_>) -> Self {
        let next = match next.as_str() {
            Some(next) => Cow::Borrowed(next),
            None => Cow::Owned(next.to_string()),
        };
        Self::with_next(what, next)
    }

    /// Makes a message of a formatted text and the next step.
    #[cold]
    #[inline(never)]
    fn with_next(what: fmt::Arguments<'_>, next: Cow<'static, str>) -> Self {
        let what = what.to_string();
        Self { what, next }
    }

    /// Makes a message of a text without a next step of its own: one that comes from elsewhere, or a result that shows by
    /// itself what to do, such as a figure below its limit.
    pub fn without_step(text: impl Into<String>) -> Self {
        Self::new(text, "")
    }

    /// Returns what happened.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns what to do next.
    #[must_use]
    pub fn next(&self) -> &str {
        &self.next
    }

    /// Returns what to do next, or `other` if the message came from elsewhere without a next step.
    #[must_use]
    pub fn next_or<'a>(&'a self, other: &'a str) -> &'a str {
        if self.next.is_empty() {
            other
        } else {
            &self.next
        }
    }

    /// Puts the place, or a wider event, before what happened.
    #[must_use]
    pub fn within(self, outer: impl Display) -> Self {
        Self::with_next(format_args!("{outer}: {}", self.what), self.next)
    }

    /// Puts a place in a file before what happened: `place:what`.
    #[must_use]
    pub fn at(self, place: impl Display) -> Self {
        Self::with_next(format_args!("{place}:{}", self.what), self.next)
    }

    /// Adds the effect to what happened: `what, so effect`.
    #[must_use]
    pub fn so(self, effect: impl Display) -> Self {
        Self::with_next(format_args!("{}, so {effect}", self.what), self.next)
    }
}

impl Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.next.is_empty() {
            return Ok(());
        }
        let mark = if self.what.contains(": ") { ';' } else { ':' };
        write!(f, "{mark} {}", self.next)
    }
}

impl Error for Diagnostic {}

impl Remedy for Diagnostic {
    fn remedy(&self) -> Cow<'static, str> {
        self.next.clone()
    }
}

/// An error whose kind has a next step.
pub trait Remedy: Display {
    /// Returns what to do next, such as "run the program again".
    fn remedy(&self) -> Cow<'static, str>;

    /// Returns the message about this error.
    fn diagnostic(&self) -> Diagnostic {
        Diagnostic::with_next(format_args!("{self}"), self.remedy())
    }
}

/// Makes a [`Diagnostic`] of two format strings, each with its values: `diagnostic!(what; next)`.
#[macro_export]
macro_rules! diagnostic {
    ($what:literal $(, $value:expr)* $(,)?; $next:literal $(, $step:expr)* $(,)?) => {
        $crate::support::diagnostic::Diagnostic::formatted(
            ::std::format_args!($what $(, $value)*),
            ::std::format_args!($next $(, $step)*),
        )
    };
}

/// Returns the error of two format strings from a function whose error can be made of a [`Diagnostic`].
#[macro_export]
macro_rules! fail {
    ($($message:tt)*) => {
        return Err($crate::support::diagnostic::diagnostic!($($message)*).into())
    };
}

pub use {diagnostic, fail};
