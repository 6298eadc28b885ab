//! Annotated source: each line with its count, as `llvm-cov show` prints it. After the counts of a source with counted
//! instructions come, for each line, the instructions that waves executed and the share of lanes that were active. The instances of a template follow
//! its last line, each by itself. A source that stands for functions without lines has the calls of each.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use anyhow::Result;

use super::excluded::excluded_branches;
use crate::coverage::activity::Activity;
use crate::coverage::exclusions::{ExcludedBranch, Reason};
use crate::coverage::function::{Place, Span};
use crate::coverage::line_table::is_without_lines;
use crate::coverage::model::Record;
use crate::coverage::segments::{Segment, missed};
use crate::coverage::view::Column;
use crate::support::demangle::shown;
use crate::support::printable::{printable, printable_code};

const NAME: Style = AnsiColor::Cyan.on_default();
const NOT_RUN: Style = AnsiColor::Red.on_default();
const MISSED: Style = Style::new().bg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

const REASON: Style = Style::new().dimmed();

/// The mark of a line that is left out, instead of a count.
const EXCLUDED: &str = "excl";
/// The line between instances.
const RULE: &str = "  ------------------";

/// A source file that is printed.
pub(crate) struct AnnotatedSource<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: Vec<u8>,
}

/// Writes annotated sources with the counts of a column, each with its path if there are several.
///
/// # Errors
///
/// Fails if they cannot be written.
pub(crate) fn write(
    column: &Column,
    sources: &[AnnotatedSource<'_>],
    is_colored: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let mut page = Page { is_colored, out };
    for source in sources {
        if sources.len() > 1 {
            page.styled(NAME, source.path)?;
            writeln!(page.out, ":")?;
        }
        page.source(column, source)?;
        writeln!(page.out)?;
    }
    page.out.flush()?;
    Ok(())
}

/// The output.
struct Page<'a> {
    is_colored: bool,
    out: &'a mut dyn Write,
}

impl Page<'_> {
    /// Writes a source, with the instances of its templates.
    fn source(&mut self, column: &Column, source: &AnnotatedSource<'_>) -> io::Result<()> {
        let text = text_lines(&source.text);
        let segments = column.segments(source.path);
        let lines = match is_without_lines(source.path) {
            true => column.calls(source.path),
            false => column.lines(source.path, &segments),
        };
        let counted = CountedLines {
            activities: column.activities.get(source.path),
            excluded: column.excluded.get(source.path),
            excluded_branches: column.excluded_branches.get(source.path),
            ..CountedLines::new(lines, &segments)
        };
        let mut instances = instances(column, source.path);
        for (number, line) in (1..).zip(&text) {
            self.line("", number, line, &counted)?;
            let Some(here) = instances.remove(&number) else {
                continue;
            };
            for record in here {
                writeln!(self.out, "{RULE}")?;
                self.instance(record, &text, counted.excluded)?;
            }
            writeln!(self.out, "{RULE}")?;
        }
        Ok(())
    }

    /// Writes an instance: its name, and its lines if it ran. `excluded` are the lines of the source that are left out.
    fn instance(
        &mut self,
        record: &Record,
        text: &[&[u8]],
        excluded: Option<&BTreeMap<u32, Reason>>,
    ) -> io::Result<()> {
        let name = shown(&record.function.name);
        write!(self.out, "  | ")?;
        if record.counts.calls == 0 {
            self.styled(NOT_RUN, &format!("Unexecuted instantiation: {name}"))?;
            return writeln!(self.out);
        }
        self.styled(NAME, &name)?;
        writeln!(self.out, ":")?;
        let segments = record.segments();
        let counted = CountedLines {
            excluded,
            ..CountedLines::new(record.lines(&segments), &segments)
        };
        let ends = [
            counted.counts.first_key_value(),
            counted.counts.last_key_value(),
        ];
        let [Some((first, _)), Some((last, _))] = ends else {
            return Ok(());
        };
        let lines = (1..).zip(text);
        let inside = *first..=*last;
        for (number, line) in lines.filter(|(number, _)| inside.contains(number)) {
            self.line("  |", number, line, &counted)?;
        }
        Ok(())
    }

    /// Writes a line with its number and its count.
    fn line(
        &mut self,
        prefix: &str,
        number: u32,
        text: &[u8],
        counted: &CountedLines<'_>,
    ) -> io::Result<()> {
        let excluded = counted.excluded(number);
        let count = match (counted.counts.get(&number), excluded) {
            (Some(count), _) => short(*count),
            (None, Some(_)) => EXCLUDED.to_owned(),
            (None, None) => String::new(),
        };
        write!(self.out, "{prefix}{number:>5}|{count:>7}|")?;
        if let Some(activities) = counted.activities {
            let activity = activities.get(&number).copied().unwrap_or_default();
            let instructions = match activity.instructions {
                0 => String::new(),
                instructions => short(instructions),
            };
            let share = activity.percent();
            let share = share.map_or(String::new(), |share| format!("{share}%"));
            write!(self.out, "{instructions:>7}|{share:>5}|")?;
        }
        let mut written = 0;
        for (start, end) in counted.missed_on(number, text.len()) {
            if self.is_colored && start >= written && start < end {
                self.out.write_all(&printable_code(&text[written..start]))?;
                write!(self.out, "{MISSED}")?;
                self.out.write_all(&printable_code(&text[start..end]))?;
                write!(self.out, "{MISSED:#}")?;
                written = end;
            }
        }
        self.out.write_all(&printable_code(&text[written..]))?;
        if let Some(reason) = excluded {
            write!(self.out, "  ")?;
            self.styled(REASON, &format!("[excluded: {reason}]"))?;
        }
        for about in excluded_branches(counted.branches_on(number)) {
            write!(self.out, "  ")?;
            self.styled(REASON, &format!("[{about}]"))?;
        }
        writeln!(self.out)
    }

    fn styled(&mut self, style: Style, text: &str) -> io::Result<()> {
        match self.is_colored {
            true => write!(self.out, "{style}{}{style:#}", printable(text)),
            false => write!(self.out, "{}", printable(text)),
        }
    }
}

