//! The marks in the text of a source: comments that exclude lines, and code that nobody expects to run.
//!
//! The comments are those of [lcov](https://github.com/linux-test-project/lcov/blob/master/man/geninfo.1),
//! [gcovr](https://gcovr.com/en/stable/guide/exclusion-markers.html),
//! [grcov](https://github.com/mozilla/grcov#excluding-lines) and
//! [coverage.py](https://coverage.readthedocs.io/en/latest/excluding.html).

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use memchr::memmem;
use regex::bytes::RegexSet;
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::flow::{Flow, is_word};
use super::never_return::{self, Names, UNREACHABLE, uses};
use super::reason::Reason;
use crate::coverage::code_scanner::CodeScanner;
use crate::coverage::function::{Place, Span};

/// The tools whose markers are read: `LCOV_EXCL_LINE`, and so on.
const TOOLS: [&str; 4] = ["LCOV", "GCOVR", "GRCOV", "ROCOV"];
/// The macro whose failing side nobody expects to run.
const ASSERT: &str = "assert";
/// The words without which a text has no mark.
const NEEDLES: [&[u8]; 7] = [
    b"_EXCL_",
    b"no cover",
    b"__builtin_",
    b"__trap",
    b"unreachable",
    b"noreturn",
    b"assert",
];

/// Lines that are left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkedLines {
    pub(super) lines: RangeInclusive<u32>,
    pub(super) reason: Reason,
}

impl MarkedLines {
    /// Lines that a comment with these words marks. It is in the first of them.
    fn new(lines: RangeInclusive<u32>, words: &str, note: Option<Arc<str>>) -> Self {
        let first = *lines.start();
        let reason = Reason::Comment {
            words: words.into(),
            line: (first != *lines.end()).then_some(first),
            note,
        };
        Self { lines, reason }
    }
}

/// The marks of a source. Lines count from 1.
#[derive(Debug, Default)]
pub(super) struct SourceMarks {
    /// The lines that are left out.
    pub(super) lines: Vec<MarkedLines>,
    /// The lines whose branches are left out.
    pub(super) branches: Vec<MarkedLines>,
    /// The lines at which functions start, or just before these, that are left out, and the comments there.
    pub(super) functions: Vec<(u32, Reason)>,
    /// The places of calls that are never reached, and their names.
    pub(super) unreachable: Vec<(Place, Arc<str>)>,
    /// The names of functions that do not return, and of macros that are a call which is never reached.
    pub(super) never_return: Names,
    /// The uses of `assert`, with their arguments.
    pub(super) asserts: Vec<Span>,
    /// A line for each marker that has no other end.
    pub(super) faults: Vec<Diagnostic>,
    /// The numbers of the patterns that match a line.
    pub(super) patterns: BTreeSet<usize>,
    /// The text, if something in it excludes code.
    text: Vec<u8>,
    /// The text without comments and strings, if there is a mark.
    code: Vec<u8>,
    /// The offset of each line in the text.
    starts: Vec<usize>,
}

impl SourceMarks {
    /// Reads the marks of a text. A line that matches one of `patterns` is left out, too. A call of one of
    /// `never_return` is never reached.
    pub(super) fn read(text: &[u8], patterns: Option<&RegexSet>, never_return: &Names) -> Self {
        let names = never_return.iter().map(|name| name.as_bytes());
        let mut needles = NEEDLES.into_iter().chain(names);
        let may_have_marks = needles.any(|needle| memmem::find(text, needle).is_some());
        if !may_have_marks && patterns.is_none() {
            return Self::default();
        }
        let mut marks = Self::default();
        let mut open = Open::default();
        let mut code = CodeScanner::default();
        let lines = text.split(|byte| *byte == b'\n');
        let mut start = 0;
        for (number, line) in (1..).zip(lines.clone()) {
            marks.starts.push(start);
            start += line.len() + 1;
            marks.read_markers(number, line, &mut open);
            if let Some(patterns) = patterns {
                marks.read_patterns(number, line, patterns);
            }
            if memmem::find(line, b"no cover").is_some() && is_pragma(line) {
                let end = number + suite(lines.clone().skip(number as usize), line);
                marks.add_lines(number..=end, "pragma: no cover", None);
            }
            let code = code.code_of(line);
            marks.read_code(number, &code, &mut open.assert, never_return);
            marks.code.extend(code);
            marks.code.push(b'\n');
        }
        marks.never_return = never_return::declared(&marks.code);
        let last = u32::try_from(marks.starts.len()).unwrap_or(u32::MAX);
        for (prefix, first) in [("", open.lines), ("BR_", open.branches)] {
            let Some((tool, first, note)) = first else {
                continue;
            };
            marks.faults.push(diagnostic!(
                "{first}: {tool}_EXCL_{prefix}START has no {tool}_EXCL_{prefix}STOP after it";
                "add one, because the rest of the file is excluded"
            ));
            match prefix {
                "" => marks.add_lines(first..=last, &format!("{tool}_EXCL_START"), note),
                _ => marks.add_branches(first..=last, &format!("{tool}_EXCL_BR_START"), note),
            }
        }
        if marks.exclude_code(false) {
            marks.text = text.to_vec();
        }
        marks
    }

