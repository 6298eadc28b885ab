//! The output of `cargo test`.

use std::collections::BTreeSet;
use std::fmt;

/// The sums over all test programs of a log.
#[derive(Debug, Default, PartialEq)]
pub struct Summary {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that only run on request.
    pub ignored: u64,
    /// Test programs.
    pub programs: u64,
    /// The reasons of tests that did not run, because this machine lacks something. They pass.
    pub not_run: BTreeSet<String>,
    /// The paths of records that are out of date.
    pub stale: BTreeSet<String>,
    /// The paths of records that were written.
    pub written: BTreeSet<String>,
}

impl Summary {
    /// Reads a log.
    #[must_use]
    pub fn from_log(log: &str) -> Self {
        let mut summary = Self::default();
        for line in log.lines() {
            if let Some(counts) = line.strip_prefix("test result: ") {
                summary.add(counts);
            }
            let tail = |mark| line.find(mark).map(|at| line[at..].to_owned());
            summary.not_run.extend(tail("not run: "));
            let path = |mark| line.split_once(mark).map(|(_, path)| path.to_owned());
            summary.stale.extend(path("record stale: "));
            summary.written.extend(path("record written: "));
        }
        summary
    }

    /// Adds the counts of a program: `ok. 4 passed; 0 failed; 1 ignored; ...`.
    fn add(&mut self, counts: &str) {
        let words: Vec<_> = counts.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else {
                continue;
            };
            match pair[1] {
                "passed;" => self.passed += count,
                "failed;" => self.failed += count,
                "ignored;" => self.ignored += count,
                _ => {}
            }
        }
        self.programs += 1;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "== {} tests passed, {} failed, {} ignored, in {} test programs",
            self.passed, self.failed, self.ignored, self.programs
        )?;
        if !self.not_run.is_empty() {
            write!(
                formatter,
                "\n== {} not run, because this machine lacks something:",
                self.not_run.len()
            )?;
            for line in &self.not_run {
                write!(formatter, "\n{line}")?;
            }
        }
        if !self.stale.is_empty() {
            write!(formatter, "\n== {}", stale(&self.stale))?;
        }
        Ok(())
    }
}

/// Returns the lines that name records that are out of date, and what to do.
#[must_use]
pub fn stale(paths: &BTreeSet<String>) -> String {
    let mut text = format!(
        "{} out of date: run `cargo xtask bless`, and look at the difference before you commit it",
        match paths.len() {
            1 => "1 record is".to_owned(),
            count => format!("{count} records are"),
        }
    );
    for path in paths {
        text += "\n";
        text += path;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
     Running unittests src/lib.rs (target/release/deps/rocov-1)

running 3 tests
test a ... ok
not run: clang-16 is not unpacked: nothing is compiled by clang 16
test b ... FAILED
test c ... record stale: docs/src/reference/cli.md
record written: runtime/include/rocov.h
ignored

test result: FAILED. 291 passed; 1 failed; 2 ignored; 0 measured; 5 filtered out; finished in 5.48s
    not run: clang-16 is not unpacked: nothing is compiled by clang 16
error: test failed, to rerun pass `--lib`
   Doc-tests rocov
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn counts_are_sums_over_all_programs() {
        let summary = Summary::from_log(LOG);
        let counts = [
            summary.passed,
            summary.failed,
            summary.ignored,
            summary.programs,
        ];
        assert_eq!(counts, [294, 1, 2, 2]);
    }

    #[test]
    fn each_reason_and_each_record_is_listed_once() {
        let text = Summary::from_log(LOG).to_string();
        assert_eq!(
            text,
            "== 294 tests passed, 1 failed, 2 ignored, in 2 test programs\n\
             == 1 not run, because this machine lacks something:\n\
             not run: clang-16 is not unpacked: nothing is compiled by clang 16\n\
             == 1 record is out of date: run `cargo xtask bless`, and look at the difference before you commit it\n\
             docs/src/reference/cli.md"
        );
    }

    #[test]
    fn an_empty_log_has_no_tests() {
        let summary = Summary::from_log("error: could not compile `rocov`\n");
        assert_eq!(summary, Summary::default());
        assert_eq!(
            summary.to_string(),
            "== 0 tests passed, 0 failed, 0 ignored, in 0 test programs"
        );
    }
}
