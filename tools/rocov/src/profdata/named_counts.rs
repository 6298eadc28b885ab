//! The counts of one profile, with all that an indexed profile has in addition to them.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::{Context, Result};
use rocov::format::profraw::{CountsByFunction, Sum, Version};
use rocov::validate::names_by_hash;

use super::index_version::FunctionHashes;

/// The names of functions, by their hashes.
pub(super) type Names = HashMap<u64, Vec<u8>>;

/// The names in the sections of the profiles that were read. Many runs of a program have one section, which is
/// unpacked once.
#[derive(Debug, Default)]
pub(crate) struct KnownNames(HashMap<Vec<u8>, Arc<Names>>);

impl KnownNames {
    pub(super) fn intern(&mut self, section: &[u8]) -> Result<Arc<Names>> {
        if let Some(known) = self.0.get(section) {
            return Ok(Arc::clone(known));
        }
        let names = names_by_hash(section).context("its names are damaged")?;
        let names = Arc::new(names);
        self.0.insert(section.to_vec(), Arc::clone(&names));
        Ok(names)
    }
}

/// The counts of functions, and their names.
#[derive(Debug)]
pub(crate) struct NamedCounts {
    /// The bits of the version word that hold the variant.
    pub(super) variant: u64,
    /// The raw version that has bitmaps as these counts.
    pub(super) version: Version,
    pub(super) functions: CountsByFunction,
    pub(super) names: Arc<Names>,
    pub(super) hashes: FunctionHashes,
}

impl NamedCounts {
    /// The counts of a code object, which one of these releases of clang compiled.
    ///
    /// # Errors
    ///
    /// Fails if a record or the names are damaged.
    pub(crate) fn from_sum(sum: &Sum, clang: Option<RangeInclusive<u32>>) -> Result<Self> {
        let profile = sum.profile();
        let names = &sum.bytes()[profile.sections.names.clone()];
        let version = *profile.header.version();
        let names = KnownNames::default().intern(names)?;
        Ok(Self::from_raw(version, sum.functions()?, names, clang))
    }

    pub(super) fn from_raw(
        version: Version,
        functions: CountsByFunction,
        names: Arc<Names>,
        clang: Option<RangeInclusive<u32>>,
    ) -> Self {
        let clang = clang.unwrap_or_else(|| version.layout().llvm.clone());
        let hashes = functions.keys().map(|(_, hash)| *hash);
        let hashes = FunctionHashes::from_clang(&version, &clang, hashes);
        Self {
            variant: version.word() - u64::from(version.layout().version),
            version,
            functions,
            names,
            hashes,
        }
    }

    /// Returns whether there are MC/DC bitmaps with the bits that LLVM 19 and later give them.
    pub(super) fn has_new_bitmaps(&self) -> bool {
        let mut functions = self.functions.values();
        self.version.has_new_bitmaps() && functions.any(|function| !function.bitmap.is_empty())
    }
}
