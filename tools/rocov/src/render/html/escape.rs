//! Text in pages. `askama.toml` names this for all templates.

use std::fmt;

use askama::filters::{Escaper, Html};

use crate::support::printable::printable_text;

/// Escapes text for HTML. Characters that are not seen as themselves are escaped as in other formats, so that a name or
/// a line of code is what it looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisibleHtml;

impl Escaper for VisibleHtml {
    fn write_escaped_str<W: fmt::Write>(&self, dest: W, string: &str) -> fmt::Result {
        Html.write_escaped_str(dest, &printable_text(string))
    }
}
