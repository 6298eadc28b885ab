//! The functions of a code object according to its profile and coverage sections.
//!
//! Both sections name a function by a hash of its name, `NameRef`. The name of a function that is local to
//! its file is `file.hip:name`. Kernels are not local: the compiler makes their names unique.

use std::collections::BTreeSet;

use byteorder::{ByteOrder, LittleEndian};
use object::read::ReadRef;

use crate::format::codeobject::coverage_mapping;
use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;

/// The hash of a name or of a file list: the first 8 bytes of the MD5, little endian (LLVM's
/// `IndexedInstrProf::ComputeHash`).
#[must_use]
pub fn name_ref(name: &[u8]) -> u64 {
    LittleEndian::read_u64(&md5::compute(name).0)
}

/// Functions to look up, by the hashes of their names.
pub(super) struct Functions(Vec<u64>);

impl Functions {
    pub(super) fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter();
        Self(names.map(|name| name_ref(name.as_bytes())).collect())
    }

    /// Returns for each function, in their order, whether it has a data record and so counters.
    ///
    /// In every version a record starts with its hash, at a multiple of 8 bytes, and no other word of it is a
    /// hash of names. So this works without the version, which the ELF may not have.
    pub(super) fn counted<'data, R: ReadRef<'data>>(
        &self,
        code_object: &CodeObject<'data, R>,
    ) -> Result<Vec<bool>, CodeObjectError> {
        let wanted = self.set();
        let records = code_object.section(b"__llvm_prf_data")?;
        let words = records.chunks_exact(8).map(LittleEndian::read_u64);
        let counted: BTreeSet<u64> = words.filter(|word| wanted.contains(word)).collect();
        Ok(self.0.iter().map(|name| counted.contains(name)).collect())
    }

    /// The source file of each function from its coverage mapping, in their order. `None` for functions
    /// without a mapping, or with one of an unknown version.
    pub(super) fn sources<'data, R: ReadRef<'data>>(
        &self,
        code_object: &CodeObject<'data, R>,
    ) -> Result<Vec<Option<String>>, CodeObjectError> {
        let sources = coverage_mapping::sources(
            code_object.section(b"__llvm_covmap")?,
            code_object.section(b"__llvm_covfun")?,
            &self.set(),
        )?;
        Ok(self
            .0
            .iter()
            .map(|name| sources.get(name).cloned())
            .collect())
    }

    /// Their hashes. A tree of few numbers takes less time than to hash each word that is looked up.
    fn set(&self) -> BTreeSet<u64> {
        self.0.iter().copied().collect()
    }
}
