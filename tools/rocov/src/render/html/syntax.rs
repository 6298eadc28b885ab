//! The syntax of C++ and HIP, as far as colours need it: comments, texts, numbers, keywords and directives of the
//! preprocessor.

use std::ops::Range;

/// A kind of token that has a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Comment,
    /// A string, a character, or the name of an included file.
    Text,
    Number,
    Keyword,
    Directive,
}

impl Kind {
    /// The class of its colour.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Comment => "t-c",
            Self::Text => "t-s",
            Self::Number => "t-d",
            Self::Keyword => "t-k",
            Self::Directive => "t-p",
        }
    }
}

/// A token that has a colour, as offsets of bytes in its line.
pub(super) type Token = (Range<usize>, Kind);

/// Reads a source line by line.
#[derive(Debug, Default)]
pub(super) struct Lexer {
    around: Around,
}

/// The text that a line starts in.
#[derive(Debug, Default)]
enum Around {
    #[default]
    Code,
    /// `/* ... */`
    BlockComment,
    /// `// ...` after a backslash at the end of the line.
    LineComment,
    /// A raw string, with the text that ends it: `)delimiter"`.
    RawString(String),
}

/// The keywords of C++ and its types, and the qualifiers of HIP; sorted.
const KEYWORDS: [&str; 90] = [
    "__constant__",
    "__device__",
    "__forceinline__",
    "__global__",
    "__host__",
    "__launch_bounds__",
    "__managed__",
    "__noinline__",
    "__restrict__",
    "__shared__",
    "alignas",
    "alignof",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "final",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "nullptr",
    "operator",
    "override",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "while",
];

impl Lexer {
    /// The tokens of the next line, in order.
    pub(super) fn line(&mut self, text: &str) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let (len, kind) = match &self.around {
                Around::Code => {
                    let is_first = text[..at].trim_start().is_empty();
                    let (len, kind, around) = token(rest, is_first, includes(&text[..at]));
                    self.around = around;
                    (len, kind)
                }
                Around::BlockComment => (self.up_to(rest, "*/"), Some(Kind::Comment)),
                Around::LineComment => {
                    if !rest.ends_with('\\') {
                        self.around = Around::Code;
                    }
                    (rest.len(), Some(Kind::Comment))
                }
                Around::RawString(end) => {
                    let end = end.clone();
                    (self.up_to(rest, &end), Some(Kind::Text))
                }
            };
            if let Some(kind) = kind {
                tokens.push((at..at + len, kind));
            }
            at += len;
        }
        if matches!(self.around, Around::LineComment) && !text.ends_with('\\') {
            self.around = Around::Code;
        }
        tokens
    }

    /// The length of `text` with the first `end` in it, after which there is code; else of all of it.
    fn up_to(&mut self, text: &str, end: &str) -> usize {
        match text.find(end) {
            Some(place) => {
                self.around = Around::Code;
                place + end.len()
            }
            None => text.len(),
        }
    }
}

