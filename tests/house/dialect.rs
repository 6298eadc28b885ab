//! The rules of the dialect that no lint of clippy has: imports, unit tests, `# Errors` sections and names of
//! types. CONTRIBUTING.md states them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tokens::{Token, tokens};
use crate::{COMMENTED, CRATES, Source, read};

/// The most lines of unit tests in the file of the code.
const MAX_INLINE: usize = 100;

/// Applies `rule` to all sources, and fails if one breaks it. The rule returns lines and reasons.
fn hold(rule: impl Fn(&Source) -> Vec<(usize, String)>) {
    let mut found = Vec::new();
    for folder in COMMENTED {
        for source in read(folder) {
            let path = Path::new(folder).join(&source.path);
            let breaches = rule(&source).into_iter();
            found.extend(breaches.map(|(line, why)| format!("{}:{line}: {why}", path.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn imports_stand_in_groups() {
    hold(|source| imports(&source.text));
}

#[test]
fn long_unit_tests_have_their_own_file() {
    hold(unit_tests);
}

#[test]
fn a_file_belongs_to_one_crate() {
    hold(|source| borrowed_files(&source.text));
}

#[test]
fn errors_sections_name_the_condition() {
    hold(|source| errors_sections(&source.text));
}

#[test]
fn types_that_a_crate_shows_have_different_names() {
    let mut found = Vec::new();
    for folder in CRATES {
        let sources = read(folder);
        assert!(!sources.is_empty(), "{folder} has no sources");
        found.extend(homonyms(folder, &sources));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The origin of an imported name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Std,
    OtherCrate,
    OwnCrate,
    /// A `pub use`, from anywhere.
    Export,
}

/// A `use` item.
#[derive(Debug)]
struct Import {
    origin: Origin,
    /// The first line, which may be an attribute, and the last.
    lines: (usize, usize),
    /// The path to the names, if it has more than one segment and no attribute is on the item.
    module: Option<String>,
    /// `pub`, `pub(crate)` and so on.
    visibility: String,
    /// The tokens of the item, from its attributes to its semicolon.
    tokens: (usize, usize),
}

/// Returns the lines of imports that are not in their group, and the reasons.
fn imports(text: &str) -> Vec<(usize, String)> {
    let tokens = tokens(text);
    let blank: BTreeSet<_> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.trim().is_empty())
        .map(|(number, _)| number)
        .collect();
    let mut found = Vec::new();
    let mut run: Vec<Import> = Vec::new();
    for import in import_items(&tokens) {
        let joins = run
            .last()
            .is_some_and(|last| last.tokens.1 + 1 == import.tokens.0);
        if !joins {
            run.clear();
        }
        if let Some(last) = run.last() {
            let is_apart = (last.lines.1..import.lines.0).any(|line| blank.contains(&line));
            let is_other = last.origin != import.origin;
            let goes_back = run.iter().any(|earlier| {
                let both_private =
                    earlier.origin != Origin::Export && import.origin != Origin::Export;
                both_private && earlier.origin > import.origin
            });
            let why = if goes_back {
                "std, other crates and this crate are imported in this order"
            } else if is_other && !is_apart {
                "an empty line separates std, other crates, this crate and `pub use`"
            } else if !is_other && is_apart {
                "no empty line separates imports of one group"
            } else {
                ""
            };
            if !why.is_empty() {
                found.push((import.lines.0, why.to_owned()));
            }
            let is_same = |earlier: &&Import| {
                let module = earlier.module.as_ref();
                module.is_some()
                    && module == import.module.as_ref()
                    && earlier.visibility == import.visibility
            };
            if let Some(module) = run
                .iter()
                .find(is_same)
                .and_then(|import| import.module.as_ref())
            {
                found.push((
                    import.lines.0,
                    format!("one item imports all names of {module}"),
                ));
            }
        }
        run.push(import);
    }
    found.extend(late_modules(&tokens));
    found
}

/// Returns the lines of modules of a file that are declared after its imports. Those of tests come last.
fn late_modules(tokens: &[(Token, usize)]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut depth = 0;
    let mut has_imports = false;
    for (at, (token, line)) in tokens.iter().enumerate() {
        match (token, &tokens[at + 1..]) {
            (Token::Sign('{'), _) => depth += 1,
            (Token::Sign('}'), _) => depth -= 1,
            (Token::Word(word), _) if word == "use" => has_imports |= depth == 0,
            (Token::Word(word), [(Token::Word(name), _), (Token::Sign(';'), _), ..]) => {
                let is_late = has_imports && depth == 0 && word == "mod";
                if is_late && !name.ends_with("tests") {
                    found.push((*line, "modules are declared before imports".to_owned()));
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns all `use` items.
fn import_items(tokens: &[(Token, usize)]) -> Vec<Import> {
    let word = |at: usize| match tokens.get(at) {
        Some((Token::Word(word), _)) => word.as_str(),
        _ => "",
    };
    let is = |at: usize, sign: char| matches!(tokens.get(at), Some((Token::Sign(found), _)) if *found == sign);
    let is_name = |at: usize| ["mod", "enum", "macro_rules"].contains(&word(at));
    // Modules and enums of the file, from which a path may start. A macro has a `!` before its name.
    let own: BTreeSet<_> = (0..tokens.len())
        .filter(|at| is_name(*at))
        .map(|at| {
            if is(at + 1, '!') {
                word(at + 2)
            } else {
                word(at + 1)
            }
        })
        .collect();
    let mut imports = Vec::new();
    for at in (0..tokens.len()).filter(|at| word(*at) == "use") {
        let mut start = at;
        // `pub` and `pub(crate)`.
        if start > 0 && word(start - 1) == "pub" {
            start -= 1;
        } else if start > 0 && is(start - 1, ')') {
            while start > 0 && word(start) != "pub" {
                start -= 1;
            }
        }
        let visibility = format!(
            "{:?}",
            tokens[start..at]
                .iter()
                .map(|(token, _)| token)
                .collect::<Vec<_>>()
        );
        let is_export = start < at;
        let visible = start;
        // Several attributes may are before it.
        while start > 0 && is(start - 1, ']') {
            start -= 1;
            while start > 0 && !is(start, '#') {
                start -= 1;
            }
        }
        // The others are `use<'a>` of a type, and words in macros.
        if start > 0 && ![';', '{', '}'].iter().any(|sign| is(start - 1, *sign)) {
            continue;
        }
        let Some(end) = (at..tokens.len()).find(|at| is(*at, ';')) else {
            continue;
        };
        let names = (at + 1..end).find(|at| is(*at, '{')).or_else(|| {
            let renamed = (at + 1..end).find(|at| word(*at) == "as").unwrap_or(end);
            renamed.checked_sub(1)
        });
        let segments: Vec<_> = (at + 1..names.unwrap_or(end))
            .map(word)
            .filter(|word| !word.is_empty())
            .collect();
        let origin = match word(at + 1) {
            _ if is_export => Origin::Export,
            "std" | "core" | "alloc" => Origin::Std,
            "crate" | "super" | "self" => Origin::OwnCrate,
            name if own.contains(name) => Origin::OwnCrate,
            _ if is(at + 1, '{') => Origin::OwnCrate,
            _ => Origin::OtherCrate,
        };
        imports.push(Import {
            origin,
            lines: (tokens[start].1, tokens[end].1),
            module: (segments.len() > 1 && start == visible).then(|| segments.join("::")),
            visibility,
            tokens: (start, end),
        });
    }
    imports
}

/// Returns the unit tests that are in the wrong file.
fn unit_tests(source: &Source) -> Vec<(usize, String)> {
    let lines: Vec<_> = source.text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let stem = source
            .path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let own_file = match &*stem {
            "mod" => "tests.rs".to_owned(),
            stem => format!("{stem}_tests.rs"),
        };
        if *line == "mod tests {" {
            let length = lines[at..].iter().take_while(|line| **line != "}").count() + 1;
            if length > MAX_INLINE {
                let why = format!(
                    "{length} lines of tests, {MAX_INLINE} at most: move them to {own_file}"
                );
                found.push((at + 1, why));
            }
        } else if line.ends_with("mod tests;") && stem != "mod" {
            let path = format!("#[path = \"{own_file}\"]");
            if at == 0 || lines[at - 1] != path {
                found.push((at + 1, format!("tests of this file are in {own_file}")));
            }
        }
    }
    found
}

/// Returns the modules whose files are in another folder: several crates compile such a file.
fn borrowed_files(text: &str) -> Vec<(usize, String)> {
    let paths = (1..).zip(text.lines()).filter_map(|(number, line)| {
        let path = line.trim_start().strip_prefix("#[path = \"")?;
        Some((number, path.split_once('"')?.0))
    });
    paths
        .filter(|(_, path)| path.contains('/'))
        .map(|(number, path)| {
            let why = format!("{path} is in another folder: import it from the crate that has it");
            (number, why)
        })
        .collect()
}

/// Returns the `# Errors` sections that do not start with "Fails if".
fn errors_sections(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<_> = text.lines().map(str::trim_start).collect();
    let mut found = Vec::new();
    for (at, _) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| **line == "/// # Errors")
    {
        let first = lines[at + 1..].iter().find(|line| **line != "///");
        if !first.is_some_and(|line| line.starts_with("/// Fails if ")) {
            found.push((
                at + 1,
                "an `# Errors` section starts with \"Fails if\"".to_owned(),
            ));
        }
    }
    found
}

/// Returns the names that two types of a crate have, if the whole crate sees both.
fn homonyms(folder: &str, sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        let tokens = tokens(&source.text);
        let word = |at: usize| match tokens.get(at) {
            Some((Token::Word(word), _)) => word.as_str(),
            _ => "",
        };
        for at in (0..tokens.len()).filter(|at| word(*at) == "pub") {
            // `pub(crate)` is three tokens longer, and `pub(super)` no name of the whole crate.
            let mut item = match word(at + 2) {
                "crate" if word(at + 1).is_empty() => at + 4,
                _ => at + 1,
            };
            if word(item) == "unsafe" {
                item += 1;
            }
            if ["struct", "enum", "union", "trait", "type"].contains(&word(item)) {
                let place = format!("{folder}/{}:{}", source.path.display(), tokens[item].1);
                places
                    .entry(word(item + 1).to_owned())
                    .or_default()
                    .push(place);
            }
        }
    }
    let twice = places.into_iter().filter(|(_, places)| places.len() > 1);
    twice
        .map(|(name, places)| format!("two types are called {name}: {}", places.join(", ")))
        .collect()
}

fn made_up(path: &str, text: &str) -> Source {
    Source {
        path: path.into(),
        text: text.into(),
    }
}

#[test]
fn imports_in_the_wrong_group_are_found() {
    let good = "mod fs;\n\nuse std::fmt;\nuse std::io;\n\nuse libc::{c_int,\n  pid_t};\n\n\
        use crate::a::B;\nuse fs::C;\n\npub use fs::D;\npub(crate) use std::fs;\n\n\
        fn f() -> impl Sized + use<'a> {\n    use std::io;\n}\n\
        mod tests {\n    use std::fs;\n\n    use super::*;\n}\nmod more_tests;\n";
    assert_eq!(imports(good), []);
    assert_eq!(
        imports("#![allow(a)]\n#![expect(b)]\n\nuse std::fmt;\n"),
        []
    );
    for (text, line, why) in [
        ("use libc::c_int;\n\nuse std::fs;", 3, "in this order"),
        (
            "use std::fs;\nuse libc::c_int;",
            2,
            "an empty line separates",
        ),
        ("use std::fs;\n\nuse std::io;", 3, "no empty line"),
        ("mod a;\nuse b::C;\nuse a::D;", 3, "an empty line separates"),
        (
            "use crate::a;\npub use crate::b;",
            2,
            "an empty line separates",
        ),
        (
            "use crate::a;\n\npub use crate::b;\n\nuse std::fs;",
            5,
            "in this order",
        ),
        (
            "use crate::a::B;\nuse crate::a::{C, D};",
            2,
            "all names of crate::a",
        ),
        (
            "use std::fs;\n#[cfg(test)]\nuse libc::c_int;",
            2,
            "an empty line separates",
        ),
        ("use std::fs;\n\nmod a;", 3, "before imports"),
        (
            "mod t {\n use super::*;\n\n use std::fs;\n}",
            4,
            "in this order",
        ),
    ] {
        let found = imports(text);
        assert!(
            matches!(&found[..], [(at, reason)] if *at == line && reason.contains(why)),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn unit_tests_in_the_wrong_file_are_found() {
    let inline = |lines| format!("mod tests {{\n{}}}\n", "\n".repeat(lines));
    let found = |path, text: &str| unit_tests(&made_up(path, text)).len();
    assert_eq!(found("a/b.rs", &inline(98)), 0);
    assert_eq!(found("a/b.rs", &inline(99)), 1);
    assert_eq!(found("a/b.rs", "#[path = \"b_tests.rs\"]\nmod tests;"), 0);
    assert_eq!(found("a/b.rs", "#[cfg(test)]\nmod tests;"), 1);
    assert_eq!(found("a/b/mod.rs", "#[cfg(test)]\nmod tests;"), 0);
}

#[test]
fn files_of_other_folders_are_found() {
    assert_eq!(borrowed_files("#[path = \"a_tests.rs\"]\nmod tests;"), []);
    for path in ["../support/a.rs", "support/a.rs"] {
        let found = borrowed_files(&format!("mod b;\n#[path = \"{path}\"]\nmod a;"));
        assert!(matches!(&found[..], [(2, _)]), "{path}: {found:?}");
    }
}

#[test]
fn errors_sections_without_a_condition_are_found() {
    assert_eq!(errors_sections("/// # Errors\n/// Fails if it is so."), []);
    assert_eq!(
        errors_sections("  /// # Errors\n  ///\n  /// Fails if it is so."),
        []
    );
    for text in ["/// # Errors\n/// Fails as others do.", "/// # Errors"] {
        assert_eq!(errors_sections(text).len(), 1, "{text}");
    }
}

#[test]
fn two_types_of_one_name_are_found() {
    let found =
        |one: &str, other: &str| homonyms("made", &[made_up("a.rs", one), made_up("b.rs", other)]);
    assert_eq!(
        found("pub struct A;", "\npub(crate) enum A {}"),
        ["two types are called A: made/a.rs:1, made/b.rs:2"]
    );
    assert_eq!(found("pub unsafe trait A {}", "pub type A = u8;").len(), 1);
    for other in ["pub(super) struct A;", "struct A;", "pub fn A() {}"] {
        assert!(found("pub struct A;", other).is_empty(), "{other}");
    }
}
