//! The page of a source file: every line with its count in each column, and its parts that did not run.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use askama::Template;

use super::figures::{Count, Metric, Shown, classes};
use super::frame::{Frame, Source, render};
use super::functions::{Function, Listed};
use super::instances::Instances;
use super::marks::{Missed, between, is_label, name_at, pieces};
use super::per_test::TestSets;
use super::single::Site;
use super::syntax::{Lexer, Token};
use crate::coverage::Earlier;
use crate::coverage::activity::Activity;
use crate::coverage::earlier::TurnedLines;
use crate::coverage::exclusions::{ExcludedBranch, Reason};
use crate::coverage::file::{Condition, File};
use crate::coverage::function::Place;
use crate::coverage::line_table::is_without_lines;
use crate::coverage::misfit::{Misfit, Stale};
use crate::coverage::view::Rules;

/// A line of the source.
struct Line {
    number: u32,
    /// CSS classes: the columns that missed it or a part of it, and whether it ran nowhere or was changed.
    /// Spaces separate them.
    classes: String,
    /// The reason why it is left out, if it is.
    excluded: Option<String>,
    /// The sides of its branches that are left out, with the reasons.
    excluded_branches: Vec<String>,
    counts: Vec<Count>,
    /// The executed instructions, if they are counted on the line.
    activity: Option<LineActivity>,
    pieces: Vec<Piece>,
    branches: Vec<Branch>,
    /// The number of the set of tests that reach it, and the number of these.
    tests: Option<(usize, usize)>,
    /// Templates that end here.
    templates: Vec<Instances>,
}

/// The executed instructions of a line.
struct LineActivity {
    /// The number of instructions that waves executed.
    instructions: Count,
    /// The share of lanes that were active, in percent.
    percent: u64,
    /// The CSS class of the share.
    class: &'static str,
}

impl LineActivity {
    fn new(activity: Activity) -> Option<Self> {
        let percent = activity.percent()?;
        Some(Self {
            instructions: Count::new(Some(activity.instructions), false),
            percent,
            class: match percent {
                100.. => "all-lanes",
                50..100 => "most-lanes",
                _ => "few-lanes",
            },
        })
    }
}

