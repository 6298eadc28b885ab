//! The counts of one code object, from its raw profiles, without llvm-profdata.

use std::collections::btree_map::Entry;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rocov::format::profraw::{
    CountsByFunction, FunctionCounts, HostProfile, MAX_COUNT, ProfileError, Sum, Version,
};
use rocov::support::diagnostic::fail;

use super::indexed_reader;
use crate::data::profile_header::is_indexed;
use crate::support::mmap;

/// The counts of a code object, or of programs on the host.
#[derive(Debug, Clone)]
pub(crate) enum BinaryCounts {
    /// Sums that rocov evaluates itself.
    Summed(Arc<ProfileCounts>),
    /// An indexed profile for llvm-cov, of profiles that rocov cannot add up.
    Indexed(PathBuf),
}

/// The sums of the counts of a code object's functions.
#[derive(Debug)]
pub(crate) struct ProfileCounts {
    /// The version of the raw profiles.
    pub(crate) version: Version,
    pub(crate) functions: CountsByFunction,
}

impl ProfileCounts {
    /// Adds up the raw profiles `paths` of one code object: at least one.
    ///
    /// # Errors
    ///
    /// Fails if a profile cannot be read, is damaged or is of other code than the first.
    pub(crate) fn read(paths: &[&Path]) -> Result<Self> {
        let failed = |path: &Path| format!("cannot read {}", path.display());
        let (first, more) = paths.split_first().context("no raw profile is given")?;
        let mut sum = Sum::new(mmap::read(first)?).with_context(|| failed(first))?;
        let version = *sum.profile().header.version();
        let mut functions = CountsByFunction::new();
        for path in more {
            let profile = mmap::read(path)?;
            if version.is_single_byte() {
                // A sum of bytes would only show that one of the profiles reached a block.
                let more = Sum::new(profile).and_then(|more| {
                    match more.profile().header.version().word() == version.word() {
                        true => more.functions(),
                        false => Err(ProfileError::OtherCode),
                    }
                });
                add(&mut functions, more.with_context(|| failed(path))?)?;
            } else {
                sum.add(&profile).with_context(|| failed(path))?;
            }
        }
        let mut sums = sum.functions().with_context(|| failed(first))?;
        add(&mut sums, functions)?;
        Ok(Self {
            version,
            functions: sums,
        })
    }

    /// Adds up the raw and indexed profiles `paths` of several programs, which may share functions: at least one.
    ///
    /// # Errors
    ///
    /// Fails if a profile cannot be read, is damaged or does not fit to the first.
    pub(crate) fn read_programs(paths: &[&Path]) -> Result<Self> {
        let mut all: Option<Self> = None;
        for path in paths {
            let failed = || format!("cannot read {}", path.display());
            for of_program in programs(path).with_context(failed)? {
                match &mut all {
                    Some(sums) => sums.add_program(of_program).with_context(failed)?,
                    None => all = Some(of_program),
                }
            }
        }
        all.context("no raw profile is given")
    }

    /// Adds the counts of another program.
    fn add_program(&mut self, more: Self) -> Result<()> {
        let form = |counts: &Self| {
            let has_bitmaps = counts
                .functions
                .values()
                .any(|function| !function.bitmap.is_empty());
            (
                counts.version.is_single_byte(),
                has_bitmaps.then(|| counts.version.has_new_bitmaps()),
            )
        };
        let (own, others) = (form(self), form(&more));
        let fits =
            own.0 == others.0 && (own.1.is_none() || others.1.is_none() || own.1 == others.1);
        if !fits {
            fail!(
                "its counters are of a different kind from those of the first profile";
                "compile all host code with one clang and one set of flags"
            );
        }
        if own.1.is_none() {
            self.version = more.version;
        }
        add(&mut self.functions, more.functions)
    }

    /// Counts of 0 of the functions.
    pub(crate) fn zeros(&self) -> Self {
        self.map(|counts| FunctionCounts {
            counters: vec![0; counts.counters.len()],
            uniform: vec![0; counts.uniform.len()],
            bitmap: vec![0; counts.bitmap.len()],
            ..FunctionCounts::default()
        })
    }

    /// The counts times `factor`, at most [`MAX_COUNT`]: an estimate, if one in `factor` executions counts.
    pub(crate) fn scaled(&self, factor: u64) -> Self {
        let scaled = |counts: &[u64]| {
            let counts = counts.iter();
            counts
                .map(|count| count.saturating_mul(factor).min(MAX_COUNT))
                .collect()
        };
        self.map(|counts| FunctionCounts {
            counters: scaled(&counts.counters),
            uniform: scaled(&counts.uniform),
            bitmap: counts.bitmap.clone(),
            ..FunctionCounts::default()
        })
    }

    /// The counts of the functions that `threads` knows the threads of a program of, in programs: rounded up. The other
    /// counts stay.
    pub(super) fn per_program(&self, threads: impl Fn((u64, u64)) -> Option<NonZeroU64>) -> Self {
        let functions = self.functions.iter().map(|(key, function)| {
            let mut function = function.clone();
            if let Some(threads) = threads(*key) {
                let counters = function.counters.iter_mut();
                counters.for_each(|count| *count = count.div_ceil(threads.get()));
            }
            (*key, function)
        });
        Self {
            version: self.version,
            functions: functions.collect(),
        }
    }

    /// Counts of the same functions, with the counters that `counters` gives for their counts.
    pub(super) fn with_counters(
        &self,
        mut counters: impl FnMut(&FunctionCounts) -> Vec<u64>,
    ) -> Self {
        self.map(|counts| FunctionCounts {
            counters: counters(counts),
            bitmap: counts.bitmap.clone(),
            ..FunctionCounts::default()
        })
    }

    /// The functions with the counts that `counts` makes of theirs.
    fn map(&self, mut counts: impl FnMut(&FunctionCounts) -> FunctionCounts) -> Self {
        let functions = self.functions.iter();
        Self {
            version: self.version,
            functions: functions
                .map(|(key, function)| (*key, counts(function)))
                .collect(),
        }
    }
}

/// The reason why rocov leaves the raw profile at `path` to LLVM's tools: a form that these may read. `None` if
/// rocov reads it.
///
/// # Errors
///
/// Fails if the profile is damaged.
pub(super) fn unread(path: &Path) -> Result<Option<ProfileError>> {
    let profile = mmap::read(path)?;
    match Sum::new(profile).and_then(|sum| sum.functions()) {
        Ok(_) => Ok(None),
        Err(reason @ (ProfileError::MoreParts { .. } | ProfileError::UnknownVersion { .. })) => {
            Ok(Some(reason))
        }
        Err(error) => Err(error.into()),
    }
}

/// The counts in the profile of host code at `path`, raw or indexed.
fn programs(path: &Path) -> Result<Vec<ProfileCounts>> {
    let file = mmap::read(path)?;
    if is_indexed(path) {
        let counts = indexed_reader::read(&file)?;
        return Ok(vec![ProfileCounts {
            version: counts.version,
            functions: counts.functions,
        }]);
    }
    let profiles = HostProfile::all(&file)?.into_iter();
    let counts = profiles.map(|profile| ProfileCounts {
        version: profile.version,
        functions: profile.functions,
    });
    Ok(counts.collect())
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
