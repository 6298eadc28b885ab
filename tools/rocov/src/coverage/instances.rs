//! The instances of function templates, each with counts of its own.
//!
//! By llvm-cov's rule, functions that start at one place are instances of one template. A lambda in a template
//! has instances too, and so has a static function of a header that several units include.

use std::collections::BTreeMap;

use super::function::Place;
use super::line::Line;
use super::view::View;

/// A function template that a report has several instances of.
#[derive(Debug)]
pub(crate) struct Template {
    /// The last line of the longest instance.
    pub(crate) end: u32,
    /// At least two; by their names.
    pub(crate) instances: Vec<TemplateInstance>,
}

/// An instance of a template.
#[derive(Debug)]
pub(crate) struct TemplateInstance {
    /// Mangled.
    pub(crate) name: String,
    /// Calls in each column, `None` if the column does not have it.
    pub(crate) calls: Vec<Option<u64>>,
    /// The lines with code, in order.
    pub(crate) lines: Vec<Line>,
}

/// An instance whose columns are being added up.
struct Sum {
    calls: Vec<Option<u64>>,
    lines: BTreeMap<u32, Vec<Option<u64>>>,
}

impl View {
    /// The templates that are defined in the file at `path`, by the ends of their text.
    pub(crate) fn templates(&self, path: &str) -> Vec<Template> {
        let width = self.columns.len();
        let mut templates: BTreeMap<Place, BTreeMap<&str, Sum>> = BTreeMap::new();
        for (index, column) in self.columns.iter().enumerate() {
            for record in column.defined_in(path) {
                let function = &record.function;
                let instances = templates.entry(function.start()).or_default();
                let sum = instances.entry(&function.name).or_insert_with(|| Sum {
                    calls: vec![None; width],
                    lines: BTreeMap::new(),
                });
                add(&mut sum.calls[index], record.counts.calls);
                for (line, count) in record.lines(&record.segments()) {
                    let counts = sum.lines.entry(line);
                    add(
                        &mut counts.or_insert_with(|| vec![None; width])[index],
                        count,
                    );
                }
            }
        }
        let templates = templates
            .into_values()
            .filter(|template| template.len() > 1);
        let mut templates: Vec<_> = templates.map(Template::new).collect();
        templates.sort_by_key(|template| template.end);
        templates
    }
}

impl Template {
    fn new(instances: BTreeMap<&str, Sum>) -> Self {
        let ends = instances
            .values()
            .filter_map(|instance| instance.lines.keys().last());
        let end = ends.max().copied().unwrap_or_default();
        let instances = instances.into_iter().map(|(name, sum)| TemplateInstance {
            name: name.to_owned(),
            calls: sum.calls,
            lines: sum
                .lines
                .into_iter()
                .map(|(number, counts)| Line { number, counts })
                .collect(),
        });
        Self {
            end,
            instances: instances.collect(),
        }
    }
}

impl TemplateInstance {
    /// The numbers of the lines that did not run in a column.
    pub(crate) fn missed(&self, column: usize) -> impl Iterator<Item = u32> {
        let missed = self
            .lines
            .iter()
            .filter(move |line| line.counts[column] == Some(0));
        missed.map(|line| line.number)
    }
}

fn add(sum: &mut Option<u64>, count: u64) {
    *sum = Some(sum.unwrap_or(0).saturating_add(count));
}
