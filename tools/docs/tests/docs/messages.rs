//! The messages of the chapter on troubleshooting: each is in the sources.

use crate::settings::{is_product, sources};
use crate::{read, repository};

/// The section with the messages of compilers and linkers.
const FOREIGN: &str = "Compiling and linking fails";

/// Returns the text of a source with its string literals in one line each, as they are printed.
fn joined(source: &str) -> String {
    let lines = source.lines().map(|line| {
        let line = line.trim_start();
        line.strip_suffix('\\')
            .map_or(format!("{line}\n"), str::to_owned)
    });
    lines.collect::<String>().replace("\\\"", "\"")
}

/// Returns the parts of the messages in the first column of the chapter's tables, between dots.
fn parts(chapter: &str) -> Vec<&str> {
    let sections = chapter.split("\n## ").skip(1);
    let own = sections.filter(|section| !section.starts_with(FOREIGN));
    let rows = own
        .flat_map(str::lines)
        .filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let parts = spans.flat_map(|span| span.split("..."));
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

#[test]
fn every_message_of_the_chapter_is_in_the_sources() {
    let chapter = read(&repository("docs/src/troubleshooting.md"));
    let product = sources()
        .into_iter()
        .filter(|source| is_product(&source.path));
    let sources: Vec<_> = product.map(|source| joined(&source.text)).collect();
    let parts = parts(&chapter);
    assert!(parts.len() > 40, "only {} parts of messages", parts.len());
    let is_missing = |part: &&&str| !sources.iter().any(|source| source.contains(**part));
    let missing: Vec<_> = parts.iter().filter(is_missing).collect();
    assert!(
        missing.is_empty(),
        "docs/src/troubleshooting.md has messages that no source prints: {missing:#?}"
    );
}
