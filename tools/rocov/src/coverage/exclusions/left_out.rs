//! The parts of one function that a report leaves out.
//!
//! Each becomes a skipped region, as code behind `#if 0` is one, so that all formats leave it out.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::never_return::uses;
use super::reason::{ExcludedBranch, Reason};
use super::source_marks::{MarkedLines, SourceMarks};
use crate::coverage::function::{Branch, Function, Kind, Location, Place, Region, Span};
use crate::coverage::inferred::innermost;
use crate::coverage::model::Record;
use crate::coverage::segments::CountedRegion;

/// Parts of a function.
pub(super) struct LeftOut<'a> {
    marks: &'a [Arc<SourceMarks>],
    /// The index of the file that the function is defined in.
    main: u32,
    /// For each file, the places of the expansions that lead to it.
    expansions: Vec<Vec<Place>>,
    /// The reason why the whole function is one.
    whole: Option<Reason>,
    /// The reason why the entry of the function is one.
    entry: Option<Reason>,
    /// Regions of which nothing but the closing brace of the function stays, which has the count of the function.
    closed: Vec<(u32, Span)>,
    /// Code, with its lines, by the index of the file.
    hidden: Vec<(u32, Span)>,
    /// The reasons for hidden code of the file that the function is defined in.
    reasons: Vec<(Span, Reason)>,
    /// Code without its lines: uses of `assert`.
    asserts: Vec<(u32, Span)>,
    /// The places of code that is never reached.
    unreachable: Vec<(u32, Span)>,
    /// The files of macros that are left out as a whole.
    macros: BTreeSet<u32>,
}

impl<'a> LeftOut<'a> {
    /// Finds the parts that the marks of the function's files, by their indices, exclude.
    pub(super) fn new(
        record: &Record,
        marks: &'a [Arc<SourceMarks>],
        keeps_unreachable: bool,
    ) -> Self {
        let function = &record.function;
        let (main, start, end) = (function.main_file(), function.start(), function.end());
        let mut left_out = Self {
            marks,
            main,
            expansions: function.expansion_paths(),
            whole: None,
            entry: None,
            closed: Vec::new(),
            hidden: Vec::new(),
            reasons: Vec::new(),
            asserts: Vec::new(),
            unreachable: Vec::new(),
            macros: BTreeSet::new(),
        };
        let of_main = &marks[main as usize];
        let (text, signature) = of_main.signature(start);
        let is_at_start = |line: u32| signature.contains(&line) || line + 1 == *signature.start();
        let is_around = |marked: &&MarkedLines| {
            marked.lines.contains(&start.line) && marked.lines.contains(&end.line)
        };
        let by_comment = of_main
            .functions
            .iter()
            .find(|(line, _)| is_at_start(*line))
            .map(|(_, reason)| reason);
        let by_lines = || {
            let around = of_main.lines.iter().find(is_around);
            around.map(|marked| &marked.reason)
        };
        left_out.whole = by_comment.or_else(by_lines).cloned();
        left_out.entry = signature
            .clone()
            .find_map(|line| of_main.reason(line))
            .cloned();
        for (file, marks) in (0..).zip(marks) {
            let Some(extent) = extent(function, file) else {
                continue;
            };
            for MarkedLines { lines, reason } in &marks.lines {
                let first = Place {
                    line: *lines.start(),
                    column: 1,
                };
                let span = Span {
                    start: first.max(extent.start),
                    end: marks.end_of(*lines.end()).min(extent.end),
                };
                if span.start < span.end {
                    left_out.hide(file, span, reason.clone());
                }
            }
            if keeps_unreachable {
                continue;
            }
            for (place, call) in marks
                .unreachable
                .iter()
                .filter(|(place, _)| extent.start <= *place && *place < extent.end)
            {
                let (span, is_whole) = unreachable(record, file, *place, marks);
                let reason = || Reason::Unreachable(Arc::clone(call));
                let mut names = marks.never_return.iter();
                // A function that says that it does not return, and that ends there.
                if is_whole && file == main && names.any(|name| uses(text, name).next().is_some()) {
                    left_out.whole.get_or_insert_with(reason);
                }
                left_out.unreachable.push((file, span));
                left_out.hide(file, span, reason());
            }
        }
        for file in 0..function.filenames.len() {
            let file = u32::try_from(file).unwrap_or(u32::MAX);
            left_out.close_regions(file, record);
            left_out.hide_gaps(file, record);
        }
        if !keeps_unreachable {
            left_out.find_asserts(function);
        }
        left_out.add_hidden_macros(function);
        left_out
    }

