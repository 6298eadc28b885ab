//! Labels name the test that counts belong to. A labelled profile lies in a directory of that label, below
//! the directory that `LLVM_PROFILE_FILE` names.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use crate::support::diagnostic::{Diagnostic, Remedy, diagnostic};

/// The name of the directory that contains the directories of labels.
pub const LABELS: &str = "labels";
/// The most bytes of a name in a label.
const MAX_BYTES: usize = 128;
/// The characters of a name that cannot be in a label which its replacement starts with.
const CHARACTERS_KEPT: usize = 64;
/// The most bytes of a name's directory: the limit of file systems (`NAME_MAX`).
const MAX_ENCODED: usize = 255;

/// The error for a text that is not a label.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct LabelError(pub String);

/// With the next step, as a parser of arguments prints it.
impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostic().fmt(f)
    }
}

impl Remedy for LabelError {
    fn remedy(&self) -> Cow<'static, str> {
        self.diagnostic().remedy()
    }
    fn diagnostic(&self) -> Diagnostic {
        let max = Label::MAX_NAMES;
        diagnostic!(
            "the label {:?} cannot be used", self.0;
            "use 1 to {max} names separated by /, none of them . or .., each 1 to {MAX_BYTES} bytes long (1 to \
            {MAX_ENCODED} as a directory)"
        )
    }
}

/// A label: one name, or several with `/` between them, for tests within suites.
///
/// Each name is a directory in the directory of the one before. Bytes other than `A-Z a-z 0-9 . _ -` become
/// `%XX` there: `unit tests/add` lies in `labels/unit%20tests/add`.
///
/// Counts from a time when several threads have labels open belong to all these labels: nothing shows whose
/// kernels counted. Such labels share one directory, with `&` between them and their `/` as `%2F`: `a/b` and
/// `c` share `labels/a%2Fb&c`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The label as written in paths.
    encoded: String,
}

impl Label {
    /// The most names in a label.
    pub const MAX_NAMES: usize = 8;

    /// The label of a test with this name: the name, as far as it is one. A part that cannot be in a label is replaced by
    /// its start and a hash; the first parts of too many become one. The pytest plugin has the same rules.
    #[must_use]
    pub fn text_for(test: &str) -> String {
        let mut names: Vec<_> = test.split('/').map(str::to_owned).collect();
        if let Some(more) = names.len().checked_sub(Self::MAX_NAMES) {
            let folded = names.drain(..=more).collect::<Vec<_>>().join(".");
            names.insert(0, folded);
        }
        for name in &mut names {
            // ctest's environments of tests are lists with `;` between them.
            if name.parse::<Self>().is_err() || name.contains([';', '\0']) {
                *name = short(name);
            }
        }
        names.join("/")
    }

    /// The directory of this label's profiles, relative to the directory that `LLVM_PROFILE_FILE` names.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        Path::new(LABELS).join(&self.encoded)
    }

    /// The label whose directory is `path`, relative to [`LABELS`]. A name in another form than labels have
    /// is taken literally. `None` if `path` names no directory.
    #[must_use]
    pub fn from_directory(path: &Path) -> Option<Self> {
        let names: Option<Vec<_>> = path
            .components()
            .map(|component| match component {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let encoded = names?.join("/");
        (!encoded.is_empty()).then_some(Self { encoded })
    }

    /// The labels that share these counts: each label of a shared directory, or only this one.
    #[must_use]
    pub fn shared(&self) -> Vec<Self> {
        if self.encoded.contains('/') {
            return vec![self.clone()];
        }
        let labels = self.encoded.split('&');
        let labels = labels.map(|label| Self {
            encoded: label.replace("%2F", "/"),
        });
        labels.collect()
    }

    /// One label for counts that may belong to any of these, none of which is shared itself. `None` if there
    /// are none, or too many for a directory's name.
    #[must_use]
    pub fn sharing(labels: &[Self]) -> Option<Self> {
        if let [label] = labels {
            return Some(label.clone());
        }
        let parts: Vec<_> = labels
            .iter()
            .map(|label| label.encoded.replace('/', "%2F"))
            .collect();
        let encoded = parts.join("&");
        let is_name = (1..=MAX_ENCODED).contains(&encoded.len());
        is_name.then_some(Self { encoded })
    }
}

/// The replacement of a name that cannot be in a label: its start and a hash.
fn short(name: &str) -> String {
    let usual = |letter: char| match letter {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '_' | '-' => letter,
        _ => '_',
    };
    let start: String = name.chars().take(CHARACTERS_KEPT).map(usual).collect();
    format!("{start}-{:08x}", crc(name.as_bytes()))
}

/// The checksum that zlib names CRC-32.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let carry = if sum & 1 == 1 { 0xEDB8_8320 } else { 0 };
            sum = (sum >> 1) ^ carry;
        }
    }
    !sum
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let mut encoded = String::new();
        for (index, name) in text.split('/').enumerate() {
            if index > 0 {
                encoded.push('/');
            }
            let start = encoded.len();
            for byte in name.bytes() {
                if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
                    encoded.push(byte.into());
                } else {
                    let _ = write!(encoded, "%{byte:02X}");
                }
            }
            let is_name = !matches!(name, "" | "." | "..");
            let is_short = name.len() <= MAX_BYTES && encoded.len() - start <= MAX_ENCODED;
            if !is_name || !is_short || index == Self::MAX_NAMES {
                return Err(LabelError(text.to_owned()));
            }
        }
        Ok(Self { encoded })
    }
}

