//! From counted regions to segments, and from segments to counts of lines, by the rules of
//! llvm-cov: LLVM's `SegmentBuilder` and `LineCoverageStats`.
//!
//! Regions are nested, and a region's count holds until a smaller one begins. A segment has the count
//! from a place on.

use std::cmp::Reverse;

use super::function::{Kind, Place, Span, Uniformity};

/// A region with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountedRegion {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
    pub(crate) count: u64,
    pub(crate) uniformity: Uniformity,
}

/// The count from a place up to the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) place: Place,
    pub(crate) count: u64,
    pub(crate) uniformity: Uniformity,
    /// True if there is code that is counted.
    pub(crate) has_count: bool,
    /// True if a region begins here that is no gap.
    pub(crate) is_entry: bool,
    pub(crate) is_gap: bool,
}

/// The segments of the regions of one file, in order.
pub(crate) fn segments(mut regions: Vec<CountedRegion>) -> Vec<Segment> {
    // Outer regions before inner ones.
    regions.sort_by_key(|region| (region.span.start, Reverse(region.span.end), region.kind));
    regions.dedup_by(|next, kept| {
        let is_same = next.span == kept.span;
        // One span is code of several instances of a template, or a macro that is nothing but
        // another macro: then the expansion would be counted twice.
        if is_same && next.kind == kept.kind {
            kept.count = kept.count.saturating_add(next.count);
            kept.uniformity = kept.uniformity.plus(next.uniformity);
        }
        is_same
    });
    let mut builder = Builder {
        segments: Vec::with_capacity(2 * regions.len()),
        active: Vec::new(),
    };
    for (index, region) in regions.iter().enumerate() {
        builder.add(region, regions.get(index + 1));
    }
    if !builder.active.is_empty() {
        builder.complete(None, 0);
    }
    builder.segments
}

struct Builder {
    segments: Vec<Segment>,
    /// Regions around the current place, outermost first.
    active: Vec<CountedRegion>,
}

impl Builder {
    fn add(&mut self, region: &CountedRegion, next: Option<&CountedRegion>) {
        let Span { start, end } = region.span;
        let is_completed = |region: &CountedRegion| region.span.end <= start;
        if self.active.iter().any(is_completed) {
            self.active.sort_by_key(is_completed);
            let first_completed = self.active.partition_point(|region| !is_completed(region));
            self.complete(Some(start), first_completed);
        }

        let is_entry = region.kind != Kind::Gap;
        if start == end {
            // Nothing lies in it: the region around it continues.
            let is_skipped = next.is_none() || region.kind == Kind::Skipped;
            let around = self.active.last().copied();
            self.start(&around.unwrap_or(*region), start, is_entry, is_skipped);
            if let (true, Some(around)) = (is_skipped, around) {
                self.start(&around, start, false, false);
            }
            return;
        }
        if next.is_none_or(|next| next.span.start != start) {
            self.start(region, start, is_entry, false);
        }
        self.active.push(*region);
    }

    /// Ends the active regions from the `first`-th on, before a region that starts at `next`.
    fn complete(&mut self, next: Option<Place>, first: usize) {
        self.active[first..].sort_by_key(|region| region.span.end);
        for index in first + 1..self.active.len() {
            let end_of_previous = self.active[index - 1].span.end;
            if Some(end_of_previous) == next {
                break;
            }
            let end = self.active[index].span.end;
            if end_of_previous == end {
                continue;
            }
            // If several regions end together, the last of them counts.
            let last = self.active[index..]
                .iter()
                .rev()
                .find(|region| region.span.end == end);
            let last = *last.unwrap_or(&self.active[index]);
            self.start(&last, end_of_previous, false, false);
        }
        let last = self.active[self.active.len() - 1];
        let end = last.span.end;
        if next != Some(end) {
            match first.checked_sub(1) {
                Some(around) => {
                    let around = self.active[around];
                    self.start(&around, end, false, false);
                }
                // Code between two functions has no count.
                None => self.start(&last, end, false, true),
            }
        }
        self.active.truncate(first);
    }

