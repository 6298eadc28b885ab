//! The reasons why code is left out.

use std::fmt;
use std::sync::Arc;

/// The reason why a line is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// A comment. `line` is its line if it is of other lines, too, and `note` what its author wrote after the words.
    Comment {
        words: Arc<str>,
        line: Option<u32>,
        note: Option<Arc<str>>,
    },
    /// The regular expression of `--exclude-line` that the line matches.
    LinePattern(Arc<str>),
    /// The regular expression of `--exclude-function` that the name of the function matches.
    FunctionPattern(Arc<str>),
    /// The call that the code ends at, which is never reached.
    Unreachable(Arc<str>),
    /// The failing side of `assert`.
    Assert,
    /// A condition of `assert`, of which one side fails.
    AssertCondition,
}

impl Reason {
    /// The kind, as JSON has it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Comment { .. } => "comment",
            Self::LinePattern(_) => "exclude-line",
            Self::FunctionPattern(_) => "exclude-function",
            Self::Unreachable(_) | Self::Assert | Self::AssertCondition => "default",
        }
    }

    /// The words that exclude the code: those of a comment, a regular expression, or the name of a function or macro.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Comment { words, .. }
            | Self::LinePattern(words)
            | Self::FunctionPattern(words)
            | Self::Unreachable(words) => words,
            Self::Assert | Self::AssertCondition => "assert",
        }
    }

    /// The line of a comment that is of several lines.
    pub(crate) fn line(&self) -> Option<u32> {
        match self {
            Self::Comment { line, .. } => *line,
            _ => None,
        }
    }

    /// The text that the author of a comment wrote after its words.
    pub(crate) fn note(&self) -> Option<&str> {
        match self {
            Self::Comment { note, .. } => note.as_deref(),
            _ => None,
        }
    }

    /// The name of the group that totals have it in.
    pub(crate) fn group(&self) -> &'static str {
        match self {
            Self::Comment { .. } => "comments",
            Self::LinePattern(_) => "--exclude-line",
            Self::FunctionPattern(_) => "--exclude-function",
            Self::Unreachable(_) | Self::Assert | Self::AssertCondition => "default",
        }
    }
}

/// The sides of a condition that are left out, each with the reason: that of a true condition, and that of a false one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExcludedBranch {
    pub(crate) sides: [Option<Reason>; 2],
}

impl ExcludedBranch {
    /// Each reason with the sides that it leaves out.
    pub(crate) fn by_reason(&self) -> Vec<(&'static str, &Reason)> {
        match &self.sides {
            [Some(one), Some(other)] if one == other => vec![("both sides", one)],
            [one, other] => {
                let one = one.iter().map(|reason| ("true side", reason));
                one.chain(other.iter().map(|reason| ("false side", reason)))
                    .collect()
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comment { words, line, note } => {
                write!(f, "{words}")?;
                if let Some(line) = line {
                    write!(f, " in line {line}")?;
                }
                match note {
                    Some(note) => write!(f, ": {note}"),
                    None => Ok(()),
                }
            }
            Self::LinePattern(regex) => write!(f, "--exclude-line {regex}"),
            Self::FunctionPattern(regex) => write!(f, "--exclude-function {regex}"),
            Self::Unreachable(call) => write!(f, "ends at {call}, by default"),
            Self::Assert => write!(f, "failing side of assert, by default"),
            Self::AssertCondition => write!(f, "condition of assert, by default"),
        }
    }
}
