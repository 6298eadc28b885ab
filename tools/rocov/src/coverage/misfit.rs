//! The reasons why a source cannot be shown as it was compiled.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::ptr;

use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::function::{Function, Kind, Location, Place, TableLine, symbol};
use super::hiprtc;

/// The reason why a source cannot be shown as it was compiled.
#[derive(Debug, Clone)]
pub(crate) enum Misfit {
    /// The source does not exist.
    Missing,
    Stale(Stale),
}

/// A source has changed since it was compiled, or since it ran.
#[derive(Debug, Clone)]
pub(crate) struct Stale {
    sign: Sign,
    /// True if something in its text, such as a comment, excludes code: that of the text as it is now.
    pub(crate) has_exclusions: bool,
}

/// A sign that a source has changed.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// Code of a coverage mapping starts there, and the source has none.
    NoStart(Place),
    /// Code of a coverage mapping ends there, and the source has none.
    NoEnd(Place),
    /// A line table has code on the line, and the source has none.
    NoCode(u32),
    /// The line had another text when it ran.
    OtherText(u32),
}

/// The number of sources that have a line of their own.
const NAMED: usize = 3;

/// Lines about sources, with what to do next: one for each of a few, and one for the others of a kind.
pub(crate) fn about_all<'a, P: AsRef<str> + ?Sized + 'a>(
    misfits: impl IntoIterator<Item = (&'a P, &'a Misfit)>,
) -> Vec<Diagnostic> {
    let misfits = misfits.into_iter();
    let misfits = misfits.map(|(path, misfit)| (path.as_ref(), misfit));
    let (stale, missing): (Vec<_>, Vec<_>) =
        misfits.partition(|(_, misfit)| misfit.stale().is_some());
    let mut lines = Vec::new();
    for (sources, are) in [
        (stale, "have changed since they were compiled or ran"),
        (missing, "do not exist"),
    ] {
        let others = sources
            .len()
            .checked_sub(NAMED + 1)
            .map(|_| sources.len() - NAMED);
        let first = sources.iter().take(sources.len() - others.unwrap_or(0));
        lines.extend(first.map(|(path, misfit)| misfit.about(path)));
        if let Some(others) = others {
            let named = sources[NAMED..].iter().take(NAMED).map(|(path, _)| *path);
            let named: Vec<_> = named.collect();
            let more = if others > NAMED { ", ..." } else { "" };
            let named = named.join(", ");
            lines.push(
                diagnostic!("{others} more sources {are}: {named}{more}"; "do the same for them"),
            );
        }
    }
    lines
}

/// The places of a function that show that its files have changed since they were compiled, each with the index of the
/// file. `line` gives the line of a file, from 1; it returns `None` for lines that may be anything.
///
/// A region of code starts with a token, and a function's ends with one, so there is neither a blank
/// nor the end of a line. A line of a line table has code: it is no comment, not empty, and not past the end of the source.
pub(super) fn misplaced<'a>(
    function: &Function,
    line: impl Fn(u32, u32) -> Option<&'a [u8]>,
) -> impl Iterator<Item = (u32, Stale)> {
    let listed = without_code(function, &line);
    let is_code = move |file: u32, line_number: u32, column: Option<u32>| {
        line(file, line_number).is_none_or(|line| {
            let byte = column.and_then(|column| line.get(column as usize));
            byte.is_some_and(|byte| !byte.is_ascii_whitespace())
        })
    };
    let main = function.main_file();
    let mut regions = function.regions.iter();
    let body = regions.find(|region| region.location.file == main);
    let code = function.regions.iter();
    let code = code.filter(|region| region.kind == Kind::Code);
    let mapped = code.filter_map(move |region| {
        let Location { span, file, .. } = region.location;
        let is_body = body.is_some_and(|body| ptr::eq(body, region));
        let sign = if !is_code(file, span.start.line, span.start.column.checked_sub(1)) {
            Sign::NoStart(span.start)
        } else if is_body && !is_code(file, span.end.line, span.end.column.checked_sub(2)) {
            Sign::NoEnd(span.end)
        } else {
            return None;
        };
        Some((file, sign.into()))
    });
    listed.into_iter().chain(mapped)
}

/// The lines of a function's line table that have no code, each with the index of the file. There are none in sources of
/// languages that rocov does not support.
fn without_code<'a>(
    function: &Function,
    line: impl Fn(u32, u32) -> Option<&'a [u8]>,
) -> Vec<(u32, Stale)> {
    let table = function.line_table.iter().flat_map(|table| &table.lines);
    let unfit = table.filter(|listed| {
        let text = line(listed.file, listed.line).map(<[u8]>::trim_ascii_start);
        let path = Path::new(&**function.path(listed.file));
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        text.is_some_and(|text| match extension {
            _ if C_LIKE.contains(&extension) => text.is_empty() || text.starts_with(b"//"),
            // Text of CUDA C++ in a source has its line numbers, and may be one of several parts of what was compiled.
            "py" if text.is_empty() || text.starts_with(b"#") => is_python(function, listed, &line),
            _ => false,
        })
    });
    unfit
        .map(|listed| (listed.file, Sign::NoCode(listed.line).into()))
        .collect()
}

/// The extensions of sources in which `//` starts a comment.
const C_LIKE: [&str; 12] = [
    "c", "cc", "cl", "cpp", "cu", "cuh", "cxx", "h", "hh", "hip", "hpp", "rs",
];

/// The number of lines after the code of a Python function among which its `def` may be after an edit.
const LINES_BEHIND: u32 = 100;

