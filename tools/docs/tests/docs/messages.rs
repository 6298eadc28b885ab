//! The messages of the command and of librocov, which the chapter on troubleshooting quotes.
//!
//! A message is a `Diagnostic`: what happened, and what to do next.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use rocov::support::diagnostic::Diagnostic;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, LitStr, Meta, Token, Type};

use crate::settings::constants;
use crate::{files_below, read, repository};

/// The folders with the sources of what users run.
const SOURCES: [&str; 6] = [
    "src",
    "runtime/instrument/src",
    "runtime/rocprofiler/src",
    "runtime/src",
    "tools/fleet/src",
    "tools/rocov/src",
];

/// The macros that make a diagnostic of two format strings.
const DIAGNOSTICS: [&str; 3] = ["diagnostic", "fail", "failure"];

/// The printer of a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Printer {
    /// librocov, on the standard error of the program.
    Librocov,
    /// A type of the library. librocov and the command print it.
    Error(String),
    /// The command, or anything else.
    Other,
}

/// A text with `{}` for each value in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Template {
    pub(crate) printer: Printer,
    pub(crate) text: String,
}

/// Returns the texts of the sources: all diagnostics and errors by their printers, and all other strings.
pub(crate) fn templates() -> BTreeSet<Template> {
    let is_source = |path: &Path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_test = name == "tests" || name.ends_with("_tests");
        !is_test && (path.is_dir() || path.extension().is_some_and(|extension| extension == "rs"))
    };
    let root = repository("");
    let files = SOURCES
        .iter()
        .flat_map(|folder| files_below(&root.join(folder), &is_source));
    let relative = |path: &PathBuf| path.strip_prefix(&root).expect("it is below").to_owned();
    files
        .flat_map(|path| collected(&relative(&path), &read(&path)))
        .collect()
}

/// Collects the texts of a source.
fn collected(path: &Path, source: &str) -> BTreeSet<Template> {
    let file = syn::parse_file(source).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut collector = Collector {
        is_library: path.starts_with("src"),
        is_librocov: path.starts_with("runtime"),
        owner: None,
        is_display: false,
        templates: BTreeSet::new(),
    };
    collector.visit_file(&file);
    collector.templates
}

/// Collects the texts of a source.
struct Collector {
    is_library: bool,
    is_librocov: bool,
    /// The type whose definition or implementation is read.
    owner: Option<String>,
    /// True in the implementation of `Display`.
    is_display: bool,
    templates: BTreeSet<Template>,
}

impl Collector {
    fn with_owner(&mut self, owner: Option<String>, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.owner, owner);
        visit(self);
        self.owner = before;
    }

    /// Adds a message.
    fn message(&mut self, text: String) {
        let printer = match &self.owner {
            _ if self.is_librocov => Printer::Librocov,
            Some(owner) if self.is_library => Printer::Error(owner.clone()),
            _ => Printer::Other,
        };
        self.templates.insert(Template { printer, text });
    }

    /// Adds a text that may be a part of a message. One that a type of the library displays is a message.
    fn text(&mut self, format: &str) {
        let text = without_values(format);
        let is_word = |word: &&str| word.chars().filter(char::is_ascii_alphabetic).count() > 1;
        let words = text.split_whitespace().filter(is_word).count();
        if self.is_display && self.is_library && words > 1 {
            return self.message(text);
        }
        let printer = Printer::Other;
        self.templates.insert(Template { printer, text });
    }

    /// Adds the literals of tokens that are no expressions.
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(literal) = syn::parse_str::<LitStr>(&literal.to_string()) {
                        self.text(&literal.value());
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

/// Returns what happened and what to do next, from the arguments of a macro: a format string before the semicolon, and
/// one behind it.
fn parts(arguments: TokenStream) -> Option<(String, String)> {
    let mut tokens = arguments.into_iter();
    let mut format = || -> Option<String> {
        let first = syn::parse_str::<LitStr>(&tokens.next()?.to_string()).ok()?;
        tokens
            .by_ref()
            .take_while(|token| !matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';'))
            .for_each(drop);
        Some(without_values(&first.value()))
    };
    Some((format()?, format()?))
}

/// Returns whether code is built for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::NameValue(_) => false,
    })
}

