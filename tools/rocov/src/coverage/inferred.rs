//! Regions that coverage mappings lack, so that each line has the count that it ran.
//!
//! clang leaves out a region if its count is that of the region around it. llvm-cov lays the regions of all instances
//! of a template over each other. If one instance returns early, its region after the `return` has a count of 0, and
//! hides the counts of the instances without this region. So each instance gets the regions that others have, with the
//! count that it has there itself.
//!
//! After an `if constexpr` whose branch may leave the code around it, clang only writes the gap up to the next
//! statement, without a counter, and what follows seems to run as often as the code around it. In truth it runs as often
//! as the end of the branch.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::function::{Function, Kind, Location, Place, Span};
use super::model::{Inferred, Record};
use super::segments::CountedRegion;

/// The most regions of a function whose lacking ones are inferred. Functions of people have far fewer.
const MOST_REGIONS: usize = 1 << 14;

/// Infers the regions that the mappings of functions lack.
pub(super) fn infer(records: &mut [Record]) {
    let mut instances: HashMap<(Arc<str>, Place, usize), Vec<usize>> = HashMap::new();
    for (index, record) in records.iter_mut().enumerate() {
        let function = &record.function;
        if function.line_table.is_some() {
            continue;
        }
        // clang outlines a region of OpenMP once for each directive that it has. All these functions start at one
        // place, and each one's body holds the next one's: they are no instances of each other.
        let depth = function.name.matches("omp_outlined").count();
        let instance_of = (Arc::clone(function.main_path()), function.start(), depth);
        instances.entry(instance_of).or_default().push(index);
        if function.regions.len() <= MOST_REGIONS {
            add_behind_branches(record);
        }
    }
    // Each region is looked for among all others.
    let is_short = |indices: &Vec<usize>| {
        let mut functions = indices.iter().map(|index| &records[*index].function);
        functions.all(|function| function.regions.len() <= MOST_REGIONS)
    };
    let mut several: Vec<_> = instances.into_values().collect();
    several.retain(|indices| indices.len() > 1 && is_short(indices));
    for indices in several {
        let lacking = {
            let instances: Vec<_> = indices
                .iter()
                .map(|index| Instance::new(&records[*index]))
                .collect();
            lacking(&instances)
        };
        for (index, lacking) in indices.into_iter().zip(lacking) {
            records[index].inferred.extend(lacking);
        }
    }
}

/// The regions of a record in the file with this index, with those that were inferred; in no order.
fn regions(record: &Record, file: u32) -> Vec<CountedRegion> {
    record.regions(|record| record == file).collect()
}

/// Returns whether a region begins at `place` or before, and ends after it.
fn holds(region: &CountedRegion, place: Place) -> bool {
    (region.span.start..region.span.end).contains(&place)
}

/// The innermost of the regions that hold a place.
pub(super) fn innermost<'a>(
    regions: impl Iterator<Item = &'a CountedRegion>,
    place: Place,
) -> Option<&'a CountedRegion> {
    let around = regions.filter(|region| holds(region, place));
    around.min_by(|a, b| {
        let by_start = b.span.start.cmp(&a.span.start);
        // An `else` that is nothing but a skipped `if constexpr` has its span.
        let is_not_skipped = |region: &CountedRegion| region.kind != Kind::Skipped;
        let by_end = by_start.then(a.span.end.cmp(&b.span.end));
        by_end.then(is_not_skipped(a).cmp(&is_not_skipped(b)))
    })
}

