//! The page of a source file: every line with its count in each column, and its parts that did not run.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use askama::Template;

use super::figures::{Count, Metric, Shown, classes};
use super::folder::Folder;
use super::functions::{Function, Listed};
use super::marks::{Missed, between, name_at, pieces};
use super::{Frame, Source, render};
use crate::coverage::file::{Condition, File};
use crate::coverage::staleness::{Misfit, Stale};

/// A line of the source.
struct Line {
    number: u32,
    /// CSS classes: the columns that missed it or a part of it, and whether it ran nowhere or was changed.
    /// Spaces separate them.
    classes: String,
    counts: Vec<Count>,
    pieces: Vec<Piece>,
    branches: Vec<Branch>,
}

/// A part of a line.
struct Piece {
    text: String,
    missed: Where,
}

/// The columns in which a part of a line did not run, though it ran elsewhere.
enum Where {
    /// Each column that ran the line ran the part, too.
    Nowhere,
    /// No column ran the part.
    Everywhere,
    /// These columns ran the line, but not the part.
    On(String),
}

/// A branch.
struct Branch {
    /// The condition.
    text: String,
    is_in_macro: bool,
    /// True if it ran in a column in which one side was never taken.
    is_incomplete: bool,
    sides: [(&'static str, Vec<Count>); 2],
}

#[derive(Template)]
#[template(path = "source.html")]
struct Page<'a> {
    frame: &'a Frame<'a>,
    root: &'static str,
    source: &'a Source<'a>,
    /// The pages before and after this one.
    previous: Option<&'a Source<'a>>,
    next: Option<&'a Source<'a>>,
    shown: &'a Shown,
    metrics: Vec<&'static Metric>,
    functions: &'a [Function],
    has_text: bool,
    stale: Option<&'a Stale>,
    has_branches: bool,
    is_changed: bool,
    /// Made one at a time, as the page is written.
    lines: RefCell<Lines<'a>>,
}

pub(super) fn write(
    frame: &Frame<'_>,
    listed: &Listed<'_>,
    [previous, next]: [Option<&Source<'_>>; 2],
    file: &File,
    folder: &Folder,
) -> Result<()> {
    let source = listed.source;
    let text = frame.view.texts.read(Path::new(source.path)).ok();
    let has_text = text.is_some();
    let text = String::from_utf8_lossy(text.as_deref().unwrap_or_default());
    let page = Page {
        frame,
        root: "../",
        source,
        previous,
        next,
        shown: &listed.shown,
        metrics: listed.shown.metrics(),
        functions: &listed.functions,
        has_text,
        stale: frame.view.misfits.get(source.path).and_then(Misfit::stale),
        is_changed: frame.changed(source).is_some(),
        has_branches: !file.branches.is_empty(),
        lines: RefCell::new(Lines::new(frame, source, file, &text)),
    };
    folder.write(&source.page, |out| render(&page, out))
}

impl Page<'_> {
    /// The lines, once.
    fn lines(&self) -> impl Iterator<Item = Line> {
        std::iter::from_fn(|| self.lines.borrow_mut().next())
    }
}

/// The lines of a source, with their counts and branches.
struct Lines<'a> {
    frame: &'a Frame<'a>,
    text: std::str::Lines<'a>,
    number: u32,
    /// The rest of the file.
    counted: &'a [crate::coverage::file::Line],
    branches: &'a [Condition],
    missed: Vec<Missed<'a>>,
    /// Numbers of the lines that a change touched.
    changed: HashSet<u32>,
}

impl<'a> Lines<'a> {
    fn new(frame: &'a Frame<'a>, source: &Source<'_>, file: &'a File, text: &'a str) -> Self {
        let changed = frame.changed(source).map(|it| it.lines.iter());
        Self {
            frame,
            text: text.lines(),
            number: 0,
            counted: &file.lines,
            branches: &file.branches,
            changed: changed
                .into_iter()
                .flatten()
                .map(|line| line.number)
                .collect(),
            missed: file.missed.iter().map(|spans| Missed::new(spans)).collect(),
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let text = match (self.text.next(), self.counted.first()) {
            (Some(text), _) => text,
            // A source that is not there, or is shorter than it was.
            (None, Some(counted)) => {
                self.number = self.number.max(counted.number - 1);
                ""
            }
            (None, None) => return None,
        };
        self.number += 1;
        let counted = self.counted.first().filter(|it| it.number == self.number);
        self.counted = &self.counted[usize::from(counted.is_some())..];
        let is_past = |branch: &&Condition| branch.start.line <= self.number;
        let (branches, later) = self
            .branches
            .split_at(self.branches.iter().take_while(is_past).count());
        self.branches = later;

        let missed = self.missed.iter_mut();
        let mut missed: Vec<_> = missed.map(|it| it.in_line(self.number, text)).collect();
        let counts = counted.map_or(&[][..], |line| &line.counts);
        for (index, missed) in missed.iter_mut().enumerate() {
            // A line that was missed as a whole needs no marks in it.
            if counts.get(index).is_none_or(|count| *count < Some(1)) {
                missed.clear();
            }
        }
        let is_partly = |index: usize| {
            !missed[index].is_empty() || branches.iter().any(|it| is_incomplete(it, index))
        };
        let partly: Vec<_> = (0..missed.len()).map(is_partly).collect();
        let is_missed = |count: &Option<u64>| *count == Some(0);
        let runs_nowhere = counts.iter().max() == Some(&Some(0));
        let pieces = pieces(text, &missed).into_iter().map(|piece| Piece {
            text: piece.text.to_owned(),
            missed: self.place(&piece.missed, counts),
        });
        Some(Line {
            number: self.number,
            classes: classes("x", counts.iter().map(is_missed))
                + &classes("p", partly.iter().copied())
                + if runs_nowhere { "nowhere " } else { "" }
                + if self.changed.contains(&self.number) {
                    "changed "
                } else {
                    ""
                },
            pieces: pieces.collect(),
            branches: branches.iter().map(|it| Branch::of(it, text)).collect(),
            counts: match counted {
                Some(line) => std::iter::zip(&line.counts, &partly)
                    .map(|(count, is_partly)| Count::of(*count, *is_partly))
                    .collect(),
                None => partly.iter().map(|_| Count::none()).collect(),
            },
        })
    }
}

impl Lines<'_> {
    /// The columns that missed a part of a line with these counts.
    fn place(&self, missed: &[usize], counts: &[Option<u64>]) -> Where {
        let ran = counts.iter().filter(|count| **count > Some(0)).count();
        match missed.len() {
            0 => Where::Nowhere,
            all if all == ran => Where::Everywhere,
            _ => {
                let labels = missed.iter().map(|it| &*self.frame.columns[*it].label);
                Where::On(labels.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Returns whether a branch ran in a column, and one side of it did not.
fn is_incomplete(branch: &Condition, column: usize) -> bool {
    let [one, other] = branch.sides.each_ref().map(|side| side[column]);
    one.max(other) > Some(0) && (one == Some(0) || other == Some(0))
}

impl Branch {
    fn of(branch: &Condition, text: &str) -> Self {
        let columns = 0..branch.sides[0].len();
        let counts = |side: usize| {
            let counts = branch.sides[side].iter();
            counts.map(|count| Count::of(*count, false)).collect()
        };
        let text = match branch.end {
            Some(end) => between(branch.start, end, text),
            None => name_at(branch.start, text),
        };
        Self {
            text: text.to_owned(),
            is_in_macro: branch.end.is_none(),
            is_incomplete: columns.clone().any(|it| is_incomplete(branch, it)),
            sides: [("true", counts(0)), ("false", counts(1))],
        }
    }
}
