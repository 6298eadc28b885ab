//! Lines that did not run, in the table and below it.

use super::*;
use crate::report::archs::expected_lines;

/// The ranges of lines that have a count of 0, worked out by hand.
fn missed(count: fn(&[Option<u64>; 2]) -> Option<u64>) -> String {
    let missed = expected_lines(count).into_iter();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (line, _) in missed.filter(|(_, count)| *count == 0) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    let ranges = ranges.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

#[test]
fn lines_that_did_not_run_are_a_column_and_a_list() {
    let (place, elfs) = Place::with_archs();
    let gfx942 = missed(|counts| counts[1]);
    assert_eq!(gfx942, "13, 16-21, 27-28, 31-34");
    let said = place.of_archs(&elfs, &["--show-missing"]);
    let rows = |name: &str| -> Vec<String> {
        let rows = said.lines().filter(|line| line.starts_with(name));
        rows.map(str::to_owned).collect()
    };
    let headings = rows("Filename");
    assert_eq!(headings.len(), 3);
    for heading in headings {
        assert!(heading.ends_with("Cover   Missing"), "{heading}");
    }
    // gfx90a and all ran every line.
    let sources = rows("archs.hip");
    assert!(sources[0].ends_with('%'), "{said}");
    assert!(sources[1].ends_with(&format!("%   {gfx942}")), "{said}");
    assert!(sources[2].ends_with('%'), "{said}");
    assert!(!said.contains("Lines that did not run:"), "{said}");

    let list = |arguments: &[&str]| {
        let said = place.of_archs(&elfs, arguments);
        assert!(!said.contains("Missing"), "{said}");
        let list = said.split_once("\nLines that did not run:\n");
        list.map(|(_, list)| list.to_owned())
    };
    assert_eq!(list(&["--show-missing-lines"]), None);
    assert_eq!(
        list(&["--show-missing-lines", "--arch=gfx942"]).as_deref(),
        Some(&*format!("  archs.hip: {gfx942}\n"))
    );
}

/// As cargo-llvm-cov, whose users write annotated source to a file so.
#[test]
fn annotated_source_goes_to_a_file() {
    let (place, elfs) = Place::with_archs();
    let shown = place.of_archs(&elfs, &["--show"]);
    assert!(shown.contains("return value * 2;"), "{shown}");
    let path = place.path().join("report");
    let said = place.of_archs(&elfs, &["--text", "--output-path=report"]);
    assert_eq!(said, "");
    assert_eq!(fs::read_to_string(path).unwrap(), shown);
}
