//! LCOV's tracefile, see geninfo(1): the columns joined, one section per source file.
//!
//! As llvm-cov writes it, but for the numbers of things found and hit: these are of the records
//! written here, as geninfo(1) says and lcov counts them. llvm-cov has its summary's there. And a
//! side of a branch that the compiler folded is left out, which llvm-cov has as never taken. By the rules of llvm-cov,
//! both are as it has them.

use std::io::{self, Write};

use crate::coverage::figures::Figure;
use crate::coverage::line_table::is_without_lines;
use crate::coverage::view::{Rules, View};

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let as_llvm_cov = view.rules == Rules::LlvmCov;
    let rows = view.rows().filter(|(path, _)| !is_without_lines(path));
    for (path, row) in rows {
        let file = view.file(path);
        // The numbers of things found and hit.
        let numbers = |of_records: Figure, of_llvm_cov: Figure| {
            let figure = if as_llvm_cov { of_llvm_cov } else { of_records };
            (figure.total, figure.covered)
        };
        writeln!(out, "SF:{path}")?;
        let mut functions = Figure::default();
        for function in &file.functions {
            writeln!(out, "FN:{},{}", function.line, function.name)?;
        }
        for function in &file.functions {
            let calls = view.joined(&function.calls).unwrap_or(0);
            functions.count(calls > 0);
            writeln!(out, "FNDA:{calls},{}", function.name)?;
        }
        let (found, hit) = numbers(functions, row.all.functions);
        writeln!(out, "FNF:{found}\nFNH:{hit}")?;

        let mut taken = Figure::default();
        for (line, branches) in view.branches_by_line(&file) {
            for (pair, sides) in branches.into_iter().enumerate() {
                // A dash if the condition was never evaluated.
                let is_reached = sides.iter().any(|count| *count > Some(0));
                for (side, count) in sides.into_iter().enumerate() {
                    let Some(count) = count.or(as_llvm_cov.then_some(0)) else {
                        continue;
                    };
                    let number = 2 * pair + side;
                    taken.count(count > 0);
                    if is_reached {
                        writeln!(out, "BRDA:{line},{pair},{number},{count}")?;
                    } else {
                        writeln!(out, "BRDA:{line},{pair},{number},-")?;
                    }
                }
            }
        }
        let (found, hit) = numbers(taken, row.all.branches);
        writeln!(out, "BRF:{found}\nBRH:{hit}")?;

        let mut lines = Figure::default();
        for line in &file.lines {
            let count = view.joined(&line.counts).unwrap_or(0);
            lines.count(count > 0);
            writeln!(out, "DA:{},{count}", line.number)?;
        }
        let (found, hit) = numbers(lines, row.all.lines);
        writeln!(out, "LF:{found}\nLH:{hit}\nend_of_record")?;
    }
    Ok(())
}
