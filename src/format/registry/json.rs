//! The document as text: JSON with one line for each record, so that `grep` finds an address.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, Serializer};
use thiserror::Error;

use crate::format::registry::model::{Document, VERSION};
use crate::support::diagnostic::Remedy;

/// The reason why a text is not a registry that this version of rocov reads.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The text is damaged, or not a registry.
    #[error("not a registry, or damaged: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The schema version is unknown.
    #[error("registry of schema version {found}, expected {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
}

impl Remedy for DocumentError {
    fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed("run the program again")
    }
}

/// The version field of a document, whatever else the document has.
#[derive(Deserialize)]
struct Head {
    rocov_registry: u32,
}

impl Document {
    /// Reads a document. Ignores unknown fields.
    ///
    /// # Errors
    /// Fails if `text` is not a registry, is damaged, or has another schema version.
    pub fn parse(text: &[u8]) -> Result<Self, DocumentError> {
        check_version(text)?;
        Ok(serde_json::from_slice(text)?)
    }

    /// Checks that `text` is JSON, and a document of this version.
    ///
    /// # Errors
    /// Fails if `text` is not a document, or has another schema version.
    pub fn check(text: &[u8]) -> Result<(), DocumentError> {
        check_version(text)
    }

    /// The document as text. Equal documents have equal texts.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        to_text(self)
    }
}

/// Rejects texts that are not documents, and documents of other versions.
pub(super) fn check_version(text: &[u8]) -> Result<(), DocumentError> {
    match serde_json::from_slice(text)? {
        Head {
            rocov_registry: VERSION,
        } => Ok(()),
        Head { rocov_registry } => Err(DocumentError::Version {
            found: rocov_registry,
        }),
    }
}

/// The text of a document, or of a value that serializes as one.
pub(super) fn to_text(document: &impl Serialize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, LinePerElement::default());
    document
        .serialize(&mut serializer)
        .expect("memory takes any text, and the document has no map with odd keys");
    text.push(b'\n');
    text
}

/// Puts each element of a list on a line of its own, one space further in for each list around it.
#[derive(Default)]
struct LinePerElement {
    depth: usize,
    is_empty: bool,
}

impl LinePerElement {
    fn start_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        /// More spaces than a document has lists in each other.
        const SPACES: &[u8] = b"\n                ";
        match SPACES.get(..=self.depth) {
            Some(start) => writer.write_all(start),
            None => write!(writer, "\n{:1$}", "", self.depth),
        }
    }
}

impl Formatter for LinePerElement {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.start_line(writer)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_empty = false;
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if !self.is_empty {
            self.start_line(writer)?;
        }
        writer.write_all(b"]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::registry::model::{AgentRecord, KernelAddress, LoadRecord, ProcessRecord};

    fn document() -> Document {
        let load = LoadRecord {
            generation: 1,
            time: 2,
            agent: 0,
            executable: 0x55,
            uri: "memory://7#offset=0x10&size=20".into(),
            base: 0x7f31_c0de_0000,
            size: 0x2000,
            delta: u64::MAX - 0xfff,
            code_object: Some("0f3c".into()),
            host: None,
            profile: None,
            partial: None,
            kernels: vec![KernelAddress {
                name: "k".into(),
                object: 0x7f31_c0de_0040,
                entry: 0x7f31_c0de_1000,
            }],
            unload: None,
        };
        let agent = AgentRecord {
            index: 0,
            name: "gfx90a".into(),
            isa: None,
            uuid: None,
            node: Some(1),
        };
        let process = ProcessRecord {
            pid: 7,
            host: "node7".into(),
            start: 1,
            epoch: 2,
            command: vec!["app".into()],
            agents: vec![agent],
            hosts: Vec::new(),
            loads: vec![load],
            device_code: None,
            never_loaded: Vec::new(),
            stops: Vec::new(),
            notes: Vec::new(),
        };
        Document {
            processes: vec![process],
            ..Document::default()
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let document = document();
        assert_eq!(Document::parse(&document.to_json()).unwrap(), document);
    }

    #[test]
    fn each_record_has_a_line_with_whole_addresses() {
        let text = String::from_utf8(document().to_json()).unwrap();
        let line = r#"{"name":"k","object":"0x7f31c0de0040","entry":"0x7f31c0de1000"}"#;
        assert!(text.lines().any(|found| found.trim() == line), "{text}");
        assert!(text.contains(r#""delta":"0xfffffffffffff000""#), "{text}");
        assert!(text.starts_with(r#"{"rocov_registry":1,"code_objects":[],"processes":["#));
    }

    #[test]
    fn other_texts_are_refused_with_a_reason() {
        let refused = |text: &str| Document::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            refused(r#"{"rocov_registry": 2, "all": "new"}"#),
            "registry of schema version 2, expected 1"
        );
        for text in ["", "[]", "{}", r#"{"rocov_registry": 1}"#, "\u{7f}ELF"] {
            let error = refused(text);
            assert!(
                error.starts_with("not a registry, or damaged: "),
                "{text}: {error}"
            );
        }
        let text = String::from_utf8(document().to_json()).unwrap();
        for cut in [text.len() / 2, text.len() - 3] {
            refused(&text[..cut]);
        }
        let error = refused(&text.replace("0x55", "55"));
        assert!(
            error.contains("address \"55\", expected such as \"0x7f00\""),
            "{error}"
        );
    }

    #[test]
    fn fields_that_are_not_known_are_passed_over() {
        let text = String::from_utf8(document().to_json()).unwrap();
        let later = text.replace(r#""pid":7"#, r#""pid":7,"colour":"red""#);
        assert_eq!(Document::parse(later.as_bytes()).unwrap(), document());
    }
}