/// Returns whether a function is one of Python, with a decorator: a kernel, or a function that kernels call.
fn is_python<'a>(
    function: &Function,
    listed: &TableLine,
    line: impl Fn(u32, u32) -> Option<&'a [u8]>,
) -> bool {
    let start = format!("def {}(", symbol(&function.name));
    let last = listed.line.saturating_add(LINES_BEHIND);
    (2..=last).any(|number| {
        let [above, here] = [number - 1, number].map(|number| line(listed.file, number));
        let [above, here] = [above, here].map(|text| text.unwrap_or_default().trim_ascii());
        here.starts_with(start.as_bytes()) && (above.starts_with(b"@") || above == b")")
    })
}

impl From<Sign> for Stale {
    fn from(sign: Sign) -> Self {
        Self {
            sign,
            has_exclusions: false,
        }
    }
}

impl Misfit {
    /// A line about the source, with what to do next.
    pub(crate) fn about(&self, path: impl fmt::Display) -> Diagnostic {
        match self {
            Self::Missing if hiprtc::is_temporary(&path.to_string()) => {
                diagnostic!(
                    "{path}: hipRTC compiled the source from memory, and the code object does not contain its text";
                    "pass hipRTC the options that `rocov flags --hiprtc` prints; a trace needs only \
                     -gline-tables-only and -gembed-source"
                )
            }
            Self::Missing => {
                diagnostic!(
                    "{path}: the source does not exist";
                    "restore it, set its location with --path-map, or read it from git with --source-revision"
                )
            }
            Self::Stale(stale) => {
                let exclusions = match stale.has_exclusions {
                    true => ", and its exclusions apply to the lines where they are now",
                    false => "",
                };
                let next = match stale.sign {
                    Sign::OtherText(_) => "remove the counts with `rocov clean`, and run it again",
                    _ => "build and run it again",
                };
                diagnostic!(
                    "{path}: stale: {stale}{exclusions}";
                    "{next}, or read it from git with `rocov report --source-revision`"
                )
            }
        }
    }

    /// The place that shows that the source has changed, if it has.
    pub(crate) fn stale(&self) -> Option<&Stale> {
        match self {
            Self::Missing => None,
            Self::Stale(stale) => Some(stale),
        }
    }
}

impl Stale {
    /// A line has another text than when it ran.
    pub(super) fn since_run(line: u32) -> Self {
        Sign::OtherText(line).into()
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compiled = "it has changed since it was compiled";
        match self.sign {
            Sign::NoStart(Place { line, column }) => {
                write!(
                    out,
                    "{compiled} (no code starts at line {line}, column {column})"
                )
            }
            Sign::NoEnd(Place { line, column }) => {
                write!(
                    out,
                    "{compiled} (no code ends at line {line}, column {column})"
                )
            }
            Sign::NoCode(line) => write!(out, "{compiled} (line {line} has no code)"),
            Sign::OtherText(line) => {
                write!(
                    out,
                    "it has changed since it ran (line {line} had different text)"
                )
            }
        }
    }
}

/// The lines of a text.
pub(super) struct Lines<'a>(Vec<&'a [u8]>);

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self(text.split(|byte| *byte == b'\n').collect())
    }

    /// The line with this number, from 1; empty if there is none.
    pub(super) fn get(&self, number: u32) -> &'a [u8] {
        let index = number.checked_sub(1).map(|index| index as usize);
        let line = index.and_then(|index| self.0.get(index));
        line.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::function::LineTable;
    use super::*;

    /// A function with code on lines 1 to 9 of a file.
    fn function(name: &str, path: &str) -> Function {
        let lines = (1..10).map(|line| TableLine { file: 0, line });
        Function {
            name: name.into(),
            filenames: vec![path.into()],
            line_table: Some(LineTable {
                start: Place { line: 1, column: 1 },
                lines: lines.collect(),
            }),
            ..Function::default()
        }
    }

    /// The lines of `text` that cannot have code of the function. Line 10 of it and later ones have none.
    fn without_code(name: &str, path: &str, text: &str) -> Vec<String> {
        let function = function(name, path);
        let lines = Lines::new(text.as_bytes());
        let found = misplaced(&function, |_, number| Some(lines.get(number)));
        found.map(|(_, stale)| stale.to_string()).collect()
    }

    fn says(line: u32) -> String {
        format!("it has changed since it was compiled (line {line} has no code)")
    }

    #[test]
    fn lines_of_c_have_no_code_if_they_are_empty_comments_or_behind_the_end() {
        let text = "a\n b // c\n\t\n  // d\n/* e */ f\n#pragma omp g\n}\n#\n";
        assert_eq!(without_code("k", "/k.hip", text), [3, 4, 9].map(says));
        // The text may be anything.
        let function = function("k", "/k.hip");
        assert_eq!(misplaced(&function, |_, _| None).count(), 0);
        for path in ["/k.f90", "/k", "/k.unknown"] {
            assert_eq!(without_code("k", path, text), [""; 0], "{path}");
        }
    }

    #[test]
    fn lines_of_python_have_no_code_if_they_are_of_a_decorated_function() {
        let text =
            "@jit\ndef k(x):\n    y = (x\n         // 3)\n# one\n\n    return y\n\"\"\"\nC++";
        assert_eq!(without_code("k", "/k.py", text), [5, 6].map(says));
        assert_eq!(
            without_code("cudapy::m::k", "/k.py", text),
            [5, 6].map(says)
        );
        // Parts of CUDA C++ that a string has may follow each other, with lines as in one text.
        assert_eq!(without_code("other", "/k.py", text), [""; 0]);
        let plain = text.replace("@jit", "");
        assert_eq!(without_code("k", "/k.py", &plain), [""; 0]);
    }
}
