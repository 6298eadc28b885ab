//! Profiles that give the executions that had all lanes of a wave active.
//!
//! clang 23 and later count these executions in a second counter for each counter (raw version 11): its
//! uniform counter. A counter is divergent if it is larger than its uniform counter.
//!
//! The count of a region can be a sum or a difference of counters. The sum or difference of their uniform
//! counters is the uniform count of the region only if at most one of them is divergent, and is added:
//! - A counter that is not divergent belongs to a block that all lanes of a wave run, or none. With or without
//!   the executions of this block, the other executions keep their lanes.
//! - After a divergent block is subtracted, or two of them are added, the counters do not show which lanes of
//!   a wave are left or come together.
//!
//! A second profile, of marks, finds the regions that have a uniform count: in it, each divergent counter has
//! a random number and every other counter is 0. A region has a uniform count if it evaluates to 0 or to one
//! of these numbers.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use super::{BinaryCounts, MergedProfiles, ProfileCounts};

/// The profiles of one code object.
#[derive(Debug)]
pub(crate) struct UniformityProfiles {
    /// The uniform counters.
    pub(crate) uniform: ProfileCounts,
    /// The marks.
    pub(crate) marks: ProfileCounts,
    /// The marks of divergent counters.
    divergent: HashSet<u64>,
}

impl UniformityProfiles {
    /// Returns whether a region has a uniform count. `mark` is the region's count in the profile of marks.
    pub(crate) fn is_known(&self, mark: u64) -> bool {
        mark == 0 || self.divergent.contains(&mark)
    }
}

/// The profiles of the code objects that have uniform counters, by arch and identity.
pub(crate) fn profiles<'a>(
    merged: &'a MergedProfiles<'_>,
) -> BTreeMap<(&'a str, &'a str), Arc<UniformityProfiles>> {
    let mut profiles = BTreeMap::new();
    for arch in &merged.archs {
        for object in &arch.objects {
            let BinaryCounts::Summed(counts) = &object.counts else {
                continue;
            };
            if let Some(object_profiles) = object_profiles(counts) {
                profiles.insert((arch.name, object.identity), Arc::new(object_profiles));
            }
        }
    }
    profiles
}

/// The profiles of uniform counters and of marks; `None` if there are no uniform counters.
fn object_profiles(counts: &ProfileCounts) -> Option<UniformityProfiles> {
    let mut functions = counts.functions.values();
    if counts.version.is_single_byte() || functions.all(|function| function.uniform.is_empty()) {
        return None;
    }
    let mut divergent = HashSet::new();
    let marks = counts.with_counters(|counts| {
        let blocks = counts.counters.iter().zip(&counts.uniform);
        let marks = blocks.map(|(executions, uniform)| {
            if uniform >= executions {
                return 0;
            }
            let mark = mark(divergent.len());
            divergent.insert(mark);
            mark
        });
        marks.collect()
    });
    Some(UniformityProfiles {
        uniform: counts.with_counters(|counts| counts.uniform.clone()),
        marks,
        divergent,
    })
}

/// A number of at most 48 bits, so that a sum of many does not overflow. Sums and differences of several
/// marks practically never give another mark.
fn mark(number: usize) -> u64 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    1 + (hasher.hash_one(number) >> 16)
}
