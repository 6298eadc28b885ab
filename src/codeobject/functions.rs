//! What the profile and coverage sections of a code object say of its functions.
//!
//! Both name a function by a hash of its name, `NameRef`. Of a function that is local to its file,
//! the name is `file.hip:name`; kernels are not, the compiler makes their names unique.

use std::collections::HashSet;

use byteorder::{ByteOrder, LittleEndian};
use object::read::ReadRef;

use super::coverage;
use super::elf::{CodeObject, CodeObjectError};

/// The hash of a name, or of a list of files: the first 8 bytes of the MD5, little endian (LLVM's
/// `IndexedInstrProf::ComputeHash`).
pub(super) fn name_ref(name: &[u8]) -> u64 {
    LittleEndian::read_u64(&md5::compute(name).0)
}

/// Functions that are asked about, by the hashes of their names.
pub(super) struct Functions(Vec<u64>);

impl Functions {
    pub(super) fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter();
        Functions(names.map(|name| name_ref(name.as_bytes())).collect())
    }

    /// Which of them have a data record, that is counters, in their order.
    ///
    /// A record starts with its hash, at a multiple of 8 bytes, whatever its version, and no other
    /// word of it is a hash of names. So the version, which the ELF may not tell, need not be known.
    pub(super) fn counted<'data, R: ReadRef<'data>>(
        &self,
        code_object: &CodeObject<'data, R>,
    ) -> Result<Vec<bool>, CodeObjectError> {
        let wanted = self.set();
        let records = code_object.section(b"__llvm_prf_data")?;
        let words = records.chunks_exact(8).map(LittleEndian::read_u64);
        let counted: HashSet<u64> = words.filter(|word| wanted.contains(word)).collect();
        Ok(self.0.iter().map(|it| counted.contains(it)).collect())
    }

    /// The source file of each by its coverage mapping, in their order. `None` for those that have
    /// no mapping, or one of a version that is not known.
    pub(super) fn sources<'data, R: ReadRef<'data>>(
        &self,
        code_object: &CodeObject<'data, R>,
    ) -> Result<Vec<Option<String>>, CodeObjectError> {
        let sources = coverage::sources(
            code_object.section(b"__llvm_covmap")?,
            code_object.section(b"__llvm_covfun")?,
            &self.set(),
        )?;
        Ok(self.0.iter().map(|it| sources.get(it).cloned()).collect())
    }

    fn set(&self) -> HashSet<u64> {
        self.0.iter().copied().collect()
    }
}
