//! The interface that programs rely on stays through all versions of a series, such as 0.1: the symbols of librocov, the
//! declarations of `rocov.h`, and the sizes of the objects that copies of librocov share. `abi/0.1.txt` records it.
//!
//! `cargo xtask bless abi` adds new lines to the record. It takes none away: a
//! change that breaks programs needs a new series, a new SONAME, and a record of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use rocov_tests::artifacts::repository;
use rocov_tests::records;

/// The record of this series.
const RECORD: &str = concat!(
    "runtime/abi/",
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR"),
    ".txt"
);

#[test]
fn nothing_that_programs_rely_on_changes_within_a_series() {
    let recorded = fs::read_to_string(repository(RECORD)).unwrap_or_default();
    let recorded: BTreeSet<String> = recorded.lines().map(str::to_owned).collect();
    let present = interface();
    let gone: Vec<_> = recorded.difference(&present).cloned().collect();
    assert!(
        gone.is_empty(),
        "programs may rely on these, which are gone or changed: keep them, or start a new series with its own record \
         and SONAME:\n{}",
        gone.join("\n")
    );
    // New lines stay from then on.
    let lines: Vec<_> = present.into_iter().collect();
    records::compare([(RECORD, lines.join("\n") + "\n")]);
}

/// The interface of the built library and the header, one fact a line.
fn interface() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = fs::read_to_string(root.join("include/rocov.h")).expect("the header is there");
    let declarations = declarations(&header);
    assert!(declarations.len() > 10, "{declarations:?}");
    let mut facts: BTreeSet<String> = declarations
        .into_iter()
        .map(|declaration| format!("rocov.h: {declaration}"))
        .collect();
    facts.extend(symbols());
    facts
}

/// The symbols of librocov.so by name and kind, those of objects with their sizes in bytes.
fn symbols() -> Vec<String> {
    let test = std::env::current_exe().expect("a test knows its own path");
    let library = test
        .ancestors()
        .nth(2)
        .expect("cargo puts tests into <profile>/deps");
    let library = library.join("librocov.so");
    let output = Command::new("nm")
        .args([
            "--dynamic",
            "--defined-only",
            "--print-size",
            "--format=posix",
        ])
        .arg(&library)
        .output()
        .expect("nm runs");
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).expect("names of symbols are text");
    let symbol = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let [name, kind, _, size] = words[..] else {
            panic!("{line}")
        };
        let name = name.split('@').next().unwrap_or_default();
        match kind {
            "T" => format!("function {name}"),
            "W" => format!("weak function {name}"),
            _ => {
                let size = u64::from_str_radix(size, 16).expect("nm prints hexadecimal sizes");
                format!("object {name} of {size} bytes")
            }
        }
    };
    let symbols: Vec<_> = lines.lines().map(symbol).collect();
    assert!(symbols.len() > 30, "{symbols:?}");
    symbols
}

/// The declarations of a header: without comments and lines of the preprocessor, each on one line.
fn declarations(header: &str) -> Vec<String> {
    let mut text = String::new();
    let mut rest = header;
    while let Some(start) = rest.find("/*") {
        text += &rest[..start];
        let end = rest[start..].find("*/").expect("a comment ends");
        rest = &rest[start + end + 2..];
    }
    text += rest;
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().trim());
    let code = lines.filter(|line| !line.starts_with('#') && !line.starts_with("extern \"C\""));
    let code = code.collect::<Vec<_>>().join(" ");
    let mut declarations = Vec::new();
    let (mut start, mut depth) = (0, 0_i32);
    for (at, letter) in code.char_indices() {
        depth += match letter {
            '{' | '(' => 1,
            '}' | ')' => -1,
            _ => 0,
        };
        if letter == ';' && depth <= 0 {
            let words: Vec<_> = code[start..at].split_whitespace().collect();
            declarations.push(words.join(" "));
            (start, depth) = (at + 1, 0);
        }
    }
    declarations
}

/// A header like that of cbindgen.
const HEADER: &str = "// A.\ntypedef enum {\n  A = 0, // b\n} S;\n/* c */\nS f(int a,\n    char *b);\n}  // extern\n";

#[test]
fn a_changed_number_or_argument_is_another_declaration() {
    let of = |from, to| declarations(&HEADER.replace(from, to));
    let found = of("", "");
    assert_eq!(found, ["typedef enum { A = 0, } S", "S f(int a, char *b)"]);
    assert_ne!(of("A = 0", "A = 1"), found);
    assert_ne!(of("int a", "long a"), found);
    assert_eq!(of("// A.", "// B."), found);
}
