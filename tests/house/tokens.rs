//! Rust's tokens, as far as the rules need them.

/// A token of Rust, as far as paths need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Colons,
    Sign(char),
}

/// Returns the tokens of a source, each with its line. Leaves out comments, strings and characters.
pub(crate) fn tokens(text: &str) -> Vec<(Token, usize)> {
    scan(text).0
}

/// Returns the tokens without the items under `#[cfg(test)]`.
pub(crate) fn without_tests(tokens: &[(Token, usize)]) -> Vec<(Token, usize)> {
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|(found, _)| found == token);
    let word = |word: &str| Token::Word(word.to_owned());
    let attribute = [
        Token::Sign('#'),
        Token::Sign('['),
        word("cfg"),
        Token::Sign('('),
        word("test"),
        Token::Sign(')'),
        Token::Sign(']'),
    ];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if (at..).zip(&attribute).all(|(at, token)| is(at, token)) {
            at = end_of_item(tokens, at + attribute.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the place after an item: its semicolon, or the brace that closes its body.
fn end_of_item(tokens: &[(Token, usize)], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some((token, _)) = tokens.get(at) {
        at += 1;
        match token {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign(closing @ ('}' | ')' | ']')) => {
                depth -= 1;
                if depth == 0 && *closing == '}' {
                    break;
                }
            }
            Token::Sign(';') if depth == 0 => break,
            _ => {}
        }
    }
    at
}

/// Parts of a source, each with its line.
pub(crate) type Numbered<T> = Vec<(T, usize)>;

/// Returns the tokens and the line comments of a source.
pub(crate) fn scan(text: &str) -> (Numbered<Token>, Numbered<String>) {
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
            .filter(|character| **character == '\n')
            .count();
    }
    (tokens, comments)
}

/// Returns the place after a block comment, which may contain others.
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
        .take_while(|character| "rbc".contains(**character));
    let raw = start + prefix.count();
    let hashes = characters[raw..]
        .iter()
        .take_while(|character| **character == '#')
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
            && closing[..hashes].iter().all(|character| *character == '#');
        if is_end {
            return index + 1 + hashes;
        }
        index += 1;
    }
    index
}
