//! The counts of one profile, with all that an indexed profile has beside them.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Result};
use rocov::format::codeobject::name_ref;
use rocov::format::profraw::{CountsByFunction, HostProfile, Sum, Version};
use rocov::validate::for_each_name;

use super::index_version::FunctionHashes;
use super::indexed_reader;
use crate::data::profile_header::is_indexed;
use crate::support::mmap;

/// The counts of functions, and their names.
#[derive(Debug)]
pub(crate) struct NamedCounts {
    /// The bits of the version word that tell the variant.
    pub(super) variant: u64,
    /// The raw version that has bitmaps as these counts.
    pub(super) version: Version,
    pub(super) functions: CountsByFunction,
    /// By their hashes.
    pub(super) names: HashMap<u64, Vec<u8>>,
    pub(super) hashes: FunctionHashes,
}

impl NamedCounts {
    /// The counts of a code object, which one of these releases of clang compiled.
    ///
    /// # Errors
    ///
    /// Fails if a record or the names are damaged.
    pub(crate) fn of_sum(sum: &Sum, clang: Option<RangeInclusive<u32>>) -> Result<Self> {
        let profile = sum.profile();
        let names = &sum.bytes()[profile.sections.names.clone()];
        let version = *profile.header.version();
        Self::of_raw(version, sum.functions()?, names, clang)
    }

    /// The counts in the profile of host code at `path`, raw or indexed. One of these releases of `clang` compiled the
    /// code, if they are known.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is damaged, or is of a version that is not known.
    pub(crate) fn of_host(path: &Path, clang: Option<&RangeInclusive<u32>>) -> Result<Vec<Self>> {
        let file = mmap::read(path)?;
        if is_indexed(path) {
            return Ok(vec![indexed_reader::read(&file)?]);
        }
        let profiles = HostProfile::all(&file)?.into_iter().map(|profile| {
            Self::of_raw(
                profile.version,
                profile.functions,
                profile.names,
                clang.cloned(),
            )
        });
        profiles.collect()
    }

    fn of_raw(
        version: Version,
        functions: CountsByFunction,
        names: &[u8],
        clang: Option<RangeInclusive<u32>>,
    ) -> Result<Self> {
        let mut known = HashMap::new();
        for_each_name(names, |name| {
            known.insert(name_ref(name), name.to_vec());
        })
        .context("its names are damaged")?;
        let clang = clang.unwrap_or_else(|| version.layout().llvm.clone());
        let hashes = functions.keys().map(|(_, hash)| *hash);
        let hashes = FunctionHashes::of_clang(&version, &clang, hashes);
        Ok(Self {
            variant: version.word() - u64::from(version.layout().version),
            version,
            functions,
            names: known,
            hashes,
        })
    }

    /// Returns whether there are MC/DC bitmaps with the bits that LLVM 19 and later give them.
    pub(super) fn has_new_bitmaps(&self) -> bool {
        let mut functions = self.functions.values();
        self.version.has_new_bitmaps() && functions.any(|it| !it.bitmap.is_empty())
    }
}
