//! README.md and CONTRIBUTING.md are short.

use std::fs;

use xtask::repository;

#[test]
fn the_documents_of_the_root_are_short() {
    for (name, allowed) in [("README.md", 200), ("CONTRIBUTING.md", 120)] {
        let text = fs::read_to_string(repository(name)).expect("a document");
        let lines = text.lines().count();
        assert!(
            lines <= allowed,
            "{name} has {lines} lines, {allowed} are allowed: move text to the book"
        );
    }
}
