//! The counts of one code object, from its raw profiles, without llvm-profdata.

use std::collections::btree_map::Entry;
use std::path::Path;

use anyhow::{Context, Result};
use rocov::format::profraw::{CountsByFunction, Sum};

use crate::support::mmap;

/// The sums of the counts of a code object's functions.
#[derive(Debug)]
pub(crate) struct ProfileCounts {
    /// The number of the version of the raw profiles.
    pub(crate) raw_version: u32,
    pub(crate) functions: CountsByFunction,
}

impl ProfileCounts {
    /// Adds up the raw profiles `paths` of one code object: at least one.
    ///
    /// # Errors
    ///
    /// Fails if a profile cannot be read, is damaged or is of other code than the first.
    pub(crate) fn of(paths: &[&Path]) -> Result<Self> {
        let failed = |path: &Path| format!("cannot read {}", path.display());
        let (first, more) = paths.split_first().context("no profile to add up")?;
        let mut sum = Sum::of(&mmap::map(first)?[..]).with_context(|| failed(first))?;
        let version = *sum.profile().header.version();
        let mut functions = CountsByFunction::new();
        for path in more {
            let profile = mmap::map(path)?;
            if version.is_single_byte() {
                // A sum of bytes would only tell that one of the profiles reached a block.
                let more = Sum::of(&profile[..]).and_then(|it| it.functions());
                add(&mut functions, more.with_context(|| failed(path))?)?;
            } else {
                sum.add(&profile).with_context(|| failed(path))?;
            }
        }
        let of_sum = sum.functions();
        add(&mut functions, of_sum.with_context(|| failed(first))?)?;
        Ok(Self {
            raw_version: version.layout().version,
            functions,
        })
    }
}

fn add(sums: &mut CountsByFunction, more: CountsByFunction) -> Result<()> {
    for (function, counts) in more {
        match sums.entry(function) {
            Entry::Vacant(place) => _ = place.insert(counts),
            Entry::Occupied(mut sum) => sum.get_mut().add(&counts)?,
        }
    }
    Ok(())
}
