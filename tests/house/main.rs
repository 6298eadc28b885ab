//! The rule of the house: a folder is a station, the stations of a crate stand in an order, and a file
//! imports its own station and earlier ones only.
//!
//! It needs sources only: the package xtask, which has no dependencies, compiles it in seconds.
//!
//! Sentences of comments and of Markdown start with their subject. [`dialect`] holds the other rules of style.
//!
//! The tests of imports read `use` items and inline paths that start with `crate::`, `super::` or `self::`, and
//! resolve them to the station that they lead to. They know nothing of re-exports and of names that
//! macros make.

mod dialect;
mod features;
mod readme;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use xtask::repository;

/// A crate under the rule.
struct House {
    /// The folder of its sources.
    sources: &'static str,
    /// Its stations in order: folders, or files without `.rs`.
    stations: &'static [&'static str],
    /// The files outside of the stations. They may import everything.
    root: &'static [&'static str],
}

const HOUSES: &[House] = &[
    House {
        sources: "src",
        stations: &[
            "support", "settings", "format", "device", "discover", "validate", "read", "store",
            "drain", "control",
        ],
        root: &["lib.rs"],
    },
    House {
        sources: "runtime/src",
        stations: &["guest", "elect", "serve", "enter"],
        root: &["lib.rs"],
    },
    House {
        sources: "tools/rocov/src",
        stations: &[
            "support", "term", "system", "llvm", "data", "profdata", "coverage", "dataset",
            "render", "cli", "commands",
        ],
        root: &["main.rs"],
    },
];

/// A folder whose files and folders do not import each other: one subcommand never imports another.
const NEIGHBOURS: &[(&str, &[&str])] = &[("tools/rocov/src", &["commands"])];

#[test]
fn a_file_imports_its_own_station_and_earlier_ones_only() {
    let mut found = Vec::new();
    for house in HOUSES {
        let sources = read(house.sources);
        assert!(!sources.is_empty(), "{} has no sources", house.sources);
        found.extend(breaches(house, &sources));
    }
    assert!(found.is_empty(), "{}", Listed(&found));
}

#[test]
fn a_subcommand_never_imports_another() {
    let mut found = Vec::new();
    for (crate_folder, folder) in NEIGHBOURS {
        let sources = read(crate_folder);
        found.extend(neighbours(crate_folder, folder, &sources));
    }
    assert!(found.is_empty(), "{}", Listed(&found));
}

/// The folders whose comments are read.
const COMMENTED: [&str; 6] = ["src", "runtime", "tools", "tests", "benches", "examples"];

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

/// A source file, or one of Markdown.
struct Source {
    /// Its path from the folder that was read; empty if it is that itself.
    path: PathBuf,
    text: String,
}

/// Reads all sources below a folder of the repository.
fn read(folder: &str) -> Vec<Source> {
    read_all(folder, "rs")
}

/// Reads all files with an extension at or below a path of the repository.
fn read_all(place: &str, extension: &str) -> Vec<Source> {
    let root = repository(place);
    let mut paths = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(path) = paths.pop() {
        // Cargo's output and npm's packages are no sources.
        let is_source = |name: &OsStr| name != "target" && name != "node_modules";
        if path.is_dir() && path.file_name().is_some_and(is_source) {
            let entries = fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            paths.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
        } else if path.is_file() && path.extension().is_some_and(|it| it == extension) {
            let text = fs::read_to_string(&path).expect("a source can be read");
            let path = path.strip_prefix(&root).expect("it is below").to_owned();
            sources.push(Source { path, text });
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    sources
}

/// A breach of a rule.
#[derive(Debug)]
struct Breach {
    file: PathBuf,
    /// The line, from 1; 0 if the file itself is the breach.
    line: usize,
    what: String,
}

/// Breaches, one a line.
struct Listed<'a>(&'a [Breach]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} imports break the rule:", self.0.len())?;
        for Breach { file, line, what } in self.0 {
            writeln!(f, "{}:{line}: {what}", file.display())?;
        }
        Ok(())
    }
}

