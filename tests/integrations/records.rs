//! Records that tests compare: differences are found, and written only on request.

use std::fs;

use rocov_tests::records::{Difference, differences};

#[test]
fn all_stale_records_are_found_and_written_only_on_request() {
    let root = tempfile::tempdir().expect("a directory");
    let recorded = |name| fs::read_to_string(root.path().join(name)).ok();
    fs::write(root.path().join("a.txt"), "one\nthree\n").expect("a file");
    fs::write(root.path().join("d.txt"), "same\n").expect("a file");
    let compare = |are_written| {
        let made = [
            ("a.txt", "one\ntwo\n"),
            ("b/c.txt", "new\n"),
            ("d.txt", "same\n"),
        ];
        let made = made.map(|(path, text)| (path, text.to_owned()));
        let found = differences(root.path(), made, are_written);
        let described = |found: Difference| format!("{}: {}", found.path.display(), found.lines);
        found.into_iter().map(described).collect::<Vec<_>>()
    };
    let stale = [
        "a.txt: @@ -1,2 +1,2 @@\n one\n-three\n+two",
        "b/c.txt: @@ -0,0 +1 @@\n+new",
    ];
    assert_eq!(compare(false), stale);
    assert_eq!(recorded("a.txt").as_deref(), Some("one\nthree\n"));
    assert_eq!(recorded("b/c.txt"), None);

    assert_eq!(compare(true), stale);
    assert_eq!(recorded("a.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(recorded("b/c.txt").as_deref(), Some("new\n"));
    assert_eq!(compare(false), [""; 0]);
}

#[test]
fn a_long_difference_is_cut() {
    let root = tempfile::tempdir().expect("a directory");
    let made: String = (0..100).map(|number| format!("{number}\n")).collect();
    let found = differences(root.path(), [("a.txt", made)], false);
    let shown = &found[0].lines;
    assert!(shown.starts_with("@@ -0,0 +1,100 @@\n+0\n"), "{shown}");
    assert!(shown.ends_with("+38\n... 61 more lines"), "{shown}");
}
