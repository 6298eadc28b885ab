//! The table of environment variables against the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use rocov::settings::SETTINGS;

use crate::{files_below, read, repository};

/// The source with the table.
const TABLE: &str = "src/settings/variables.rs";

/// Returns the names in a text between a quote, or the end of `${`, and a character that a name has not.
fn names(text: &str) -> BTreeSet<String> {
    let starts = ["\"", "${", "export "].into_iter();
    let parts = starts.flat_map(|start| text.split(start).skip(1));
    let name = |part: &str| {
        let is_part = |letter: &char| {
            letter.is_ascii_uppercase() || letter.is_ascii_digit() || *letter == '_'
        };
        part.chars().take_while(is_part).collect::<String>()
    };
    parts
        .map(name)
        .filter(|name| !name.is_empty() && !name.ends_with('_'))
        .collect()
}

/// A source of the repository.
pub(crate) struct Source {
    /// Its path, from the repository's root on.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns all sources of the repository: Rust, Python, C and scripts, but not the table itself.
pub(crate) fn sources() -> Vec<Source> {
    let root = repository("");
    let is_source = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            return !name.starts_with('.') && name != "target";
        }
        ["rs", "py", "c", "h", ""].contains(&extension.as_ref()) && !path.ends_with(TABLE)
    };
    let files = files_below(&root, &is_source);
    let source = |path: &std::path::PathBuf| Source {
        path: path
            .strip_prefix(&root)
            .unwrap_or(path)
            .display()
            .to_string(),
        text: std::fs::read_to_string(path).unwrap_or_default(),
    };
    files.iter().map(source).collect()
}

/// Returns whether a file is part of what users run.
pub(crate) fn is_product(path: &str) -> bool {
    let mut parts = path.split('/');
    if path.starts_with("tools/xtask/") {
        return false;
    }
    path.ends_with(".py") || parts.any(|part| part == "src") && !parts.any(|part| part == "tests")
}

/// Variables of the build of rocov, which no installed part reads (`tools/rocov/build.rs`).
const OF_BUILD: [&str; 3] = ["ROCOV_PARTS", "ROCOV_PASS_CLANGS", "ROCOV_SOURCE_TREE"];

/// The names of the variables, by the constants of the table.
pub(crate) fn constants() -> &'static BTreeMap<String, String> {
    static CONSTANTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let table = read(&repository(TABLE));
        let rows = table.lines().filter_map(|line| {
            let (constant, name) = line.trim().strip_suffix(" {")?.split_once(" = ")?;
            Some((constant.to_owned(), name.trim_matches('"').to_owned()))
        });
        rows.collect()
    });
    &CONSTANTS
}

/// The names in a source.
struct Named {
    path: String,
    /// Variables in quotes.
    names: BTreeSet<String>,
    words: BTreeSet<String>,
}

#[test]
fn every_variable_has_a_row_and_every_row_a_reader() {
    let sources: Vec<_> = sources()
        .into_iter()
        .map(|Source { path, text }| Named {
            names: names(&text),
            words: text
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .map(str::to_owned)
                .collect(),
            path,
        })
        .collect();
    for Named { names, path, .. } in sources.iter().filter(|source| is_product(&source.path)) {
        let ours = names.iter().filter(|name| name.starts_with("ROCOV_"));
        for name in ours
            .filter(|name| !name.starts_with("ROCOV_TEST_") && !name.starts_with("ROCOV_STATUS"))
            .filter(|name| !OF_BUILD.contains(&name.as_str()))
        {
            assert!(
                SETTINGS.iter().any(|setting| setting.name == name),
                "{path} names {name}: add a row to {TABLE}"
            );
        }
    }
    for setting in SETTINGS {
        let constant = constants().iter().find(|(_, name)| *name == setting.name);
        let (constant, _) = constant.expect("a setting has a constant");
        assert!(
            sources.iter().any(|source| {
                source.names.contains(setting.name) || source.words.contains(constant)
            }),
            "no source names {}: remove its row from {TABLE}",
            setting.name
        );
        assert_eq!(
            SETTINGS
                .iter()
                .filter(|other| other.name == setting.name)
                .count(),
            1,
            "{} has two rows",
            setting.name
        );
    }
}

#[test]
fn the_table_is_in_the_order_of_readers() {
    assert!(SETTINGS.is_sorted_by_key(|setting| setting.reader));
}

/// The variables of CMake that rocov's package reads.
fn cmake_variables() -> BTreeSet<String> {
    let package = std::fs::read_dir(repository("tools/cmake")).expect("the package");
    let texts = package.map(|file| read(&file.expect("a file").path()));
    // They are not between quotes as in Rust.
    let quoted = |text: String| names(&text.replace(['{', '}', ' ', '('], "\""));
    texts.flat_map(quoted).collect()
}

#[test]
fn every_variable_that_a_document_names_is_in_the_table() {
    let documents = crate::links::documents();
    let of_cmake = cmake_variables();
    for path in documents
        .iter()
        .filter(|path| !path.ends_with("CHANGELOG.md"))
    {
        let text = read(path);
        let named = names(&text.replace('`', "\""));
        for name in named.iter().filter(|name| name.starts_with("ROCOV_")) {
            // The second is a macro of the device header, and ROCOV_0.1 a version of symbols.
            let others = ["ROCOV_LABEL_TESTS", "ROCOV_UNIFORMITY", "ROCOV_0"];
            let is_other = name.starts_with("ROCOV_STATUS")
                || others.contains(&name.as_str())
                || OF_BUILD.contains(&name.as_str())
                || of_cmake.contains(name);
            assert!(
                is_other || SETTINGS.iter().any(|setting| setting.name == name),
                "{} names {name}, which {TABLE} does not list",
                path.display()
            );
        }
    }
}
