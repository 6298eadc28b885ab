//! The source file of each function, without its regions.

use std::collections::{BTreeSet, HashMap};

use crate::format::codeobject::coverage_mapping::error::{CoverageError, MAX_PATHS};
use crate::format::codeobject::coverage_mapping::file_list::FileLists;
use crate::format::codeobject::coverage_mapping::function_record::{COVFUN, FunctionRecords};
use crate::format::codeobject::coverage_mapping::reader::Reader;

/// The source files of the functions `wanted`, by the hash of their names. Leaves out functions that have no
/// mapping, or a mapping of an unknown version.
pub(in crate::format::codeobject) fn sources(
    maps: &[u8],
    functions: &[u8],
    wanted: &BTreeSet<u64>,
) -> Result<HashMap<u64, String>, CoverageError> {
    let mut in_list: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    for (name, function) in mapped(functions, wanted)? {
        let of_list = in_list.entry(function.list).or_default();
        of_list.push((name, function.file));
    }
    let mut sources = HashMap::new();
    let mut room = MAX_PATHS;
    for list in FileLists::new(maps) {
        let list = list?;
        // Reads one list at a time: together they could be large.
        let functions = in_list.remove(&list.hash()).unwrap_or_default();
        if functions.is_empty() || !list.is_known() {
            continue;
        }
        let wanted = functions.iter().map(|(_, file)| *file).collect();
        let paths = list.paths(&wanted, &mut room)?;
        for (name, file) in functions {
            sources.insert(name, paths[&file].clone());
        }
    }
    Ok(sources)
}

/// The place of a function.
struct Mapped {
    /// The hash of the file list.
    list: u64,
    /// The place in the list.
    file: u64,
    /// True if this stands in for a function that its unit does not use. Another unit may have the real
    /// mapping.
    is_unused: bool,
}

fn mapped(functions: &[u8], wanted: &BTreeSet<u64>) -> Result<HashMap<u64, Mapped>, CoverageError> {
    let mut found: HashMap<u64, Mapped> = HashMap::new();
    for record in FunctionRecords::new(functions) {
        let record = record?;
        let is_known = |mapped: &Mapped| !mapped.is_unused;
        if !wanted.contains(&record.name) || found.get(&record.name).is_some_and(is_known) {
            continue;
        }
        let mut mapping = Reader::new(COVFUN, record.mapping);
        if mapping.number()? == 0 {
            continue;
        }
        let function = Mapped {
            list: record.list,
            // A function starts in the first of its files. The others are files of macros.
            file: mapping.number()?,
            is_unused: record.hash == 0,
        };
        found.insert(record.name, function);
    }
    Ok(found)
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;
