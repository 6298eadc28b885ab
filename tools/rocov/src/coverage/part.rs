//! The figures of a part of a report: a component, or a test.

use std::sync::Arc;

use super::figures::Figures;

/// A component, or a test.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The other tests that some counts of a test may be of.
    pub(crate) shared_with: Vec<String>,
    /// The figures in each column that the part is in.
    pub(crate) columns: Vec<OfColumn>,
    /// The figures of all columns joined, of a component.
    pub(crate) all: Option<Figures>,
}

/// A part in one column.
#[derive(Debug)]
pub(crate) struct OfColumn {
    /// The column's label.
    pub(crate) label: String,
    pub(crate) figures: Figures,
    /// The coverage of a test that no other test has.
    pub(crate) only: Option<Only>,
    /// The source files that a test ran lines of, in order. `None` for a component.
    pub(crate) files: Option<Vec<Arc<str>>>,
}

/// The numbers of things that one test covers and no other does. Each place in the source counts once,
/// whatever the number of instances of a template that have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Only {
    pub(crate) lines: usize,
    pub(crate) functions: usize,
    pub(crate) regions: usize,
}