/// The counts of lines, and the code that did not run.
struct CountedLines<'a> {
    counts: BTreeMap<u32, u64>,
    missed: Vec<Span>,
    /// The executed instructions of lines; `None` if they are not counted or not shown.
    activities: Option<&'a BTreeMap<u32, Activity>>,
    /// The lines that are left out.
    excluded: Option<&'a BTreeMap<u32, Reason>>,
    /// The conditions on other lines of which a side is left out.
    excluded_branches: Option<&'a BTreeMap<Place, ExcludedBranch>>,
}

impl CountedLines<'_> {
    /// The lines of `counts`, which have these segments.
    fn new(counts: Vec<(u32, u64)>, segments: &[Segment]) -> Self {
        Self {
            counts: counts.into_iter().collect(),
            missed: missed(segments),
            activities: None,
            excluded: None,
            excluded_branches: None,
        }
    }

    /// The conditions on a line of which a side is left out.
    fn branches_on(&self, line: u32) -> impl Iterator<Item = &ExcludedBranch> {
        let start = Place { line, column: 0 };
        let end = Place {
            line: line.saturating_add(1),
            column: 0,
        };
        let branches = self.excluded_branches.into_iter();
        let here = branches.flat_map(move |branches| branches.range(start..end));
        here.map(|(_, branch)| branch)
    }

    /// The reason why a line is left out, if it is.
    fn excluded(&self, line: u32) -> Option<&Reason> {
        let reason = self.excluded?.get(&line);
        reason.filter(|_| !self.counts.contains_key(&line))
    }

    /// The parts of a line of `length` bytes that did not run, in order: from a byte up to another.
    fn missed_on(&self, line: u32, length: usize) -> impl Iterator<Item = (usize, usize)> {
        let byte = move |place: Place, otherwise| match place.line == line {
            true => (place.column as usize).saturating_sub(1).min(length),
            false => otherwise,
        };
        let spans = self.missed.iter();
        let spans = spans.filter(move |span| (span.start.line..=span.end.line).contains(&line));
        spans.map(move |span| (byte(span.start, 0), byte(span.end, length)))
    }
}

/// The lines of a text, without their ends.
fn text_lines(text: &[u8]) -> Vec<&[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect()
}

/// The instances of the templates of a source, by the last line of each. A function without a second instance
/// is none.
fn instances<'a>(column: &'a Column, path: &'a str) -> HashMap<u32, Vec<&'a Record>> {
    let mut by_start: BTreeMap<Place, Vec<&Record>> = BTreeMap::new();
    for record in column.defined_in(path) {
        let start = record.function.start();
        by_start.entry(start).or_default().push(record);
    }
    let mut by_end: HashMap<u32, Vec<&Record>> = HashMap::new();
    for group in by_start.into_values().filter(|group| group.len() > 1) {
        for record in group {
            let end = record.function.end().line;
            by_end.entry(end).or_default().push(record);
        }
    }
    by_end
}

/// A count with three digits at least, and the letter of its power of 1000: `12`, `1.02k`, `3.40M`.
fn short(count: u64) -> String {
    let digits = count.to_string();
    if digits.len() <= 3 {
        return digits;
    }
    let whole = (digits.len() - 1) % 3 + 1;
    let unit = b" kMGTPE"[(digits.len() - 1) / 3];
    let (whole, rest) = digits.split_at(whole);
    let rest = &rest[..3 - whole.len()];
    let point = if rest.is_empty() { "" } else { "." };
    format!("{whole}{point}{rest}{}", char::from(unit))
}
