//! LCOV's tracefile, see geninfo(1): the columns joined, one section per source file.
//!
//! As llvm-cov writes it, but for the numbers of things found and hit: these are of the records
//! written here, as geninfo(1) says and lcov counts them. llvm-cov has its summary's there. And a
//! side of a branch that the compiler folded is left out, which llvm-cov has as never taken.

use std::io::{self, Write};

use crate::coverage::view::View;

pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    for path in view.paths_with_lines() {
        let file = view.file(path);
        writeln!(out, "SF:{path}")?;
        let mut hit = 0;
        for function in &file.functions {
            writeln!(out, "FN:{},{}", function.line, function.name)?;
        }
        for function in &file.functions {
            let calls = view.joined(&function.calls).unwrap_or(0);
            hit += u64::from(calls > 0);
            writeln!(out, "FNDA:{calls},{}", function.name)?;
        }
        writeln!(out, "FNF:{}\nFNH:{hit}", file.functions.len())?;

        let (mut found, mut hit) = (0, 0);
        for (line, branches) in view.branches_by_line(&file) {
            for (pair, sides) in branches.into_iter().enumerate() {
                // A dash if the condition was never evaluated.
                let is_reached = sides.iter().any(|count| *count > Some(0));
                for (side, count) in sides.into_iter().enumerate() {
                    let Some(count) = count else { continue };
                    let number = 2 * pair + side;
                    found += 1;
                    hit += u64::from(count > 0);
                    if is_reached {
                        writeln!(out, "BRDA:{line},{pair},{number},{count}")?;
                    } else {
                        writeln!(out, "BRDA:{line},{pair},{number},-")?;
                    }
                }
            }
        }
        writeln!(out, "BRF:{found}\nBRH:{hit}")?;

        let mut hit = 0;
        for line in &file.lines {
            let count = view.joined(&line.counts).unwrap_or(0);
            hit += u64::from(count > 0);
            writeln!(out, "DA:{},{count}", line.number)?;
        }
        writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", file.lines.len())?;
    }
    Ok(())
}
