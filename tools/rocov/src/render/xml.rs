//! XML that any parser reads, whatever characters the names in it have.

use std::fmt::Display;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use crate::support::printable::printable;

/// An attribute: its name and its value.
pub(super) type Attribute<'a> = (&'a str, &'a dyn Display);

/// A document that is being written. XML 1.0 has no control characters, not even as references. So values and text have
/// them as [`printable`] shows them.
pub(super) struct Xml<'a>(Writer<&'a mut dyn Write>);

impl<'a> Xml<'a> {
    /// Begins a document, with elements on lines of their own.
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self(Writer::new_with_indent(out, b' ', 1))
    }

    /// Writes the declaration and the type of the document.
    pub(super) fn head(&mut self, doctype: &str) -> io::Result<()> {
        let declaration = BytesDecl::new("1.0", Some("UTF-8"), None);
        self.0.write_event(Event::Decl(declaration))?;
        let doctype = BytesText::from_escaped(doctype);
        self.0.write_event(Event::DocType(doctype))
    }

    /// Writes an element with the elements that `content` writes.
    pub(super) fn element(
        &mut self,
        name: &str,
        attributes: &[Attribute<'_>],
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.0.write_event(Event::Start(start(name, attributes)))?;
        content(self)?;
        self.0.write_event(Event::End(BytesEnd::new(name)))
    }

    /// Writes an element with a text.
    pub(super) fn text(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.text_with(name, &[], text)
    }

    /// Writes an element with attributes and a text.
    pub(super) fn text_with(
        &mut self,
        name: &str,
        attributes: &[Attribute<'_>],
        text: &str,
    ) -> io::Result<()> {
        self.element(name, attributes, |xml| {
            let text = printable(text);
            xml.0.write_event(Event::Text(BytesText::new(&text)))
        })
    }

    /// Writes an element without content.
    pub(super) fn empty(&mut self, name: &str, attributes: &[Attribute<'_>]) -> io::Result<()> {
        self.0.write_event(Event::Empty(start(name, attributes)))
    }

    /// Ends the document.
    pub(super) fn end(self) -> io::Result<()> {
        writeln!(self.0.into_inner())
    }
}

fn start<'a>(name: &'a str, attributes: &[Attribute<'_>]) -> BytesStart<'a> {
    let mut start = BytesStart::new(name);
    for (name, value) in attributes {
        let value = value.to_string();
        start.push_attribute((*name, &*printable(&value)));
    }
    start
}