    /// Adds lines that a comment with these words leaves out. It is in the first of them.
    fn add_lines(&mut self, lines: RangeInclusive<u32>, words: &str, note: Option<Arc<str>>) {
        self.lines.push(MarkedLines::new(lines, words, note));
    }

    /// Adds lines whose branches a comment with these words leaves out. It is in the first of them.
    fn add_branches(&mut self, lines: RangeInclusive<u32>, words: &str, note: Option<Arc<str>>) {
        self.branches.push(MarkedLines::new(lines, words, note));
    }

    /// Adds a line if it matches a pattern.
    fn read_patterns(&mut self, number: u32, line: &[u8], patterns: &RegexSet) {
        let matching: Vec<_> = patterns.matches(line).iter().collect();
        let Some(first) = matching.first() else {
            return;
        };
        let pattern: Arc<str> = patterns.patterns()[*first].as_str().into();
        self.patterns.extend(&matching);
        self.lines.push(MarkedLines {
            lines: number..=number,
            reason: Reason::LinePattern(pattern),
        });
    }

    /// The reason why a line is left out, if it has a mark.
    pub(super) fn reason(&self, line: u32) -> Option<&Reason> {
        let mut marked = self.lines.iter();
        let marked = marked.find(|marked| marked.lines.contains(&line));
        marked.map(|marked| &marked.reason)
    }

    /// The reason why the branches of a line are left out, if they have a mark.
    pub(super) fn reason_of_branches(&self, line: u32) -> Option<&Reason> {
        let mut marked = self.branches.iter();
        let marked = marked.find(|marked| marked.lines.contains(&line));
        marked.map(|marked| &marked.reason)
    }

    /// Returns whether the marks exclude code.
    pub(super) fn exclude_code(&self, keeps_unreachable: bool) -> bool {
        let is_never_reached = !self.unreachable.is_empty() || !self.asserts.is_empty();
        !self.lines.is_empty()
            || !self.branches.is_empty()
            || !self.functions.is_empty()
            || is_never_reached && !keeps_unreachable
    }

    /// The place after the last byte of a line.
    pub(super) fn end_of(&self, line: u32) -> Place {
        let text = self.line(line);
        let column = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
        Place { line, column }
    }

    /// The code from a place up to another, without comments and strings; empty if they do not lie in the text in this
    /// order.
    pub(super) fn between(&self, start: Place, end: Place) -> &[u8] {
        let text = self.range(Span { start, end });
        text.and_then(|range| self.code.get(range))
            .unwrap_or_default()
    }

    /// The offsets of a span in the text; `None` if it does not lie there.
    fn range(&self, span: Span) -> Option<Range<usize>> {
        let offset = |place: Place| {
            let line = self.starts.get((place.line as usize).checked_sub(1)?)?;
            line.checked_add((place.column as usize).checked_sub(1)?)
        };
        let (start, end) = (offset(span.start)?, offset(span.end)?);
        (start <= end && end <= self.code.len()).then_some(start..end)
    }

