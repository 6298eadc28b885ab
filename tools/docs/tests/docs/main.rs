//! Tests of the documents.
//!
//! [`generated`] prints the chapters that nobody types and compares them with those in `docs/src`;
//! `cargo xtask bless` writes them. [`links`] follows each link and
//! anchor, [`book`] builds the book, [`settings`] compares the table of environment variables with the
//! sources, [`schemas`] compares the chapters on the registry, the control protocol and files with the code,
//! [`messages`] holds all messages, and [`troubleshooting`] makes their chapter.

mod book;
mod generated;
mod links;
mod messages;
mod schemas;
mod settings;
mod troubleshooting;

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path of a file of the repository.
fn repository(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(relative)
}

/// Reads a text file.
fn read(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Returns all files below a directory that `is_wanted` accepts, sorted. Does not enter directories that
/// it rejects.
fn files_below(directory: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()));
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("a directory that opens can be listed").path();
        if path.is_symlink() || !is_wanted(&path) {
            continue;
        }
        if path.is_dir() {
            files.extend(files_below(&path, is_wanted));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}
