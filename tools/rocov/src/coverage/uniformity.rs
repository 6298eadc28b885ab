//! The uniformity of code: the share of its executions that had all lanes of the wave active.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::evaluate::ObjectIndex;
use super::function::Uniformity;
use super::model::Record;
use super::segments::counted_lines;
use super::view::{Column, View};
use crate::profdata::ProfileCounts;
use crate::profdata::uniformity::UniformityProfiles;

/// Adds the uniformity of their regions to the records of a code object. Some descriptions of unused functions
/// are left out because of their counts, so the evaluations may differ in these.
///
/// # Errors
///
/// Fails if an MC/DC decision is damaged.
pub(super) fn add(
    records: &mut [Record],
    profiles: &UniformityProfiles,
    index: &ObjectIndex,
) -> Result<()> {
    let regions = |counts: &ProfileCounts| -> Result<HashMap<_, _>> {
        let records = index.evaluate(counts)?.records.into_iter();
        let regions = records.map(|record| (Arc::as_ptr(&record.function), record.counts.regions));
        Ok(regions.collect())
    };
    let (uniform, marks) = (regions(&profiles.uniform)?, regions(&profiles.marks)?);
    for Record {
        function, counts, ..
    } in records
    {
        let (Some(uniform), Some(marks)) = (
            uniform.get(&Arc::as_ptr(function)),
            marks.get(&Arc::as_ptr(function)),
        ) else {
            continue;
        };
        let regions = counts.regions.iter().zip(uniform.iter().zip(marks));
        let regions = regions.map(|(executions, (uniform, mark))| {
            // Counters that were read while a kernel ran may contradict each other.
            match profiles.is_known(*mark) && uniform <= executions {
                true => Uniformity {
                    known: *executions,
                    uniform: *uniform,
                },
                false => Uniformity::default(),
            }
        });
        counts.uniformity = regions.collect();
    }
    Ok(())
}

/// A line that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UniformLine {
    /// The number of the line, from 1.
    pub(crate) number: u32,
    /// The number of executions.
    pub(crate) executions: u64,
    /// The number of these that had all lanes of the wave active; `None` if it is not known.
    pub(crate) uniform: Option<u64>,
}

impl UniformLine {
    /// The uniformity of its executions, if it is known.
    pub(crate) fn uniformity(&self) -> Option<Uniformity> {
        self.uniform.map(|uniform| Uniformity {
            known: self.executions,
            uniform,
        })
    }

    /// Returns whether lanes were idle in a wave that ran the line.
    pub(crate) fn is_divergent(&self) -> bool {
        self.uniform
            .is_some_and(|uniform| uniform < self.executions)
    }
}

/// The figures of several lines that ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UniformityFigures {
    /// The number of lines.
    pub(crate) lines: u64,
    /// The number of divergent lines.
    pub(crate) divergent: u64,
    /// The number of lines whose uniformity is not known.
    pub(crate) unknown: u64,
    /// The executions of the other lines.
    pub(crate) executions: Uniformity,
}

impl UniformityFigures {
    /// The figures of these lines.
    pub(crate) fn from_lines(lines: &[UniformLine]) -> Self {
        let mut figures = Self::default();
        for line in lines {
            figures.lines += 1;
            figures.divergent += u64::from(line.is_divergent());
            figures.unknown += u64::from(line.uniform.is_none());
            let executions = line.uniformity().unwrap_or_default();
            figures.executions = figures.executions.plus(executions);
        }
        figures
    }

    /// The sum of two parts.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            divergent: self.divergent + other.divergent,
            unknown: self.unknown + other.unknown,
            executions: self.executions.plus(other.executions),
        }
    }
}

/// The uniformity of the code of one column.
#[derive(Debug)]
pub(crate) struct ColumnUniformity<'a> {
    pub(crate) column: &'a Column,
    /// The source files with lines that ran, in order, and these lines.
    pub(crate) files: Vec<(&'a Path, Vec<UniformLine>)>,
}

impl ColumnUniformity<'_> {
    /// The figures of all files.
    pub(crate) fn total(&self) -> UniformityFigures {
        let files = self.files.iter();
        let files = files.map(|(_, lines)| UniformityFigures::from_lines(lines));
        files.fold(UniformityFigures::default(), |sum, figures| {
            sum.plus(&figures)
        })
    }
}

impl View {
    /// The uniformity of each column that has uniform counters.
    pub(crate) fn uniformity(&self) -> Vec<ColumnUniformity<'_>> {
        let columns = self.columns.iter().filter(|column| {
            let mut records = column.records.iter();
            records.any(|record| !record.counts.uniformity.is_empty())
        });
        let of_column = |column| {
            let files = self.paths.iter().map(|path| {
                let lines = lines_that_ran(column, path);
                (Path::new(&**path), lines)
            });
            ColumnUniformity {
                column,
                files: files.filter(|(_, lines)| !lines.is_empty()).collect(),
            }
        };
        columns.map(of_column).collect()
    }
}

fn lines_that_ran(column: &Column, path: &str) -> Vec<UniformLine> {
    let lines = counted_lines(&column.segments_with_uniformity(path)).into_iter();
    let lines = lines.filter(|(_, executions, _)| *executions > 0);
    let lines = lines.map(|(number, executions, uniformity)| UniformLine {
        number,
        executions,
        uniform: (uniformity.known == executions).then_some(uniformity.uniform),
    });
    lines.collect()
}
