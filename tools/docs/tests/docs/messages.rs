//! The messages of the command and of librocov: one snapshot has them all.
//!
//! [`templates`] reads every string literal of the sources that has words in it, however it gets printed. So
//! the snapshot lacks no message, and a new one shows up in it as a difference to look at.
//! `cargo xtask bless messages` writes the snapshot.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use rocov_tests::records;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Ident, Meta, Token, Type};

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

/// The sources whose texts other tests hold: the code of counters in PTX, the chapter on environment variables, and SQL.
const OTHER_TEXTS: [&str; 6] = [
    "src/instrument/ptx/flush.rs",
    "src/instrument/ptx/rewrite.rs",
    "src/instrument/ptx/unit.rs",
    "src/settings/variables.rs",
    "tools/rocov/src/commands/export/rocpd.rs",
    "tools/rocov/src/commands/export/rocpd_schema.rs",
];

/// The folder of the formats of reports: only its errors are messages.
const REPORTS: &str = "tools/rocov/src/render/";

/// The folder with the reasons why code runs uncounted.
const REASONS: &str = "runtime/instrument/src/";

/// The sources that write to standard error, or look at it.
const PRINTERS: [&str; 6] = [
    "runtime/instrument/src/ptxas/main.rs",
    "runtime/rocprofiler/src/lib.rs",
    "runtime/src/guest/log.rs",
    "runtime/src/serve/service/thread.rs",
    "tools/rocov/src/commands/merge/mod.rs",
    "tools/rocov/src/term/print.rs",
];

/// Functions and macros whose strings are compared, are run, or name a mistake in rocov's own code.
const NOT_PRINTED: [&str; 21] = [
    "arg",
    "args",
    "assert",
    "assert_eq",
    "contains",
    "debug_assert",
    "debug_assert_eq",
    "ends_with",
    "expect",
    "find",
    "json",
    "naked_asm",
    "panic",
    "split",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "trim_end_matches",
    "trim_start_matches",
    "unreachable",
];

/// Functions and macros that make an error or print a line.
const SINKS: [&str; 15] = [
    "add",
    "anyhow",
    "bail",
    "context",
    "ensure",
    "eprint",
    "eprintln",
    "error",
    "message",
    "print",
    "println",
    "verbose",
    "warn",
    "warn_once",
    "with_context",
];

/// The sinks of whole messages. A context comes before a cause, which has the next step.
const WHOLE: [&str; 9] = [
    "add",
    "anyhow",
    "bail",
    "ensure",
    "message",
    "warn",
    "warn_once",
    "extend",
    "push",
];

/// The starts of messages that report a failure, however they are made.
const FAILURES: [&str; 4] = ["left out: ", "no ", "nothing ", "refused: "];

/// Calls that make a part of a message.
const PARTS: [&str; 2] = ["context", "with_context"];

/// The printer of a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Printer {
    /// librocov, on the standard error of the program.
    Librocov,
    /// librocov, if `ROCOV_VERBOSE` asks for it.
    Verbose,
    /// An error of the library, or a part of one, by the name of its type. librocov and the command print it.
    Error(String),
    /// The command.
    Command,
    /// Words that messages are composed of.
    Words,
}

impl Printer {
    fn heading(&self) -> String {
        match self {
            Self::Librocov => "librocov".to_owned(),
            Self::Verbose => "librocov, with ROCOV_VERBOSE=1".to_owned(),
            Self::Error(name) => format!("The library: {name}"),
            Self::Command => "The command".to_owned(),
            Self::Words => "Words that messages are composed of".to_owned(),
        }
    }
}

/// A text with `{}` for each value in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Template {
    pub(crate) printer: Printer,
    pub(crate) text: String,
    /// True if it is a whole message: the argument of a function or macro that makes an error or prints a line.
    pub(crate) is_whole: bool,
}

/// Returns the sources of what users run: their paths from the repository's root on, and their texts.
fn sources() -> Vec<(String, String)> {
    let is_source = |path: &Path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_test = name == "tests" || name.ends_with("_tests");
        !is_test && (path.is_dir() || path.extension().is_some_and(|extension| extension == "rs"))
    };
    let root = repository("");
    let files = SOURCES
        .iter()
        .flat_map(|folder| files_below(&root.join(folder), &is_source));
    let source = |path: PathBuf| {
        let relative = path.strip_prefix(&root).expect("it is below");
        (relative.display().to_string(), read(&path))
    };
    files.map(source).collect()
}

/// Returns all texts of the sources.
pub(crate) fn templates() -> BTreeSet<Template> {
    let mut sources = sources();
    sources.retain(|(path, _)| !OTHER_TEXTS.contains(&path.as_str()));
    let of = |(path, source): &(String, String)| collected(path, source).templates;
    sources.iter().flat_map(of).collect()
}

