//! Counts and coverage of kernels, from the profiles and device ELFs that lie beside the registry.

use crate::cli::KernelsArguments;
use crate::coverage::{self, Function};
use crate::data::DataDirectory;
use crate::inputs::Inputs;
use crate::llvm_tools::Installed;
use crate::matching::{CodeObject, Matching};
use crate::merged::merge_object;
use crate::{child, parallel, profdata};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use tempfile::TempDir;

/// The functions of each code object that there is a profile of, by identity and symbol.
pub(super) type Measured = BTreeMap<String, BTreeMap<String, Function>>;

/// Asks LLVM's tools. What they do not say is not known, and a line says why.
///
/// # Errors
///
/// When an object cannot be read.
pub(super) fn of(data: DataDirectory, arguments: &KernelsArguments) -> Result<Measured> {
    let inputs = Inputs::of(data, &arguments.objects)?;
    let mut measured = Measured::new();
    if inputs.data.device.is_empty() {
        return Ok(measured);
    }
    let mut installed = match Installed::find(arguments.llvm_bin.as_deref()) {
        Ok(installed) => installed,
        Err(error) => {
            child::say(&[format!("left out: counts and lines: {error:#}")]);
            return Ok(measured);
        }
    };
    let mut matching = Matching::of(&inputs.data.device, &inputs.kept.files, &inputs.named);
    installed.prefer(matching.compilers());
    let damaged = matching.leave_out_damaged(|profile| profdata::check(profile, &installed));
    child::say(&matching.left_out(&inputs.data));
    child::say(&damaged);
    let archs = matching.archs.iter();
    let objects: Vec<_> = archs
        .flat_map(|(arch, objects)| {
            objects
                .iter()
                .map(move |(identity, it)| (arch, identity, it))
        })
        .collect();
    let found = parallel::map(&objects, |(arch, _, object)| {
        Ok(functions(object, arch, &installed))
    })?;
    for ((_, identity, _), functions) in objects.iter().zip(found) {
        match functions {
            Ok(functions) => drop(measured.insert((**identity).to_owned(), functions)),
            Err(error) => child::say(&[format!(
                "left out: counts and lines of code object {identity}: {error:#}"
            )]),
        }
    }
    Ok(measured)
}

/// The functions of one code object.
fn functions(
    object: &CodeObject<'_>,
    arch: &str,
    installed: &Installed,
) -> Result<BTreeMap<String, Function>> {
    let directory = TempDir::new().context("cannot make a temporary directory")?;
    let elf = object.file.place(object.elf, arch, directory.path())?;
    let merged = directory.path().join("one.profdata");
    merge_object(object, &merged, installed)?;
    coverage::functions(installed.newest(), &elf, &merged)
}
