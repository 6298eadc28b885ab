//! Sentences of comments and of Markdown start with their subject.

use std::path::{Path, PathBuf};

use crate::tokens::scan;
use crate::{COMMENTED, read, read_all};

/// The files and folders whose Markdown is read.
const PROSE: [&str; 8] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "benches",
    "testdata",
    "tools",
];

/// The words that no sentence starts with. They make a clause of the subject; the last two point at a
/// neighbour that a reader may not see.
const CLAUSES: [&str; 11] = [
    "What ",
    "Whatever ",
    "Where ",
    "Wherever ",
    "Whether ",
    "Which ",
    "Who ",
    "Whoever ",
    "Of ",
    "Likewise",
    "The same ",
];

#[test]
fn sentences_start_with_their_subject() {
    let mut found = Vec::new();
    for folder in COMMENTED {
        let sources = read(folder);
        assert!(!sources.is_empty(), "{folder} has no sources");
        for source in sources {
            let path = Path::new(folder).join(&source.path);
            found.extend(clauses(&path, &comments(&source.text)));
        }
    }
    for place in PROSE {
        let sources = read_all(place, "md");
        assert!(!sources.is_empty(), "{place} has no Markdown");
        for source in sources {
            // A file joined with nothing would end with a slash.
            let path: PathBuf = Path::new(place).iter().chain(&source.path).collect();
            found.extend(clauses(&path, &markdown(&source.text)));
        }
    }
    assert!(
        found.is_empty(),
        "{} sentences start with a clause:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Returns the sentences of a file that start with a clause.
fn clauses(path: &Path, paragraphs: &[Paragraph]) -> Vec<String> {
    let sentences = paragraphs.iter().flat_map(Paragraph::sentences);
    sentences
        .filter(|(_, sentence)| starts_with_a_clause(sentence))
        .map(|(line, sentence)| format!("{}:{line}: {sentence}", path.display()))
        .collect()
}

/// Returns whether a sentence starts with a clause. A question is none.
fn starts_with_a_clause(sentence: &str) -> bool {
    CLAUSES.iter().any(|clause| sentence.starts_with(clause)) && !sentence.ends_with('?')
}

/// Running text without markup at its beginning.
#[derive(Debug, Default)]
struct Paragraph {
    /// Its lines, each with its number from 1.
    lines: Vec<(usize, String)>,
}

impl Paragraph {
    /// Returns its sentences, each with the number of the line on which it starts.
    fn sentences(&self) -> Vec<(usize, String)> {
        let mut sentences: Vec<(usize, String)> = Vec::new();
        let mut is_end = true;
        for (number, line) in &self.lines {
            for word in line.split_whitespace() {
                if is_end {
                    sentences.push((*number, word.to_owned()));
                } else if let Some((_, sentence)) = sentences.last_mut() {
                    sentence.push(' ');
                    sentence.push_str(word);
                }
                is_end = word.ends_with(['.', '?', '!']);
            }
        }
        sentences
    }
}

/// Returns the paragraphs of Markdown: its headings, list items and cells of tables too. Leaves out blocks
/// of code.
fn markdown(text: &str) -> Vec<Paragraph> {
    let lines = text.lines().enumerate();
    paragraphs(lines.map(|(at, line)| (at + 1, line.to_owned())))
}

/// Returns the paragraphs of the comments of a source.
fn comments(text: &str) -> Vec<Paragraph> {
    let mut found = Vec::new();
    let mut block: Vec<(usize, String)> = Vec::new();
    for (comment, line) in scan(text).1 {
        let body = comment.trim_start_matches('/');
        let body = body.strip_prefix('!').unwrap_or(body).to_owned();
        if block.last().is_some_and(|(last, _)| last + 1 != line) {
            found.extend(paragraphs(block.drain(..)));
        }
        block.push((line, body));
    }
    found.extend(paragraphs(block.into_iter()));
    found
}

/// Returns the paragraphs of numbered lines of Markdown.
fn paragraphs(lines: impl Iterator<Item = (usize, String)>) -> Vec<Paragraph> {
    let mut found = vec![Paragraph::default()];
    let mut is_code = false;
    for (number, line) in lines {
        let text = line.trim();
        let is_fence = text.starts_with("```");
        is_code ^= is_fence;
        let unmarked = without_marker(text);
        let is_row = text.starts_with('|');
        if text.is_empty() || is_fence || is_row || unmarked != text {
            found.push(Paragraph::default());
        }
        if is_code || is_fence {
            continue;
        }
        if is_row {
            found.extend(text.split('|').map(|cell| Paragraph {
                lines: vec![(number, cell.trim().to_owned())],
            }));
            found.push(Paragraph::default());
        } else if let Some(paragraph) = found.last_mut() {
            paragraph.lines.push((number, unmarked.to_owned()));
        }
    }
    found
}

/// Returns a line without the marker of a heading, a quotation or a list item.
fn without_marker(line: &str) -> &str {
    let digits = line.trim_start_matches(|character: char| character.is_ascii_digit());
    let numbered = digits.strip_prefix(". ").filter(|_| digits != line);
    let bulleted = ["- ", "* ", "> "]
        .iter()
        .find_map(|marker| line.strip_prefix(marker));
    let hashes = line.trim_start_matches('#');
    let heading = hashes.strip_prefix(' ').filter(|_| hashes != line);
    numbered.or(bulleted).or(heading).unwrap_or(line)
}

#[test]
fn clauses_are_found() {
    let count = |paragraphs: Vec<Paragraph>| clauses(Path::new("file"), &paragraphs).len();
    for text in [
        "    /// What a drain has found.",
        "//! Whether it counts.",
        "// What follows is code.",
        "let sum = 1; // Where it starts.",
        "/// It counts. What is lost is named.",
        "/// It counts.\n/// Who counts is named.",
        "/// It counts. Whatever\n/// is left stays.",
        "/// - one\n/// - Where it lies",
        "// The same for files.",
    ] {
        assert_eq!(count(comments(text)), 1, "{text}");
    }
    for text in [
        "/// Returns whether it counts.",
        "/// What is a code object?",
        "/// What is a code\n/// object?",
        "/// Output:\n/// ```\n/// What it prints\n/// ```",
        "let url = \"a//b\"; let text = \"// What is lost.\";",
        "/// Whatsoever.",
    ] {
        assert_eq!(count(comments(text)), 0, "{text}");
    }
    for text in [
        "What is lost is named.",
        "## Where files lie",
        "It counts. Whoever starts it\nwaits.",
        "1. It counts.\n2. What is left stays.",
        "| `a` | What it has found |",
    ] {
        assert_eq!(count(markdown(text)), 1, "{text}");
    }
    for text in [
        "## Where do files lie?",
        "| What | Where |",
        "```text\nWhat is lost is named.\n```",
        "It names what is lost.",
    ] {
        assert_eq!(count(markdown(text)), 0, "{text}");
    }
    let found = clauses(
        Path::new("file"),
        &comments("\n/// It counts.\n/// It ends. What\n/// is left."),
    );
    assert_eq!(found, ["file:3: What is left."]);
}