/// Returns the name of a type.
fn name_of(of: &Type) -> Option<String> {
    let Type::Path(of) = of else { return None };
    Some(of.path.segments.last()?.ident.to_string())
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.with_owner(Some(item.ident.to_string()), |visitor| {
            visit::visit_item_enum(visitor, item);
        });
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.with_owner(Some(item.ident.to_string()), |visitor| {
            visit::visit_item_struct(visitor, item);
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        let of = item
            .trait_
            .as_ref()
            .and_then(|(_, of, _)| of.segments.last());
        self.is_display = of.is_some_and(|of| of.ident == "Display");
        self.with_owner(name_of(&item.self_ty), |visitor| {
            visit::visit_item_impl(visitor, item);
        });
        self.is_display = false;
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::List(list) = &attribute.meta else {
            return;
        };
        let format = |tokens: TokenStream| -> Option<String> {
            let first = tokens.into_iter().next()?.to_string();
            Some(syn::parse_str::<LitStr>(&first).ok()?.value())
        };
        if list.path.is_ident("error")
            && let Some(format) = format(list.tokens.clone())
        {
            self.message(without_values(&format));
            self.tokens(list.tokens.clone().into_iter().skip(1).collect());
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|name| name.ident.to_string());
        if name.is_some_and(|name| DIAGNOSTICS.contains(&name.as_str())) {
            if let Some((what, next)) = parts(call.tokens.clone()) {
                // The library's messages get a place before them, and a semicolon behind it.
                self.message(match self.is_library {
                    true => what,
                    false => Diagnostic::new(what, next).to_string(),
                });
            }
            return;
        }
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        match call.parse_body_with(arguments) {
            Ok(arguments) => arguments.iter().for_each(|argument| {
                let mut inner = Self {
                    owner: self.owner.clone(),
                    templates: BTreeSet::new(),
                    ..*self
                };
                inner.visit_expr(argument);
                self.templates.append(&mut inner.templates);
            }),
            Err(_) => self.tokens(call.tokens.clone()),
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        self.text(&literal.value());
    }
}

/// Returns a format string with `{}` for each value but names of variables, in one line.
fn without_values(format: &str) -> String {
    let mut text = String::new();
    let mut rest = format.trim_end_matches('\n');
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let doubled = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(doubled) {
            text.push_str(doubled);
            rest = after;
        } else if let Some((value, after)) = rest.split_once('}') {
            text.push_str(constants().get(value).map_or("{}", String::as_str));
            rest = after;
        }
    }
    text.push_str(rest);
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[test]
fn messages_are_found_with_their_next_step() {
    let source = r##"
        /// A doc comment is none.
        #[derive(Error)]
        enum Fault {
            #[error("the {part} ends at byte {at:#x}, {{not}} {}", self.end)]
            Short { part: u8 },
        }
        fn print(name: &str) -> Option<Diagnostic> {
            log::warn(&diagnostic!("cannot write {name}"; "make it writable"));
            let failed = failure!("cannot write {}: {error}", path.display(); "give {} room", name);
            None
        }
        impl Fault {
            fn text(&self) -> String { format!("on PATH or in {}", self.0) }
        }
        #[cfg(test)]
        mod tests { fn f() { warn("of a test only"); } }
    "##;
    let texts = |path: &str| -> Vec<(Printer, String)> {
        let templates = collected(Path::new(path), source).into_iter();
        templates
            .map(|template| (template.printer, template.text))
            .collect()
    };
    let written = "cannot write {}: make it writable".to_owned();
    let failed = "cannot write {}: {}; give {} room".to_owned();
    let error = "the {} ends at byte {}, {not} {}".to_owned();
    let other = (Printer::Other, "on PATH or in {}".to_owned());
    assert_eq!(
        texts("runtime/src/a.rs"),
        [
            (Printer::Librocov, written.clone()),
            (Printer::Librocov, failed.clone()),
            (Printer::Librocov, error.clone()),
            other.clone(),
        ]
    );
    assert_eq!(
        texts("src/a.rs"),
        [
            (Printer::Error("Fault".to_owned()), error),
            (Printer::Other, "cannot write {}".to_owned()),
            (Printer::Other, "cannot write {}: {}".to_owned()),
            other,
        ]
    );
}
