//! The links of the documents: each file and each anchor is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{files_below, read, repository};

/// The documents outside of the book.
const OTHERS: [&str; 9] = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "benches/README.md",
    "benches/many-processes.md",
    "testdata/README.md",
    "tools/modelgpu/README.md",
    "tools/python/pytest-plugin/README.md",
];

/// Returns all documents.
pub(crate) fn documents() -> Vec<PathBuf> {
    let is_chapter =
        |path: &Path| path.is_dir() || path.extension().is_some_and(|extension| extension == "md");
    let mut documents = files_below(&repository("docs/src"), &is_chapter);
    documents.extend(OTHERS.map(repository));
    documents
}

/// The links of a document, and the anchors of its headings.
#[derive(Default)]
pub(crate) struct Document {
    links: Vec<String>,
    pub(crate) anchors: BTreeSet<String>,
}

/// Returns the text of a chapter, with the files that it includes.
fn text(path: &Path) -> String {
    let expand = |line: &str| {
        let included = line
            .strip_prefix("{{#include ")
            .and_then(|line| line.strip_suffix("}}"));
        match included {
            Some(file) => read(&path.with_file_name(file)),
            None => format!("{line}\n"),
        }
    };
    read(path).lines().map(expand).collect()
}

impl Document {
    /// Reads a document, with the files that it includes.
    pub(crate) fn read(path: &Path) -> Self {
        let mut document = Self::default();
        let mut heading: Option<String> = None;
        let mut numbers = BTreeMap::new();
        let text = text(path);
        let options = Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES;
        for event in Parser::new_ext(&text, options) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    // As GitHub and mdBook number headings of one name.
                    let number = numbers.entry(anchor.clone()).or_insert(0);
                    document.anchors.insert(match *number {
                        0 => anchor,
                        number => format!("{anchor}-{number}"),
                    });
                    *number += 1;
                }
                _ => {}
            }
        }
        document
    }
}

/// Returns the anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let letter = |letter: char| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    };
    heading.chars().filter_map(letter).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let book = repository("docs/src");
    let mut broken = Vec::new();
    for path in documents() {
        let is_in_book = path.starts_with(&book);
        for link in Document::read(&path).links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.with_file_name(file),
            };
            let is_markdown = target
                .extension()
                .is_some_and(|extension| extension == "md");
            let problem = match target.canonicalize() {
                Err(_) => "there is no such file",
                Ok(target)
                    if is_in_book && !target.starts_with(book.canonicalize().expect("a book")) =>
                {
                    "it leaves the book, which is broken when the book is rendered"
                }
                Ok(_) if anchor.is_empty() => continue,
                Ok(_) if is_markdown && Document::read(&target).anchors.contains(anchor) => {
                    continue;
                }
                Ok(_) => "there is no such heading",
            };
            broken.push(format!("{}: {link}: {problem}", path.display()));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn anchors_are_those_of_github() {
    assert_eq!(anchor("Without `rocov run`"), "without-rocov-run");
    assert_eq!(anchor("LLVM's own drain"), "llvms-own-drain");
    assert_eq!(
        anchor("The control socket: a protocol"),
        "the-control-socket-a-protocol"
    );
}
