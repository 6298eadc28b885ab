//! Profiles from which llvm-cov computes the executions that had all lanes of a wave active.
//!
//! clang 23 and later count these executions in a second counter for each counter (raw version 11): its
//! uniform counter. A counter is divergent if it is larger than its uniform counter.
//!
//! The count of a region can be a sum or a difference of counters. The sum or difference of their uniform
//! counters is the uniform count of the region only if at most one of them is divergent, and is added:
//! - A counter that is not divergent belongs to a block that all lanes of a wave run, or none. With or without
//!   the executions of this block, the other executions keep their lanes.
//! - After a divergent block is subtracted, or two of them are added, the counters do not tell which lanes of
//!   a wave are left or come together.
//!
//! llvm-cov evaluates these sums. A second profile, of marks, finds the regions that have a uniform count: in
//! it, each divergent counter has a random number and every other counter is 0. A region has a uniform count
//! if it evaluates to 0 or to one of these numbers.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{indexed_profile, sum};
use crate::data::match_elfs::{MatchedCodeObject, MatchedElfs};

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
    /// Returns whether a region has a uniform count. `mark` is the region's count in the profile of marks.
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
    indexed_profile::write_uniform(&sum(object)?, |executions, uniform| {
        if uniform >= executions {
            return 0;
        }
        let mark = mark(divergent.len());
        divergent.insert(mark);
        mark
    })
}

/// A number of at most 48 bits, so that a sum of many does not overflow. Sums and differences of several
/// marks practically never give another mark.
fn mark(number: usize) -> u64 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    1 + (hasher.hash_one(number) >> 16)
}
