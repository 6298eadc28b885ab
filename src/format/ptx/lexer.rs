//! The words of PTX text (PTX ISA, "Syntax").

use crate::format::ptx::PtxError;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name, directive, instruction with its modifiers, register or number: a run of letters, digits and `_ $ % .`, and
    /// of `::` between them.
    Word,
    /// A string with its quotes.
    Text,
    /// One character of punctuation.
    Sign(u8),
    /// The end of the text.
    End,
}

/// A token, and its place in the text in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The line, from 1 on.
    pub(super) line: usize,
}

impl Token {
    pub(super) fn is(&self, sign: u8) -> bool {
        self.kind == TokenKind::Sign(sign)
    }
}

/// Reads tokens one after the other.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'text> {
    text: &'text str,
    at: usize,
    line: usize,
    next: Token,
}

/// Returns whether a byte may be in a word.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

impl<'text> Lexer<'text> {
    pub(super) fn new(text: &'text str) -> Result<Self, PtxError> {
        let next = Token {
            kind: TokenKind::End,
            start: 0,
            end: 0,
            line: 1,
        };
        let mut lexer = Self {
            text,
            at: 0,
            line: 1,
            next,
        };
        lexer.next = lexer.read()?;
        Ok(lexer)
    }

    /// The next token, which stays.
    pub(super) fn peek(&self) -> Token {
        self.next
    }

    /// Takes the next token.
    pub(super) fn take(&mut self) -> Result<Token, PtxError> {
        let token = self.next;
        self.next = self.read()?;
        Ok(token)
    }

    pub(super) fn text_of(&self, token: Token) -> &'text str {
        &self.text[token.start..token.end]
    }

    /// The error for a token that the grammar does not have here.
    pub(super) fn unexpected(&self, token: Token, expected: &'static str) -> PtxError {
        let found = match token.kind {
            TokenKind::End => "the end of the text".to_owned(),
            _ => self.text_of(token).chars().take(80).collect(),
        };
        PtxError::Syntax {
            line: token.line,
            expected,
            found,
        }
    }

    /// Takes the sign.
    pub(super) fn expect(&mut self, sign: u8, expected: &'static str) -> Result<Token, PtxError> {
        let token = self.take()?;
        match token.is(sign) {
            true => Ok(token),
            false => Err(self.unexpected(token, expected)),
        }
    }

    /// Takes the sign if it is next.
    pub(super) fn take_if(&mut self, sign: u8) -> Result<bool, PtxError> {
        let is_next = self.next.is(sign);
        if is_next {
            self.take()?;
        }
        Ok(is_next)
    }

    /// Takes a word.
    pub(super) fn word(&mut self, expected: &'static str) -> Result<&'text str, PtxError> {
        let token = self.take()?;
        match token.kind {
            TokenKind::Word => Ok(self.text_of(token)),
            _ => Err(self.unexpected(token, expected)),
        }
    }

    /// Takes a number (PTX ISA, "Integer Constants").
    pub(super) fn number(&mut self, expected: &'static str) -> Result<u64, PtxError> {
        let token = self.take()?;
        let number = match token.kind {
            TokenKind::Word => number(self.text_of(token)),
            _ => None,
        };
        number.ok_or_else(|| self.unexpected(token, expected))
    }

    /// Takes all up to the sign that closes the bracket just taken. Returns that sign.
    pub(super) fn skip_to(&mut self, close: u8) -> Result<Token, PtxError> {
        let mut open = vec![close];
        loop {
            let token = self.take()?;
            let TokenKind::Sign(sign) = token.kind else {
                if token.kind == TokenKind::End {
                    return Err(self.unexpected(token, "a closing bracket"));
                }
                continue;
            };
            match sign {
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'{' => open.push(b'}'),
                b')' | b']' | b'}' => {
                    if open.pop() != Some(sign) {
                        return Err(self.unexpected(token, "the matching closing bracket"));
                    }
                    if open.is_empty() {
                        return Ok(token);
                    }
                }
                _ => {}
            }
        }
    }

    fn read(&mut self) -> Result<Token, PtxError> {
        self.skip_blanks()?;
        let bytes = self.text.as_bytes();
        let (start, line) = (self.at, self.line);
        let token = |kind, end| Token {
            kind,
            start,
            end,
            line,
        };
        let Some(&first) = bytes.get(start) else {
            return Ok(token(TokenKind::End, start));
        };
        let found = if is_word(first) {
            token(TokenKind::Word, self.end_of_word())
        } else if first == b'"' {
            token(TokenKind::Text, self.end_of_string()?)
        } else if first.is_ascii_graphic() {
            token(TokenKind::Sign(first), start + 1)
        } else {
            let found: String = self.text[start..].chars().take(1).collect();
            return Err(PtxError::Syntax {
                line,
                expected: "ASCII text",
                found: format!("{found:?}"),
            });
        };
        self.at = found.end;
        Ok(found)
    }

    fn end_of_word(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = self.at;
        loop {
            match bytes.get(end..) {
                Some([byte, ..]) if is_word(*byte) => end += 1,
                Some([b':', b':', byte, ..]) if is_word(*byte) => end += 3,
                _ => return end,
            }
        }
    }

    fn end_of_string(&self) -> Result<usize, PtxError> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => return Ok(end + 1),
                Some(b'\\') => end += 2,
                Some(b'\n') | None => {
                    return Err(PtxError::Syntax {
                        line: self.line,
                        expected: "a string with a closing quote",
                        found: self.text[self.at..].chars().take(40).collect(),
                    });
                }
                Some(_) => end += 1,
            }
        }
    }

    /// Skips blanks, comments, and zeros: the driver takes text with a zero at its end.
    fn skip_blanks(&mut self) -> Result<(), PtxError> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at..) {
                Some([b'\n', ..]) => {
                    self.line += 1;
                    self.at += 1;
                }
                Some([b' ' | b'\t' | b'\r' | 0x0b | 0x0c, ..]) => self.at += 1,
                Some([0, rest @ ..]) if rest.iter().all(|byte| *byte == 0) => {
                    self.at = bytes.len();
                }
                Some([b'/', b'/', ..]) => {
                    let rest = &bytes[self.at..];
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    self.at += end.unwrap_or(rest.len());
                }
                Some([b'/', b'*', ..]) => {
                    let rest = &self.text[self.at + 2..];
                    let Some(end) = rest.find("*/") else {
                        return Err(PtxError::Syntax {
                            line: self.line,
                            expected: "a comment with an end",
                            found: rest.chars().take(40).collect(),
                        });
                    };
                    self.line += rest[..end].matches('\n').count();
                    self.at += 2 + end + 2;
                }
                _ => return Ok(()),
            }
        }
    }
}

/// The value of an integer constant: decimal, hexadecimal, octal or binary, with `U` after it or not.
fn number(word: &str) -> Option<u64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    let (digits, radix) = match word.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&word[2..], 16),
        [b'0', b'b' | b'B', ..] => (&word[2..], 2),
        [b'0', _, ..] => (&word[1..], 8),
        _ => (word, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}
