//! Functions that some code has in its coverage mapping, and other code in its line table.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::function::{Function, Place};
use super::llvm_cov::symbol;
use crate::profdata::CountKinds;

/// The starts of a file's functions, and their names, by symbol.
type InFile = HashMap<Box<str>, (Place, Arc<str>)>;

/// The functions with a coverage mapping, by file: where they start, and their names in it.
#[derive(Debug, Default)]
pub(crate) struct MappedFunctions(HashMap<Arc<str>, InFile>);

impl MappedFunctions {
    /// Takes those of `functions`. None, if all code has counts of one kind.
    pub(crate) fn of<'a>(
        kinds: impl Iterator<Item = &'a CountKinds>,
        functions: impl Iterator<Item = &'a Arc<Function>>,
    ) -> Self {
        let mut mapped = Self::default();
        if kinds.flatten().collect::<BTreeSet<_>>().len() < 2 {
            return mapped;
        }
        for function in functions.filter(|it| it.line_table.is_none()) {
            let here = mapped.0.entry(Arc::clone(function.main_path()));
            let found = (function.start(), Arc::clone(&function.name));
            here.or_default()
                .insert(symbol(&function.name).into(), found);
        }
        mapped
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The start of a function and its name: those of its coverage mapping, if any code has one.
    pub(crate) fn key<'a>(&'a self, function: &'a Function) -> (Place, &'a str) {
        let own = (function.start(), &*function.name);
        if function.line_table.is_none() {
            return own;
        }
        let here = self.0.get(function.main_path());
        let found = here.and_then(|functions| functions.get(symbol(own.1)));
        found.map_or(own, |(start, name)| (*start, name))
    }
}