/// A part of a line.
struct Piece {
    /// Texts with the class of their colour, if they have one.
    texts: Vec<(String, Option<&'static str>)>,
    missed: Where,
}

impl Piece {
    /// Returns whether each column that ran the line ran the part, too.
    fn is_plain(&self) -> bool {
        matches!(self.missed, Where::Nowhere)
    }
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
    /// The condition. `None` if the source is not the one that was compiled.
    text: Option<String>,
    /// The column that it starts in, from 1.
    column: u32,
    is_in_macro: bool,
    /// True if it ran in a column in which one side was never taken.
    is_incomplete: bool,
    sides: [(&'static str, Vec<Count>); 2],
    /// The reasons why its sides are left out.
    excluded: [Option<String>; 2],
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
    has_activity: bool,
    has_excluded: bool,
    /// True if the figures are of the best instance of each template, while lines have the counts of all.
    is_of_best_instance: bool,
    is_changed: bool,
    /// The earlier report, if lines are compared with it.
    earlier: Option<&'a Earlier>,
    /// The number of lines that ran in it and do not run now, in any column.
    lost: usize,
    test_sets: &'a TestSets<'a>,
    /// Made one at a time, as the page is written.
    lines: RefCell<Lines<'a>>,
}

pub(super) fn write(
    frame: &Frame<'_>,
    listed: &Listed<'_>,
    [previous, next]: [Option<&Source<'_>>; 2],
    file: &File,
    test_sets: &TestSets<'_>,
    site: &Site,
) -> Result<()> {
    let source = listed.source;
    let text = frame.view.texts.read(Path::new(source.path)).ok();
    let has_text = text.is_some();
    let text = String::from_utf8_lossy(text.as_deref().unwrap_or_default());
    let stale = frame.view.misfits.get(source.path).and_then(Misfit::stale);
    let fits = has_text && stale.is_none();
    let calls;
    let counted = match is_without_lines(source.path) {
        true => {
            calls = file.calls();
            &calls
        }
        false => &file.lines,
    };
    let lines = Lines::new(frame, source, file, counted, &text, fits, test_sets);
    let is_of_best_instance = frame.view.rules == Rules::LlvmCov && !lines.templates.is_empty();
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
        stale,
        is_changed: frame.changed(source).is_some(),
        earlier: frame.earlier.filter(|earlier| earlier.has_lines()),
        lost: lines.lost().len(),
        has_branches: !file.branches.is_empty(),
        has_activity: !lines.activities.is_empty(),
        has_excluded: lines.has_excluded(),
        is_of_best_instance,
        test_sets,
        lines: RefCell::new(lines),
    };
    site.write(&source.page, |out| render(&page, out))
}

impl Page<'_> {
    /// The number of columns before the text of a line, except that of its number.
    fn cells(&self) -> usize {
        self.frame.columns.len() + 2 * usize::from(self.has_activity)
    }

    /// The lines, once.
    fn lines(&self) -> impl Iterator<Item = Line> {
        std::iter::from_fn(|| self.lines.borrow_mut().next())
    }
}

/// The lines of a source, with their counts and branches.
struct Lines<'a> {
    frame: &'a Frame<'a>,
    path: &'a str,
    text: std::str::Lines<'a>,
    number: u32,
    /// The rest of the file.
    counted: &'a [crate::coverage::line::Line],
    branches: &'a [Condition],
    missed: Vec<Missed<'a>>,
    /// Numbers of the lines that a change touched.
    changed: HashSet<u32>,
    /// The lines of each column that ran in the earlier report or now only.
    turned: Vec<TurnedLines>,
    /// Numbers of the lines that are left out.
    excluded: BTreeMap<u32, &'a Reason>,
    /// The conditions on other lines of which a side is left out.
    excluded_branches: BTreeMap<Place, &'a ExcludedBranch>,
    /// False if the source is not the one that was compiled: places in it are of other text.
    fits: bool,
    lexer: Option<Lexer>,
    tests: &'a TestSets<'a>,
    activities: BTreeMap<u32, Activity>,
    /// Those that end below, the last first.
    templates: Vec<Instances>,
}

impl<'a> Lines<'a> {
    fn new(
        frame: &'a Frame<'a>,
        source: &Source<'a>,
        file: &'a File,
        counted: &'a [crate::coverage::line::Line],
        text: &'a str,
        fits: bool,
        tests: &'a TestSets<'a>,
    ) -> Self {
        let changed = frame.changed(source).map(|changed| changed.lines.iter());
        let templates = frame.view.templates(source.path);
        let texts: Vec<_> = text
            .lines()
            .filter(|_| fits && !templates.is_empty())
            .collect();
        let templates = templates.iter().rev();
        Self {
            frame,
            path: source.path,
            text: text.lines(),
            number: 0,
            counted,
            branches: &file.branches,
            changed: changed
                .into_iter()
                .flatten()
                .map(|line| line.number)
                .collect(),
            turned: frame
                .earlier
                .iter()
                .flat_map(|earlier| earlier.lines(source.path, frame.view))
                .collect(),
            excluded: frame.view.excluded(source.path),
            excluded_branches: frame.view.excluded_branches(source.path),
            missed: file.missed.iter().map(|spans| Missed::new(spans)).collect(),
            fits,
            lexer: is_cxx(source.path).then(Lexer::default),
            tests,
            activities: frame.view.activity(source.path),
            templates: templates
                .map(|template| Instances::new(frame, template, &texts))
                .collect(),
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
        let counted = self
            .counted
            .first()
            .filter(|line| line.number == self.number);
        self.counted = &self.counted[usize::from(counted.is_some())..];
        let is_past = |branch: &&Condition| branch.start.line <= self.number;
        let (branches, later) = self
            .branches
            .split_at(self.branches.iter().take_while(is_past).count());
        self.branches = later;

        let missed = self.missed.iter_mut();
        let mut missed: Vec<_> = missed.map(|part| part.in_line(self.number, text)).collect();
        let counts = counted.map_or(&[][..], |line| &line.counts);
        for (index, missed) in missed.iter_mut().enumerate() {
            // A line that was missed as a whole needs no marks in it.
            if !self.fits || counts.get(index).is_none_or(|count| *count < Some(1)) {
                missed.clear();
            }
        }
        let is_partly = |index: usize| {
            !missed[index].is_empty() || branches.iter().any(|branch| is_incomplete(branch, index))
        };
        let partly: Vec<_> = (0..missed.len()).map(is_partly).collect();
        let is_missed = |count: &Option<u64>| *count == Some(0);
        let mut turned = self.turned.iter();
        let is_lost = turned.any(|lines| lines.newly_missed.contains(&self.number));
        let runs_nowhere = counts.iter().max() == Some(&Some(0));
        let tokens = self.lexer.as_mut().map(|lexer| lexer.line(text));
        let tokens = tokens.unwrap_or_default();
        let mut end = 0;
        let pieces = pieces(text, &missed).into_iter().map(|piece| {
            let start = end;
            end += piece.text.len();
            Piece {
                texts: coloured(text, start..end, &tokens),
                missed: self.place(&piece.missed, counts),
            }
        });
        let pieces = pieces.collect();
        let is_above = |instances: &Instances| instances.end <= self.number;
        let above = self
            .templates
            .iter()
            .rev()
            .take_while(|template| is_above(template));
        let below = self.templates.len() - above.count();
        let mut templates = self.templates.split_off(below);
        templates.reverse();
        let excluded = self.excluded.get(&self.number);
        let excluded = excluded.filter(|_| counted.is_none());
        let column = |line: u32| Place { line, column: 0 };
        let excluded_branches = &self.excluded_branches;
        let here = column(self.number)..column(self.number.saturating_add(1));
        let abouts = excluded_branches.range(here).map(|(_, branch)| *branch);
        let abouts = crate::render::excluded::excluded_branches(abouts);
        Some(Line {
            number: self.number,
            classes: classes("x", counts.iter().map(is_missed))
                + &classes("p", partly.iter().copied())
                + if runs_nowhere { "nowhere " } else { "" }
                + if is_lost { "lost " } else { "" }
                + if self.changed.contains(&self.number) {
                    "changed "
                } else {
                    ""
                }
                + match excluded {
                    Some(_) => "excluded ",
                    None => "",
                },
            excluded: excluded.map(ToString::to_string),
            excluded_branches: abouts,
            activity: self
                .activities
                .get(&self.number)
                .copied()
                .and_then(LineActivity::new),
            pieces,
            branches: branches
                .iter()
                .map(|branch| {
                    let excluded = excluded_branches.get(&branch.start).copied();
                    let is_excluded = |column: usize, side: usize| {
                        let column = &self.frame.view.columns[column];
                        column.excludes_side(self.path, branch.start, side)
                    };
                    let text = self.fits.then_some(text);
                    Branch::new(branch, text, excluded, is_excluded)
                })
                .collect(),
            tests: self.tests.on(self.number),
            templates,
            counts: match counted {
                Some(line) => std::iter::zip(&line.counts, &partly)
                    .enumerate()
                    .map(|(column, (count, is_partly))| {
                        let has_turned = self.has_turned(column);
                        Count::new(*count, *is_partly)
                            .turned_if(has_turned)
                            .excluded_if(self.is_excluded(column, self.number))
                    })
                    .collect(),
                None => (0..partly.len())
                    .map(|column| {
                        let is_excluded = self.is_excluded(column, self.number);
                        let cell = match excluded {
                            Some(_) => Count::new(None, false),
                            None => Count::none(),
                        };
                        cell.excluded_if(is_excluded)
                    })
                    .collect(),
            },
        })
    }
}

impl Lines<'_> {
    /// Numbers of the lines that ran in the earlier report and do not run now, in any column.
    fn lost(&self) -> BTreeSet<u32> {
        let lines = self.turned.iter().flat_map(|lines| &lines.newly_missed);
        lines.copied().collect()
    }