/// Returns the breaches of the order of stations.
fn breaches(house: &House, sources: &[Source]) -> Vec<Breach> {
    let mut found = Vec::new();
    for source in sources {
        let file = Path::new(house.sources).join(&source.path);
        let module = module_of(&source.path);
        let is_root = house.root.iter().any(|root| source.path == Path::new(root));
        if is_root {
            continue;
        }
        let own = module.first().map_or("", String::as_str);
        let place = |name: &str| house.stations.iter().position(|station| *station == name);
        let Some(own_place) = place(own) else {
            found.push(Breach {
                file,
                line: 0,
                what: format!("lies in no station; the stations are {:?}", house.stations),
            });
            continue;
        };
        for path in paths(&source.text, &module) {
            let target = path.segments.first().map_or("", String::as_str);
            let allowed = &house.stations[..=own_place];
            let what = match place(target) {
                Some(target) if target <= own_place => continue,
                _ => format!("imports {path}, but {own} may import {allowed:?} only"),
            };
            found.push(Breach {
                file: file.clone(),
                line: path.line,
                what,
            });
        }
    }
    found
}

/// Returns the imports between the entries of a folder.
fn neighbours(crate_folder: &str, folder: &[&str], sources: &[Source]) -> Vec<Breach> {
    let own = |segments: &[String]| {
        let rest = segments.strip_prefix(
            folder
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
                .as_slice(),
        );
        rest.and_then(|rest| rest.first()).cloned()
    };
    let entries: BTreeSet<_> = sources
        .iter()
        .filter_map(|source| own(&module_of(&source.path)))
        .collect();
    let mut found = Vec::new();
    for source in sources {
        let module = module_of(&source.path);
        let Some(entry) = own(&module) else { continue };
        for path in paths(&source.text, &module) {
            let target = own(&path.segments);
            if target.is_some_and(|target| target != entry && entries.contains(&target)) {
                found.push(Breach {
                    file: Path::new(crate_folder).join(&source.path),
                    line: path.line,
                    what: format!("imports {path}, but a subcommand never imports another"),
                });
            }
        }
    }
    found
}

/// Returns the module of a file: `["serve", "service"]` for `serve/service/mod.rs`.
fn module_of(path: &Path) -> Vec<String> {
    let mut module: Vec<_> = path
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let is_root = module.len() == 1 && matches!(module[0].as_str(), "lib" | "main");
    if is_root || module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    module
}

/// A path into the crate, from its root.
#[derive(Debug, PartialEq, Eq)]
struct CratePath {
    line: usize,
    segments: Vec<String>,
}

impl fmt::Display for CratePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crate::{}", self.segments.join("::"))
    }
}

/// A token of Rust, as far as paths need it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Colons,
    Sign(char),
}

