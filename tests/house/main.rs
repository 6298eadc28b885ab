//! The rule of the house: a folder is a station, the stations of a crate stand in an order, and a file
//! imports its own station and earlier ones only.
//!
//! It needs sources only: the package xtask, which has no dependencies, compiles it in seconds.
//!
//! The files of a crate form no circle ([`circles`]). Sentences of comments and of Markdown start with their subject
//! ([`sentences`]). [`dialect`] holds the other rules of style.
//!
//! The tests of imports read `use` items and inline paths that start with `crate::`, `super::` or `self::`, and
//! resolve them to the station that they lead to. They know nothing of re-exports and of names that
//! macros make.

mod circles;
mod dialect;
mod features;
mod paths;
mod readme;
mod sentences;
mod tokens;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use xtask::repository;

use paths::{module_of, paths};

/// A crate under the rule.
struct House {
    /// The folder of its sources.
    sources: &'static str,
    /// Its stations in order: folders, or files without `.rs`.
    stations: &'static [&'static str],
    /// The files outside of the stations. They may import everything.
    root: &'static [&'static str],
}

const HOUSES: &[House] = &[
    House {
        sources: "src",
        stations: &[
            "support",
            "settings",
            "format",
            "instrument",
            "device",
            "discover",
            "validate",
            "read",
            "store",
            "drain",
            "control",
        ],
        root: &["lib.rs"],
    },
    House {
        sources: "runtime/src",
        stations: &["guest", "elect", "serve", "enter"],
        root: &["lib.rs"],
    },
    House {
        sources: "tools/fleet/src",
        stations: &[
            "condition",
            "schema",
            "storage",
            "file",
            "store",
            "selection",
            "sql",
        ],
        root: &["lib.rs"],
    },
    House {
        sources: "tools/rocov/src",
        stations: &[
            "support", "term", "system", "llvm", "data", "checks", "profdata", "coverage",
            "dataset", "render", "cli", "commands",
        ],
        root: &["main.rs"],
    },
];

/// A folder whose files and folders do not import each other: one subcommand never imports another.
const NEIGHBOURS: &[(&str, &[&str])] = &[("tools/rocov/src", &["commands"])];

#[test]
fn a_file_imports_its_own_station_and_earlier_ones_only() {
    let mut found = Vec::new();
    for house in HOUSES {
        let sources = read(house.sources);
        assert!(!sources.is_empty(), "{} has no sources", house.sources);
        found.extend(breaches(house, &sources));
    }
    assert!(found.is_empty(), "{}", Listed(&found));
}

#[test]
fn a_subcommand_never_imports_another() {
    let mut found = Vec::new();
    for (crate_folder, folder) in NEIGHBOURS {
        let sources = read(crate_folder);
        found.extend(neighbours(crate_folder, folder, &sources));
    }
    assert!(found.is_empty(), "{}", Listed(&found));
}

/// The folders of the crates' sources.
const CRATES: [&str; 10] = [
    "src",
    "runtime/src",
    "runtime/instrument/src",
    "runtime/rocprofiler/src",
    "tools/fleet/src",
    "tools/rocov/src",
    "tools/modelgpu/isa/src",
    "tools/modelgpu/amdgcn/src",
    "tools/modelgpu/queue/src",
    "tools/modelgpu/kfd/src",
];

/// The folders whose comments are read.
const COMMENTED: [&str; 6] = ["src", "runtime", "tools", "tests", "benches", "examples"];

/// A source file, or one of Markdown.
struct Source {
    /// Its path from the folder that was read; empty if it is that itself.
    path: PathBuf,
    text: String,
}

/// Reads all sources below a folder of the repository.
fn read(folder: &str) -> Vec<Source> {
    read_all(folder, "rs")
}

