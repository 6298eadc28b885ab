//! The source folders of the command are stations: a file imports its own station and earlier ones only,
//! and a subcommand imports no other.

use std::fs;
use std::path::{Path, PathBuf};

const STATIONS: [&str; 10] = [
    "support", "term", "host", "llvm", "data", "index", "coverage", "render", "cli", "commands",
];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    });
    files.collect()
}

/// The words of each path of the crate that a text has: `crate::data::walk` is `data` and `walk`.
fn paths(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("crate::").skip(1).map(|rest| {
        let mut words = rest.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let station = words.next().unwrap_or_default();
        (station, words.find(|it| !it.is_empty()).unwrap_or_default())
    })
}

#[test]
fn imports_go_back_to_earlier_stations_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let place = |name: &str| STATIONS.iter().position(|station| *station == name);
    let mut wrong = Vec::new();
    for file in sources(&root) {
        let inside = file.strip_prefix(&root).unwrap();
        let mut words = inside.iter().map(|it| it.to_str().unwrap());
        let (Some(station), Some(part)) = (words.next(), words.next()) else {
            continue;
        };
        let own = place(station).unwrap_or_else(|| panic!("{station} is no station"));
        let command = part.trim_end_matches(".rs");
        for (imported, name) in paths(&fs::read_to_string(&file).unwrap()) {
            let is_other_command =
                station == "commands" && imported == "commands" && name != command;
            if place(imported).is_none_or(|it| it > own) || is_other_command {
                wrong.push(format!("{}: crate::{imported}::{name}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
