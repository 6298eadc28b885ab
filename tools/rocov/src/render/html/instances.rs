//! The instances of templates on the page of a source: their calls, the lines that each did not run, and its
//! counts.

use super::figures::{Count, classes};
use super::frame::Frame;
use crate::coverage::function::symbol;
use crate::coverage::instances::{Template, TemplateInstance};
use crate::support::demangle::shown;
use crate::term::line_ranges::spans;

/// The largest number of instances of a template that the page has the counts of each line of. Those that
/// missed most come first.
const WITH_LINES: usize = 20;

/// The instances of a template.
pub(super) struct Instances {
    /// The last line of the template.
    pub(super) end: u32,
    /// The columns in which an instance missed a line, as classes.
    pub(super) classes: String,
    /// Those that missed most lines first.
    pub(super) all: Vec<Row>,
}

/// An instance.
pub(super) struct Row {
    /// The demangled name.
    pub(super) name: String,
    pub(super) calls: Vec<Count>,
    /// The lines that did not run.
    pub(super) missed: Vec<Missed>,
    /// Empty if only the missed lines are shown.
    pub(super) lines: Vec<Line>,
}

/// The lines that an instance did not run in a column.
pub(super) struct Missed {
    /// The label of the column, if there are several.
    pub(super) label: Option<String>,
    /// True if the instance was never entered.
    pub(super) is_never: bool,
    /// The first and the last line of each range.
    pub(super) ranges: Vec<(u32, u32)>,
}

/// A line of an instance.
pub(super) struct Line {
    pub(super) number: u32,
    pub(super) counts: Vec<Count>,
    /// The text, if the source is the one that was compiled.
    pub(super) text: String,
}

impl Instances {
    /// The instances of `template`. `text` has the lines of the source, none if it does not fit.
    pub(super) fn new(frame: &Frame<'_>, template: &Template, text: &[&str]) -> Self {
        let columns = 0..frame.columns.len();
        let number_missed = |instance: &TemplateInstance| -> usize {
            columns
                .clone()
                .map(|column| instance.missed(column).count())
                .sum()
        };
        let mut instances: Vec<_> = template.instances.iter().collect();
        instances.sort_by_cached_key(|instance| std::cmp::Reverse(number_missed(instance)));
        let has_missed = |column: usize| {
            instances
                .iter()
                .any(|instance| instance.missed(column).next().is_some())
        };
        let rows = instances.iter().enumerate().map(|(index, instance)| {
            let never_ran = instance.calls.iter().all(|calls| *calls < Some(1));
            let text = (index < WITH_LINES && !never_ran).then_some(text);
            Row::new(frame, instance, text)
        });
        Self {
            end: template.end,
            classes: classes("x", columns.clone().map(has_missed)),
            all: rows.collect(),
        }
    }
}

impl Row {
    fn new(frame: &Frame<'_>, instance: &TemplateInstance, text: Option<&[&str]>) -> Self {
        let lines = text.into_iter().flat_map(|text| {
            instance.lines.iter().map(|line| Line {
                number: line.number,
                counts: line
                    .counts
                    .iter()
                    .map(|count| Count::new(*count, false))
                    .collect(),
                text: text
                    .get(line.number as usize - 1)
                    .map_or_else(String::new, |text| (*text).to_owned()),
            })
        });
        let calls = instance.calls.iter();
        let missed = frame
            .columns
            .iter()
            .enumerate()
            .filter_map(|(index, head)| {
                let ranges = spans(instance.missed(index));
                (!ranges.is_empty()).then(|| Missed {
                    label: (frame.columns.len() > 1).then(|| head.label.clone()),
                    is_never: instance.calls[index] == Some(0),
                    ranges,
                })
            });
        Self {
            name: shown(symbol(&instance.name)),
            calls: calls.map(|call| Count::new(*call, false)).collect(),
            missed: missed.collect(),
            lines: lines.collect(),
        }
    }
}
