//! The places that the sides of a condition lead to, as the text around the condition has them.
//!
//! A coverage mapping has no edges: it has the text of a condition, and how often each side of it was taken.

use std::ops::Range;

/// The most statements in one another that are followed.
const DEPTH: usize = 64;

/// The code of a source, without comments and strings.
#[derive(Clone, Copy)]
pub(super) struct Flow<'a>(pub(super) &'a [u8]);

/// The sides of a condition: the place that each leads to, or the value that it gives the expression around it.
#[derive(Debug, Clone, Copy)]
enum Side {
    Value(bool),
    Place(Option<usize>),
}

impl Flow<'_> {
    /// The offsets at which the program continues if the condition at `at` is true, and if it is false. `None` for a
    /// side that the text does not show.
    pub(super) fn sides(self, at: Range<usize>) -> [Option<usize>; 2] {
        if matches!(self.word_at(at.start), b"case" | b"default") {
            return [Some(self.behind_labels(at.start)), None];
        }
        let mut at = at;
        let mut sides = [Side::Value(true), Side::Value(false)];
        // Each round looks at the expression around the last one.
        for _ in 0..DEPTH {
            let (before, behind) = (self.before(at.start), self.skip_blanks(at.end));
            let is_behind = |text: &[u8]| self.0[behind..].starts_with(text);
            let is_before = |text: &[u8]| self.0[..before].ends_with(text);
            let operator: Option<(&[u8], bool)> = if is_behind(b"&&") || is_before(b"&&") {
                Some((b"&&", true))
            } else if is_behind(b"||") || is_before(b"||") {
                Some((b"||", false))
            } else {
                None
            };
            if is_before(b"!") {
                sides = sides.map(|side| match side {
                    Side::Value(value) => Side::Value(!value),
                    place => place,
                });
                at.start = before - 1;
            } else if let Some((text, goes_on)) = operator {
                if is_behind(text) {
                    let next = self.skip_blanks(behind + text.len());
                    sides = resolved(sides, |value| (value == goes_on).then_some(Some(next)));
                }
                at = self.operands(at, text);
            } else if is_behind(b"?") {
                let arms = [Some(behind + 1), self.colon(behind + 1).map(|at| at + 1)];
                return self.ends(sides, arms);
            } else if is_behind(b";") && is_before(b";") {
                let open = self.opening(at.start);
                let close = self.closing(behind);
                let (Some(open), Some(close)) = (open, close) else {
                    break;
                };
                if self.word_before(open) != b"for" {
                    break;
                }
                return self.ends(sides, self.loop_ends(close + 1));
            } else if is_behind(b")") {
                let Some(open) = self.opening(at.start) else {
                    break;
                };
                match self.word_before(open) {
                    b"if" | b"constexpr" => return self.ends(sides, self.if_ends(behind + 1)),
                    b"while" => return self.ends(sides, self.loop_ends(behind + 1)),
                    b"switch" => {
                        let end = self.statement_end(behind + 1, 0);
                        return self.ends(sides, [None, end]);
                    }
                    word if before == open + 1 && self.is_group(open, word) => {
                        at = open..behind + 1;
                    }
                    _ => break,
                }
            } else {
                break;
            }
        }
        self.ends(sides, [None, None])
    }

    /// The place after labels, attributes and blanks.
    pub(super) fn behind_labels(self, at: usize) -> usize {
        let mut at = self.skip_blanks(at);
        loop {
            let next = match self.word_at(at) {
                b"case" | b"default" => self.colon(at).map(|colon| colon + 1),
                _ if self.0[at..].starts_with(b"[[") => {
                    let end = memchr::memmem::find(&self.0[at..], b"]]");
                    end.map(|end| at + end + 2)
                }
                _ => None,
            };
            let Some(next) = next else { return at };
            at = self.skip_blanks(next);
        }
    }

    /// Returns whether the statement or operand at a place is a branch by itself, without braces.
    pub(super) fn is_branch(self, at: usize) -> bool {
        let before = self.before(at);
        match self.0[..before].last() {
            Some(b')' | b'?') => true,
            // The statement of a label is not.
            Some(b':') => {
                let ends = |byte: &u8| matches!(byte, b';' | b'{' | b'}');
                let start = self.0[..before]
                    .iter()
                    .rposition(ends)
                    .map_or(0, |end| end + 1);
                self.0[start..before].contains(&b'?')
            }
            _ => matches!(self.word_before(at), b"else" | b"do"),
        }
    }

    /// The places of sides, if true and false lead to `values`.
    fn ends(self, sides: [Side; 2], values: [Option<usize>; 2]) -> [Option<usize>; 2] {
        let sides = resolved(sides, |value| Some(values[usize::from(!value)]));
        sides.map(|side| match side {
            Side::Place(Some(place)) if place < self.0.len() => Some(self.behind_labels(place)),
            _ => None,
        })
    }

    /// The places after the condition of an `if`: the statement, and what runs instead of it.
    fn if_ends(self, at: usize) -> [Option<usize>; 2] {
        let other = self.statement_end(at, 0).map(|end| {
            let next = self.skip_blanks(end);
            match self.word_at(next) {
                b"else" => next + b"else".len(),
                _ => next,
            }
        });
        [Some(at), other]
    }

    /// The places after the condition of a loop: its statement, and what follows.
    fn loop_ends(self, at: usize) -> [Option<usize>; 2] {
        let at = self.skip_blanks(at);
        match self.0.get(at) {
            // That of `do`, or a loop without a statement.
            Some(b';') => [None, Some(at + 1)],
            _ => [Some(at), self.statement_end(at, 0)],
        }
    }

    /// The place after the statement at `at`.
    fn statement_end(self, at: usize, depth: usize) -> Option<usize> {
        if depth > DEPTH {
            return None;
        }
        let at = self.behind_labels(at);
        let inner = |at: usize| self.statement_end(at, depth + 1);
        let condition_end = |at: usize| {
            let open = at + memchr::memchr(b'(', &self.0[at..])?;
            Some(self.closing(open + 1)? + 1)
        };
        match (self.0.get(at)?, self.word_at(at)) {
            (b'{', _) => Some(self.closing(at + 1)? + 1),
            (_, b"if") => {
                let end = inner(condition_end(at)?)?;
                let next = self.skip_blanks(end);
                match self.word_at(next) {
                    b"else" => inner(next + b"else".len()),
                    _ => Some(end),
                }
            }
            (_, b"for" | b"while" | b"switch") => inner(condition_end(at)?),
            (_, b"do") => {
                let end = inner(at + b"do".len())?;
                inner(condition_end(end)?)
            }
            _ => {
                let end = self.scan(at, |rest| matches!(rest[0], b';' | b'}'))?;
                Some(end + usize::from(self.0[end] == b';'))
            }
        }
    }

    /// The operands of `&&` or `||` that one of them, at `at`, is of.
    fn operands(self, at: Range<usize>, operator: &[u8]) -> Range<usize> {
        let is_outer = |text: &[u8]| operator == b"&&" && text == b"||";
        let ends = |rest: &[u8]| {
            matches!(rest[0], b'?' | b';' | b',' | b'}') || rest.len() > 1 && is_outer(&rest[..2])
        };
        let end = self.scan(at.end, ends).unwrap_or(self.0.len());
        let mut depth = 0usize;
        let mut start = at.start;
        while let Some(index) = start.checked_sub(1) {
            match self.0[index] {
                b')' | b']' | b'}' => depth += 1,
                b'(' | b'[' | b'{' if depth == 0 => break,
                b'(' | b'[' | b'{' => depth -= 1,
                b'?' | b';' | b',' if depth == 0 => break,
                b'|' if depth == 0 && is_outer(&self.0[index.saturating_sub(1)..=index]) => break,
                _ => {}
            }
            start = index;
        }
        self.skip_blanks(start)..self.before(end)
    }

    /// The first place from `at` on, outside of brackets that open after it, at which code `is_end` or a bracket
    /// closes.
    fn scan(self, at: usize, is_end: impl Fn(&[u8]) -> bool) -> Option<usize> {
        let mut depth = 0usize;
        for (index, byte) in self.0.iter().enumerate().skip(at) {
            match byte {
                _ if depth == 0 && is_end(&self.0[index..]) => return Some(index),
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth == 0 => return Some(index),
                b')' | b']' | b'}' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    /// The bracket that closes the one that `at` is after.
    fn closing(self, at: usize) -> Option<usize> {
        self.scan(at, |_| false)
    }

    /// The parenthesis that the place is in.
    fn opening(self, at: usize) -> Option<usize> {
        let mut depth = 0usize;
        for index in (0..at).rev() {
            match self.0[index] {
                b')' => depth += 1,
                b'(' if depth == 0 => return Some(index),
                b'(' => depth -= 1,
                b'{' | b'}' if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// The colon that ends a label, or the second operand of `?` at `at`.
    fn colon(self, at: usize) -> Option<usize> {
        let mut at = at;
        let mut questions = 0usize;
        loop {
            let found = self.scan(at, |rest| matches!(rest[0], b':' | b'?'))?;
            let is_double = self.0[found..].starts_with(b"::");
            match self.0[found] {
                b'?' => questions += 1,
                b':' if is_double => {}
                b':' if questions == 0 => return Some(found),
                b':' => questions -= 1,
                _ => return None,
            }
            at = found + 1 + usize::from(is_double);
        }
    }

    /// Returns whether a parenthesis after this word is one around an expression.
    fn is_group(self, open: usize, word: &[u8]) -> bool {
        let before = self.0[..self.before(open)].last();
        let is_operand = before.is_some_and(|byte| is_word(*byte) || b")]>".contains(byte));
        word == b"return" || !is_operand
    }

    /// The word that starts at a place; empty if none does.
    fn word_at(self, at: usize) -> &'static [u8] {
        let rest = self.0.get(at..).unwrap_or_default();
        let len = rest.iter().take_while(|byte| is_word(**byte)).count();
        keyword(&rest[..len])
    }

    /// The word before a place.
    fn word_before(self, at: usize) -> &'static [u8] {
        let text = &self.0[..self.before(at)];
        let len = text.iter().rev().take_while(|byte| is_word(**byte)).count();
        keyword(&text[text.len() - len..])
    }

    /// The end of the code before a place, without blanks.
    fn before(self, at: usize) -> usize {
        let text = &self.0[..at.min(self.0.len())];
        let blanks = text.iter().rev().take_while(|byte| is_blank(**byte));
        text.len() - blanks.count()
    }

    fn skip_blanks(self, at: usize) -> usize {
        let rest = self.0.get(at..).unwrap_or_default();
        at.min(self.0.len()) + rest.iter().take_while(|byte| is_blank(**byte)).count()
    }
}

/// Sides, with the places of those values that have one.
fn resolved(sides: [Side; 2], place: impl Fn(bool) -> Option<Option<usize>>) -> [Side; 2] {
    sides.map(|side| match side {
        Side::Value(value) => place(value).map_or(side, Side::Place),
        Side::Place(_) => side,
    })
}

/// A keyword of statements; empty for any other word.
fn keyword(word: &[u8]) -> &'static [u8] {
    const KEYWORDS: [&[u8]; 10] = [
        b"if",
        b"constexpr",
        b"else",
        b"for",
        b"while",
        b"do",
        b"switch",
        b"case",
        b"default",
        b"return",
    ];
    let mut known = KEYWORDS.into_iter();
    known.find(|keyword| *keyword == word).unwrap_or_default()
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns whether a byte is not part of the code: a backslash continues the line of a macro.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code at which each side of the condition `C` continues.
    fn sides(text: &str) -> [&str; 2] {
        let at = text.find('C').unwrap();
        let sides = Flow(text.as_bytes()).sides(at..at + 1);
        sides.map(|side| side.map_or("", |at| text[at..].split([';', ' ']).next().unwrap()))
    }

    #[test]
    fn a_side_leads_to_its_statement() {
        for (text, expected) in [
            ("if (C) x; y;", ["x", "y"]),
            ("if (C) { x; } else { y; } z;", ["{", "{"]),
            ("if (C) x; else y; z;", ["x", "y"]),
            ("if (C) if (d) w; else x; y;", ["if", "y"]),
            ("if (C) for (;;) { w; } else [[unlikely]] y;", ["for", "y"]),
            ("if (!(C)) x; else y;", ["y", "x"]),
            ("if constexpr (C) x; else y;", ["x", "y"]),
            ("if (int i = 0; C) x; else y;", ["x", "y"]),
            ("if (C && b) x; else y;", ["b)", "y"]),
            ("if (a && C) x; else y;", ["x", "y"]),
            ("if (C || b) x; else y;", ["x", "b)"]),
            ("if (a && C || b) x; else y;", ["x", "b)"]),
            ("if (a && (b || C) && d) x; else y;", ["d)", "y"]),
            ("if (!(C || b)) x; else y;", ["y", "b))"]),
            ("if (f(C)) x; else y;", ["", ""]),
            ("v = C ? x : y;", ["x", "y"]),
            ("v = C ? a ? w : x : y;", ["a", "y"]),
            ("v = a && C ? n::x : y;", ["n::x", "y"]),
            ("v = C;", ["", ""]),
            ("while (C) x; y;", ["x", "y"]),
            ("do { x; } while (C); y;", ["", "y"]),
            ("for (int i = 0; C; i++) x; y;", ["x", "y"]),
            ("switch (C) { case 1: x; } y;", ["", "y"]),
        ] {
            assert_eq!(sides(text), expected, "{text}");
        }
    }

    #[test]
    fn a_label_leads_to_its_statement() {
        let text = "switch (v) { case n::A: case 1: x; default: y; }";
        let side = |label: &str| {
            let at = text.find(label).unwrap();
            let [side, other] = Flow(text.as_bytes()).sides(at..at + label.len());
            assert_eq!(other, None);
            &text[side.unwrap()..=side.unwrap()]
        };
        assert_eq!(
            ["case n::A:", "case 1:", "default:"].map(side),
            ["x", "x", "y"]
        );
    }

    #[test]
    fn text_that_is_no_code_has_no_side() {
        for text in ["C", "if (C", "((C))", "} C ) {", "for (C;", "C ?", "C && "] {
            sides(text);
        }
    }
}
