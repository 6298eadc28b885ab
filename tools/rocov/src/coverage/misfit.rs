//! The reasons why a source cannot be shown as it was compiled.

use std::fmt;
use std::ptr;

use super::function::{Function, Kind, Location, Place};
use super::hiprtc;

/// The reason why a source cannot be shown as it was compiled.
#[derive(Debug, Clone)]
pub(crate) enum Misfit {
    /// The source does not exist.
    Missing,
    Stale(Stale),
}

/// A source has changed since it was compiled: at this place code starts or ends, and the source has
/// none.
#[derive(Debug, Clone)]
pub(crate) struct Stale {
    place: Place,
    is_end: bool,
    /// True if something in its text, such as a comment, excludes code: that of the text as it is now.
    pub(crate) has_exclusions: bool,
}

/// The number of sources that have a line of their own.
const NAMED: usize = 3;

/// Lines about sources, with what to do next: one for each of a few, and one for the others of a kind.
pub(crate) fn about_all<'a, P: AsRef<str> + ?Sized + 'a>(
    misfits: impl IntoIterator<Item = (&'a P, &'a Misfit)>,
) -> Vec<String> {
    let misfits = misfits.into_iter();
    let misfits = misfits.map(|(path, misfit)| (path.as_ref(), misfit));
    let (stale, missing): (Vec<_>, Vec<_>) =
        misfits.partition(|(_, misfit)| misfit.stale().is_some());
    let mut lines = Vec::new();
    for (sources, are) in [
        (stale, "have changed since they were compiled"),
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
            lines.push(format!(
                "{others} more sources {are}, which need the same: {named}{more}"
            ));
        }
    }
    lines
}

/// The places of a function that show that its files have changed since they were compiled, each with the index of the
/// file. `line` gives the line of a file, from 1; it returns `None` for lines that may be anything.
///
/// A region of code starts with a token, and a function's ends with one, so there is neither a blank
/// nor the end of a line.
pub(super) fn misplaced<'a>(
    function: &Function,
    line: impl Fn(u32, u32) -> Option<&'a [u8]>,
) -> impl Iterator<Item = (u32, Stale)> {
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
    code.filter_map(move |region| {
        let Location { span, file, .. } = region.location;
        let is_body = body.is_some_and(|body| ptr::eq(body, region));
        let (place, is_end) = if !is_code(file, span.start.line, span.start.column.checked_sub(1)) {
            (span.start, false)
        } else if is_body && !is_code(file, span.end.line, span.end.column.checked_sub(2)) {
            (span.end, true)
        } else {
            return None;
        };
        let stale = Stale {
            place,
            is_end,
            has_exclusions: false,
        };
        Some((file, stale))
    })
}

impl Misfit {
    /// A line about the source, with what to do next.
    pub(crate) fn about(&self, path: impl fmt::Display) -> String {
        match self {
            Self::Missing if hiprtc::is_temporary(&path.to_string()) => format!(
                "{path}: hipRTC compiled the source from memory, and the code object has no text of it: give hipRTC the options that `rocov flags --hiprtc` prints; a trace needs only -gline-tables-only and -gembed-source"
            ),
            Self::Missing => format!(
                "{path}: the source does not exist: put it back, give its place with --path-map, or take it from git with --source-revision"
            ),
            Self::Stale(stale) => {
                let exclusions = match stale.has_exclusions {
                    true => ", and its exclusions apply to the lines where they stand now",
                    false => "",
                };
                format!(
                    "{path}: stale: {stale}{exclusions}: build and run it again, or take it from git with --source-revision of `rocov report`"
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

impl fmt::Display for Stale {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = if self.is_end { "ends" } else { "starts" };
        let Place { line, column } = self.place;
        write!(
            out,
            "it has changed since it was compiled (no code {does} at line {line}, column {column})"
        )
    }
}