/// Reads all files with an extension at or below a path of the repository.
fn read_all(place: &str, extension: &str) -> Vec<Source> {
    let root = repository(place);
    let mut paths = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(path) = paths.pop() {
        // Cargo's output and npm's packages are no sources.
        let is_source = |name: &OsStr| name != "target" && name != "node_modules";
        if path.is_dir() && path.file_name().is_some_and(is_source) {
            let entries = fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            paths.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
        } else if path.is_file() && path.extension().is_some_and(|found| found == extension) {
            let text = fs::read_to_string(&path).expect("a source can be read");
            let path = path.strip_prefix(&root).expect("it is below").to_owned();
            sources.push(Source { path, text });
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    sources
}

/// A breach of a rule.
#[derive(Debug)]
struct Breach {
    file: PathBuf,
    /// The line, from 1; 0 if the file itself is the breach.
    line: usize,
    what: String,
}

/// Breaches, one a line.
struct Listed<'a>(&'a [Breach]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} imports break the rule:", self.0.len())?;
        for Breach { file, line, what } in self.0 {
            writeln!(f, "{}:{line}: {what}", file.display())?;
        }
        Ok(())
    }
}

/// Returns the breaches of the order of stations.
fn breaches(house: &House, sources: &[Source]) -> Vec<Breach> {
    let mut found = Vec::new();
    for source in sources {
        let file = Path::new(house.sources).join(&source.path);
        let module = module_of(&source.path);
        let is_root = house.root.iter().any(|root| source.path == Path::new(root));
        if is_root {
            continue;
        }
        let own = module.first().map_or("", String::as_str);
        let place = |name: &str| house.stations.iter().position(|station| *station == name);
        let Some(own_place) = place(own) else {
            found.push(Breach {
                file,
                line: 0,
                what: format!("lies in no station; the stations are {:?}", house.stations),
            });
            continue;
        };
        for path in paths(&source.text, &module) {
            let target = path.segments.first().map_or("", String::as_str);
            let allowed = &house.stations[..=own_place];
            let what = match place(target) {
                Some(target) if target <= own_place => continue,
                _ => format!("imports {path}, but {own} may import {allowed:?} only"),
            };
            found.push(Breach {
                file: file.clone(),
                line: path.line,
                what,
            });
        }
    }
    found
}

/// Returns the imports between the entries of a folder.
fn neighbours(crate_folder: &str, folder: &[&str], sources: &[Source]) -> Vec<Breach> {
    let own = |segments: &[String]| {
        let rest = segments.strip_prefix(
            folder
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
                .as_slice(),
        );
        rest.and_then(|rest| rest.first()).cloned()
    };
    let entries: BTreeSet<_> = sources
        .iter()
        .filter_map(|source| own(&module_of(&source.path)))
        .collect();
    let mut found = Vec::new();
    for source in sources {
        let module = module_of(&source.path);
        let Some(entry) = own(&module) else { continue };
        for path in paths(&source.text, &module) {
            let target = own(&path.segments);
            if target.is_some_and(|target| target != entry && entries.contains(&target)) {
                found.push(Breach {
                    file: Path::new(crate_folder).join(&source.path),
                    line: path.line,
                    what: format!("imports {path}, but a subcommand never imports another"),
                });
            }
        }
    }
    found
}

/// A crate of two stations, for the tests below.
const MADE_UP: House = House {
    sources: "made/up",
    stations: &["ground", "roof"],
    root: &["lib.rs"],
};

fn made_up(path: &str, text: &str) -> Vec<Source> {
    vec![Source {
        path: path.into(),
        text: text.into(),
    }]
}

/// Returns the lines of the breaches in a file of the ground station.
fn lines_of(path: &str, text: &str) -> Vec<usize> {
    let found = breaches(&MADE_UP, &made_up(path, text));
    found.iter().map(|breach| breach.line).collect()
}

