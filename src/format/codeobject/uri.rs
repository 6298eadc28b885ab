//! The loader's URIs for the sources of code objects.

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
