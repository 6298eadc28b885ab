//! LCOV's tracefile, see geninfo(1): the columns joined, one section per source file.
//!
//! As llvm-cov writes it, but for the numbers of things found and hit: these are of the records
//! written here, as geninfo(1) says and lcov counts them. llvm-cov has its summary's there. And a
//! side of a branch that the compiler folded is left out, which llvm-cov has as never taken. By the rules of llvm-cov,
//! both are as it has them.
//!
//! A report by test has a section for each test that reached a file, and one without a name for the counts of no
//! test. lcov adds them up to the report without tests. Only the count of a line can be smaller there: it is the largest of
//! the line's regions, which can be another one in each test.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Crc;

use crate::coverage::figures::{Figure, Figures};
use crate::coverage::joined_file::JoinedFile;
use crate::coverage::line_table::is_without_lines;
use crate::coverage::view::{Rules, View};
use crate::support::printable::printable;

/// Writes the report, with no count above `max_count`.
pub(super) fn write(view: &View, max_count: u64, out: &mut dyn Write) -> io::Result<()> {
    let is_own = view.rules == Rules::Own;
    let mut records = Records {
        max_count,
        folded: (!is_own).then_some(0),
        out,
    };
    let labels = view.label_counts.iter().map(|counts| counts.label.as_str());
    let names = test_names(labels);
    let rows = view.rows().filter(|(path, _)| !is_without_lines(path));
    for (path, row) in rows {
        let all = view.joined_file(path);
        if names.is_empty() {
            let summary = (!is_own).then_some(&row.all);
            records.section(path, &all, summary)?;
            continue;
        }
        let mut rest = all.clone();
        let mut is_reached = false;
        for (counts, name) in view.label_counts.iter().zip(&names) {
            if let Some(part) = counts.files.get(path) {
                records.record("TN", name)?;
                records.section(path, &all.with_counts_of(part), None)?;
                rest.subtract(part);
                is_reached = true;
            }
        }
        if !is_reached || rest.has_run() {
            records.record("TN", "")?;
            records.section(path, &rest, None)?;
        }
    }
    Ok(())
}

/// A tracefile that is being written.
struct Records<'a> {
    max_count: u64,
    /// The count of a side of a branch that the compiler folded; `None` to leave such sides out.
    folded: Option<u64>,
    out: &'a mut dyn Write,
}

impl Records<'_> {
    /// Writes a record. Its text stays in its line.
    fn record(&mut self, name: &str, text: &str) -> io::Result<()> {
        writeln!(self.out, "{name}:{}", printable(text))
    }

    /// Writes the records of a source file. The numbers of things found and hit are those of the summary, if there is
    /// one, else those of the records.
    fn section(
        &mut self,
        path: &str,
        file: &JoinedFile,
        summary: Option<&Figures>,
    ) -> io::Result<()> {
        let max_count = self.max_count;
        let limit = |count: u64| count.min(max_count);
        self.record("SF", path)?;
        for (line, name) in file.functions.keys() {
            self.record("FN", &format!("{line},{name}"))?;
        }
        for ((_, name), calls) in &file.functions {
            self.record("FNDA", &format!("{},{name}", limit(*calls)))?;
        }
        self.found(
            "FN",
            summary.map_or_else(|| figure(file.functions.values()), |all| all.functions),
        )?;

        let mut taken = Figure::default();
        for (line, branches) in file.branches_by_line() {
            for (pair, sides) in branches.into_iter().enumerate() {
                // A dash if the condition was never evaluated.
                let is_reached = sides.iter().any(|count| *count > Some(0));
                for (side, count) in sides.into_iter().enumerate() {
                    let Some(count) = count.or(self.folded) else {
                        continue;
                    };
                    let number = 2 * pair + side;
                    taken.count(count > 0);
                    let text = match is_reached {
                        true => limit(count).to_string(),
                        false => "-".to_owned(),
                    };
                    self.record("BRDA", &format!("{line},{pair},{number},{text}"))?;
                }
            }
        }
        self.found("BR", summary.map_or(taken, |all| all.branches))?;

        for (line, count) in &file.lines {
            self.record("DA", &format!("{line},{}", limit(*count)))?;
        }
        self.found(
            "L",
            summary.map_or_else(|| figure(file.lines.values()), |all| all.lines),
        )?;
        writeln!(self.out, "end_of_record")
    }

    /// Writes the numbers of things of one kind that were found and hit.
    fn found(&mut self, kind: &str, figure: Figure) -> io::Result<()> {
        let Figure { total, covered } = figure;
        writeln!(self.out, "{kind}F:{total}\n{kind}H:{covered}")
    }
}

/// The number of counts, and that of counts above 0.
fn figure<'a>(counts: impl Iterator<Item = &'a u64>) -> Figure {
    let mut figure = Figure::default();
    counts.for_each(|count| figure.count(*count > 0));
    figure
}

/// Names for tests with these labels, as lcov takes them: letters, digits and underscores. Labels that would have one
/// name get a number of their own at its end.
fn test_names<'a>(labels: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let plain = |label: &str| label.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    let mut uses: HashMap<String, usize> = HashMap::new();
    for label in labels.clone() {
        *uses.entry(plain(label)).or_default() += 1;
    }
    let name = |label: &str| {
        let name = plain(label);
        if uses[&name] == 1 {
            return name;
        }
        let mut hash = Crc::new();
        hash.update(label.as_bytes());
        format!("{name}_{:08x}", hash.sum())
    };
    labels.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_are_words_and_differ() {
        let names = |labels: &[&str]| test_names(labels.iter().copied());
        assert_eq!(names(&["unit/add", "x.y", "é"]), ["unit_add", "x_y", "_"]);
        // CRC-32 as zlib has it.
        let same = names(&["a/b", "a.b", "a_c"]);
        assert_eq!(same, ["a_b_07f4401c", "a_b_1eef715d", "a_c"]);
    }
}
