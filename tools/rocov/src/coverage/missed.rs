//! Which lines of a file did not run: nowhere, or in one column though they ran in another.

use super::file::Line;
use super::view::View;

/// Numbers of lines that did not run.
#[derive(Debug, Default)]
pub(crate) struct Missed<'a> {
    /// Those that ran in no column.
    pub(crate) nowhere: Vec<u32>,
    /// Those that ran elsewhere, by the label of a column that missed any.
    pub(crate) here: Vec<(&'a str, Vec<u32>)>,
}

impl View {
    /// Those of `lines` that did not run.
    pub(crate) fn missed(&self, lines: &[Line]) -> Missed<'_> {
        let numbers = |is_missed: &dyn Fn(&Line) -> bool| {
            let missed = lines.iter().filter(|line| is_missed(line));
            missed.map(|line| line.number).collect::<Vec<_>>()
        };
        let mut missed = Missed {
            nowhere: numbers(&|line| self.joined(&line.counts) == Some(0)),
            here: Vec::new(),
        };
        for (index, column) in self.columns.iter().enumerate() {
            let here = numbers(&|line| {
                line.counts[index] == Some(0) && self.joined(&line.counts) > Some(0)
            });
            if !here.is_empty() {
                missed.here.push((&column.label, here));
            }
        }
        missed
    }
}