    fn start(&mut self, region: &CountedRegion, place: Place, is_entry: bool, is_skipped: bool) {
        let has_count = !is_skipped && region.kind != Kind::Skipped;
        let uniformity = match has_count {
            true => region.uniformity,
            false => Uniformity::default(),
        };
        if let (Some(last), false, false) = (self.segments.last(), is_entry, is_skipped)
            && last.has_count == has_count
            && last.count == region.count
            && last.uniformity == uniformity
            && !last.is_entry
        {
            return;
        }
        self.segments.push(Segment {
            place,
            count: if has_count { region.count } else { 0 },
            uniformity,
            has_count,
            is_entry,
            is_gap: has_count && region.kind == Kind::Gap,
        });
    }
}

/// The spans of code that did not run, from the segments of a file; in order.
pub(crate) fn missed(segments: &[Segment]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for pair in segments.windows(2) {
        let [start, end] = [pair[0].place, pair[1].place];
        if !pair[0].has_count || pair[0].count > 0 {
            continue;
        }
        match spans.last_mut() {
            Some(last) if last.end == start => last.end = end,
            // As in llvm-cov, the space between two statements belongs to the first.
            _ if pair[0].is_gap => {}
            _ => spans.push(Span { start, end }),
        }
    }
    spans
}

/// The lines that have code, from the segments of a file, with their counts; in order.
pub(crate) fn lines(segments: &[Segment]) -> Vec<(u32, u64)> {
    let lines = counted_lines(segments).into_iter();
    lines.map(|(number, count, _)| (number, count)).collect()
}

/// The lines that have code, with their counts and the uniformity of these; in order. Segments of a damaged mapping, whose
/// regions are not nested, need not be in order.
pub(crate) fn counted_lines(segments: &[Segment]) -> Vec<(u32, u64, Uniformity)> {
    let mut lines = Vec::new();
    let mut rest = segments;
    let mut around: Option<&Segment> = None;
    let Some(mut number) = segments.first().map(|first| first.place.line) else {
        return lines;
    };
    while !rest.is_empty() {
        let here = rest
            .iter()
            .take_while(|segment| segment.place.line <= number)
            .count();
        let (here, after) = rest.split_at(here);
        let counted = match here {
            [] => around
                .filter(|segment| segment.has_count)
                .map(|segment| (segment.count, segment.uniformity)),
            here => line(here, around),
        };
        if let Some((count, uniformity)) = counted {
            lines.push((number, count, uniformity));
        }
        around = here.last().or(around);
        rest = after;
        number = number.saturating_add(1);
    }
    lines
}

/// The count of a line that has the segments `here`, in the segment `around` from a line before. The
/// uniformity is that of the segment with this count. If several have it, the least known or uniform one wins.
fn line(here: &[Segment], around: Option<&Segment>) -> Option<(u64, Uniformity)> {
    let begins = |segment: &&Segment| segment.is_entry && segment.has_count;
    let begins_code = |segment: &&Segment| begins(segment) && !segment.is_gap;
    let begins_skipped = here
        .first()
        .is_some_and(|segment| !segment.has_count && segment.is_entry);
    let is_inside = around.is_some_and(|segment| segment.has_count);
    let has_code = here.iter().any(|segment| begins_code(&segment));
    let is_mapped =
        (!begins_skipped && (is_inside || has_code)) || here.iter().any(|segment| begins(&segment));
    let mut largest = around
        .map(|segment| (segment.count, segment.uniformity))
        .unwrap_or_default();
    for (index, segment) in here.iter().filter(begins_code).enumerate() {
        let is_first = index == 0 && around.is_none();
        let is_larger = segment.count > largest.0;
        let is_less_uniform = segment.count == largest.0 && segment.uniformity < largest.1;
        if is_first || is_larger || is_less_uniform {
            largest = (segment.count, segment.uniformity);
        }
    }
    is_mapped.then_some(largest)
}
