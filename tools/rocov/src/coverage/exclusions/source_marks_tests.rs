//! Tests of the marks of a source.

use super::*;

fn marks(text: &str) -> SourceMarks {
    SourceMarks::read(text.as_bytes(), None, &Names::new())
}

fn lines(marks: &SourceMarks) -> Vec<(RangeInclusive<u32>, String)> {
    let lines = marks.lines.iter();
    lines
        .map(|marked| (marked.lines.clone(), marked.reason.to_string()))
        .collect()
}

#[test]
fn markers_of_each_tool_exclude_lines_and_branches() {
    for tool in TOOLS {
        let text = format!(
            "a; // {tool}_EXCL_LINE\nb; /* {tool}_EXCL_BR_LINE */\n// {tool}_EXCL_START\nc;\n\
             // {tool}_EXCL_STOP\n// {tool}_EXCL_BR_START\nd;\n// {tool}_EXCL_BR_STOP\n\
             void f() {{ // {tool}_EXCL_FUNCTION\n"
        );
        let marks = marks(&text);
        let expected = [
            (1..=1, format!("{tool}_EXCL_LINE")),
            (3..=4, format!("{tool}_EXCL_START in line 3")),
        ];
        assert_eq!(lines(&marks), expected);
        let branches = marks.branches.iter();
        let branches = branches.map(|marked| (marked.lines.clone(), marked.reason.to_string()));
        let expected = [
            (2..=2, format!("{tool}_EXCL_BR_LINE")),
            (6..=7, format!("{tool}_EXCL_BR_START in line 6")),
        ];
        assert_eq!(branches.collect::<Vec<_>>(), expected);
        let (line, reason) = &marks.functions[0];
        assert_eq!(*line, 9);
        assert_eq!(
            reason.to_string(),
            format!("{tool}_EXCL_FUNCTION in line 9")
        );
        assert_eq!(marks.faults, [], "{tool}");
    }
    assert!(!marks("x; // NOT_A_TOOL_EXCL_LINE\n").exclude_code(false));
    assert!(!marks("x; // LCOV_EXCL_LINES\n").exclude_code(false));
}

#[test]
fn a_marker_without_its_other_end_is_named() {
    let start = marks("a;\n// LCOV_EXCL_START\nb;\nc;");
    let rest = (2..=4, "LCOV_EXCL_START in line 2".to_owned());
    assert_eq!(lines(&start), [rest]);
    assert!(
        start.faults[0]
            .what()
            .starts_with("2: LCOV_EXCL_START has no LCOV_EXCL_STOP")
    );
    let stop = marks("a;\n// LCOV_EXCL_STOP\n");
    assert!(!stop.exclude_code(false));
    assert!(
        stop.faults[0].what().starts_with("2: "),
        "{:?}",
        stop.faults
    );
}

#[test]
fn the_text_behind_a_marker_is_its_note() {
    for (comment, expected) in [
        ("// LCOV_EXCL_LINE debug only", "LCOV_EXCL_LINE: debug only"),
        (
            "/* LCOV_EXCL_LINE: f(x) traps */ y;",
            "LCOV_EXCL_LINE: f(x) traps",
        ),
        (
            "// GCOVR_EXCL_LINE (no GPU has it)",
            "GCOVR_EXCL_LINE: no GPU has it",
        ),
        ("// LCOV_EXCL_LINE LCOV_EXCL_BR_LINE", "LCOV_EXCL_LINE"),
    ] {
        let marks = marks(&format!("x; {comment}\n"));
        assert_eq!(lines(&marks), [(1..=1, expected.to_owned())]);
    }
}

#[test]
fn pragmas_exclude_a_line_or_a_clause_of_python() {
    let text = "def f(x):\n  a = 1  # pragma: no cover\n  if x:  # pragma: no cover\n    b = 2\n\n    c = 3\n  d = 4\n";
    let expected = [
        (2..=2, "pragma: no cover".to_owned()),
        (3..=6, "pragma: no cover in line 3".to_owned()),
    ];
    assert_eq!(lines(&marks(text)), expected);
    let line = &lines(&marks("a(); // pragma: no cover\nb();\n"))[0];
    assert_eq!(line.0, 1..=1);
    assert!(!marks("say(\"no cover\"); // a pragma of ours\n").exclude_code(false));
}

#[test]
fn calls_are_found_in_code_only() {
    let text = "a(); __builtin_unreachable();\n// __builtin_unreachable();\n/* assert(x)\n assert(y) */ assert (z);\n\
                p(\"assert(q)\"); my_assert(r); static_assert(s);\nn = 1'000; std::unreachable(); assert(f(1) &&\n  2);\n";
    let marks = marks(text);
    let place = |place: Place| (place.line, place.column);
    let unreachable = marks.unreachable.iter();
    let unreachable: Vec<_> = unreachable
        .map(|(at, name)| (place(*at), &**name))
        .collect();
    let expected = [
        ((1, 6), "__builtin_unreachable"),
        ((6, 12), "std::unreachable"),
    ];
    assert_eq!(unreachable, expected);
    let asserts = marks.asserts.iter();
    let asserts: Vec<_> = asserts
        .map(|span| [span.start, span.end].map(place))
        .collect();
    assert_eq!(asserts, [[(4, 15), (4, 25)], [(6, 32), (7, 5)]]);
}

#[test]
fn an_assert_that_never_holds_is_never_reached() {
    let text = "assert(false);\nassert ( 0 );\nassert(false && \"no such kind\");\nassert(0 && x);\n\
                assert(falsely);\nassert(0.5 < x);\nassert(0 < x);\nassert(false || x);\nmy_assert(0);\n// assert(0)\n";
    let marks = marks(text);
    let unreachable = marks.unreachable.iter();
    let unreachable: Vec<_> = unreachable.map(|(at, name)| (at.line, &**name)).collect();
    let expected = [
        (1, "assert(false)"),
        (2, "assert(0)"),
        (3, "assert(false)"),
        (4, "assert(0)"),
    ];
    assert_eq!(unreachable, expected);
}

#[test]
fn patterns_exclude_lines() {
    let patterns = RegexSet::new(["NOLINT", r"^\s*log_", "none"]).unwrap();
    let marks = SourceMarks::read(
        b"a; // NOLINT\n  log_it();\nb;\n",
        Some(&patterns),
        &Names::new(),
    );
    let expected = [
        (1..=1, "--exclude-line NOLINT".to_owned()),
        (2..=2, r"--exclude-line ^\s*log_".to_owned()),
    ];
    assert_eq!(lines(&marks), expected);
    assert_eq!(marks.patterns, BTreeSet::from([0, 1]));
}
