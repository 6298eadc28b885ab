//! One source file, line by line, with its counts in each column.

use std::collections::BTreeMap;

use super::function::{Kind, Place, Span, Uniformity};
use super::joined_file::{Joined, JoinedFile, Where};
use super::line::Line;
use super::model::Record;
use super::segments::{CountedRegion, Segment, lines, missed, segments};
use super::view::{Column, Rules, View};

/// A source file.
#[derive(Debug)]
pub(crate) struct File {
    /// The lines with code, in order.
    pub(crate) lines: Vec<Line>,
    /// The functions that are defined in it, in order; each instance of a template by itself.
    pub(crate) functions: Vec<Instance>,
    /// The branches, in order; those of a macro are at its use, and at its definition if that is in
    /// this file.
    pub(crate) branches: Vec<Condition>,
    /// For each column, the spans of code that did not run, in order.
    pub(crate) missed: Vec<Vec<Span>>,
}

/// A function, or one instance of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Mangled.
    pub(crate) name: String,
    /// The line that it starts on.
    pub(crate) line: u32,
    /// Calls in each column, `None` if the column does not have it.
    pub(crate) calls: Vec<Option<u64>>,
}

/// A branch, or the same one of several instances of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(super) place: Where,
    /// The start of the branch. For a branch in a macro, the place that uses the macro.
    pub(crate) start: Place,
    /// The end of the branch; `None` for a branch in a macro.
    pub(crate) end: Option<Place>,
    /// The numbers of times that it was true and was false in each column; `None` if the column does
    /// not have it or the compiler folded it.
    pub(crate) sides: [Vec<Option<u64>>; 2],
}

impl File {
    /// The calls of the functions, as counts of the lines that they start on.
    pub(crate) fn calls(&self) -> Vec<Line> {
        let functions = self.functions.iter();
        let lines = functions.map(|function| Line {
            number: function.line,
            counts: function.calls.clone(),
        });
        lines.collect()
    }
}

impl View {
    /// One of its source files.
    pub(crate) fn file(&self, path: &str) -> File {
        let width = self.columns.len();
        let mut by_line: BTreeMap<u32, Vec<Option<u64>>> = BTreeMap::new();
        let mut functions: BTreeMap<(u32, &str), Vec<Option<u64>>> = BTreeMap::new();
        let mut branches: BTreeMap<Where, [Vec<Option<u64>>; 2]> = BTreeMap::new();
        let mut missed_spans = Vec::new();
        let mapped = self.mapped(path);
        for (index, column) in self.columns.iter().enumerate() {
            let segments = column.segments(path);
            missed_spans.push(missed(&segments));
            for (line, count) in column.lines(path, &segments) {
                by_line.entry(line).or_insert_with(|| vec![None; width])[index] = Some(count);
            }
            for record in column.entries(path) {
                let (start, name) = mapped.key(&record.function);
                let key = (start.line, name);
                let calls = functions.entry(key).or_insert_with(|| vec![None; width]);
                let sum = calls[index].unwrap_or(0);
                calls[index] = Some(sum.saturating_add(record.counts.calls));
            }
            for (key, counts) in column.branches(path, self.rules) {
                let none = || [vec![None; width], vec![None; width]];
                let sides = branches.entry(key).or_insert_with(none);
                for (side, count) in sides.iter_mut().zip(counts) {
                    let both = [side[index], count];
                    side[index] = both.into_iter().flatten().reduce(u64::saturating_add);
                }
            }
        }
        File {
            lines: by_line
                .into_iter()
                .map(|(number, counts)| Line { number, counts })
                .collect(),
            functions: functions
                .into_iter()
                .map(|((line, name), calls)| Instance {
                    name: name.to_owned(),
                    line,
                    calls,
                })
                .collect(),
            branches: branches
                .into_iter()
                .map(|((path, span), sides)| Condition {
                    start: path[0],
                    end: span.filter(|_| path.len() == 1).map(|span| span.end),
                    place: (path, span),
                    sides,
                })
                .collect(),
            missed: missed_spans,
        }
    }

    /// The branches of each line of `file`, with one count of those in all columns for each side.
    pub(crate) fn branches_by_line(&self, file: &File) -> BTreeMap<u32, Vec<Joined>> {
        let mut by_line: BTreeMap<u32, Vec<Joined>> = BTreeMap::new();
        for branch in &file.branches {
            let sides = branch.sides.each_ref().map(|side| self.joined(side));
            by_line.entry(branch.start.line).or_default().push(sides);
        }
        by_line
    }
}

impl Column {
    /// The segments of a file, of all functions that have something in it.
    pub(crate) fn segments(&self, path: &str) -> Vec<Segment> {
        let mut regions = self.regions(path);
        // Segments of one count are one for llvm-cov, even if they differ in uniformity.
        for region in &mut regions {
            region.uniformity = Uniformity::default();
        }
        segments(regions)
    }

    /// The segments of a file for programs that only support regions: a line of a line table is a region of one column.
    pub(crate) fn segments_with_listed(&self, path: &str) -> Vec<Segment> {
        let listed = self.listed_lines(path);
        if listed.is_empty() {
            return self.segments(path);
        }
        let all: BTreeMap<u32, u64> = self.lines(path, &self.segments(path)).into_iter().collect();
        let place = |line, column| Place { line, column };
        let listed = listed.into_keys().map(|line| CountedRegion {
            span: Span {
                start: place(line, 1),
                end: place(line, 2),
            },
            kind: Kind::Code,
            count: all.get(&line).copied().unwrap_or_default(),
            uniformity: Uniformity::default(),
        });
        segments(self.regions(path).into_iter().chain(listed).collect())
    }