/// Returns the paths of a source that lead into its crate, outside and inside of `use` items. Leaves out
/// paths to the root of the crate.
fn paths(text: &str, module: &[String]) -> Vec<CratePath> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    // The inline modules that are open, each with the depth of its braces.
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        let word = |index: usize| match tokens.get(index) {
            Some((Token::Word(word), _)) => word.as_str(),
            _ => "",
        };
        let is = |index: usize, sign: char| matches!(tokens.get(index), Some((Token::Sign(it), _)) if *it == sign);
        let here: Vec<String> = module
            .iter()
            .cloned()
            .chain(inline.iter().map(|(name, _)| name.clone()))
            .collect();
        if word(at) == "mod" && is(at + 2, '{') {
            depth += 1;
            inline.push((word(at + 1).to_owned(), depth));
            at += 3;
            continue;
        }
        // `pub(crate)` and `pub(in crate::serve)` import nothing.
        if word(at) == "pub" && is(at + 1, '(') {
            while at < tokens.len() && !is(at, ')') {
                at += 1;
            }
            continue;
        }
        match &tokens[at].0 {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                inline.retain(|(_, opened)| *opened < depth);
                depth = depth.saturating_sub(1);
            }
            Token::Word(first) if first == "use" => {
                at = tree(&tokens, at + 1, &[], &here, &mut found);
                continue;
            }
            Token::Word(first) if ["crate", "super", "self"].contains(&first.as_str()) => {
                let is_start = at == 0 || tokens[at - 1].0 != Token::Colons;
                if is_start && matches!(tokens.get(at + 1), Some((Token::Colons, _))) {
                    at = tree(&tokens, at, &[], &here, &mut found);
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads a path or a tree of a `use` item from `at` on, whose beginning is `prefix`. Returns the place
/// behind it.
fn tree(
    tokens: &[(Token, usize)],
    mut at: usize,
    prefix: &[String],
    module: &[String],
    found: &mut Vec<CratePath>,
) -> usize {
    let mut path = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |(_, line)| *line);
    loop {
        match tokens.get(at).map(|(token, _)| token) {
            Some(Token::Word(word)) => path.push(word.clone()),
            Some(Token::Sign('{')) => {
                at += 1;
                while tokens
                    .get(at)
                    .is_some_and(|(token, _)| *token != Token::Sign('}'))
                {
                    at = tree(tokens, at, &path, module, found);
                    // The name behind `as`, and the comma.
                    while !matches!(tokens.get(at), None | Some((Token::Sign(',' | '}'), _))) {
                        at += 1;
                    }
                    if matches!(tokens.get(at), Some((Token::Sign(','), _))) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            // A glob, or a path in front of the brackets of generics: the path so far counts.
            _ => break,
        }
        match tokens.get(at + 1) {
            Some((Token::Colons, _)) => at += 2,
            _ => {
                at += 1;
                break;
            }
        }
    }
    if let Some(segments) = resolve(&path, module).filter(|segments| !segments.is_empty()) {
        found.push(CratePath { line, segments });
    }
    at
}

/// Returns a path from the root of the crate; `None` if it leads to another crate or is a name in scope.
fn resolve(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let mut base = match path.first().map(String::as_str) {
        Some("crate") => Vec::new(),
        Some("self" | "super") => module.to_vec(),
        _ => return None,
    };
    for word in path {
        match word.as_str() {
            "crate" | "self" => {}
            "super" => {
                base.pop();
            }
            _ => base.push(word.clone()),
        }
    }
    Some(base)
}

/// Returns the tokens of a source, each with its line. Leaves out comments, strings and characters.
fn tokens(text: &str) -> Vec<(Token, usize)> {
    scan(text).0
}

/// Parts of a source, each with its line.
type Numbered<T> = Vec<(T, usize)>;

/// Returns the tokens and the line comments of a source.
fn scan(text: &str) -> (Numbered<Token>, Numbered<String>) {
    let characters: Vec<char> = text.chars().collect();
    let at = |index: usize| characters.get(index).copied().unwrap_or('\0');
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let (mut tokens, mut comments) = (Vec::new(), Vec::new());
    let (mut index, mut line) = (0, 1);
    while index < characters.len() {
        let start = index;
        match at(index) {
            '/' if at(index + 1) == '/' => {
                while index < characters.len() && at(index) != '\n' {
                    index += 1;
                }
                comments.push((characters[start..index].iter().collect(), line));
            }
            '/' if at(index + 1) == '*' => index = end_of_comment(&characters, index),
            '"' => index = end_of_string(&characters, index),
            'r' | 'b' | 'c' if starts_raw_string(&characters, index) => {
                index = end_of_raw_string(&characters, index);
            }
            // A character, and not a lifetime.
            '\'' if at(index + 1) == '\\' || at(index + 2) == '\'' => {
                index += if at(index + 1) == '\\' { 3 } else { 2 };
                while index < characters.len() && at(index) != '\'' {
                    index += 1;
                }
                index += 1;
            }
            ':' if at(index + 1) == ':' => {
                tokens.push((Token::Colons, line));
                index += 2;
            }
            character if is_word(character) => {
                while is_word(at(index)) {
                    index += 1;
                }
                let word: String = characters[start..index].iter().collect();
                // `r#type` is the name `type`.
                if word == "r" && at(index) == '#' && is_word(at(index + 1)) {
                    index += 1;
                } else {
                    tokens.push((Token::Word(word), line));
                }
            }
            character => {
                if !character.is_whitespace() {
                    tokens.push((Token::Sign(character), line));
                }
                index += 1;
            }
        }
        let end = index.min(characters.len());
        line += characters[start..end]
            .iter()
            .filter(|it| **it == '\n')
            .count();
    }
    (tokens, comments)
}

/// Returns the place behind a block comment, which may contain others.
fn end_of_comment(characters: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut index = start;
    while index < characters.len() {
        match (characters[index], characters.get(index + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                index += 1;
                continue;
            }
        }
        index += 2;
        if depth == 0 {
            break;
        }
    }
    index
}

fn end_of_string(characters: &[char], start: usize) -> usize {
    let mut index = start + 1;
    while index < characters.len() && characters[index] != '"' {
        index += if characters[index] == '\\' { 2 } else { 1 };
    }
    index + 1
}

/// Returns the number of `#` of a raw string, and the place of its quote; `None` if it is none.
fn raw_string(characters: &[char], start: usize) -> Option<(usize, usize)> {
    let before = start
        .checked_sub(1)
        .map_or(' ', |before| characters[before]);
    if before.is_alphanumeric() || before == '_' {
        return None;
    }
    let prefix = characters[start..]
        .iter()
        .take_while(|it| "rbc".contains(**it));
    let raw = start + prefix.count();
    let hashes = characters[raw..]
        .iter()
        .take_while(|it| **it == '#')
        .count();
    let is_raw = raw - start <= 2 && characters[start..raw].contains(&'r');
    (is_raw && characters.get(raw + hashes) == Some(&'"')).then_some((hashes, raw + hashes))
}

fn starts_raw_string(characters: &[char], start: usize) -> bool {
    raw_string(characters, start).is_some()
}

fn end_of_raw_string(characters: &[char], start: usize) -> usize {
    let (hashes, quote) = raw_string(characters, start).expect("a raw string");
    let mut index = quote + 1;
    while index < characters.len() {
        let closing = &characters[index + 1..];
        let is_end = characters[index] == '"'
            && closing.len() >= hashes
            && closing[..hashes].iter().all(|it| *it == '#');
        if is_end {
            return index + 1 + hashes;
        }
        index += 1;
    }
    index
}

/// A crate of two stations, for the tests below.
const MADE_UP: House = House {
    sources: "made/up",
    stations: &["ground", "roof"],
    root: &["lib.rs"],
};

fn made_up(path: &str, text: &str) -> Vec<Source> {
    vec![Source {
        path: path.into(),
        text: text.into(),
    }]
}

/// Returns the lines of the breaches in a file of the ground station.
fn lines_of(path: &str, text: &str) -> Vec<usize> {
    let found = breaches(&MADE_UP, &made_up(path, text));
    found.iter().map(|breach| breach.line).collect()
}

#[test]
fn an_upward_import_is_found_in_each_form() {
    for (path, text) in [
        ("ground/floor.rs", "use std::fs;\nuse crate::roof::Tile;\n"),
        ("ground/floor.rs", "\nuse crate::roof;"),
        ("ground/floor.rs", "\npub(crate) use crate::roof::*;"),
        ("ground/floor.rs", "\nuse crate::roof as top;"),
        (
            "ground/floor.rs",
            "\nuse crate::{ground::wall, roof::{self, Tile}};",
        ),
        ("ground/floor.rs", "\nuse super::{wall, super::roof::Tile};"),
        ("ground/floor.rs", "\nfn f() { crate::roof::close() }"),
        ("ground/floor.rs", "\nfn f(tile: Vec<crate::roof::Tile>) {}"),
        ("ground/floor.rs", "\nuse super::super::roof::Tile;"),
        ("ground/mod.rs", "\nuse super::roof::Tile;"),
        ("ground/floor/board.rs", "\nuse super::super::super::roof;"),
        (
            "ground/floor.rs",
            "mod tests {\n use super::super::super::roof; }",
        ),
        (
            "ground/floor.rs",
            "const C: char = '\"';\nuse crate::roof::Tile; // \"",
        ),
        (
            "ground/floor.rs",
            "const C: &str = r#\"\"\n\"#; use crate::roof::Tile;",
        ),
        ("ground.rs", "\nuse crate::roof::Tile;"),
    ] {
        let found = lines_of(path, text);
        assert!(!found.is_empty(), "{path}: {text}");
        assert!(
            found.iter().all(|line| *line == 2),
            "{path}: {text}: {found:?}"
        );
    }
    let found = breaches(
        &MADE_UP,
        &made_up("ground/floor.rs", "use crate::{a, roof};"),
    );
    assert_eq!(
        Listed(&found).to_string(),
        "2 imports break the rule:\n\
         made/up/ground/floor.rs:1: imports crate::a, but ground may import [\"ground\"] only\n\
         made/up/ground/floor.rs:1: imports crate::roof, but ground may import [\"ground\"] only\n"
    );
}

#[test]
fn other_imports_are_allowed() {
    for (path, text) in [
        (
            "ground/floor.rs",
            "use crate::ground::{wall, door::Key}; use super::wall; use roof::Tile;",
        ),
        (
            "ground/floor.rs",
            "// use crate::roof;\n/* use crate::roof; /* */ */ const S: &str = \"crate::roof\";",
        ),
        (
            "ground/floor.rs",
            "pub(in crate::roof) fn f<'a>(a: &'a str) -> char { 'a' }",
        ),
        (
            "ground/floor.rs",
            "mod tests { use super::super::wall; } use super::wall;",
        ),
        (
            "roof/tile.rs",
            "use crate::{ground, roof}; use super::super::ground::wall;",
        ),
        ("lib.rs", "use crate::roof;"),
    ] {
        assert_eq!(lines_of(path, text), [0; 0], "{path}: {text}");
    }
}

#[test]
fn a_file_in_no_station_is_found() {
    let found = breaches(&MADE_UP, &made_up("cellar.rs", ""));
    assert_eq!(
        Listed(&found).to_string(),
        "1 imports break the rule:\n\
         made/up/cellar.rs:0: lies in no station; the stations are [\"ground\", \"roof\"]\n"
    );
}

#[test]
fn an_import_of_another_subcommand_is_found() {
    let sources = |text: &str| {
        let mut sources = made_up("commands/report.rs", text);
        sources.extend(made_up(
            "commands/show/mod.rs",
            "use self::table; use super::super::data;",
        ));
        sources.extend(made_up(
            "commands/show/table.rs",
            "use super::Row; use crate::commands::show;",
        ));
        sources.extend(made_up(
            "commands/mod.rs",
            "use report::Args; use crate::commands::show::Row;",
        ));
        sources
    };
    let found = |text| neighbours("tool", &["commands"], &sources(text)).len();
    assert_eq!(found("use crate::data; use super::Command;"), 0);
    for text in [
        "use crate::commands::show;",
        "use crate::{data, commands::{self, show::Row}};",
        "use super::show::Row;",
        "fn f() { super::super::commands::show::table() }",
    ] {
        assert_eq!(found(text), 1, "{text}");
    }
}