/// The label as given. Labels that share it have ` & ` between them.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded = self.encoded.replace('&', " & ");
        f.write_str(&crate::format::codeobject::percent_decode(&encoded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(text: &str) -> String {
        let label: Label = text.parse().unwrap();
        assert_eq!(label.to_string(), text);
        let directory = label.directory();
        let below = directory.strip_prefix(LABELS).unwrap();
        assert_eq!(Label::from_directory(below), Some(label));
        directory.to_str().unwrap().to_owned()
    }

    #[test]
    fn each_name_is_a_directory() {
        assert_eq!(directory("add"), "labels/add");
        assert_eq!(directory("a/b-1/C_2.x"), "labels/a/b-1/C_2.x");
        assert_eq!(directory("...x/.y"), "labels/...x/.y");
    }

    #[test]
    fn other_bytes_are_percent_encoded() {
        assert_eq!(directory("unit tests"), "labels/unit%20tests");
        assert_eq!(directory("50%"), "labels/50%25");
        assert_eq!(directory("é<int>"), "labels/%C3%A9%3Cint%3E");
    }

    #[test]
    fn labels_are_names_as_far_as_these_can_be() {
        let whole = "1/2/3/4/5/6/7/8";
        for name in ["add", "Suite.Test/0", "odd [\"name\"] $x \\ @y@ é", whole] {
            assert_eq!(Label::text_for(name), name);
        }
        let long = "x".repeat(200);
        // CRC-32 as zlib has it.
        for (name, expected) in [
            ("a//b", "a/-00000000/b"),
            ("../up", "..-9608161c/up"),
            ("a/b;c", "a/b_c-5c1b1986"),
            (&long, &format!("{}-7ecb6ba6", "x".repeat(64))),
            ("1/2/3/4/5/6/7/8/9/0", "1.2.3/4/5/6/7/8/9/0"),
        ] {
            assert_eq!(Label::text_for(name), expected);
            assert!(expected.parse::<Label>().is_ok());
        }
    }

    #[test]
    fn a_directory_of_several_labels_is_of_each() {
        let shared = |path: &str| {
            let label = Label::from_directory(Path::new(path)).unwrap();
            let labels = label.shared().into_iter();
            labels.map(|label| label.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(shared("unit/add"), ["unit/add"]);
        assert_eq!(shared("a%20%26%20b"), ["a & b"]);
        assert_eq!(shared("unit%2Fadd&a%20%26%20b"), ["unit/add", "a & b"]);
    }

    #[test]
    fn several_share_a_directory() {
        let labels: Vec<Label> = ["a/b", "c & d"].map(|text| text.parse().unwrap()).into();
        let shared = Label::sharing(&labels).unwrap();
        assert_eq!(shared.directory(), Path::new("labels/a%2Fb&c%20%26%20d"));
        assert_eq!(shared.to_string(), "a/b & c & d");
        assert_eq!(shared.shared(), labels);
        assert_eq!(Label::sharing(&labels[..1]), Some(labels[0].clone()));
        assert_eq!(Label::sharing(&[]), None);
        let long: Label = "x".repeat(128).parse().unwrap();
        assert_eq!(Label::sharing(&[long.clone(), long]), None);
    }

    #[test]
    fn what_is_no_label_is_refused() {
        let long = "x".repeat(129);
        let wide = "é".repeat(43);
        let deep = ["a"; 9].join("/");
        for text in [
            "", ".", "..", "a/..", "./a", "/a", "a/", "a//b", &long, &wide, &deep,
        ] {
            let error = text.parse::<Label>().unwrap_err();
            assert_eq!(error, LabelError(text.to_owned()));
        }
        // Each name may have the full length.
        let names = [&long[1..]; 2].join("/");
        for text in [&long[1..], &wide[2..], &deep[2..], &names] {
            directory(text);
        }
    }
}
