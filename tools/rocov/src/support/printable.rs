//! Text of files and devices as it may be shown: names can have any character.

use std::borrow::Cow;

/// The text with all characters escaped that are not seen as themselves, such as control characters, line breaks and
/// those that reverse the direction of text: `\n`, `\u{1b}`. A reader's terminal, line and columns are thus safe from
/// names.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, "")
}

/// Text of several lines, as [`printable`] has it. Line breaks and tabs stay as they are.
pub(crate) fn printable_text(text: &str) -> Cow<'_, str> {
    escaped(text, "\r\n\t")
}

/// A part of a line of source code, as [`printable`] has it. Tabs and bytes of other encodings stay as they are.
pub(crate) fn printable_code(code: &[u8]) -> Cow<'_, [u8]> {
    if code.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return code.into();
    }
    let mut escaped_code = Vec::with_capacity(code.len() + 16);
    for chunk in code.utf8_chunks() {
        escaped_code.extend_from_slice(escaped(chunk.valid(), "\t").as_bytes());
        escaped_code.extend_from_slice(chunk.invalid());
    }
    escaped_code.into()
}

/// Escapes what is not printable and not `kept`.
fn escaped<'a>(text: &'a str, kept: &str) -> Cow<'a, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match kept.contains(letter) || is_printable(letter) {
            true => escaped.push(letter),
            false => escaped.extend(letter.escape_debug()),
        }
    }
    escaped.into()
}

fn is_printable(letter: char) -> bool {
    // Rust escapes quotes, which are for string literals, and marks without a letter that they belong to.
    matches!(letter, '"' | '\'' | '\\')
        || letter.escape_debug().len() == 1
        || format!("a{letter}").escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_keeps_its_tabs_and_encoding() {
        assert_eq!(
            &*printable_code(b"\ta\x1b[0m\t\xfcb"),
            b"\ta\\u{1b}[0m\t\xfcb"
        );
        let text = "\t// Grüße".as_bytes();
        assert_eq!(&*printable_code(text), text);
    }

    #[test]
    fn only_characters_that_are_not_seen_are_escaped() {
        for text in [
            "a b/c.hip",
            "f<int>(char \"x\\\", 'y')",
            "Grüße",
            "e\u{301} 漢字 😀",
        ] {
            assert_eq!(printable(text), text);
        }
        for (text, shown) in [
            ("\x1b]0;x\x07", "\\u{1b}]0;x\\u{7}"),
            ("a\r\n\tb\0\x7f", "a\\r\\n\\tb\\0\\u{7f}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            (
                "\u{202e}pih.x\u{2028}\u{feff}",
                "\\u{202e}pih.x\\u{2028}\\u{feff}",
            ),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
