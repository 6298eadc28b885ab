//! The summary of an indexed profile, by which compilers distinguish hot code from cold.

use std::collections::BTreeMap;

use rocov::format::profraw::FunctionCounts;

/// The shares of all executions that the summary has a line for, in millionths
/// (`ProfileSummaryBuilder::DefaultCutoffs`).
const CUTOFFS: [u64; 16] = [
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
    950_000, 990_000, 999_000, 999_900, 999_990, 999_999,
];

/// The summary of these functions' counters: the words that
/// `IndexedInstrProf::Summary` has, and `ProfileSummaryBuilder` computes.
pub(super) fn words<'a>(functions: impl Iterator<Item = &'a FunctionCounts>) -> Vec<u64> {
    let mut frequencies: BTreeMap<u64, u64> = BTreeMap::new();
    let [mut number, mut entries, mut inner, mut total] = [0_u64; 4];
    for counts in functions {
        number += 1;
        for (place, count) in counts.counters.iter().enumerate() {
            let largest = if place == 0 { &mut entries } else { &mut inner };
            *largest = (*largest).max(*count);
            total = total.wrapping_add(*count);
            *frequencies.entry(*count).or_default() += 1;
        }
    }
    let blocks: u64 = frequencies.values().sum();
    let largest = frequencies.keys().next_back().copied().unwrap_or_default();
    let fields = [number, blocks, entries, largest, inner, total];
    let mut words = vec![fields.len() as u64, CUTOFFS.len() as u64];
    words.extend(fields);
    let mut descending = frequencies.into_iter().rev();
    let [mut least, mut seen, mut executions] = [0_u64; 3];
    for cutoff in CUTOFFS {
        let wanted = u128::from(total) * u128::from(cutoff) / 1_000_000;
        while u128::from(executions) < wanted
            && let Some((count, blocks)) = descending.next()
        {
            least = count;
            executions = executions.wrapping_add(count.wrapping_mul(blocks));
            seen += blocks;
        }
        words.extend([cutoff, least, seen]);
    }
    words
}
