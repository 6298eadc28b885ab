//! A preprocessed source, and the sources that it was made of. The hipRTC of HIP 7 gives one to its compiler, if
//! it has a cache of compiled code.

use std::collections::BTreeMap;
use std::str;

/// The highest line number that is kept, so that damage does not take all memory.
const MOST_LINES: u32 = 1 << 22;

/// A preprocessed source: its line markers name the files of its lines.
#[derive(Debug)]
pub(super) struct Preprocessed {
    parts: Vec<Part>,
    /// The files, each once.
    files: Vec<OriginFile>,
}

/// The lines between two line markers.
#[derive(Debug)]
struct Part {
    /// The number of the first line in the preprocessed source.
    start: u32,
    /// The number of lines.
    lines: u32,
    /// The index of the file that the lines come from.
    file: usize,
    /// The number of the first line in that file.
    origin: u32,
}

#[derive(Debug)]
struct OriginFile {
    path: String,
    /// The lines as far as the preprocessor left them.
    lines: Vec<Vec<u8>>,
}

/// The line number and the path in a line marker: `# 12 "path" 1`.
fn marker(line: &[u8]) -> Option<(u32, &str)> {
    let rest = line.strip_prefix(b"# ")?;
    let (number, rest) = str::from_utf8(rest).ok()?.split_once(" \"")?;
    let (path, _) = rest.rsplit_once('"')?;
    Some((number.parse().ok()?, path))
}

impl Preprocessed {
    /// Reads a text. `None` if it does not start with a line marker, as a preprocessed source does.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        marker(text.split(|byte| *byte == b'\n').next()?)?;
        let mut made = Self {
            parts: Vec::new(),
            files: Vec::new(),
        };
        for (line, number) in text.split(|byte| *byte == b'\n').zip(1..) {
            match marker(line) {
                Some((origin, path)) => {
                    let file = made.file(path);
                    made.parts.push(Part {
                        start: number + 1,
                        lines: 0,
                        file,
                        origin,
                    });
                }
                None => made.add(line),
            }
        }
        Some(made)
    }

    /// The index of the file at `path`.
    fn file(&mut self, path: &str) -> usize {
        let known = self.files.iter().position(|file| file.path == path);
        known.unwrap_or_else(|| {
            self.files.push(OriginFile {
                path: path.to_owned(),
                lines: Vec::new(),
            });
            self.files.len() - 1
        })
    }

    /// Adds a line to the last part.
    fn add(&mut self, line: &[u8]) {
        let Some(part) = self.parts.last_mut() else {
            return;
        };
        let number = part.origin.saturating_add(part.lines);
        part.lines += 1;
        let lines = &mut self.files[part.file].lines;
        let Some(index) = number.checked_sub(1).filter(|number| *number < MOST_LINES) else {
            return;
        };
        let index = index as usize;
        if lines.len() <= index {
            lines.resize(index + 1, Vec::new());
        }
        // A second visit, after the preprocessor has come back, has less.
        if lines[index].is_empty() {
            lines[index] = line.to_vec();
        }
    }

    /// The file that the line with this number comes from.
    pub(super) fn file_at(&self, line: u32) -> Option<usize> {
        let after = self.parts.partition_point(|part| part.start <= line);
        self.parts[..after].last().map(|part| part.file)
    }

    /// The number of a line in `file`. If the line comes from another file, that of the line before it.
    pub(super) fn line_in(&self, file: usize, line: u32) -> u32 {
        let after = self.parts.partition_point(|part| part.start <= line);
        let mut before = self.parts[..after].iter().rev();
        let part = before.find(|part| part.file == file);
        part.map_or(line, |part| {
            let inside = (line - part.start).min(part.lines.saturating_sub(1));
            part.origin.saturating_add(inside)
        })
    }

    /// Returns whether a place in the preprocessed source has something other than space.
    pub(super) fn has_code_at(&self, line: u32, column: u32) -> bool {
        let Some(file) = self.file_at(line) else {
            return false;
        };
        let index = |number: u32| (number as usize).checked_sub(1);
        let text =
            index(self.line_in(file, line)).and_then(|index| self.files[file].lines.get(index));
        let byte = text
            .zip(index(column))
            .and_then(|(text, column)| text.get(column));
        byte.is_some_and(|byte| !byte.is_ascii_whitespace())
    }

    pub(super) fn path(&self, file: usize) -> &str {
        &self.files[file].path
    }

    /// The texts of the files, by path.
    pub(super) fn texts(&self) -> BTreeMap<String, Vec<u8>> {
        let files = self.files.iter();
        let texts = files.map(|file| (file.path.clone(), file.lines.join(&b'\n')));
        texts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_where_its_text_is() {
        let made = Preprocessed::parse(TEXT.as_bytes()).expect("it has line markers");
        // Line 5 is the first of the source, and has three letters.
        for (line, column, has_code) in [(5, 1, true), (5, 3, true), (5, 4, false), (99, 1, false)]
        {
            assert_eq!(made.has_code_at(line, column), has_code, "{line}:{column}");
        }
    }

    const TEXT: &str = "# 1 \"/t/a.hip\"\n# 1 \"<built-in>\" 1\n#define A 1\n# 1 \"/t/a.hip\" 2\none\n\
                        # 1 \"/t/b.h\" 1\nbee\n# 3 \"/t/a.hip\" 2\nthree\nfour\n";

    #[test]
    fn lines_have_the_numbers_of_their_files() {
        let made = Preprocessed::parse(TEXT.as_bytes()).unwrap();
        let place = |line| {
            let file = made.file_at(line).unwrap();
            (made.path(file), made.line_in(file, line))
        };
        assert_eq!(place(5), ("/t/a.hip", 1));
        assert_eq!(place(7), ("/t/b.h", 1));
        assert_eq!(place(10), ("/t/a.hip", 4));
        let a = made.file_at(5).unwrap();
        assert_eq!(made.line_in(a, 7), 1, "the line before the header");
    }

    #[test]
    fn texts_are_as_the_preprocessor_left_them() {
        let made = Preprocessed::parse(TEXT.as_bytes()).unwrap();
        let texts = made.texts();
        assert_eq!(texts["/t/a.hip"], b"one\n\nthree\nfour\n");
        assert_eq!(texts["/t/b.h"], b"bee");
        assert!(Preprocessed::parse(b"int a;\n# 1 \"b\"\n").is_none());
    }
}
