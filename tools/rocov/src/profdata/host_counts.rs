//! The counts of host code.

use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Result;
use rocov::format::profraw::HostProfile;

use super::indexed_reader;
use super::named_counts::{KnownNames, NamedCounts};
use crate::data::profile_header::is_indexed;
use crate::support::mmap;

/// The counts in the profile of host code at `path`, raw or indexed. One of these releases of `clang` compiled the
/// code, if they are known.
///
/// # Errors
///
/// Fails if the file cannot be read, is damaged, or is of a version that is not known.
pub(crate) fn host_counts(
    path: &Path,
    clang: Option<&RangeInclusive<u32>>,
    known: &mut KnownNames,
) -> Result<Vec<NamedCounts>> {
    let file = mmap::read(path)?;
    if is_indexed(path) {
        return Ok(vec![indexed_reader::read(&file)?]);
    }
    let profiles = HostProfile::all(&file)?.into_iter().map(|profile| {
        let names = known.intern(profile.names)?;
        let clang = clang.cloned();
        Ok(NamedCounts::from_raw(
            profile.version,
            profile.functions,
            names,
            clang,
        ))
    });
    profiles.collect()
}
