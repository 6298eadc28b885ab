//! What a report should have and has not: with gates, it is a failure and no zero.

use crate::components::Components;
use crate::inputs::Inputs;
use crate::kept::Kept;
use crate::matching::Matching;
use crate::objects::{DeviceElf, ObjectFile};
use crate::words::count;
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;

/// One line for each kind of thing that is not in the report of `matching`, though it ran or should
/// have run. `damaged` profiles were left out. What is
/// of no component that is asked for is not missing.
///
/// # Errors
///
/// When the kept device ELFs cannot be listed.
pub(crate) fn missing(
    directory: &Path,
    inputs: &Inputs,
    matching: &Matching<'_>,
    components: &Components,
    damaged: usize,
) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let mut left_out = |number: usize, what: &str| {
        if number > 0 {
            missing.push(format!("{} left out: see above", count(number, what)));
        }
    };
    left_out(inputs.listing.sections.len(), "file of sections");
    left_out(inputs.kept.refused.len(), "kept device ELF");
    left_out(matching.strangers(), "code object without a device ELF");
    left_out(damaged, "damaged profile");
    let damage = inputs.named.iter().map(|file| file.damage.len());
    left_out(damage.sum(), "damaged part of an object");

    let profiled: BTreeSet<_> = inputs
        .listing
        .device
        .iter()
        .map(|it| it.identity.as_str())
        .collect();
    let unused = Kept::others(directory, &profiled)?;
    let mut said = BTreeSet::new();
    for file in unused.iter().chain(&inputs.named) {
        for elf in &file.elfs {
            let identity = elf.identity.as_str();
            let is_reported = target(file, elf).is_none_or(|it| matching.archs.contains_key(it));
            if is_reported
                && components.have(identity)
                && !profiled.contains(identity)
                && file.is_instrumented(elf)
                && said.insert(identity)
            {
                missing.push(format!(
                    "code object {identity} in {} has no profile: it was never loaded, or its \
                     process was killed",
                    file.path.display()
                ));
            }
        }
    }
    Ok(missing)
}

/// The arch of a device ELF, without features: of its bundle, else of a kept file's name.
fn target<'a>(file: &'a ObjectFile, elf: &'a DeviceElf) -> Option<&'a str> {
    let name = || file.path.file_name()?.to_str()?.split('.').next();
    let target = elf.target.as_deref().or_else(name)?;
    let processor = target.split([':', '-']).next()?;
    processor.starts_with("gfx").then_some(processor)
}
