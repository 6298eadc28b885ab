//! The lines about code that runs uncounted although rocov was asked to instrument it.

/// The kind of code that runs uncounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uncounted {
    /// A module of the CUDA driver.
    Module,
    /// A code object of an AMD GPU.
    CodeObject,
    /// Some functions of a code object of an AMD GPU.
    Functions,
}

impl Uncounted {
    const ALL: [Self; 3] = [Self::Module, Self::CodeObject, Self::Functions];

    /// The word for it in the journal of a run.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::CodeObject => "object",
            Self::Functions => "functions",
        }
    }

    /// The one with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.word() == word)
    }

    /// The line about `count` of a file, which ran in some `processes`, such as ` in 2 processes`, and the reason.
    #[must_use]
    pub fn line(self, count: usize, file: &str, processes: &str, reason: &str) -> String {
        match (self, count) {
            (Self::Module, 1) => format!("a CUDA module of {file} runs uncounted: {reason}"),
            (Self::Module, _) => {
                format!("{count} CUDA modules of {file} run uncounted{processes}: {reason}")
            }
            (Self::CodeObject, 1) => format!("a code object of {file} runs uncounted: {reason}"),
            (Self::CodeObject, _) => {
                format!("{count} code objects of {file} run uncounted{processes}: {reason}")
            }
            (Self::Functions, 1) => {
                format!("a code object of {file} is instrumented in part: {reason}")
            }
            (Self::Functions, _) => {
                format!(
                    "{count} code objects of {file} are instrumented in part{processes}: {reason}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_runs_uncounted() {
        for what in Uncounted::ALL {
            assert_eq!(Uncounted::from_word(what.word()), Some(what));
        }
        assert_eq!(
            Uncounted::Module.line(1, "a.so", "", "no PTX"),
            "a CUDA module of a.so runs uncounted: no PTX"
        );
        assert_eq!(
            Uncounted::Functions.line(3, "a.so", " in 2 processes", "few registers"),
            "3 code objects of a.so are instrumented in part in 2 processes: few registers"
        );
    }
}
