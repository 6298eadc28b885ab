//! Evaluates coverage without llvm-cov: from the coverage mappings of objects ([`object`]) and the counts of
//! their functions to records ([`function`]).
//!
//! llvm-cov is the oracle: the tests compare the records with those of its export, one by one. So a function
//! has the place and the name that it has there, and functions are left out for the reasons of llvm-cov.

mod counters;
mod decisions;
mod function;
mod object;
mod test_vectors;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use rocov::format::codeobject::MappedFunction;
use rocov::format::profraw::FunctionCounts;

use self::object::MappedObject;
use self::test_vectors::Numbering;
use super::function::Key;
use super::model::Record;
use crate::profdata::ProfileCounts;

/// The bit of a structure's hash that tells a kind of profile. llvm-cov takes a function for absent, not for
/// another, if this differs.
const KIND_OF_PROFILE: u64 = 1 << 60;

/// The coverage of objects.
#[derive(Debug, Default)]
pub(crate) struct Evaluated {
    /// The functions, in the order of llvm-cov.
    pub(crate) records: Vec<Record>,
    /// The names of functions whose counts are of other code: they are left out.
    pub(crate) mismatched: Vec<Arc<str>>,
}

/// Evaluates the coverage of `objects` from `counts`. A function that several objects have counts once.
///
/// # Errors
///
/// Fails if an object cannot be read or is damaged, or if none has a coverage mapping.
pub(crate) fn evaluate(objects: &[PathBuf], counts: &ProfileCounts) -> Result<Evaluated> {
    let numbering = match counts.version.layout().version {
        ..=9 => Numbering::Values,
        _ => Numbering::Ways,
    };
    let mut evaluated = Evaluated::default();
    let mut known: HashSet<Key> = HashSet::new();
    let mut has_mapping = false;
    for path in objects {
        let object = MappedObject::read(path)?;
        has_mapping |= !object.functions.is_empty();
        let failed = |what: String| anyhow!("{}: {what}", path.display());
        for mapped in &object.functions {
            let Some(name) = object.names.get(&mapped.name) else {
                let hash = mapped.name;
                return Err(failed(format!(
                    "no name has the hash {hash:#018x} of a function"
                )));
            };
            let counts = match find(mapped, counts) {
                Found::Counts(counts) => Some(counts),
                Found::Nothing => None,
                Found::OtherCode => {
                    evaluated.mismatched.push(name.as_str().into());
                    continue;
                }
            };
            let record = function::record(mapped, name, counts, numbering).map_err(|damaged| {
                let (place, error) = (damaged.place, damaged.error);
                failed(format!(
                    "cannot evaluate the decision of {name} at {}:{}: {error}",
                    place.line, place.column
                ))
            })?;
            evaluated
                .records
                .extend(record.filter(|it| known.insert(it.function.key())));
        }
    }
    if !has_mapping {
        let objects: Vec<_> = objects.iter().map(|it| it.display().to_string()).collect();
        bail!("no coverage mapping in {}", objects.join(", "));
    }
    Ok(evaluated)
}

/// The result of a search for the counts of a function.
enum Found<'a> {
    Counts(&'a FunctionCounts),
    /// The function was never loaded, or no unit uses it.
    Nothing,
    /// There are counts of another function of this name.
    OtherCode,
}

fn find<'a>(mapped: &MappedFunction, counts: &'a ProfileCounts) -> Found<'a> {
    let of_name = (mapped.name, 0)..=(mapped.name, u64::MAX);
    let mut others = counts.functions.range(of_name).map(|((_, hash), _)| hash);
    match counts.functions.get(&(mapped.name, mapped.hash)) {
        Some(counts) => Found::Counts(counts),
        None if others.any(|other| (other ^ mapped.hash) & KIND_OF_PROFILE == 0) => {
            Found::OtherCode
        }
        None => Found::Nothing,
    }
}

#[cfg(test)]
mod tests;