    /// Returns whether a line is left out in a column.
    fn is_excluded(&self, column: usize, line: u32) -> bool {
        self.frame.view.columns[column].excludes_line(self.path, line)
    }

    /// Returns whether a cell of a line or of a branch, of those that are still to come, is of code that is left out.
    fn has_excluded(&self) -> bool {
        let last = u32::try_from(self.text.clone().count()).unwrap_or(u32::MAX);
        let counts = |line: u32| {
            let found = self
                .counted
                .binary_search_by_key(&line, |counted| counted.number);
            found.ok().map(|index| &self.counted[index].counts)
        };
        let has_cell = |column: usize, line: u32| match counts(line) {
            Some(counts) => counts[column].is_none(),
            None => line <= last,
        };
        let mut columns = self.frame.view.columns.iter().enumerate();
        columns.any(|(index, column)| {
            let lines = column.excluded.get(self.path).into_iter();
            let mut lines = lines.flat_map(BTreeMap::keys);
            let sides = self.branches.iter().flat_map(|branch| {
                let sides = branch.sides.iter().enumerate();
                sides.map(move |(side, counts)| (branch.start, side, &counts[index]))
            });
            let mut missing = sides.filter(|(.., count)| count.is_none());
            lines.any(|line| has_cell(index, *line))
                || missing.any(|(start, side, _)| column.excludes_side(self.path, start, side))
        })
    }