/// Collects the texts of a source.
fn collected<'a>(path: &'a str, source: &str) -> Collector<'a> {
    let file = syn::parse_file(source).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut collector = Collector {
        path,
        owner: None,
        callees: Vec::new(),
        templates: BTreeSet::new(),
        prints: false,
    };
    collector.visit_file(&file);
    collector
}

/// Collects the texts of a source.
struct Collector<'a> {
    /// The path of the source, from the repository's root on.
    path: &'a str,
    /// The type whose errors or `Display` are read.
    owner: Option<String>,
    /// The calls around the place, the outermost first.
    callees: Vec<String>,
    templates: BTreeSet<Template>,
    /// True if the source names standard error.
    prints: bool,
}

impl Collector<'_> {
    fn is_in(&self, names: &[&str]) -> bool {
        self.callees
            .iter()
            .any(|callee| names.contains(&callee.as_str()))
    }

    fn inside(&mut self, callee: &Ident, visit: impl FnOnce(&mut Self)) {
        self.callees.push(callee.to_string());
        visit(self);
        self.callees.pop();
    }

    fn with_owner(&mut self, owner: Option<String>, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.owner, owner);
        visit(self);
        self.owner = before;
    }

    /// Takes a literal, if it has words.
    fn literal(&mut self, value: &str) {
        let text = without_values(value);
        let words = text.split_whitespace();
        let is_word = |word: &&str| word.chars().filter(char::is_ascii_alphabetic).count() >= 2;
        let words = words.filter(is_word).count();
        let is_sink = self.is_in(&SINKS);
        let least = if is_sink { 1 } else { 2 };
        let is_figure = self.path.starts_with(REPORTS) && !is_sink;
        if words < least || is_figure || self.is_in(&NOT_PRINTED) {
            return;
        }
        let is_template =
            is_sink || self.is_in(&["format", "format_args", "write", "writeln", "write_str"]);
        let printer = match (&self.owner, is_template) {
            (Some(owner), true) if self.path.starts_with("src/") => Printer::Error(owner.clone()),
            _ if self.is_in(&["verbose"]) => Printer::Verbose,
            (_, true) if self.path.starts_with("runtime/") => Printer::Librocov,
            (_, true) if self.path.starts_with("tools/") => Printer::Command,
            _ => Printer::Words,
        };
        // Each error of this library is a reason that is printed at the end, with the next step.
        let is_reason = self.path.starts_with(REASONS) && self.is_in(&["error", "eprintln"]);
        let is_failure =
            is_reason || is_template && FAILURES.iter().any(|start| text.starts_with(start));
        let is_whole = (self.is_in(&WHOLE) || is_failure) && !self.is_in(&PARTS);
        self.templates.insert(Template {
            printer,
            text,
            is_whole,
        });
    }

    /// Takes the literals of a macro's arguments that are no expressions.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut is_attribute = false;
        let mut name: Option<Ident> = None;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => is_attribute = true,
                TokenTree::Punct(mark) if mark.as_char() == '!' => continue,
                TokenTree::Group(_) if is_attribute => is_attribute = false,
                TokenTree::Group(group) => match name.take() {
                    Some(name) => self.inside(&name, |visitor| visitor.tokens(group.stream())),
                    None => self.tokens(group.stream()),
                },
                TokenTree::Ident(ident) => {
                    name = Some(ident);
                    continue;
                }
                TokenTree::Literal(literal) => {
                    if let Ok(literal) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.literal(&literal.value());
                    }
                }
                TokenTree::Punct(_) => {}
            }
            name = None;
        }
    }
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

