//! The columns of the table: their cells, and the order of rows by them.

use std::cmp::Ordering;
use std::env;
use std::io;
use std::path::Path;

use clap::ValueEnum;

use super::row::Row;
use crate::cli::KernelColumn;
use crate::term::lines::Lines;
use crate::term::look::Look;
use crate::term::table::{Heading, Narrowing};

/// The contents of a cell.
enum Cell {
    Text(String),
    Number(u64),
    Percent(f64, String),
    Unknown,
}

impl KernelColumn {
    fn heading(self) -> Heading<'static> {
        let (text, is_number) = match self {
            Self::Arch => ("ARCH", false),
            Self::Vgprs => ("VGPRS", true),
            Self::Sgprs => ("SGPRS", true),
            Self::Agprs => ("AGPRS", true),
            Self::Lds => ("LDS", true),
            Self::Scratch => ("SCRATCH", true),
            Self::Spills => ("SPILLS", true),
            Self::Wavefront => ("WAVE", true),
            Self::Loads => ("LOADS", true),
            Self::Instrumented => ("INSTR", false),
            Self::Count => ("COUNT", true),
            Self::Lines => ("LINES", true),
            Self::Kernel => ("KERNEL", false),
            Self::Source => ("SOURCE", false),
        };
        Heading { text, is_number }
    }

    fn cell(self, row: &Row, mangled: bool) -> Cell {
        let kernel = &row.kernel;
        let number = |number: u32| Cell::Number(number.into());
        match self {
            Self::Arch => Cell::Text(row.target.clone()),
            Self::Vgprs => number(kernel.vgprs),
            Self::Sgprs => number(kernel.sgprs),
            Self::Agprs => number(kernel.agprs),
            Self::Lds => number(kernel.group_size),
            Self::Scratch => number(kernel.private_size),
            Self::Spills => {
                Cell::Number(u64::from(kernel.sgpr_spills) + u64::from(kernel.vgpr_spills))
            }
            Self::Wavefront => number(kernel.wavefront_size),
            Self::Loads => Cell::Number(row.loads),
            Self::Instrumented => {
                Cell::Text(if kernel.instrumented { "yes" } else { "no" }.to_owned())
            }
            Self::Count => row.count.map_or(Cell::Unknown, Cell::Number),
            Self::Lines if row.excluded.is_some() => Cell::Text("excluded".to_owned()),
            Self::Lines => row
                .lines
                .filter(|line| line.total > 0)
                .map_or(Cell::Unknown, |lines| {
                    let share = lines.covered as f64 / lines.total as f64;
                    // Only all of them are 100 %.
                    let most = if lines.missed() > 0 { 99.0 } else { 100.0 };
                    let percent = (100.0 * share).min(most);
                    let text = format!("{}/{} {percent:3.0}%", lines.covered, lines.total);
                    Cell::Percent(share, text)
                }),
            Self::Kernel if mangled => Cell::Text(kernel.name.clone()),
            Self::Kernel => Cell::Text(row.name().to_owned()),
            Self::Source => {
                let source = kernel.source.as_deref();
                source.map_or(Cell::Unknown, |source| Cell::Text(from_here(source)))
            }
        }
    }
}

impl Cell {
    fn text(self) -> String {
        match self {
            Self::Text(text) | Self::Percent(_, text) => text,
            Self::Number(number) => number.to_string(),
            Self::Unknown => "-".to_owned(),
        }
    }

    /// Orders text from A, numbers from the largest, and unknown values last.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Number(one), Self::Number(other)) => other.cmp(one),
            (Self::Percent(one, _), Self::Percent(other, _)) => other.total_cmp(one),
            (Self::Unknown, Self::Unknown) => Ordering::Equal,
            (Self::Unknown, _) => Ordering::Greater,
            _ => Ordering::Less,
        }
    }
}

/// A path from the working directory, if it is below that.
fn from_here(path: &str) -> String {
    let here = env::current_dir().unwrap_or_default();
    let rest = Path::new(path).strip_prefix(here);
    rest.map_or_else(|_| path.to_owned(), |rest| rest.display().to_string())
}

/// The order of two rows: by this column, then as without one, by arch and name.
pub(super) fn compare(one: &Row, other: &Row, by: Option<KernelColumn>) -> Ordering {
    by.into_iter()
        .chain([KernelColumn::Arch, KernelColumn::Kernel])
        .map(|column| column.cell(one, false).compare(&column.cell(other, false)))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| one.code_object.cmp(&other.code_object))
}

/// The columns that a narrow terminal lacks, the least important first, and the one with names.
const LEFT_OUT: [KernelColumn; 11] = [
    KernelColumn::Agprs,
    KernelColumn::Spills,
    KernelColumn::Scratch,
    KernelColumn::Wavefront,
    KernelColumn::Sgprs,
    KernelColumn::Lds,
    KernelColumn::Loads,
    KernelColumn::Vgprs,
    KernelColumn::Instrumented,
    KernelColumn::Source,
    KernelColumn::Lines,
];

/// Writes the table of these rows.
pub(super) fn write(
    rows: &[Row],
    mangled: bool,
    look: Look,
    out: &mut Lines<'_>,
) -> io::Result<()> {
    let columns = KernelColumn::value_variants();
    let headings: Vec<_> = columns.iter().map(|column| column.heading()).collect();
    let cells = |row: &Row| {
        let cells = columns.iter().map(|column| column.cell(row, mangled));
        cells.map(Cell::text).collect()
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    let place = |wanted: KernelColumn| columns.iter().position(|column| *column == wanted);
    let left_out: Vec<_> = LEFT_OUT.into_iter().filter_map(place).collect();
    let narrowing = Narrowing {
        left_out: &left_out,
        names: place(KernelColumn::Kernel).unwrap_or_default(),
    };
    out.table_in(headings, rows, narrowing, look)
}
