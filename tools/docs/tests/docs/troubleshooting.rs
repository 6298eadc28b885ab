//! The chapter on troubleshooting: `docs/troubleshooting.in.md`, with the messages of the sources in it.
//!
//! `{{message PART}}` stands for each message that has this part, `{{whole TEXT}}` for the one that is this text, and
//! `{{errors TYPE}}` for each other one of an error type of the library, in a line of its own. In PART and TEXT, `{}`
//! stands for a value.

use std::collections::BTreeSet;

use crate::messages::{Printer, Template, templates};
use crate::{read, repository};

/// A line of the source.
enum Line<'a> {
    Text(&'a str),
    /// Messages with a part.
    Part(&'a str),
    /// A message by its whole text.
    Whole(&'a str),
    /// Messages of a type.
    Errors(&'a str),
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        let inside = line
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"));
        match inside.and_then(|words| words.split_once(' ')) {
            Some(("message", part)) => Self::Part(part),
            Some(("whole", text)) => Self::Whole(text),
            Some(("errors", name)) => Self::Errors(name),
            _ => Self::Text(line),
        }
    }

    /// Returns whether the line stands for a message.
    fn has(&self, message: &Template) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Part(part) => message.text.contains(part),
            Self::Whole(text) => message.text == *text,
            Self::Errors(name) => message.printer == Printer::Error((*name).to_owned()),
        }
    }
}

fn source() -> String {
    read(&repository("docs/troubleshooting.in.md"))
}

/// Prints the chapter. The messages before an explanation are quoted.
pub(crate) fn chapter() -> String {
    let templates = templates();
    let source = source();
    let parts: Vec<_> = source
        .lines()
        .map(Line::parse)
        .filter(|line| matches!(line, Line::Part(_) | Line::Whole(_)))
        .collect();
    let is_elsewhere = |message: &Template| parts.iter().any(|part| part.has(message));
    let mut chapter = String::new();
    let mut is_quote = false;
    for text in source.lines() {
        let line = Line::parse(text);
        if let Line::Text(text) = line {
            if std::mem::take(&mut is_quote) {
                chapter.push('\n');
            }
            chapter += &format!("{text}\n");
            continue;
        }
        let is_here = |message: &&Template| {
            let is_part = matches!(line, Line::Part(_) | Line::Whole(_));
            line.has(message) && (is_part || !is_elsewhere(message))
        };
        let messages: BTreeSet<_> = templates
            .iter()
            .filter(is_here)
            .filter(|message| message.text.trim().contains(' '))
            .map(|message| code(&message.text))
            .collect();
        assert!(
            !messages.is_empty(),
            "no source prints a message for {text}"
        );
        for message in messages {
            if is_quote {
                // A line of its own.
                chapter.insert(chapter.len() - 1, '\\');
            }
            chapter += &format!("> {message}\n");
            is_quote = true;
        }
    }
    chapter
}

/// Returns a message as Markdown, with `...` for each value.
fn code(message: &str) -> String {
    let joined = message.trim().replace("{}..{}", "{}").replace("{}{}", "{}");
    let message = joined.replace("{}", "...");
    let fence = if message.contains('`') { "``" } else { "`" };
    // A blank parts the fence from a mark at the end.
    let blank = if message.starts_with('`') || message.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{blank}{message}{blank}{fence}")
}

#[test]
fn every_line_of_librocov_is_explained() {
    let source = source();
    let lines: Vec<_> = source.lines().map(Line::parse).collect();
    let is_of_librocov =
        |message: &&Template| matches!(message.printer, Printer::Librocov | Printer::Error(_));
    let templates = templates();
    let has_words = |message: &&Template| message.text.contains(' ');
    let messages = templates.iter().filter(is_of_librocov).filter(has_words);
    let is_missing = |message: &&Template| !lines.iter().any(|line| line.has(message));
    let missing: Vec<_> = messages.filter(is_missing).collect();
    assert!(
        missing.is_empty(),
        "explain these in docs/troubleshooting.in.md, or list them at its end: {missing:#?}"
    );
}

#[test]
fn messages_are_marked_as_code() {
    assert_eq!(code("cannot read {}{}: {} "), "`cannot read ...: ...`");
    assert_eq!(code("see `rocov show`, or"), "``see `rocov show`, or``");
    assert_eq!(code("see `rocov show`"), "`` see `rocov show` ``");
}