    /// The segments of a file with their uniformity.
    pub(super) fn segments_with_uniformity(&self, path: &str) -> Vec<Segment> {
        segments(self.regions(path))
    }

    /// The lines of a file that have code, with their counts; in order. The file has these `segments`. Counts of
    /// line tables are added to those of coverage mappings.
    pub(crate) fn lines(&self, path: &str, segments: &[Segment]) -> Vec<(u32, u64)> {
        let mapped = lines(segments);
        let listed = self.listed_lines(path);
        if listed.is_empty() {
            return mapped;
        }
        let mut all: BTreeMap<u32, u64> = mapped.into_iter().collect();
        for (line, count) in listed {
            let sum = all.entry(line).or_default();
            *sum = sum.saturating_add(count);
        }
        all.into_iter().collect()
    }

    /// The lines of a file that line tables have, with their counts.
    pub(crate) fn listed_lines(&self, path: &str) -> BTreeMap<u32, u64> {
        let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
        for record in self.touching(path) {
            let is_here = |file| &**record.function.path(file) == path;
            for (line, count) in record.listed_lines(is_here) {
                let sum = lines.entry(line).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        lines
    }

    fn regions(&self, path: &str) -> Vec<CountedRegion> {
        let records = self.touching(path);
        let counted =
            records.flat_map(|record| record.regions(|file| &**record.function.path(file) == path));
        counted.collect()
    }

    /// The branches of a file with their counts.
    fn branches(&self, path: &str, rules: Rules) -> Vec<(Where, Joined)> {
        let mut found = Vec::new();
        for record in self.touching(path) {
            let function = &record.function;
            let expansions = function.expansion_paths();
            let is_defined_here = &**function.main_path() == path;
            for (branch, counts) in function.branches.iter().zip(&record.counts.branches) {
                let location = branch.location;
                let side = |side: usize| (!branch.folded[side]).then_some(counts[side]);
                let sides = [side(0), side(1)];
                let start = location.span.start;
                if &**function.path(location.file) == path {
                    found.push(((vec![start], Some(location.span)), sides));
                }
                let expansions = &expansions[location.file as usize];
                if is_defined_here && !expansions.is_empty() {
                    let place = match rules {
                        Rules::Own => ([expansions, &[start][..]].concat(), Some(location.span)),
                        Rules::LlvmCov => (expansions.clone(), None),
                    };
                    found.push((place, sides));
                }
            }
        }
        found
    }
}

impl Record {
    /// The segments of the file that the function is defined in, of this function only.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        let main = self.function.main_file();
        segments(self.regions(|file| file == main).collect())
    }

    /// The lines of the file that the function is defined in, with their counts; in order. The function has these
    /// `segments` there.
    pub(crate) fn lines(&self, segments: &[Segment]) -> Vec<(u32, u64)> {
        let main = self.function.main_file();
        match self.function.line_table {
            Some(_) => self.listed_lines(|file| file == main).collect(),
            None => lines(segments),
        }
    }

    /// The lines of its line table in the files that are wanted, with their counts; in order.
    fn listed_lines(&self, is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = (u32, u64)> {
        let table = self.function.line_table.iter();
        let lines = table.flat_map(|table| &table.lines);
        let counted = lines.zip(&self.counts.lines);
        let wanted = counted.filter(move |(line, _)| is_wanted(line.file));
        wanted.map(|(line, counts)| (line.line, *counts))
    }

    /// The regions in the files that are wanted, with their counts. Inferred ones are among them.
    pub(super) fn regions(
        &self,
        is_wanted: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = CountedRegion> {
        let counts = self.counts.regions.iter().enumerate();
        let counted = self.function.regions.iter().zip(counts);
        let mapped = counted.map(|(region, (index, count))| {
            let uniformity = self.counts.uniformity.get(index);
            let counted = CountedRegion {
                span: region.location.span,
                kind: region.kind,
                count: *count,
                uniformity: uniformity.copied().unwrap_or_default(),
            };
            (region.location.file, counted)
        });
        let inferred = self
            .inferred
            .iter()
            .map(|region| (region.file, region.region));
        let all = mapped.chain(inferred);
        all.filter_map(move |(file, region)| is_wanted(file).then_some(region))
    }
}

impl View {
    /// The joined counts of one of its source files.
    pub(crate) fn joined_file(&self, path: &str) -> JoinedFile {
        let file = self.file(path);
        let count = |counts: &[Option<u64>]| self.joined(counts).unwrap_or(0);
        let lines = file.lines.iter();
        let functions = file.functions.into_iter();
        let branches = file.branches.into_iter();
        JoinedFile {
            lines: lines
                .map(|line| (line.number, count(&line.counts)))
                .collect(),
            functions: functions
                .map(|function| ((function.line, function.name), count(&function.calls)))
                .collect(),
            branches: branches
                .map(|branch| {
                    let sides = branch.sides.each_ref().map(|side| self.joined(side));
                    (branch.place, sides)
                })
                .collect(),
        }
    }
}
