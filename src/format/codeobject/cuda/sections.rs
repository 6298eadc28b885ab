//! The profile sections that a cubin would have, had PTX sections: its variables, one after the other.

use std::borrow::Cow;

use object::read::ReadRef;

use crate::format::codeobject::cuda::profile::{NAMES, RECORD};
use crate::format::codeobject::cuda::symbols::Variables;
use crate::format::codeobject::elf::{CodeObject, CodeObjectError};

/// The prefix of the coverage mappings of functions.
const FUNCTION_MAPPING: &str = "__covrec_";
/// The lists of source files, one for each unit.
const FILE_LIST: &str = "__llvm_coverage_mapping";
/// The alignment of the variables in their section, in bytes: readers expect it of function mappings and file lists.
const ALIGNMENT: usize = 8;

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The contents of the profile section `name`, gathered from the variables of a cubin. Empty if it has none of
    /// them, or if there is no such section.
    ///
    /// # Errors
    /// Fails if symbols are damaged.
    pub(in crate::format::codeobject) fn gathered_section(
        &self,
        name: &[u8],
    ) -> Result<Cow<'data, [u8]>, CodeObjectError> {
        let prefix = match name {
            b"__llvm_prf_data" => RECORD,
            b"__llvm_prf_names" => NAMES,
            b"__llvm_covfun" => FUNCTION_MAPPING,
            b"__llvm_covmap" => FILE_LIST,
            _ => return Ok(Cow::default()),
        };
        let variables = Variables::of(self)?;
        let prefix = [prefix];
        let all = variables.named(&prefix);
        self.check_total("profile variables", all.map(|it| it.size))?;
        let mut section = Vec::new();
        for symbol in variables.named(&prefix) {
            let contents = variables.contents(symbol)?.unwrap_or_default();
            section.resize(section.len().next_multiple_of(ALIGNMENT), 0);
            section.extend_from_slice(contents);
        }
        Ok(section.into())
    }
}