impl<'ast> Visit<'ast> for Collector<'_> {
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
            visit::visit_item_enum(visitor, item)
        });
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.with_owner(Some(item.ident.to_string()), |visitor| {
            visit::visit_item_struct(visitor, item)
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        let display = item
            .trait_
            .as_ref()
            .and_then(|(_, of, _)| of.segments.last());
        let is_display = display.is_some_and(|of| of.ident == "Display");
        let owner = name_of(&item.self_ty).filter(|_| is_display);
        self.with_owner(owner, |visitor| visit::visit_item_impl(visitor, item));
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let (Some(name), Meta::List(list)) = (attribute.path().get_ident(), &attribute.meta)
            && name == "error"
        {
            self.inside(name, |visitor| visitor.tokens(list.tokens.clone()));
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let Some(name) = call.path.segments.last() else {
            return;
        };
        self.prints |= ["eprint", "eprintln", "dbg"]
            .iter()
            .any(|printer| name.ident == printer);
        self.inside(&name.ident, |visitor| {
            let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
            match call.parse_body_with(arguments) {
                Ok(arguments) => arguments
                    .iter()
                    .for_each(|argument| visitor.argument(argument)),
                Err(_) => visitor.tokens(call.tokens.clone()),
            }
        });
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let name = match &*call.func {
            Expr::Path(function) => function.path.segments.last(),
            _ => None,
        };
        match name {
            Some(name) => self.inside(&name.ident, |visitor| visit::visit_expr_call(visitor, call)),
            None => visit::visit_expr_call(self, call),
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        self.inside(&call.method, |visitor| {
            call.args
                .iter()
                .for_each(|argument| visitor.visit_expr(argument))
        });
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let last = path.segments.last();
        self.prints |= last
            .is_some_and(|segment| segment.ident == "stderr" || segment.ident == "STDERR_FILENO");
        visit::visit_path(self, path);
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.literal(&literal.value());
    }

    fn visit_lit_byte_str(&mut self, literal: &'ast syn::LitByteStr) {
        self.literal(&String::from_utf8_lossy(&literal.value()));
    }
}

impl Collector<'_> {
    /// Reads an argument of a macro, which lives no longer than the call.
    fn argument(&mut self, argument: &Expr) {
        let mut inner = Collector {
            path: self.path,
            owner: self.owner.clone(),
            callees: self.callees.clone(),
            templates: BTreeSet::new(),
            prints: false,
        };
        inner.visit_expr(argument);
        self.prints |= inner.prints;
        self.templates.append(&mut inner.templates);
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
fn messages_are_as_reviewed() {
    let mut list = String::new();
    let mut heading = String::new();
    for template in templates() {
        if heading != template.printer.heading() {
            heading = template.printer.heading();
            let _ = write!(list, "\n# {heading}\n\n");
        }
        let _ = writeln!(list, "{}", template.text);
    }
    let path = "tools/docs/tests/docs/snapshots/messages.txt";
    records::compare([(path, list.trim_start().to_owned())]);
}

#[test]
fn only_few_sources_write_to_standard_error() {
    let sources = sources();
    let printers: Vec<_> = sources
        .iter()
        .filter(|(path, source)| collected(path, source).prints)
        .map(|(path, _)| path.as_str())
        .collect();
    assert_eq!(
        printers, PRINTERS,
        "print messages through `log` in librocov, and through `term::print` in the command"
    );
}

/// Returns the texts of made-up code, each with its printer.
fn made_up(path: &str, source: &str) -> Vec<(Printer, String)> {
    let templates = collected(path, source).templates.into_iter();
    templates
        .map(|template| (template.printer, template.text))
        .collect()
}

#[test]
fn a_text_is_found_however_it_is_printed() {
    let source = r##"
        /// A doc comment is none.
        #[derive(Error)]
        enum Fault {
            #[error("the {part} ends at byte {at:#x}, {{not}} {}", self.end)]
            Short { part: u8 },
        }
        const PLACE: &str = "on PATH or beside it";
        fn print(name: &str) {
            log::warn(format_args!("cannot write {name}: \
                                    make it writable"));
            log::verbose(format_args!("wrote {name} now"));
            libc_write(2, b"in some new way");
            new_macro!(a => "in another new way");
            let _ = name.expect("no message of users");
        }
        #[cfg(test)]
        mod tests { fn f() { warn("of a test only"); } }
    "##;
    let error = "the {} ends at byte {}, {not} {}".to_owned();
    let words = |text: &str| (Printer::Words, text.to_owned());
    let of_library = made_up("src/a.rs", source);
    assert!(of_library.contains(&(Printer::Error("Fault".into()), error)));
    assert_eq!(
        made_up("runtime/src/a.rs", source),
        [
            (
                Printer::Librocov,
                "cannot write {}: make it writable".to_owned()
            ),
            (
                Printer::Librocov,
                "the {} ends at byte {}, {not} {}".to_owned()
            ),
            (Printer::Verbose, "wrote {} now".to_owned()),
            words("in another new way"),
            words("in some new way"),
            words("on PATH or beside it"),
        ]
    );
}

/// The first words of a next step. A part of a message is a next step if it starts with one of these.
const STEPS: [&str; 40] = [
    "`rocov", "add", "allowed", "ask", "build", "check", "choose", "compile", "expected", "fix",
    "give", "go", "install", "leave", "let", "link", "load", "look", "make", "merge", "move",
    "name", "open", "optimize", "press", "put", "raise", "read", "remove", "report", "run", "see",
    "set", "split", "start", "take", "try", "use", "wait", "write",
];

/// Whole messages without a step in their text.
const WITHOUT_STEP: [(&str, &[&str]); 4] = [
    (
        "a value has the next step, or says what is expected",
        &[
            "LLVM_PROFILE_FILE: {}; rocov writes nothing, and the counts of this process are lost",
            "ROCOV_CACHE_MAX: {}; rocov uses {}",
            "ROCOV_LABEL: {}; rocov leaves the label out",
            "ROCOV_ONLY, ROCOV_SKIP: {}; rocov drains everything",
            "{} more sources {}, which need the same: {}{}",
            "cannot add notes of this run to {}: {}; reports lack them{}",
            "kernels run slowly with LLVM's own counters, chosen because no plugin fits {} (LLVM {}): {} for fast ones (chapter \"The compiler plugin\"); --counters=llvm silences this line, which is printed once for each compiler",
            "left out: counts and lines of code object {}: {}",
            "left out: counts and lines: {}",
            "left out: {}",
            "left out: {} ({} of {} code object {}): ",
            "left out: {} ({}), as {}: {}",
            "left out: {}: {}",
            "line {} is not TOML: {}",
            "no device profiles of rocov in {}: {}",
            "nothing was drained: {}",
            "it has no PTX: {}",
            "it is a cubin, and has no PTX: {}",
            "its PTX is for {}, and the GPU is sm_{}{}: {}",
            "process {}: {}",
            "this PTX has no counters: {}",
            "rocov_set_file: {}; profiles keep their name",
            "the loaded code objects are not known: {}",
            "{} failed ({}): {}",
            "cannot {} {}: {}: {}",
            "{} has the contents of code object {}, not of the one in its name: {}",
            "{} is not imported: {}",
            "{} is not on PATH: {}",
            "{} says: {}",
            "{}: {}; rocov ignores it",
            "{}: {}; rocov uses {}",
            "{}; rocov writes to {} instead",
        ],
    ),
    (
        "a part of a message that has the next step",
        &["{}: CUDA error {}"],
    ),
    (
        "a fact that asks for nothing",
        &[
            "the test {} has the label {}",
            "{} in {}",
            "{} given more than once, counted once, such as {}",
            "{} is of LLVM {}",
            "{}: kernel {} did not run{}",
        ],
    ),
    (
        "`rocov doctor` prints the remedy in a line of its own",
        &["{}, none of it instrumented"],
    ),
];

/// Returns whether a part of the text is a next step.
fn has_step(text: &str) -> bool {
    let parts = text
        .split([':', ';', ',', '('])
        .flat_map(|part| part.split(" or "));
    let mut words = parts.filter_map(|part| part.split_whitespace().next());
    words.any(|word| STEPS.contains(&word))
}

#[test]
fn each_message_names_the_next_step() {
    let excused: BTreeSet<_> = WITHOUT_STEP.iter().flat_map(|(_, texts)| *texts).collect();
    let templates = templates();
    let is_of_user = |template: &&Template| {
        template.is_whole && matches!(template.printer, Printer::Librocov | Printer::Command)
    };
    let whole = templates.iter().filter(is_of_user);
    // Two words are the noun of a number.
    let is_sentence = |text: &str| text.split_whitespace().count() > 2;
    let lacking: BTreeSet<_> = whole
        .filter(|template| !has_step(&template.text) && is_sentence(&template.text))
        .map(|template| template.text.as_str())
        .collect();
    let missing: Vec<_> = lacking
        .iter()
        .filter(|text| !excused.contains(text))
        .collect();
    assert!(
        missing.is_empty(),
        "say what to do next, behind a colon: {missing:#?}"
    );
    let needless: Vec<_> = excused
        .iter()
        .filter(|text| !lacking.contains(***text))
        .collect();
    assert!(needless.is_empty(), "these need no excuse: {needless:#?}");
}

/// The words that no part of a message starts with: they make a clause of its subject.
const CLAUSES: [&str; 7] = [
    "what", "whatever", "where", "whether", "which", "who", "whoever",
];

#[test]
fn no_message_has_a_clause_as_its_subject() {
    let templates = templates();
    let starts = |text: &str| {
        let parts = text.split([':', ';']);
        let mut words = parts.filter_map(|part| part.split_whitespace().next());
        words.any(|word| CLAUSES.contains(&word.to_lowercase().as_str()))
    };
    let found: Vec<_> = templates
        .iter()
        .filter(|template| starts(&template.text))
        .map(|template| &template.text)
        .collect();
    assert!(found.is_empty(), "start with the subject: {found:#?}");
}

#[test]
fn next_steps_are_found_behind_marks() {
    for text in [
        "no coverage mapping in {}: compile it",
        "{} is empty; give another",
        "{} is not there, or give one",
        "left out: {} (see `rocov show`)",
        "{}: `rocov report {}` reports on it",
    ] {
        assert!(has_step(text), "{text}");
    }
    for text in ["no coverage mapping in {}", "we run out of {}", "given: {}"] {
        assert!(!has_step(text), "{text}");
    }
}