/// Infers the regions behind each `if constexpr` that may leave the code around it, and corrects the counts there.
fn add_behind_branches(record: &mut Record) {
    let function = Arc::clone(&record.function);
    let mut gaps = function.marks.uncounted_gaps.clone();
    // The branches of an inner one end before those of an outer one.
    gaps.sort_by_key(|gap| function.regions[*gap].location.span.start);
    for gap in gaps {
        let location = function.regions[gap].location;
        let file = location.file;
        let Some(mut behind) = Behind::find(&function, location.span, &regions(record, file))
        else {
            continue;
        };
        // The code after a label has a counter of its own.
        let own = function.marks.own_counters.iter();
        let own = own.map(|index| function.regions[*index].location);
        let Span { start, end } = behind.rest.span;
        let labels =
            own.filter(|location| location.file == file && !is_condition(&function, location.span));
        let labels = labels.map(|label| label.span.start);
        let first = labels.filter(|label| (start..end).contains(label)).min();
        record.counts.regions[gap] = behind.rest.count;
        behind.rest.span.end = first.unwrap_or(end);
        if behind.rest.span.end == start {
            continue;
        }
        behind.correct(record, file);
        record.inferred.push(Inferred {
            file,
            region: behind.rest,
            is_mapped: false,
        });
    }
}

/// Returns whether a span is that of a condition.
fn is_condition(function: &Function, span: Span) -> bool {
    let mut branches = function.branches.iter();
    branches.any(|branch| branch.location.span == span)
}

/// The code behind an `if constexpr` that may leave the code around it.
struct Behind {
    /// From the next statement to the end of the code around it.
    rest: CountedRegion,
    /// The count of the code around it, which the mapping has for the rest, too.
    around: u64,
}

impl Behind {
    /// The code after a gap, from all regions of the file. `None` if the gap is another one.
    fn find(function: &Function, gap: Span, all: &[CountedRegion]) -> Option<Self> {
        let code = || all.iter().filter(|region| region.kind == Kind::Code);
        // The gap in a `switch` has the cases in it.
        let is_inside =
            |region: &CountedRegion| gap.start < region.span.start && region.span.start < gap.end;
        let is_continued = code().any(|region| region.span.start == gap.end && region.count == 0);
        if all.iter().any(is_inside) || is_continued {
            return None;
        }
        let around = innermost(
            code().filter(|region| gap.end <= region.span.end),
            gap.start,
        )?;
        let skipped = || all.iter().filter(|region| region.kind == Kind::Skipped);
        // After a branch without braces, the gap begins after the semicolon.
        let ends_at = |end: Place, place: Place| {
            end.line == place.line && (end.column == place.column || end.column + 1 == place.column)
        };
        // An `else` that is left out lies between the branch and the gap.
        let left_out = skipped().find(|region| ends_at(region.span.end, gap.start));
        let end = left_out.map_or(gap.start, |region| region.span.start);
        let inside = code().filter(|region| {
            around.span.start < region.span.start
                && ends_at(region.span.end, end)
                && !is_condition(function, region.span)
        });
        let mut inside: Vec<_> = inside.collect();
        inside.sort_by_key(|region| region.span.start);
        let is_branch =
            |region: &CountedRegion| skipped().any(|before| before.span.end == region.span.start);
        let branch = inside.first().filter(|region| is_branch(region))?;
        // Code behind a statement that may leave the branch has a region of its own, up to the end of the branch. In
        // an `else`, another `if constexpr` may have a branch up to there.
        let has_braces = branch.span.end == end;
        let ending = inside.iter().rev().find(|region| !is_branch(region));
        let ending = ending.filter(|_| has_braces);
        Some(Self {
            rest: CountedRegion {
                span: Span {
                    start: gap.end,
                    end: around.span.end,
                },
                kind: Kind::Code,
                count: ending.map_or(0, |region| region.count),
                uniformity: ending.map(|region| region.uniformity).unwrap_or_default(),
            },
            around: around.count,
        })
    }

