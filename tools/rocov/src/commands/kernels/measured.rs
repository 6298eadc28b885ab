//! Counts and coverage of kernels, from the profiles and device ELFs that are next to the registry.

use std::collections::BTreeMap;

use anyhow::Result;
use rocov::support::diagnostic::Diagnostic;

use crate::cli::KernelsArguments;
use crate::coverage;
use crate::coverage::{Exclusions, FunctionFigures};
use crate::data::ReportableData;
use crate::data::matched_elfs::MatchedCodeObject;
use crate::llvm::LlvmTools;
use crate::profdata::object_counts;
use crate::support::{parallel, temporary};
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// The functions of each code object that there is a profile of, by identity and symbol.
pub(super) type Measured = BTreeMap<String, BTreeMap<String, FunctionFigures>>;

/// Gets the functions from LLVM's tools. A code object that they cannot read is left out, with a
/// warning.
///
/// # Errors
///
/// Fails if an object cannot be read.
pub(super) fn measure(
    data: &ReportableData,
    arguments: &KernelsArguments,
    exclusions: &Exclusions,
    warnings: &mut Warnings,
) -> Result<Measured> {
    let mut measured = Measured::new();
    if data.files.device.is_empty() {
        return Ok(measured);
    }
    let mut installed = match LlvmTools::find_any(arguments.llvm_bin.as_deref()) {
        Ok(installed) => installed,
        Err(error) => {
            warnings.add(explained(&error).within("left out: counts and lines"));
            return Ok(measured);
        }
    };
    let mut matched = data.match_all_elfs();
    matched.leave_out_damaged(data, &mut installed, warnings);
    let archs = matched.archs.iter();
    let objects: Vec<_> = archs
        .flat_map(|(arch, objects)| {
            objects
                .iter()
                .map(move |(identity, object)| (arch, identity, object))
        })
        .collect();
    let found = parallel::map(&objects, |(arch, _, object)| {
        Ok(functions(object, arch, exclusions, &installed))
    })?;
    for ((_, identity, _), functions) in objects.iter().zip(found) {
        match functions {
            Ok((functions, said)) => {
                warnings.extend(said);
                measured.insert((**identity).to_owned(), functions);
            }
            Err(error) => warnings.add(explained(&error).within(format_args!(
                "left out: counts and lines of code object {identity}"
            ))),
        }
    }
    Ok(measured)
}

/// The functions of one code object.
fn functions(
    object: &MatchedCodeObject<'_>,
    arch: &str,
    exclusions: &Exclusions,
    installed: &LlvmTools,
) -> Result<(BTreeMap<String, FunctionFigures>, Vec<Diagnostic>)> {
    let directory = temporary::directory()?;
    let files = object.files(arch, directory.path())?;
    let merged = directory.path().join("one.profdata");
    let (counts, said) = object_counts(object, merged, installed)?;
    let functions = coverage::functions(&files, &counts, exclusions, installed)?;
    Ok((functions, said))
}
