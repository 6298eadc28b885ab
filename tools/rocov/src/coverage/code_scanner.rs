//! Tells the code of C and C++ from comments and strings.

/// Tells code from comments and strings, line by line.
#[derive(Debug, Default)]
pub(super) struct CodeScanner {
    is_in_comment: bool,
}

impl CodeScanner {
    /// A line with blanks instead of comments and of quoted text.
    pub(super) fn code_of(&mut self, line: &[u8]) -> Vec<u8> {
        let mut code = line.to_vec();
        let mut quote = None;
        let mut at = 0;
        while at < line.len() {
            let rest = &line[at..];
            let mut width = 1;
            match quote {
                _ if self.is_in_comment => {
                    if rest.starts_with(b"*/") {
                        self.is_in_comment = false;
                        width = 2;
                    }
                }
                Some(mark) => {
                    if rest[0] == b'\\' {
                        width = rest.len().min(2);
                    } else if rest[0] == mark {
                        quote = None;
                    }
                }
                None if rest.starts_with(b"//") => width = rest.len(),
                None if rest.starts_with(b"/*") => {
                    self.is_in_comment = true;
                    width = 2;
                }
                // A digit before it: a separator of digits, as in 1'000.
                None if rest[0] == b'"' || rest[0] == b'\'' && !is_behind_digit(&line[..at]) => {
                    quote = Some(rest[0]);
                }
                None => {
                    at += 1;
                    continue;
                }
            }
            code[at..at + width].fill(b' ');
            at += width;
        }
        code
    }
}

fn is_behind_digit(before: &[u8]) -> bool {
    before.last().is_some_and(u8::is_ascii_hexdigit)
}