    /// The place of an offset in the text.
    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).map_or(0, |index| self.starts[index]);
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        Place {
            line: number(line),
            column: number(offset - start + 1),
        }
    }

    /// The places at which the program continues if a condition is true, and if it is false, as far as the text shows
    /// them.
    pub(super) fn sides(&self, condition: Span) -> [Option<Place>; 2] {
        let Some(range) = self.range(condition) else {
            return [None; 2];
        };
        let sides = Flow(&self.code).sides(range);
        sides.map(|side| side.map(|offset| self.place(offset)))
    }

    /// Returns whether the statement or operand at a place is a branch by itself, without braces.
    pub(super) fn is_branch(&self, place: Place) -> bool {
        let at = self.range(Span {
            start: place,
            end: place,
        });
        at.is_some_and(|at| Flow(&self.code).is_branch(at.start))
    }

    /// The place of the first statement of a block, if one begins here.
    pub(super) fn first_in_block(&self, place: Place) -> Option<Place> {
        let at = self
            .range(Span {
                start: place,
                end: place,
            })?
            .start;
        let is_block = self.code.get(at) == Some(&b'{');
        is_block.then(|| self.place(Flow(&self.code).behind_labels(at + 1)))
    }

    /// The signature of the function whose body begins at a place: its text, and its lines up to the body.
    pub(super) fn signature(&self, body: Place) -> (&[u8], RangeInclusive<u32>) {
        let none = (&[][..], body.line..=body.line);
        let Some(end) = self
            .range(Span {
                start: body,
                end: body,
            })
            .map(|at| at.start)
        else {
            return none;
        };
        let before = &self.code[..end];
        let ends = before
            .iter()
            .rposition(|byte| matches!(byte, b';' | b'{' | b'}'));
        let mut start = ends.map_or(0, |end| end + 1);
        // Lines of the preprocessor are none of it.
        let mut line_start = start;
        for line in before[start..].split_inclusive(|byte| *byte == b'\n') {
            line_start += line.len();
            if line.trim_ascii_start().starts_with(b"#") {
                start = line_start;
            }
        }
        let text = &before[start.min(end)..];
        let blanks = text.len() - text.trim_ascii_start().len();
        let text = &text[blanks..];
        let first = self.place(end - text.len()).line;
        (text, first.min(body.line)..=body.line)
    }

    /// Returns whether nothing but brackets is between two places, comments aside.
    pub(super) fn has_only_brackets(&self, start: Place, end: Place) -> bool {
        let code = self.between(start, end);
        // A place that does not lie in the text has other code.
        !code.is_empty()
            && code
                .iter()
                .all(|byte| byte.is_ascii_whitespace() || b"(){};".contains(byte))
    }

    fn line(&self, line: u32) -> &[u8] {
        self.line_in(&self.code, line)
    }

    /// A line as the source has it; empty if there is none, or if nothing excludes code.
    pub(super) fn text_of(&self, line: u32) -> &[u8] {
        self.line_in(&self.text, line)
    }

    fn line_in<'a>(&self, text: &'a [u8], line: u32) -> &'a [u8] {
        let index = (line as usize).saturating_sub(1);
        let Some(start) = self.starts.get(index) else {
            return &[];
        };
        let next = self.starts.get(index + 1);
        let end = next.map_or(self.code.len(), |next| *next);
        text.get(*start..end.saturating_sub(1)).unwrap_or_default()
    }

    /// Reads the markers of a line.
    fn read_markers(&mut self, number: u32, line: &[u8], open: &mut Open) {
        let mut rest = line;
        while let Some(found) = memmem::find(rest, b"_EXCL_") {
            let tool = TOOLS
                .into_iter()
                .find(|tool| rest[..found].ends_with(tool.as_bytes()));
            rest = &rest[found + b"_EXCL_".len()..];
            let Some(tool) = tool else { continue };
            let is_word = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_';
            let word = &rest[..rest.iter().take_while(|byte| is_word(byte)).count()];
            let (prefix, what) = match word.strip_prefix(b"BR_") {
                Some(what) => ("BR_", what),
                None => ("", word),
            };
            let open = match prefix {
                "" => &mut open.lines,
                _ => &mut open.branches,
            };
            let note = note(&rest[word.len()..]);
            let mut add = |lines: RangeInclusive<u32>, words: String, note| match prefix {
                "" => self.add_lines(lines, &words, note),
                _ => self.add_branches(lines, &words, note),
            };
            match what {
                b"LINE" => add(number..=number, format!("{tool}_EXCL_{prefix}LINE"), note),
                b"START" => _ = open.get_or_insert((tool, number, note)),
                // As lcov and gcovr have it, the line of the second marker is no part.
                b"STOP" => match open.take() {
                    Some((tool, first, note)) => {
                        add(first..=number - 1, format!("{tool}_EXCL_{prefix}START"), note);
                    }
                    None => self.faults.push(diagnostic!(
                        "{number}: {tool}_EXCL_{prefix}STOP has no {tool}_EXCL_{prefix}START before it";
                        "add it, or remove this one"
                    )),
                },
                b"FUNCTION" => {
                    let reason = Reason::Comment {
                        words: format!("{tool}_EXCL_FUNCTION").into(),
                        line: Some(number),
                        note,
                    };
                    self.functions.push((number, reason));
                }
                _ => {}
            }
        }
    }

    /// Finds calls in the code of a line, which has blanks instead of comments and strings.
    fn read_code(
        &mut self,
        line: u32,
        code: &[u8],
        assert: &mut Option<(Place, usize)>,
        never_return: &Names,
    ) {
        let place = |offset: usize| Place {
            line,
            column: u32::try_from(offset + 1).unwrap_or(u32::MAX),
        };
        for name in UNREACHABLE {
            let calls = uses(code, name).map(|offset| (place(offset), name.into()));
            self.unreachable.extend(calls);
        }
        for name in never_return {
            let calls = uses(code, name).filter(|offset| is_statement(&code[..*offset]));
            let calls = calls.map(|offset| (place(offset), Arc::clone(name)));
            self.unreachable.extend(calls);
        }
        for offset in uses(code, ASSERT) {
            let call = always_fails(&code[offset + ASSERT.len()..]);
            self.unreachable
                .extend(call.map(|call| (place(offset), call.into())));
        }
        let mut starts = uses(code, ASSERT).peekable();
        if assert.is_none() && starts.peek().is_none() {
            return;
        }
        for (offset, byte) in code.iter().enumerate() {
            if starts.next_if_eq(&offset).is_some() && assert.is_none() {
                *assert = Some((place(offset), 0));
            }
            let Some((start, depth)) = assert else {
                continue;
            };
            match byte {
                b'(' => *depth += 1,
                b')' => *depth = depth.saturating_sub(1),
                _ => continue,
            }
            if *depth == 0 {
                let (start, end) = (*start, place(offset + 1));
                self.asserts.push(Span { start, end });
                *assert = None;
            }
        }
    }
}

