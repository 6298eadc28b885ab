//! The blocks of code in a page, and the commands in a block.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A fenced block.
pub(super) struct Block {
    /// The line of its text in the page.
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: String,
}

/// A command, and the lines that the page prints below it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) command: String,
    pub(super) printed: Vec<String>,
}

impl Block {
    /// All fenced blocks of a page, in their order.
    pub(super) fn all(page: &str) -> Vec<Self> {
        let mut blocks: Vec<Self> = Vec::new();
        let mut is_within = false;
        for (event, range) in Parser::new(page).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    is_within = true;
                    blocks.push(Self {
                        line: page[..range.start].lines().count() + 1,
                        language: language.into_string(),
                        text: String::new(),
                    });
                }
                Event::Text(text) if is_within => {
                    let block = blocks.last_mut().expect("a block has started");
                    block.text.push_str(&text);
                }
                Event::End(TagEnd::CodeBlock) => is_within = false,
                _ => {}
            }
        }
        blocks
    }

    /// The commands of a script, or of a session with prompts. `None` if it is neither.
    pub(super) fn steps(&self) -> Option<Vec<Step>> {
        match &*self.language {
            "sh" | "bash" => Some(vec![Step {
                command: self.text.clone(),
                printed: Vec::new(),
            }]),
            _ if self.text.starts_with("$ ") => Some(self.session()),
            _ => None,
        }
    }

    fn session(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for line in self.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push(Step {
                    command: command.to_owned(),
                    printed: Vec::new(),
                });
                continue;
            }
            let step = steps.last_mut().expect("a session starts with a command");
            let more = match line.strip_prefix("> ") {
                Some(more) if step.printed.is_empty() => Some(more),
                _ => step.command.ends_with('\\').then_some(line),
            };
            match more {
                Some(more) => {
                    step.command.push('\n');
                    step.command.push_str(more);
                }
                None => step.printed.push(line.to_owned()),
            }
        }
        steps
    }
}

/// Returns whether a command printed these lines, of which `...` stands for any number. Unless they are the `whole` output,
/// others may follow.
pub(super) fn is_printed(expected: &[String], found: &[String], whole: bool) -> bool {
    match expected.split_first() {
        None => !whole || found.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=found.len()).any(|skipped| is_printed(rest, &found[skipped..], whole))
        }
        Some((line, rest)) => found
            .split_first()
            .is_some_and(|(first, others)| first == line && is_printed(rest, others, whole)),
    }
}

#[test]
fn a_session_has_commands_and_their_output() {
    let page = "text\n\n```console\n$ a \\\n    b\n1\n2\n$ for x in y; do\n>   echo\n> done\n```\n";
    let blocks = Block::all(page);
    assert_eq!((blocks.len(), blocks[0].line), (1, 3));
    let step = |command: &str, printed: &[&str]| Step {
        command: command.to_owned(),
        printed: printed.iter().map(|&line| line.to_owned()).collect(),
    };
    let expected = [
        step("a \\\n    b", &["1", "2"]),
        step("for x in y; do\n  echo\ndone", &[]),
    ];
    assert_eq!(blocks[0].steps().expect("a session"), expected);
}

#[test]
fn dots_stand_for_any_lines() {
    let lines = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    let found = lines("a b c d");
    for (expected, whole, is) in [
        ("a b c d", true, true),
        ("a ... d", true, true),
        ("a b ... c d", true, true),
        ("a ... c", true, false),
        ("a ... c", false, true),
        ("b c", false, false),
        ("... b c", false, true),
    ] {
        let is_it = is_printed(&lines(expected), &found, whole);
        assert_eq!(is_it, is, "{expected}");
    }
}
