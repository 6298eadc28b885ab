//! The loader's URIs for the sources of code objects.

use std::fmt;
use std::path::PathBuf;

/// A `file://` URI as ROCr's loader writes it: `file:///a%20b#offset=4096&size=9000`. It is percent-encoded.
/// Both parts of the fragment are optional, decimal or `0x`. (A code object in memory has
/// `memory://PID#offset=0x7f00&size=9000`.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUri {
    /// The file.
    pub path: PathBuf,
    /// The offset of the ELF in the file, in bytes.
    pub offset: u64,
    /// The size of the ELF in bytes. `None` for the rest of the file.
    pub size: Option<u64>,
}

impl FileUri {
    /// Parses a URI. `None` if it names no file.
    #[must_use]
    pub fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix("file://")?;
        let (path, fragment) = rest.split_once(['#', '?']).unwrap_or((rest, ""));
        let number = |name: &str| {
            let value = fragment
                .split('&')
                .find_map(|part| part.strip_prefix(name))?;
            match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => value.parse().ok(),
            }
        };
        Some(Self {
            path: percent_decode(path).into(),
            offset: number("offset=").unwrap_or(0),
            size: number("size="),
        })
    }
}

impl fmt::Display for FileUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("file://")?;
        for byte in self.path.as_os_str().as_encoded_bytes() {
            match byte {
                b'/' | b'-' | b'.' | b'_' | b'~' => write!(f, "{}", char::from(*byte))?,
                byte if byte.is_ascii_alphanumeric() => write!(f, "{}", char::from(*byte))?,
                byte => write!(f, "%{byte:02x}")?,
            }
        }
        if let Some(size) = self.size {
            write!(f, "#offset={}&size={size}", self.offset)?;
        }
        Ok(())
    }
}

/// Decodes the `%XX` escapes of a text.
pub(crate) fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_the_part_of_a_file_that_it_was_made_of() {
        let part = FileUri {
            path: "/lib/a b%#ä.so".into(),
            offset: 4096,
            size: Some(9000),
        };
        let text = part.to_string();
        assert_eq!(
            text,
            "file:///lib/a%20b%25%23%c3%a4.so#offset=4096&size=9000"
        );
        assert_eq!(FileUri::parse(&text), Some(part));
        let whole = FileUri {
            path: "/a".into(),
            offset: 0,
            size: None,
        };
        assert_eq!(whole.to_string(), "file:///a");
    }
}