    /// Hides code for a reason.
    fn hide(&mut self, file: u32, span: Span, reason: Reason) {
        self.hidden.push((file, span));
        if file == self.main {
            self.reasons.push((span, reason));
        }
    }

    /// Hides the rest of each region that has nothing but brackets next to hidden code, such as the closing brace on the next
    /// line. The region of the function itself stays, unless its signature is excluded.
    fn close_regions(&mut self, file: u32, record: &Record) {
        if self.hidden.iter().all(|(other, _)| *other != file) {
            return;
        }
        let function = extent(&record.function, file);
        let start = function.map(|extent| extent.start);
        let is_entry_excluded = file == self.main && self.entry.is_some();
        let end = (file == self.main && self.entry.is_none()).then_some(function);
        let end = end.flatten().map(|extent| extent.end);
        let regions = record.regions(|other| other == file);
        let regions = regions.filter(|region| region.kind == Kind::Code);
        let mut spans: Vec<_> = regions.map(|region| region.span).collect();
        spans.retain(|span| Some(span.start) != start || is_entry_excluded);
        // Inner regions before those around them.
        spans.sort_by_key(|span| (span.end, Reverse(span.start)));
        for span in spans {
            self.close(file, span, end);
        }
    }

    /// Hides the spaces before what is hidden, such as the line of an `else`.
    fn hide_gaps(&mut self, file: u32, record: &Record) {
        let (gaps, others): (Vec<_>, Vec<_>) = record
            .regions(|other| other == file)
            .partition(|region| region.kind == Kind::Gap);
        let starts: BTreeSet<_> = others.iter().map(|region| region.span.start).collect();
        for gap in gaps.iter().filter(|gap| starts.contains(&gap.span.end)) {
            let Span { start, end } = gap.span;
            let is_next = |(other, span): &&mut (u32, Span)| {
                *other == file && start < span.start && span.start <= end && end < span.end
            };
            let Some((_, next)) = self.hidden.iter_mut().find(is_next) else {
                continue;
            };
            self.closed.push((file, gap.span));
            // The first line of the space has other code.
            if start.line < next.start.line {
                next.start = Place {
                    line: start.line + 1,
                    column: 1,
                };
            }
        }
    }

    /// Hides the rest of a region if that is nothing but brackets. The closing brace of the function, at `end`, stays.
    fn close(&mut self, file: u32, region: Span, end_of_function: Option<Place>) {
        let is_inside = |(other, span): &(u32, Span)| {
            *other == file && span.start < region.end && region.start < span.end
        };
        let mut inside: Vec<Span> = self
            .hidden
            .iter()
            .filter(|hidden| is_inside(hidden))
            .map(|(_, span)| *span)
            .collect();
        inside.sort();
        let (Some(first), Some(end)) = (
            inside.first().map(|span| span.start),
            inside.iter().map(|span| span.end).max(),
        ) else {
            return;
        };
        let mut at = region.start;
        let marks = &self.marks[file as usize];
        for span in &inside {
            if at < span.start && !marks.has_only_brackets(at, span.start) {
                return;
            }
            at = at.max(span.end);
        }
        if at < region.end && !marks.has_only_brackets(at, region.end) {
            return;
        }
        let has_brace = at < region.end && Some(region.end) == end_of_function;
        let line_before = marks.end_of(region.end.line.saturating_sub(1));
        let region_end = match has_brace && at <= line_before {
            true => {
                self.closed.push((file, region));
                line_before
            }
            false => region.end,
        };
        self.hidden.retain(|hidden| !is_inside(hidden));
        let whole = Span {
            start: first.min(region.start),
            end: end.max(region_end),
        };
        self.hidden.push((file, whole));
    }

    /// The reason why the entry of the function is left out.
    pub(super) fn entry(&self) -> Option<&Reason> {
        self.entry.as_ref()
    }

    /// The reason why the whole function is left out.
    pub(super) fn whole(&self) -> Option<&Reason> {
        self.whole.as_ref()
    }

