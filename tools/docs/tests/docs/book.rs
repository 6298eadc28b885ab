//! The book: it builds, and its summary has every chapter.

use mdbook_driver::MDBook;

use crate::links::{Document, documents};
use crate::{read, repository};

#[test]
fn the_book_builds() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut book = MDBook::load(repository("docs")).expect("the book can be read");
    book.config.build.build_dir = directory.path().to_owned();
    book.build().expect("the book can be built");
    // Its headings have the anchors that the check of links expects.
    let source = repository("docs/src");
    for path in documents() {
        let Ok(chapter) = path.strip_prefix(&source) else {
            continue;
        };
        if chapter.ends_with("SUMMARY.md") {
            continue;
        }
        let page = read(&directory.path().join(chapter).with_extension("html"));
        for anchor in Document::read(&path).anchors {
            let id = format!("id=\"{anchor}\"");
            assert!(page.contains(&id), "{} has no {id}", chapter.display());
        }
    }
}

#[test]
fn the_summary_has_every_chapter() {
    let source = repository("docs/src");
    let summary = read(&source.join("SUMMARY.md"));
    for path in documents() {
        let Ok(chapter) = path.strip_prefix(&source) else {
            continue;
        };
        let chapter = chapter.display().to_string();
        assert!(
            chapter == "SUMMARY.md" || summary.contains(&format!("({chapter})")),
            "docs/src/SUMMARY.md lacks {chapter}"
        );
    }
}

/// Returns the lines of the blocks of shell commands in a document.
fn commands(path: &str) -> Vec<String> {
    let text = read(&repository(path));
    let blocks = text
        .split("```sh\n")
        .skip(1)
        .filter_map(|block| block.split("```").next());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

#[test]
fn the_quick_start_has_the_commands_of_the_readme() {
    // A test of the crate rocov runs those of the README.
    let tried = commands("README.md");
    for chapter in ["docs/src/quick-start.md", "docs/src/install.md"] {
        for command in commands(chapter) {
            assert!(
                tried.contains(&command),
                "{chapter}: README.md does not have {command}"
            );
        }
    }
}