#[test]
fn an_upward_import_is_found_in_each_form() {
    for (path, text) in [
        ("ground/floor.rs", "use std::fs;\nuse crate::roof::Tile;\n"),
        ("ground/floor.rs", "\nuse crate::roof;"),
        ("ground/floor.rs", "\npub(crate) use crate::roof::*;"),
        ("ground/floor.rs", "\nuse crate::roof as top;"),
        (
            "ground/floor.rs",
            "\nuse crate::{ground::wall, roof::{self, Tile}};",
        ),
        ("ground/floor.rs", "\nuse super::{wall, super::roof::Tile};"),
        ("ground/floor.rs", "\nfn f() { crate::roof::close() }"),
        ("ground/floor.rs", "\nfn f(tile: Vec<crate::roof::Tile>) {}"),
        ("ground/floor.rs", "\nuse super::super::roof::Tile;"),
        ("ground/mod.rs", "\nuse super::roof::Tile;"),
        ("ground/floor/board.rs", "\nuse super::super::super::roof;"),
        (
            "ground/floor.rs",
            "mod tests {\n use super::super::super::roof; }",
        ),
        (
            "ground/floor.rs",
            "const C: char = '\"';\nuse crate::roof::Tile; // \"",
        ),
        (
            "ground/floor.rs",
            "const C: &str = r#\"\"\n\"#; use crate::roof::Tile;",
        ),
        ("ground.rs", "\nuse crate::roof::Tile;"),
    ] {
        let found = lines_of(path, text);
        assert!(!found.is_empty(), "{path}: {text}");
        assert!(
            found.iter().all(|line| *line == 2),
            "{path}: {text}: {found:?}"
        );
    }
    let found = breaches(
        &MADE_UP,
        &made_up("ground/floor.rs", "use crate::{a, roof};"),
    );
    assert_eq!(
        Listed(&found).to_string(),
        "2 imports break the rule:\n\
         made/up/ground/floor.rs:1: imports crate::a, but ground may import [\"ground\"] only\n\
         made/up/ground/floor.rs:1: imports crate::roof, but ground may import [\"ground\"] only\n"
    );
}

#[test]
fn other_imports_are_allowed() {
    for (path, text) in [
        (
            "ground/floor.rs",
            "use crate::ground::{wall, door::Key}; use super::wall; use roof::Tile;",
        ),
        (
            "ground/floor.rs",
            "// use crate::roof;\n/* use crate::roof; /* */ */ const S: &str = \"crate::roof\";",
        ),
        (
            "ground/floor.rs",
            "pub(in crate::roof) fn f<'a>(a: &'a str) -> char { 'a' }",
        ),
        (
            "ground/floor.rs",
            "mod tests { use super::super::wall; } use super::wall;",
        ),
        (
            "roof/tile.rs",
            "use crate::{ground, roof}; use super::super::ground::wall;",
        ),
        ("lib.rs", "use crate::roof;"),
    ] {
        assert_eq!(lines_of(path, text), [0; 0], "{path}: {text}");
    }
}

#[test]
fn a_file_in_no_station_is_found() {
    let found = breaches(&MADE_UP, &made_up("cellar.rs", ""));
    assert_eq!(
        Listed(&found).to_string(),
        "1 imports break the rule:\n\
         made/up/cellar.rs:0: lies in no station; the stations are [\"ground\", \"roof\"]\n"
    );
}

#[test]
fn an_import_of_another_subcommand_is_found() {
    let sources = |text: &str| {
        let mut sources = made_up("commands/report.rs", text);
        sources.extend(made_up(
            "commands/show/mod.rs",
            "use self::table; use super::super::data;",
        ));
        sources.extend(made_up(
            "commands/show/table.rs",
            "use super::Row; use crate::commands::show;",
        ));
        sources.extend(made_up(
            "commands/mod.rs",
            "use report::Args; use crate::commands::show::Row;",
        ));
        sources
    };
    let found = |text| neighbours("tool", &["commands"], &sources(text)).len();
    assert_eq!(found("use crate::data; use super::Command;"), 0);
    for text in [
        "use crate::commands::show;",
        "use crate::{data, commands::{self, show::Row}};",
        "use super::show::Row;",
        "fn f() { super::super::commands::show::table() }",
    ] {
        assert_eq!(found(text), 1, "{text}");
    }
}