    /// Corrects the counts of regions and branches in the rest, and in the macros that it expands. The mapping takes
    /// the count of the code around for that of the rest.
    fn correct(&self, record: &mut Record, file: u32) {
        let function = Arc::clone(&record.function);
        let rest = self.rest.span;
        let mut expanded = vec![false; function.filenames.len()];
        loop {
            let is_in = |location: &Location| {
                let is_here = location.file == file
                    && rest.start <= location.span.start
                    && location.span.end <= rest.end;
                is_here || expanded[location.file as usize]
            };
            let inner = function.expansions().filter(is_in);
            let new: Vec<_> = inner
                .map(|expansion| expansion.expanded as usize)
                .filter(|file| !expanded[*file])
                .collect();
            if !new.is_empty() {
                new.into_iter().for_each(|file| expanded[file] = true);
                continue;
            }
            for (index, region) in function.regions.iter().enumerate() {
                let count = &mut record.counts.regions[index];
                if is_in(&region.location) && (*count == self.around || self.rest.count == 0) {
                    *count = self.rest.count;
                    if let Some(uniformity) = record.counts.uniformity.get_mut(index) {
                        *uniformity = self.rest.uniformity;
                    }
                }
            }
            for (branch, sides) in function.branches.iter().zip(&mut record.counts.branches) {
                if !is_in(&branch.location) {
                    continue;
                }
                if self.rest.count == 0 {
                    *sides = [0; 2];
                } else if sides[0].saturating_add(sides[1]) == self.around {
                    // The compiler gives the true side a counter. The false one has the other executions.
                    sides[1] = self.rest.count.saturating_sub(sides[0]);
                }
            }
            return;
        }
    }
}

/// The place of a region in a function: the expansions that lead to its file, its span, and its kind.
type Where<'a> = (&'a [Place], Span, Kind);

/// An instance of a template.
struct Instance<'a> {
    record: &'a Record,
    /// For each file, the starts of the expansions that lead to it.
    ways: Vec<Vec<Place>>,
    /// For each file, its regions.
    regions: Vec<Vec<CountedRegion>>,
}

impl<'a> Instance<'a> {
    fn new(record: &'a Record) -> Self {
        let ways = record.function.expansion_paths();
        let files = 0..u32::try_from(ways.len()).unwrap_or(u32::MAX);
        Self {
            record,
            regions: files.map(|file| regions(record, file)).collect(),
            ways,
        }
    }

    /// Its regions with counts, and whether its mapping has them.
    fn counted(&self) -> impl Iterator<Item = (Where<'_>, bool)> {
        let files = self.ways.iter().zip(&self.regions);
        let mapped = &self.record.function.regions;
        files.flat_map(move |(way, regions)| {
            let counted = regions
                .iter()
                .filter(|region| matches!(region.kind, Kind::Code | Kind::Gap));
            counted.map(move |region| {
                let mut mapped = mapped.iter();
                let is_mapped = mapped.any(|mapped| mapped.location.span == region.span);
                ((&way[..], region.span, region.kind), is_mapped)
            })
        })
    }

    /// A region that it lacks at this place, with its count there. `None` if it does not have the code.
    fn inferred(&self, (way, span, kind): Where<'_>, is_mapped: bool) -> Option<Inferred> {
        let file = self.ways.iter().position(|other| other == way)?;
        let around = innermost(self.regions[file].iter(), span.start)?;
        if around.kind == Kind::Skipped {
            return None;
        }
        // The code around the parts that a mapping lacks has no say about them. A part ends before the code around it.
        let may_lack = self.record.function.marks.has_folded_branches;
        if may_lack && kind == Kind::Code && span.end != around.span.end {
            return None;
        }
        Some(Inferred {
            file: u32::try_from(file).ok()?,
            region: CountedRegion {
                span,
                kind,
                ..*around
            },
            is_mapped,
        })
    }
}

/// For each of several instances, the regions that it lacks and others have.
fn lacking(instances: &[Instance<'_>]) -> Vec<Vec<Inferred>> {
    let own = instances
        .iter()
        .map(|instance| instance.counted().collect());
    let own: Vec<BTreeMap<Where<'_>, bool>> = own.collect();
    let mut all: BTreeMap<Where<'_>, bool> = BTreeMap::new();
    for (place, is_mapped) in own.iter().flatten() {
        *all.entry(*place).or_default() |= is_mapped;
    }
    let each = instances.iter().zip(&own).map(|(instance, own)| {
        let lacking = all.iter().filter(|(place, _)| !own.contains_key(*place));
        let inferred =
            lacking.filter_map(|(place, is_mapped)| instance.inferred(*place, *is_mapped));
        inferred.collect()
    });
    each.collect()
}
