//! The functions of a code object, or of a program on the host, with their names.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use object::{Object, ObjectSection};
use rocov::format::codeobject::{MappedFunction, mapped_functions, name_ref};
use rocov::validate::for_each_name;

use crate::support::mmap;

/// The functions of an object that have a coverage mapping, and the names of functions by their hashes.
#[derive(Debug)]
pub(super) struct MappedObject {
    pub(super) functions: Vec<MappedFunction>,
    pub(super) names: HashMap<u64, String>,
}

impl MappedObject {
    /// Reads the coverage mapping of the object at `path`. There are no functions if it has none.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if its coverage mapping is damaged.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let contents = mmap::map(path)?;
        let failed = || format!("cannot read the coverage mapping of {}", path.display());
        Self::of(&contents).with_context(failed)
    }

    fn of(contents: &[u8]) -> Result<Self> {
        let elf = object::File::parse(contents)?;
        let section = |name: &str| match elf.section_by_name(name) {
            Some(section) => section.data(),
            None => Ok(&[][..]),
        };
        let functions = mapped_functions(section("__llvm_covmap")?, section("__llvm_covfun")?)?;
        let mut names = HashMap::new();
        for_each_name(section("__llvm_prf_names")?, |name| {
            names.insert(name_ref(name), String::from_utf8_lossy(name).into_owned());
        })?;
        Ok(Self { functions, names })
    }
}