/// The first token of code: its length, at least one byte, its kind if it has a colour, and the text that
/// follows it. `is_first` is true if only space comes before it, `is_included` after `#include`.
fn token(text: &str, is_first: bool, is_included: bool) -> (usize, Option<Kind>, Around) {
    let code = |len, kind| (len, kind, Around::Code);
    let bytes = text.as_bytes();
    match bytes {
        [b'/', b'/', ..] => {
            let around = match text.ends_with('\\') {
                true => Around::LineComment,
                false => Around::Code,
            };
            (text.len(), Some(Kind::Comment), around)
        }
        // `/*/` is not a whole comment.
        [b'/', b'*', ..] => match text[2..].find("*/") {
            Some(end) => code(end + 4, Some(Kind::Comment)),
            None => (text.len(), Some(Kind::Comment), Around::BlockComment),
        },
        [b'#', ..] if is_first => {
            let blank = text[1..].len() - text[1..].trim_start().len();
            code(1 + blank + word(&text[1 + blank..]), Some(Kind::Directive))
        }
        [b'<', ..] if is_included => code(quoted(text, b'>'), Some(Kind::Text)),
        [quote @ (b'"' | b'\''), ..] => code(quoted(text, *quote), Some(Kind::Text)),
        [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => code(number(bytes), Some(Kind::Number)),
        _ => match word(text) {
            0 => code(text.chars().next().map_or(1, char::len_utf8), None),
            len => after_word(text, len),
        },
    }
}

/// The token that starts with a word of `len` bytes: the prefix of a string, a keyword, or a name.
fn after_word(text: &str, len: usize) -> (usize, Option<Kind>, Around) {
    let (word, rest) = text.split_at(len);
    match (word, rest.as_bytes()) {
        ("R" | "LR" | "uR" | "UR" | "u8R", [b'"', ..]) => {
            // Up to 16 characters, none of which is a space, a backslash or a parenthesis.
            if let Some((delimiter, body)) = rest[1..].split_once('(') {
                let end = format!("){delimiter}\"");
                return match body.find(&end) {
                    Some(place) => {
                        let len = text.len() - body.len() + place + end.len();
                        (len, Some(Kind::Text), Around::Code)
                    }
                    None => (text.len(), Some(Kind::Text), Around::RawString(end)),
                };
            }
            (len, None, Around::Code)
        }
        ("L" | "u" | "U" | "u8", [quote @ (b'"' | b'\''), ..]) => {
            let len = len + quoted(rest, *quote);
            (len, Some(Kind::Text), Around::Code)
        }
        _ => {
            let is_keyword = KEYWORDS.binary_search(&word).is_ok();
            (len, is_keyword.then_some(Kind::Keyword), Around::Code)
        }
    }
}

/// Returns whether this is the start of an `#include`, up to the name of the file.
fn includes(before: &str) -> bool {
    let directive = before.trim_start().strip_prefix('#');
    directive.is_some_and(|rest| matches!(rest.trim(), "include" | "include_next"))
}

/// The length of the name or keyword at the start.
fn word(text: &str) -> usize {
    let is_of_word = |c: char| c == '_' || c.is_alphanumeric();
    text.find(|c| !is_of_word(c)).unwrap_or(text.len())
}

/// The length of the text in quotes at the start, up to the end of the line if nothing closes it.
fn quoted(text: &str, close: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == close => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of the number at the start, with its suffix and the quotes between its digits.
fn number(bytes: &[u8]) -> usize {
    let mut len = 1;
    while let Some(byte) = bytes.get(len) {
        let is_exponent = matches!(bytes[len - 1], b'e' | b'E' | b'p' | b'P');
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        match byte {
            b'.' | b'_' => {}
            b'+' | b'-' if is_exponent => {}
            b'\'' if is_digit(bytes.get(len + 1)) => {}
            byte if byte.is_ascii_alphanumeric() => {}
            _ => break,
        }
        len += 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The coloured tokens of all lines.
    fn tokens(text: &str) -> Vec<(&str, &str)> {
        let mut lexer = Lexer::default();
        let lines = text.lines();
        let tokens = lines.flat_map(|line| {
            let tokens = lexer.line(line).into_iter();
            tokens.map(move |(range, kind)| (&line[range], kind.class()))
        });
        tokens.collect()
    }

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn tokens_have_their_kinds() {
        for (text, expected) in [
            ("int x_int;", &[("int", "t-k")][..]),
            ("a /* b */ c // d", &[("/* b */", "t-c"), ("// d", "t-c")]),
            (
                "/*/ a\nint */ int",
                &[("/*/ a", "t-c"), ("int */", "t-c"), ("int", "t-k")],
            ),
            (
                "// a \\\nint\nint",
                &[("// a \\", "t-c"), ("int", "t-c"), ("int", "t-k")],
            ),
            (
                r#"f("a \" // b", '"', L'\'')"#,
                &[
                    (r#""a \" // b""#, "t-s"),
                    ("'\"'", "t-s"),
                    (r"L'\''", "t-s"),
                ],
            ),
            (
                "R\"x(a)\"\n)x\" 1",
                &[("R\"x(a)\"", "t-s"), (")x\"", "t-s"), ("1", "t-d")],
            ),
            ("R\"(a)\" 1", &[("R\"(a)\"", "t-s"), ("1", "t-d")]),
            (
                "0x1p-3f + 1'000u - .5e+3",
                &[("0x1p-3f", "t-d"), ("1'000u", "t-d"), (".5e+3", "t-d")],
            ),
            (
                "# include <a/b> // c",
                &[("# include", "t-p"), ("<a/b>", "t-s"), ("// c", "t-c")],
            ),
            (
                "#if a < 3 && b > 4",
                &[("#if", "t-p"), ("3", "t-d"), ("4", "t-d")],
            ),
            ("a # b", &[]),
            (
                "__global__ void é(\"é",
                &[("__global__", "t-k"), ("void", "t-k"), ("\"é", "t-s")],
            ),
            ("\"a\\", &[("\"a\\", "t-s")]),
            ("'", &[("'", "t-s")]),
            ("R\"", &[("\"", "t-s")]),
        ] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }
}
