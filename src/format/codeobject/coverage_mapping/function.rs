//! The functions of a code object with their regions.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use object::read::ReadRef;

use crate::format::codeobject::coverage_mapping::error::{CoverageError, MAX_PATHS};
use crate::format::codeobject::coverage_mapping::expansions::set_counters;
use crate::format::codeobject::coverage_mapping::file_list::FileLists;
use crate::format::codeobject::coverage_mapping::function_record::{
    COVFUN, FunctionRecord, FunctionRecords,
};
use crate::format::codeobject::coverage_mapping::reader::Reader;
use crate::format::codeobject::coverage_mapping::region::{
    Expression, MappedRegion, Regions, is_uncounted,
};
use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;

/// A function of a code object, as its coverage mapping describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFunction {
    /// The hash of the name ([`name_ref`](crate::format::codeobject::name_ref)).
    pub name: u64,
    /// The hash of the structure, which the data record has, too. It is 0 if no unit uses the function.
    pub hash: u64,
    /// The paths of the files with its regions. A function has one file for its body and one for each
    /// expansion, so a path can occur several times.
    pub files: Vec<Arc<str>>,
    /// The expressions that its counters refer to.
    pub expressions: Vec<Expression>,
    /// The regions, in the order of the mapping: file by file.
    pub regions: Vec<MappedRegion>,
}

/// Reads the coverage mapping of a code object from its sections `__llvm_covmap` and `__llvm_covfun`. The
/// functions have the order of their first records. If several translation units have a function, the first
/// record counts that is not of an unused function.
///
/// # Errors
/// Fails if the sections are damaged, or of an unknown version.
pub fn mapped_functions(
    maps: &[u8],
    functions: &[u8],
) -> Result<Vec<MappedFunction>, CoverageError> {
    let records = records(functions)?;
    let mut mappings = Vec::with_capacity(records.len());
    let mut in_list: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        mappings.push(Mapping::read(record.mapping)?);
        in_list.entry(record.list).or_default().push(index);
    }
    let mut files: Vec<Vec<Arc<str>>> = vec![Vec::new(); records.len()];
    let mut room = MAX_PATHS;
    for list in FileLists::new(maps) {
        let list = list?;
        if !list.is_known() {
            return Err(CoverageError::Version {
                found: list.version,
            });
        }
        let Some(functions) = in_list.remove(&list.hash()) else {
            continue;
        };
        let places = functions.iter().flat_map(|index| &mappings[*index].files);
        let paths = list.paths(&places.copied().collect::<BTreeSet<_>>(), &mut room)?;
        let paths = paths.into_iter().map(|(place, path)| (place, path.into()));
        let paths: HashMap<u64, Arc<str>> = paths.collect();
        for function in functions {
            let places = mappings[function].files.iter();
            files[function] = places.map(|place| Arc::clone(&paths[place])).collect();
        }
    }
    if let Some(found) = in_list.into_keys().next() {
        return Err(CoverageError::List { found });
    }
    let parts = records.iter().zip(mappings).zip(files);
    let functions = parts.map(|((record, mapping), files)| MappedFunction {
        name: record.name,
        hash: record.hash,
        files,
        expressions: mapping.expressions,
        regions: mapping.regions,
    });
    Ok(functions.collect())
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The functions with a coverage mapping, as [`mapped_functions`] reads them.
    ///
    /// # Errors
    /// Fails if the coverage mapping is damaged, or of an unknown version.
    pub fn mapped_functions(&self) -> Result<Vec<MappedFunction>, CodeObjectError> {
        let [maps, functions] = [
            self.section(b"__llvm_covmap")?,
            self.section(b"__llvm_covfun")?,
        ];
        Ok(mapped_functions(maps, functions)?)
    }
}

/// The record that counts of each function.
fn records(functions: &[u8]) -> Result<Vec<FunctionRecord<'_>>, CoverageError> {
    let mut records: Vec<FunctionRecord<'_>> = Vec::new();
    let mut places = HashMap::new();
    for record in FunctionRecords::new(functions) {
        let record = record?;
        match places.entry(record.name) {
            Entry::Vacant(place) => {
                place.insert(records.len());
                records.push(record);
            }
            Entry::Occupied(place) => {
                let known = &mut records[*place.get()];
                if is_unused(known)? && !is_unused(&record)? {
                    *known = record;
                }
            }
        }
    }
    Ok(records)
}

/// Returns whether a record stands in for a function that its unit does not use: it has no hash, and one
/// region without a counter. Reads no more of it, because many records may compete with a large one.
fn is_unused(record: &FunctionRecord<'_>) -> Result<bool, CoverageError> {
    if record.hash != 0 {
        return Ok(false);
    }
    let mut reader = Reader::new(COVFUN, record.mapping);
    if reader.number()? != 1 {
        return Ok(false);
    }
    reader.number()?;
    let [expressions, regions] = [reader.number()?, reader.number()?];
    if [expressions, regions] != [0, 1] {
        return Ok(false);
    }
    Ok(is_uncounted(reader.word("the encoded kind of a region")?))
}

/// The contents of a record.
#[derive(Default)]
struct Mapping {
    /// The places of the files in the list.
    files: Vec<u64>,
    expressions: Vec<Expression>,
    regions: Vec<MappedRegion>,
}

impl Mapping {
    fn read(bytes: &[u8]) -> Result<Self, CoverageError> {
        let mut reader = Reader::new(COVFUN, bytes);
        let number = reader.size()?;
        let files = (0..number).map(|_| reader.number());
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let number = reader.size()?;
        let mut parts = Regions {
            reader: &mut reader,
            expressions: number,
            files: files.len(),
        };
        let mut expressions = Vec::new();
        for _ in 0..number {
            expressions.push([parts.counter()?, parts.counter()?]);
        }
        let mut regions = Vec::new();
        for file in 0..files.len() {
            parts.file_regions(file as u32, &mut regions)?;
        }
        set_counters(&mut regions, files.len())?;
        Ok(Self {
            files,
            expressions,
            regions,
        })
    }
}

#[cfg(test)]
#[path = "function_tests.rs"]
mod tests;
