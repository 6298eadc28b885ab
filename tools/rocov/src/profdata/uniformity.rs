//! Profiles from which llvm-cov tells the executions in which all lanes of a wave were active.
//!
//! clang 23 and later count them for each counter (raw version 11). A region's count can be a sum or a
//! difference of counters. That of its uniform counters is right only if at most one of the counters is
//! divergent (is larger than its uniform counter), and this one is added:
//! - A block that is not divergent runs with all lanes of a wave or with none. If it is taken away from
//!   another block, all lanes of each wave stay, or none.
//! - If a divergent block is taken away, or two of them are added, nobody knows which lanes of a wave are
//!   left or meet.
//!
//! llvm-cov evaluates the expressions. So a second profile tells which regions are known: there a divergent
//! counter has a number of its own, and any other is 0. The count of a region is 0 or one of these numbers if
//! the region is known.

use super::indexed_profile;
use crate::data::match_elfs::{MatchedCodeObject, MatchedElfs};
use crate::support::mmap;
use anyhow::{Context, Result};
use rocov::format::profraw::Sum;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The profiles of one code object.
#[derive(Debug, Clone)]
pub(crate) struct UniformityProfiles {
    /// The indexed profile of the uniform counters.
    pub(crate) uniform: PathBuf,
    /// The indexed profile of the marks.
    pub(crate) marks: PathBuf,
    /// The marks of divergent counters.
    divergent: HashSet<u64>,
}

impl UniformityProfiles {
    /// Returns whether the uniform count of a region is known. `mark` is the region's count in the profile
    /// of the marks.
    pub(crate) fn is_known(&self, mark: u64) -> bool {
        mark == 0 || self.divergent.contains(&mark)
    }
}

/// The profiles of the code objects that have uniform counters, by arch and identity. Writes them to
/// `directory`.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub(crate) fn profiles<'a>(
    matched: &MatchedElfs<'a>,
    directory: &Path,
) -> Result<BTreeMap<(&'a str, &'a str), UniformityProfiles>> {
    let mut profiles = BTreeMap::new();
    for (arch, objects) in &matched.archs {
        for (identity, object) in objects {
            let mut divergent = HashSet::new();
            let Some(written) = of_object(object, &mut divergent) else {
                continue;
            };
            let path = |kind| directory.join(format!("{arch}.{identity}.{kind}.profdata"));
            let paths = ["uniform", "marks"].map(path);
            for (path, bytes) in paths.iter().zip(written) {
                fs::write(path, bytes)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            let [uniform, marks] = paths;
            let of_object = UniformityProfiles {
                uniform,
                marks,
                divergent,
            };
            profiles.insert((*arch, *identity), of_object);
        }
    }
    Ok(profiles)
}

/// The profiles of uniform counters and of marks, as bytes; `None` if there are no uniform counters.
fn of_object(object: &MatchedCodeObject<'_>, divergent: &mut HashSet<u64>) -> Option<[Vec<u8>; 2]> {
    let paths = object.paths();
    let (first, more) = paths.split_first()?;
    let mut sum = Sum::of(&mmap::map(first).ok()?[..]).ok()?;
    for path in more {
        sum.add(&mmap::map(path).ok()?).ok()?;
    }
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    indexed_profile::write_uniform(&sum, |executions, uniform| {
        if uniform >= executions {
            return 0;
        }
        // xorshift64: small enough for sums of many, too many for an accident.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mark = 1 + (random >> 16);
        divergent.insert(mark);
        mark
    })
}