/// The name of an `assert` that never holds, by what is after that word: `assert(false && "a kind that there is not")`.
fn always_fails(behind: &[u8]) -> Option<&'static str> {
    let condition = behind
        .trim_ascii_start()
        .strip_prefix(b"(")?
        .trim_ascii_start();
    let constants = [(&b"false"[..], "assert(false)"), (b"0", "assert(0)")];
    constants.into_iter().find_map(|(constant, call)| {
        let rest = condition.strip_prefix(constant)?.trim_ascii_start();
        (rest.starts_with(b")") || rest.starts_with(b"&&")).then_some(call)
    })
}

/// A marker: its tool, its line, and what its author wrote after it.
type Marker = (&'static str, u32, Option<Arc<str>>);

/// The text that the author of a comment wrote after a marker.
fn note(rest: &[u8]) -> Option<Arc<str>> {
    let end = memmem::find(rest, b"*/").unwrap_or(rest.len());
    let text = String::from_utf8_lossy(&rest[..end]);
    let is_between = |letter: char| letter.is_whitespace() || ":;,-–—(".contains(letter);
    let text = text.trim_start_matches(is_between).trim_end();
    let is_other = text.is_empty() || text.contains("_EXCL_");
    (!is_other).then(|| {
        text.strip_suffix(')')
            .filter(|text| !text.contains('('))
            .unwrap_or(text)
            .into()
    })
}

/// Marks that wait for their ends.
#[derive(Debug, Default)]
struct Open {
    lines: Option<Marker>,
    branches: Option<Marker>,
    /// The start of a use of `assert`, and the number of its open parentheses.
    assert: Option<(Place, usize)>,
}

/// Returns whether a call after this code of a line is a statement, or an operand of `?` or of a comma, and neither an
/// argument nor a function of an object or a declaration.
fn is_statement(before: &[u8]) -> bool {
    let mut before = before.trim_ascii_end();
    while let Some(scope) = before.strip_suffix(b"::") {
        let word = scope
            .iter()
            .rev()
            .take_while(|byte| is_word(**byte))
            .count();
        before = scope[..scope.len() - word].trim_ascii_end();
    }
    let words: [&[u8]; 2] = [b"else", b"do"];
    let last = before.last();
    last.is_none_or(|byte| b";{}):?,".contains(byte))
        || words.iter().any(|word| before.ends_with(word))
}

/// Returns whether a line has coverage.py's `# pragma: no cover`, or the same after `//`.
fn is_pragma(line: &[u8]) -> bool {
    let Some(found) = memmem::find(line, b"pragma") else {
        return false;
    };
    let before = line[..found].trim_ascii_end();
    let behind = line[found + b"pragma".len()..].trim_ascii_start();
    let behind = behind
        .strip_prefix(b":")
        .unwrap_or(behind)
        .trim_ascii_start();
    (before.ends_with(b"#") || before.ends_with(b"//")) && behind.starts_with(b"no cover")
}

/// The number of lines that belong to a clause of Python, such as `if x:  # pragma: no cover`, after its first one.
fn suite<'a>(behind: impl Iterator<Item = &'a [u8]>, clause: &[u8]) -> u32 {
    let code = clause
        .split(|byte| *byte == b'#')
        .next()
        .unwrap_or_default();
    if !code.trim_ascii_end().ends_with(b":") {
        return 0;
    }
    let indentation = |line: &[u8]| line.len() - line.trim_ascii_start().len();
    let own = indentation(clause);
    let mut lines = 0;
    for (number, line) in (1..).zip(behind) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if indentation(line) <= own {
            break;
        }
        lines = number;
    }
    lines
}

#[cfg(test)]
#[path = "source_marks_tests.rs"]
mod tests;
