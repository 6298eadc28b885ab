//! The lines of a file that did not run: nowhere, or in one column though they ran in another.

use super::line::Line;
use super::view::View;

/// Numbers of lines that did not run.
#[derive(Debug, Default)]
pub(crate) struct Missed<'a> {
    /// The lines that ran in no column.
    pub(crate) nowhere: Vec<u32>,
    /// The lines that ran in another column, by the label of the column that missed them.
    pub(crate) here: Vec<(&'a str, Vec<u32>)>,
}

impl View {
    /// The lines of `lines` that did not run.
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
