//! The paths of a source that lead into its crate.

use std::fmt;
use std::path::Path;

use crate::tokens::{Token, tokens};

/// Returns the module of a file: `["serve", "service"]` for `serve/service/mod.rs`.
pub(crate) fn module_of(path: &Path) -> Vec<String> {
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
pub(crate) struct CratePath {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
}

impl fmt::Display for CratePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crate::{}", self.segments.join("::"))
    }
}

/// A path as a source writes it, in a `use` item or elsewhere.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) line: usize,
    /// The module of the place, which may be inside of the file.
    pub(crate) module: Vec<String>,
    pub(crate) words: Vec<String>,
    /// The name that a `pub use` gives to the path's last word.
    pub(crate) export: Option<String>,
}

/// Returns the paths of a source that lead into its crate, outside and inside of `use` items. Leaves out
/// paths to the root of the crate.
pub(crate) fn paths(text: &str, module: &[String]) -> Vec<CratePath> {
    let written = written(&tokens(text), module).into_iter();
    written
        .filter_map(|path| {
            let segments = resolve(&path.words, &path.module)?;
            let line = path.line;
            (!segments.is_empty()).then_some(CratePath { line, segments })
        })
        .collect()
}

/// Returns all paths of a source, in order.
pub(crate) fn written(tokens: &[(Token, usize)], module: &[String]) -> Vec<Written> {
    let mut found = Vec::new();
    let mut here = module.to_vec();
    // The depths at which the inline modules that are open begin.
    let mut inline = Vec::new();
    let mut depth = 0_usize;
    let mut is_public = false;
    let mut at = 0;
    while at < tokens.len() {
        let word = |index: usize| match tokens.get(index) {
            Some((Token::Word(word), _)) => word.as_str(),
            _ => "",
        };
        let is = |index: usize, token: Token| {
            tokens.get(index).is_some_and(|(found, _)| *found == token)
        };
        // The name of one that a macro makes has a `$`.
        let name = at + 1 + usize::from(is(at + 1, Token::Sign('$')));
        if word(at) == "mod" && is(name + 1, Token::Sign('{')) {
            depth += 1;
            inline.push(depth);
            here.push(word(name).to_owned());
            at = name + 2;
            continue;
        }
        if word(at) == "pub" {
            is_public = true;
            // `pub(crate)` and `pub(in crate::serve)` import nothing.
            if is(at + 1, Token::Sign('(')) {
                while at < tokens.len() && !is(at, Token::Sign(')')) {
                    at += 1;
                }
            }
            at += 1;
            continue;
        }
        let starts_path = !word(at).is_empty()
            && is(at + 1, Token::Colons)
            && (at == 0 || !is(at - 1, Token::Colons));
        match &tokens[at].0 {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                if inline.last() == Some(&depth) {
                    inline.pop();
                    here.pop();
                }
                depth = depth.saturating_sub(1);
            }
            Token::Word(first) if first == "use" => {
                let start = found.len();
                at = tree(tokens, at + 1, &[], &here, &mut found);
                if !is_public {
                    found[start..]
                        .iter_mut()
                        .for_each(|path| path.export = None);
                }
                is_public = false;
                continue;
            }
            Token::Word(_) if starts_path => {
                let start = found.len();
                at = tree(tokens, at, &[], &here, &mut found);
                found[start..]
                    .iter_mut()
                    .for_each(|path| path.export = None);
                continue;
            }
            _ => {}
        }
        is_public = false;
        at += 1;
    }
    found
}

/// Reads a path or a tree of a `use` item from `at` on, whose beginning is `prefix`. Returns the place
/// after it.
fn tree(
    tokens: &[(Token, usize)],
    mut at: usize,
    prefix: &[String],
    module: &[String],
    found: &mut Vec<Written>,
) -> usize {
    let mut words = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |(_, line)| *line);
    loop {
        match tokens.get(at).map(|(token, _)| token) {
            Some(Token::Word(word)) => words.push(word.clone()),
            Some(Token::Sign('{')) => {
                at += 1;
                while tokens
                    .get(at)
                    .is_some_and(|(token, _)| *token != Token::Sign('}'))
                {
                    at = tree(tokens, at, &words, module, found);
                    // The name after `as`, and the comma.
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
    let export = match tokens.get(at..at + 2) {
        Some([(Token::Word(word), _), (Token::Word(alias), _)]) if word == "as" => Some(alias),
        _ => words.last(),
    };
    found.push(Written {
        line,
        module: module.to_vec(),
        export: export.cloned(),
        words,
    });
    at
}

/// Returns a path from the root of the crate; `None` if it leads to another crate or is a name in scope.
pub(crate) fn resolve(path: &[String], module: &[String]) -> Option<Vec<String>> {
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