    /// The reason why a line of the file that the function is defined in is left out: that of code on it, or else of the
    /// nearest code.
    pub(super) fn reason(&self, line: u32) -> Reason {
        let lines = |span: &Span| span.start.line..=span.end.line;
        let is_of_assert =
            |(file, span): &(u32, Span)| *file == self.main && lines(span).contains(&line);
        let distance = |span: &Span| {
            let [before, behind] = [
                span.start.line.saturating_sub(line),
                line.saturating_sub(span.end.line),
            ];
            before.max(behind)
        };
        let mut here = self
            .reasons
            .iter()
            .filter(|(span, _)| lines(span).contains(&line));
        let here = here.next().map(|(_, reason)| reason);
        let marked = || self.marks[self.main as usize].reason(line);
        let known = self.whole.as_ref().or(here).or_else(marked);
        if let Some(reason) = known {
            return reason.clone();
        }
        let nearest = self.reasons.iter().min_by_key(|(span, _)| distance(span));
        match nearest {
            Some((_, reason)) if !self.asserts.iter().any(is_of_assert) => reason.clone(),
            _ => Reason::Assert,
        }
    }

    /// The reason why code of the file that the function is defined in is left out. A line may have code of several.
    fn reason_at(&self, place: Place) -> Reason {
        let mut reasons = self.reasons.iter();
        let here = reasons.find(|(span, _)| span.start <= place && place < span.end);
        here.map_or_else(|| self.reason(place.line), |(_, reason)| reason.clone())
    }

    /// Finds the uses of `assert`. That of a system header is no expansion: its regions lie at the start of its use.
    fn find_asserts(&mut self, function: &Function) {
        for (file, marks) in (0..).zip(self.marks) {
            let asserts = marks.asserts.iter();
            self.asserts.extend(asserts.map(|span| (file, *span)));
        }
        for expansion in function.expansions() {
            let starts = |(file, span): &(u32, Span)| {
                *file == expansion.file && span.start == expansion.span.start
            };
            if self.asserts.iter().any(starts) {
                self.macros.insert(expansion.expanded);
            }
        }
    }

    /// Adds the macros that are used in what is left out.
    fn add_hidden_macros(&mut self, function: &Function) {
        // Each round finds the macros in those of the round before.
        loop {
            let before = self.macros.len();
            for expansion in function.expansions() {
                if self.is_hidden(expansion) {
                    self.macros.insert(expansion.expanded);
                }
            }
            if self.macros.len() == before {
                return;
            }
        }
    }

    /// Returns whether a location is left out with its lines.
    fn is_hidden(&self, location: Location) -> bool {
        self.macros.contains(&location.file) || is_in(&self.hidden, location)
    }

    /// Returns whether the branches at a location are left out.
    fn has_no_branches(&self, location: Location) -> bool {
        self.is_hidden(location)
            || is_in(&self.asserts, location)
            || self.reason_of_mark(location).is_some()
    }

    /// The reason of the mark that leaves out the branches at a location, if there is one.
    fn reason_of_mark(&self, location: Location) -> Option<&Reason> {
        let of = |file: u32, line: u32| self.marks[file as usize].reason_of_branches(line);
        let used = self.expansions[location.file as usize].first();
        let here = of(location.file, location.span.start.line);
        here.or_else(|| of(self.main, used?.line))
    }

    /// The sides of a condition that are left out, and its place in the file that the function is defined in. A condition in a
    /// macro has the place of its use. `leads_out` has the places of the sides that lead to nothing else, if the condition
    /// stays.
    fn excluded_branch(
        &self,
        branch: &Branch,
        leads_out: Option<[Option<Place>; 2]>,
    ) -> Option<(Place, ExcludedBranch)> {
        let location = branch.location;
        let used = self.expansions[location.file as usize].first();
        if used.is_none() && location.file != self.main {
            return None;
        }
        let place = used.copied().unwrap_or(location.span.start);
        let mut asserts = self.asserts.iter();
        let is_of_assert = asserts
            .any(|(file, span)| *file == self.main && span.start <= place && place < span.end);
        let sides = match (is_of_assert, self.reason_of_mark(location), leads_out) {
            (true, ..) => [true; 2].map(|_| Some(Reason::AssertCondition)),
            (false, Some(reason), _) => [true; 2].map(|_| Some(reason.clone())),
            (false, None, Some(leads_out)) if used.is_none() => {
                leads_out.map(|side| side.map(|place| self.reason_at(place)))
            }
            _ => return None,
        };
        let is_excluded = sides.iter().any(Option::is_some);
        is_excluded.then_some((place, ExcludedBranch { sides }))
    }

