//! The counts that lines of the program must have, and those that a report shows.

use std::collections::BTreeMap;

/// The start of the mark of a line.
const MARK: &str = "//= ";

/// The lines of a source that have a mark, by their numbers: the count that each must have, and its text.
pub(super) fn expected(source: &str) -> BTreeMap<u32, (u64, &str)> {
    let lines = (1..).zip(source.lines());
    let marked = lines.filter_map(|(number, line)| {
        let (text, count) = line.rsplit_once(MARK)?;
        Some((number, (count.parse().ok()?, text.trim())))
    });
    marked.collect()
}

/// The counts of lines in a tracefile of lcov that has only this source.
pub(super) fn reported(tracefile: &str) -> BTreeMap<u32, u64> {
    let lines = tracefile
        .lines()
        .filter_map(|line| line.strip_prefix("DA:"));
    let counts = lines.filter_map(|line| {
        let (number, count) = line.split_once(',')?;
        Some((number.parse().ok()?, count.parse().ok()?))
    });
    counts.collect()
}

/// A line with another count than it must have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference<'a> {
    pub(super) line: u32,
    pub(super) text: &'a str,
    pub(super) expected: u64,
    /// `None` if the report has no count there.
    pub(super) reported: Option<u64>,
}

/// The lines whose reported counts are not the expected ones. With `reached`, it only matters whether a count is 0.
pub(super) fn differences<'a>(
    expected: &BTreeMap<u32, (u64, &'a str)>,
    reported: &BTreeMap<u32, u64>,
    reached: bool,
) -> Vec<Difference<'a>> {
    let all = expected
        .iter()
        .map(|(&line, &(expected, text))| Difference {
            line,
            text,
            expected,
            reported: reported.get(&line).copied(),
        });
    let differs = |line: &Difference<'_>| match line.reported {
        Some(count) if reached => (count > 0) != (line.expected > 0),
        count => count != Some(line.expected),
    };
    all.filter(differs).collect()
}

/// The likely reason of these differences, and the next step.
pub(super) fn explain(differences: &[Difference<'_>]) -> &'static str {
    let all = |is_so: fn(&Difference<'_>) -> bool| differences.iter().all(is_so);
    if all(|line| line.reported.is_none()) {
        return "the report has none of these lines: look for flags that change the names of sources, such as \
                -fcoverage-prefix-map";
    }
    if all(|line| line.reported.is_some_and(|count| count.min(1) == count)) {
        return "the code records only whether it was reached: look for -enable-single-byte-coverage among the flags, \
        or also use --counters reached";
    }
    if all(|line| {
        line.reported
            .is_some_and(|count| count < line.expected && count > 0)
    }) {
        return "counts are lost: look for flags that sample, or that replace -fprofile-update=atomic";
    }
    "do not trust counts from this compiler and runtime: run this again with --output DIR, and report the files in DIR \
     as a bug in rocov"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "int f() { //= 7\n  return 1; //= 3\n}\n// A line that ends in `//= N`\n";

    fn found(tracefile: &str, reached: bool) -> Vec<(u32, u64, Option<u64>)> {
        let expected = expected(SOURCE);
        let differences = differences(&expected, &reported(tracefile), reached);
        let parts = differences.iter();
        parts
            .map(|line| (line.line, line.expected, line.reported))
            .collect()
    }

    #[test]
    fn lines_with_a_mark_must_have_its_count() {
        assert_eq!(found("SF:a\nDA:1,7\nDA:2,3\nDA:3,9\n", false), []);
        assert_eq!(found("DA:1,7\nDA:2,4\n", false), [(2, 3, Some(4))]);
        assert_eq!(found("DA:2,3\n", false), [(1, 7, None)]);
        assert_eq!(found("DA:1,1\nDA:2,1\n", true), []);
        assert_eq!(found("DA:1,1\nDA:2,0\n", true), [(2, 3, Some(0))]);
    }

    #[test]
    fn differences_are_explained() {
        let step =
            |tracefile| explain(&differences(&expected(SOURCE), &reported(tracefile), false));
        assert!(step("").contains("none of these lines"));
        assert!(step("DA:1,1\nDA:2,1\n").contains("--counters reached"));
        assert!(step("DA:1,5\nDA:2,2\n").contains("counts are lost"));
        assert!(step("DA:1,9\nDA:2,2\n").contains("do not trust"));
    }
}
