//! Counts and coverage of kernels, from the profiles and device ELFs that lie beside the registry.

use crate::cli::KernelsArguments;
use crate::coverage::{self, Function};
use crate::inputs::Inputs;
use crate::llvm_tools::Installed;
use crate::matching::{Matched, Matching};
use crate::{child, profdata};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// The functions of each code object that there is a profile of, by identity and symbol.
pub(super) type Measured = BTreeMap<String, BTreeMap<String, Function>>;

/// Asks LLVM's tools. What they do not say is not known, and a line says why.
///
/// # Errors
///
/// When the directory or an object cannot be read.
pub(super) fn of(arguments: &KernelsArguments) -> Result<Measured> {
    let directory = &arguments.directory;
    let inputs = Inputs::read(directory, &arguments.objects)?;
    let mut measured = Measured::new();
    if inputs.listing.device.is_empty() {
        return Ok(measured);
    }
    let installed = match Installed::find(arguments.llvm_bin.as_deref()) {
        Ok(installed) => installed,
        Err(error) => {
            child::say(&[format!("left out: counts and lines: {error:#}")]);
            return Ok(measured);
        }
    };
    let mut matching = Matching::of(&inputs.listing.device, &inputs.kept.files, &inputs.named);
    let damaged = matching.leave_out_damaged(|profile| profdata::check(profile, &installed));
    child::say(&matching.left_out(directory));
    child::say(&damaged);
    for (arch, matched) in &matching.archs {
        for (identity, (file, elf)) in &matched.elfs {
            let functions = file
                .place(elf, arch, directory)
                .and_then(|elf| functions(&elf, matched, identity, &installed));
            match functions {
                Ok(functions) => drop(measured.insert((*identity).to_owned(), functions)),
                Err(error) => child::say(&[format!(
                    "left out: counts and lines of code object {identity}: {error:#}"
                )]),
            }
        }
    }
    Ok(measured)
}

/// The functions of one code object, whose profiles are among those of its arch.
fn functions(
    elf: &Path,
    matched: &Matched<'_>,
    identity: &str,
    installed: &Installed,
) -> Result<BTreeMap<String, Function>> {
    let profiles = matched.profiles.iter();
    let profiles: Vec<_> = profiles
        .filter(|profile| profile.identity == identity)
        .map(|profile| profile.path.as_path())
        .collect();
    let directory = TempDir::new().context("cannot make a temporary directory")?;
    let merged = directory.path().join("one.profdata");
    profdata::merge(&profiles, &merged, installed, &[])?;
    coverage::functions(installed.newest(), elf, &merged)
}
