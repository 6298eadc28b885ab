//! Comments after the PTX that librocov keeps: hashes of the source lines that it refers to, as they were when it ran.
//!
//! A compiler of Python keeps no text of the source and no checksum, so nothing else shows whether the source was
//! edited after the run. A comment has the path of a source, and for each line its number and the hash of its text:
//!
//! ```text
//! // rocov source "/home/ada/kernels.py" 12:0a93c51f 13:8e10f2b4
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

/// The start of a comment.
const START: &str = "// rocov source \"";

/// The directive that a module starts with.
const VERSION: &str = ".version";

/// The hashes of lines, by the path of the source and the number of the line.
pub type NotedLines = BTreeMap<String, BTreeMap<u32, u32>>;

/// The hash of the text of a line. Blanks at its ends do not matter.
#[must_use]
pub fn hash_of_line(text: &[u8]) -> u32 {
    // The lower half.
    xxh3_64(text.trim_ascii()) as u32
}

/// The comments about the sources of `text`, which end it. `read` returns the text of a source; there is no comment about
/// one that it does not recognize.
///
/// Less than a parser knows is enough here: librocov looks at each text that it keeps.
pub fn note_sources(text: &str, read: impl Fn(&str) -> Option<Vec<u8>>) -> String {
    let mut comments = String::new();
    let mut places: Vec<(u32, u32)> = Vec::new();
    let mut files: Vec<(u32, &str)> = Vec::new();
    // Each module of a text numbers its files.
    for line in text.lines().chain([VERSION]) {
        let line = line.trim_ascii_start();
        if let Some(words) = line.strip_prefix(".loc") {
            let mut words = words.split_ascii_whitespace();
            places.extend(place(&mut words));
            if words.any(|word| word == "inlined_at") {
                places.extend(place(&mut words));
            }
        } else if let Some(file) = line.strip_prefix(".file") {
            let mut parts = file.split('"');
            if let (Some(number), Some(path)) = (parts.next(), parts.next()) {
                files.extend(number.trim_ascii().parse().map(|number| (number, path)));
            }
        } else if line.starts_with(VERSION) {
            for (number, path) in files.drain(..) {
                let of_file = places
                    .iter()
                    .filter(|place| place.0 == number && place.1 > 0);
                let mut lines: Vec<u32> = of_file.map(|place| place.1).collect();
                lines.sort_unstable();
                lines.dedup();
                if lines.is_empty() {
                    continue;
                }
                if let Some(source) = read(path) {
                    note(path, &source, &lines, &mut comments);
                }
            }
            places.clear();
        }
    }
    comments
}

/// The number of a file and that of a line.
fn place<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<(u32, u32)> {
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Adds the comment about the lines of a source.
fn note(path: &str, source: &[u8], lines: &[u32], comments: &mut String) {
    comments.push_str(START);
    comments.push_str(path);
    comments.push('"');
    let mut texts = source.split(|byte| *byte == b'\n').zip(1..).peekable();
    for line in lines {
        while texts.next_if(|(_, number)| number < line).is_some() {}
        let text = texts.peek().map_or(&b""[..], |(text, _)| text);
        let _ = write!(comments, " {line}:{:08x}", hash_of_line(text));
    }
    comments.push('\n');
}

/// The hashes in the comments of a text.
#[must_use]
pub fn noted_sources(text: &str) -> NotedLines {
    let mut noted = NotedLines::new();
    for comment in text.lines().filter_map(|line| line.strip_prefix(START)) {
        let Some((path, lines)) = comment.rsplit_once('"') else {
            continue;
        };
        let lines = lines.split_ascii_whitespace().filter_map(|line| {
            let (line, hash) = line.split_once(':')?;
            Some((line.parse().ok()?, u32::from_str_radix(hash, 16).ok()?))
        });
        noted.entry(path.to_owned()).or_default().extend(lines);
    }
    noted
}

#[cfg(test)]
mod tests {
    use super::super::modules;
    use super::*;

    const TEXT: &str = ".version 7.8\n.visible .entry k()\n{\n\t.loc 1 2 1\n\tmov.u32 %r1, 0;\n\
        \t.loc\t2 4 9, function_name $L__info_string0, inlined_at 1 3 5\n\t.loc 1 0 0\n\t.loc 1 9 1\n\tret;\n}\n\
        .file 1 \"/a b.py\"\n.file\t2 \"/gone.h\", 1700000000, 20\n\
        .version 7.8\n.visible .entry l()\n{\n\t.loc 1 1 1\n\tret;\n}\n.file 1 \"/c.py\"\n";

    #[test]
    fn comments_have_the_lines_of_sources_that_are_there() {
        let comments = note_sources(TEXT, |path| match path {
            "/a b.py" => Some(b"one\n  two \nthree\n".to_vec()),
            "/c.py" => Some(b"two".to_vec()),
            _ => None,
        });
        let noted = noted_sources(&format!("{TEXT}{comments}"));
        let [two, three, none] = [&b"two"[..], b"three", b""].map(hash_of_line);
        let expected = [
            (
                "/a b.py".to_owned(),
                BTreeMap::from([(2, two), (3, three), (9, none)]),
            ),
            ("/c.py".to_owned(), BTreeMap::from([(1, two)])),
        ];
        assert_eq!(noted, NotedLines::from(expected));
        assert_eq!(modules(&format!("{TEXT}{comments}")).len(), 2);
    }

    #[test]
    fn damaged_comments_are_passed_over() {
        let text = "// rocov source \"/a 1:00\n// rocov source \"/b\" 1 x:00 2:zz 3:0f\n// rocov\n";
        let expected = [("/b".to_owned(), BTreeMap::from([(3, 15)]))];
        assert_eq!(noted_sources(text), NotedLines::from(expected));
        assert_eq!(note_sources("", |_| None), "");
    }
}