    /// For each side of a condition, the place that it leads to, if nothing but code that is left out is there.
    fn leads_out(&self, branch: &Branch, record: &Record) -> [Option<Place>; 2] {
        let Location { span, file, .. } = branch.location;
        let marks = &self.marks[file as usize];
        let function = extent(&record.function, file).map(|extent| extent.start);
        let is_out = |place: Place| {
            let is_here = |(other, span): &(u32, Span)| {
                *other == file && span.start <= place && place < span.end
            };
            let regions: Vec<_> = record.regions(|other| other == file).collect();
            let code = regions.iter().filter(|region| region.kind == Kind::Code);
            let around = innermost(code, place).map(|region| region.span);
            let around = around.filter(|span| Some(span.start) != function);
            let location = around.map(|span| Location {
                span,
                file,
                expanded: 0,
            });
            self.unreachable.iter().any(is_here)
                || self.hidden.iter().any(is_here)
                    && location.is_some_and(|location| self.is_hidden(location))
        };
        let sides = marks.sides(span);
        sides.map(|side| {
            let first_in_block = || marks.first_in_block(side?).filter(|place| is_out(*place));
            side.filter(|place| is_out(*place)).or_else(first_in_block)
        })
    }

    /// Takes the parts out of the function, and returns the conditions on lines that stay of which a side is left out. `None`
    /// if nothing of the function stays.
    pub(super) fn take_from(&self, record: &mut Record) -> Option<Vec<(Place, ExcludedBranch)>> {
        if self.whole.is_some() {
            return None;
        }
        let mut function = Function::clone(&record.function);
        let before = record.clone();
        let counts = &mut record.counts;
        let old = Arc::clone(&record.function);
        record.is_entry_excluded = self.entry.is_some();

        let mut regions = Vec::new();
        let mut region_counts = Vec::new();
        let mut uniformity = Vec::new();
        // The new index of each region that stays.
        let mut indices = vec![None; old.regions.len()];
        for (index, (region, count)) in old.regions.iter().zip(&counts.regions).enumerate() {
            let Some(location) = self.rest(region.location, region.kind) else {
                continue;
            };
            indices[index] = Some(regions.len());
            regions.push(Region {
                location,
                ..*region
            });
            region_counts.push(*count);
            uniformity.extend(counts.uniformity.get(index).copied());
        }
        let has_code = regions.iter().any(|region| region.kind == Kind::Code);
        for (file, span) in joined(&self.hidden) {
            regions.push(Region {
                location: Location {
                    span,
                    file,
                    expanded: 0,
                },
                kind: Kind::Skipped,
            });
            region_counts.push(0);
            if !uniformity.is_empty() {
                uniformity.push(Default::default());
            }
        }
        (counts.regions, counts.uniformity) = (region_counts, uniformity);
        function.regions = regions;
        for of_regions in [
            &mut function.marks.uncounted_gaps,
            &mut function.marks.own_counters,
        ] {
            *of_regions = of_regions
                .iter()
                .filter_map(|index| indices[*index])
                .collect();
        }
        record.inferred.retain_mut(|inferred| {
            let location = Location {
                span: inferred.region.span,
                file: inferred.file,
                expanded: 0,
            };
            let rest = self.rest(location, inferred.region.kind);
            rest.is_some_and(|rest| {
                inferred.region.span = rest.span;
                true
            })
        });

        let branches = std::mem::take(&mut function.branches);
        let sides = std::mem::take(&mut counts.branches);
        let mut excluded = Vec::new();
        for (mut branch, sides) in branches.into_iter().zip(sides) {
            let stays = !self.has_no_branches(branch.location);
            let leads_out = stays.then(|| self.leads_out(&branch, &before));
            excluded.extend(self.excluded_branch(&branch, leads_out));
            if let Some(leads_out) = leads_out {
                for (is_folded, leads_out) in branch.folded.iter_mut().zip(leads_out) {
                    *is_folded |= leads_out.is_some();
                }
                function.branches.push(branch);
                counts.branches.push(sides);
            }
        }

        let stays: Vec<_> = old
            .decisions
            .iter()
            .map(|decision| !self.has_no_branches(decision.location))
            .collect();
        keep(&mut function.decisions, &stays);
        keep(&mut counts.decisions, &stays);
        keep(&mut function.marks.folded_conditions, &stays);

        let mut has_lines = false;
        if let Some(table) = &mut function.line_table {
            let stays = table
                .lines
                .iter()
                .map(|line| self.marks[line.file as usize].reason(line.line).is_none());
            let stays: Vec<_> = stays.collect();
            keep(&mut table.lines, &stays);
            keep(&mut counts.lines, &stays);
            has_lines = !table.lines.is_empty();
        }
        let had_lines = !before.lines(&before.segments()).is_empty();
        record.described = Some(old);
        record.function = Arc::new(function);
        let is_empty = had_lines && record.lines(&record.segments()).is_empty();
        ((has_code || has_lines) && !is_empty).then_some(excluded)
    }

