//! The sides of branches that the compiler folded, as in `while (true)`.
//!
//! llvm-cov leaves these out of its figures, and does not export which they are: their count is 0,
//! as that of a side that did not run. But a folded side is the only one whose count is 0 in a
//! profile in which everything ran, and such a profile can be made.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use super::function::{Function, Key};
use super::model::Record;

/// The line that llvm-profdata writes in text before the counts of a function.
const COUNTERS: &str = "# Counter Values:";

/// The profile `text` (LLVM's text format) with other counts: none is 0, nor is any sum or
/// difference that a branch's count may be.
pub(crate) fn with_everything_run(text: &str) -> String {
    let mut changed = String::with_capacity(2 * text.len());
    let mut is_count = false;
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    for line in text.lines() {
        is_count = line == COUNTERS || (is_count && line.parse::<u64>().is_ok());
        if is_count && line != COUNTERS {
            // xorshift64: small enough for sums of many, too many for an accident.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let _ = writeln!(changed, "{}", 1 + (random >> 20));
        } else {
            changed += line;
            changed.push('\n');
        }
    }
    changed
}

/// The folded sides of functions, from an export with such a profile.
#[derive(Debug, Default)]
pub(crate) struct Folded(HashMap<Key, Vec<[bool; 2]>>);

impl Folded {
    /// Remembers a function, and the counts of its branches when everything runs.
    pub(crate) fn remember(&mut self, function: &Function, branches: &[[u64; 2]]) {
        let folded = branches.iter().map(|sides| sides.map(|count| count == 0));
        self.0.insert(function.key(), folded.collect());
    }

    /// Marks the folded sides of a record's function, which was just read and is nowhere else yet.
    pub(crate) fn mark(&self, record: &mut Record) {
        let folded = self.0.get(&record.function.key());
        let (Some(folded), Some(function)) = (folded, Arc::get_mut(&mut record.function)) else {
            return;
        };
        for (branch, folded) in function.branches.iter_mut().zip(folded) {
            branch.folded = *folded;
        }
    }
}