    /// Returns whether the present line ran in the earlier report or now only.
    fn has_turned(&self, column: usize) -> bool {
        self.turned.get(column).is_some_and(|lines| {
            lines.newly_missed.contains(&self.number) || lines.newly_covered.contains(&self.number)
        })
    }

    /// The columns that missed a part of a line with these counts.
    fn place(&self, missed: &[usize], counts: &[Option<u64>]) -> Where {
        let ran = counts.iter().filter(|count| **count > Some(0)).count();
        match missed.len() {
            0 => Where::Nowhere,
            all if all == ran => Where::Everywhere,
            _ => {
                let labels = missed
                    .iter()
                    .map(|column| &*self.frame.columns[*column].label);
                Where::On(labels.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The text in `range` of a line with these tokens, in parts of one colour.
fn coloured(
    text: &str,
    range: Range<usize>,
    tokens: &[Token],
) -> Vec<(String, Option<&'static str>)> {
    let mut parts = Vec::new();
    let mut at = range.start;
    let mut add = |range: Range<usize>, class| {
        if !range.is_empty() {
            parts.push((text[range].to_owned(), class));
        }
    };
    for (token, kind) in tokens {
        let token = token.start.max(range.start)..token.end.min(range.end);
        if !token.is_empty() {
            add(at..token.start, None);
            at = token.end;
            add(token, Some(kind.class()));
        }
    }
    add(at..range.end, None);
    parts
}

/// Returns whether a source may be C or C++: not Fortran, which has OpenMP's target regions too.
fn is_cxx(path: &str) -> bool {
    let ending = Path::new(path).extension().unwrap_or_default();
    let ending = ending.to_string_lossy().to_ascii_lowercase();
    !matches!(
        &*ending,
        "f" | "for" | "ftn" | "f90" | "f95" | "f03" | "f08" | "f18"
    )
}

/// Returns whether a branch ran in a column, and one side of it did not.
fn is_incomplete(branch: &Condition, column: usize) -> bool {
    let [one, other] = branch.sides.each_ref().map(|side| side[column]);
    one.max(other) > Some(0) && (one == Some(0) || other == Some(0))
}

impl Branch {
    /// Makes the branch of a line with this text.
    ///
    /// `excluded` has the reasons why its sides are left out, and `is_excluded` returns whether a column leaves out a side.
    fn new(
        branch: &Condition,
        text: Option<&str>,
        excluded: Option<&ExcludedBranch>,
        is_excluded: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let columns = 0..branch.sides[0].len();
        let counts = |side: usize| {
            let counts = branch.sides[side].iter().enumerate();
            let counts = counts.map(|(column, count)| {
                Count::new(*count, false).excluded_if(is_excluded(column, side))
            });
            counts.collect()
        };
        let text = text.map(|text| match branch.end {
            Some(end) => between(branch.start, end, text).trim_end_matches([':', ' ']),
            None => name_at(branch.start, text),
        });
        // Clang has a branch for each label. It has one more if there is no `default`: the condition, whose true side is that
        // of values without a label up to clang 19, and that of the others from clang 22 on.
        let [one, other] = match text {
            Some(text) if is_label(text) => ["taken", "not taken"],
            _ => ["true", "false"],
        };
        Self {
            text: text.map(str::to_owned),
            column: branch.start.column,
            is_in_macro: branch.end.is_none(),
            is_incomplete: columns.clone().any(|column| is_incomplete(branch, column)),
            sides: [(one, counts(0)), (other, counts(1))],
            excluded: [0, 1].map(|side| Some(excluded?.sides[side].as_ref()?.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::html::syntax::Kind;

    #[test]
    fn a_part_of_a_line_has_the_colours_within_it() {
        let text = "if (a) return; // b";
        let tokens = [
            (0..2, Kind::Keyword),
            (7..13, Kind::Keyword),
            (15..19, Kind::Comment),
        ];
        let plain = |text: &str| (text.to_owned(), None);
        let keyword = |text: &str| (text.to_owned(), Some("t-k"));
        let part = |range| coloured(text, range, &tokens);
        assert_eq!(part(0..6), [keyword("if"), plain(" (a)")]);
        assert_eq!(part(9..14), [keyword("turn"), plain(";")]);
        assert_eq!(part(3..6), [plain("(a)")]);
        assert!(part(4..4).is_empty());
    }
}