    /// The part of a region that stays.
    fn rest(&self, mut location: Location, kind: Kind) -> Option<Location> {
        let is_of_assert = kind != Kind::Expansion && is_in(&self.asserts, location);
        let is_closed = self.closed.contains(&(location.file, location.span));
        if self.is_hidden(location) || is_of_assert || is_closed && kind != Kind::Expansion {
            return None;
        }
        let was_empty = location.span.start == location.span.end;
        for (file, span) in &self.hidden {
            if *file != location.file {
                continue;
            }
            // A region that begins before it and ends in it ends with its start: regions are nested.
            if location.span.start < span.start
                && span.start < location.span.end
                && location.span.end < span.end
            {
                location.span.end = span.start;
            }
            if span.start <= location.span.start && location.span.start < span.end {
                let line = span.end.line;
                let is_at_end = span.end == self.marks[*file as usize].end_of(line);
                // A block that begins on the line continues on the next one: else, the line would have its count.
                location.span.start = match is_at_end {
                    true => Place {
                        line: line.saturating_add(1),
                        column: 1,
                    },
                    false => span.end,
                };
            }
        }
        // In a source that has changed, a line may end before a region on it does.
        if location.span.end <= location.span.start && !was_empty {
            return None;
        }
        Some(location)
    }
}

/// Keeps the elements that stay, by their indices.
fn keep<T>(elements: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    elements.retain(|_| stays.next().copied().unwrap_or(true));
}

/// Spans, those joined that overlap without one being part of the other: regions are nested.
fn joined(spans: &[(u32, Span)]) -> Vec<(u32, Span)> {
    let mut spans = spans.to_vec();
    spans.sort_by_key(|(file, span)| (*file, span.start, Reverse(span.end)));
    let mut all: Vec<(u32, Span)> = Vec::with_capacity(spans.len());
    for (file, span) in spans {
        let overlaps = |(other, before): &&mut (u32, Span)| {
            *other == file && span.start < before.end && before.end < span.end
        };
        match all.iter_mut().find(overlaps) {
            Some((_, before)) => before.end = span.end,
            None => all.push((file, span)),
        }
    }
    all
}

/// Returns whether a location lies in one of the spans.
fn is_in(spans: &[(u32, Span)], location: Location) -> bool {
    spans.iter().any(|(file, span)| {
        *file == location.file && span.start <= location.span.start && location.span.end <= span.end
    })
}

/// The part of a file that the regions of a function lie in.
fn extent(function: &Function, file: u32) -> Option<Span> {
    let regions = function.regions.iter().map(|region| region.location);
    let here = regions.filter(|location| location.file == file);
    here.map(|location| location.span)
        .reduce(|one, other| Span {
            start: one.start.min(other.start),
            end: one.end.max(other.end),
        })
}

/// The code that is left out because it reaches `place`: the innermost region around it, or its line if that is the whole
/// function. Returns whether it is.
fn unreachable(record: &Record, file: u32, place: Place, marks: &SourceMarks) -> (Span, bool) {
    let regions: Vec<CountedRegion> = record.regions(|record| record == file).collect();
    let code = regions.iter().filter(|region| region.kind == Kind::Code);
    let around = innermost(code, place).map(|region| region.span);
    let function = extent(&record.function, file).map(|extent| extent.start);
    let inner = around.filter(|span| Some(span.start) != function);
    // The branch is in the macro, if nothing else is.
    let mut macros = regions
        .iter()
        .filter(|region| region.kind == Kind::Expansion);
    let used = macros.find(|region| region.span.start == place);
    if let Some(used) = used.filter(|_| marks.is_branch(place)) {
        return (used.span, false);
    }
    let line = Span {
        start: Place {
            line: place.line,
            column: 1,
        },
        end: marks.end_of(place.line),
    };
    (inner.unwrap_or(line), inner.is_none())
}
