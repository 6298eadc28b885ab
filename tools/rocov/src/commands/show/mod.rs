//! `rocov show`: prints the kind of a file, its parts, and its damage. One module for each kind of
//! file: [`raw_profile`], [`saved_sections`], [`registry`], [`code_object`], and [`containers`] of code
//! objects. Or prints the [`disassembly`] of a function with the counts of a trace.

mod code_object;
mod containers;
mod description;
mod disassembly;
mod raw_profile;
mod registry;
mod saved_sections;

use std::path::Path;

use rocov::diagnostic;
use rocov::format::profraw::{RawProfile, SavedSections};

use crate::cli::ShowArguments;
use crate::support::mmap::map;
use crate::term::exit_status::{CommandResult, FAILED};
use crate::term::print;
use crate::term::remedy::explained;
use description::Description;

/// Prints each file's description; the status says whether all are whole.
///
/// # Errors
///
/// Fails if nothing can be printed.
pub(crate) fn show(arguments: &ShowArguments) -> CommandResult {
    if let Some(function) = &arguments.disassemble {
        return disassembly::show(arguments, function);
    }
    let mut status = 0;
    for path in &arguments.files {
        if path.is_dir() {
            print::message(format_args!(
                "{0} is a directory: `rocov report {0}` reports on it, and `rocov show` accepts the files in it",
                path.display()
            ));
            status = FAILED;
            continue;
        }
        let description = match map(path) {
            Ok(file) => describe(path, &file),
            Err(error) => {
                print::message(explained(&error));
                status = FAILED;
                continue;
            }
        };
        if !description.text.is_empty() {
            print::text(format!("{}:\n{}", path.display(), description.text).as_bytes())?;
        }
        for reason in description.damage {
            print::message(reason.within(path.display()));
            status = FAILED;
        }
    }
    Ok(status)
}

/// Tells the kind of the file by how it starts.
fn describe(path: &Path, file: &[u8]) -> Description {
    if SavedSections::has_magic(file) {
        saved_sections::describe(file)
    } else if RawProfile::has_any_magic(file) {
        raw_profile::describe(file)
    } else if file.trim_ascii_start().starts_with(b"{") {
        registry::describe(path, file)
    } else if is_text(file) {
        let mut description = Description::default();
        description.damaged(diagnostic!(
            "it is a text file, not one that rocov supports";
            "name a raw profile, a registry, saved sections, a device ELF, a bundle, or a program or library with one"
        ));
        description
    } else {
        containers::describe(file)
    }
}

/// Returns whether a file is of words and lines, by how it starts.
fn is_text(file: &[u8]) -> bool {
    let start = &file[..file.len().min(512)];
    let is_printed = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    !start.starts_with(b"__CLANG_OFFLOAD_BUNDLE__")
        && !start.is_empty()
        && start.iter().all(is_printed)
}
