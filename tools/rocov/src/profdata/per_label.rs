//! The profiles of each label, merged: the counts of single tests.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use rocov::store::Label;

use super::MergedProfiles;
use crate::data::DataDirectory;
use crate::data::match_elfs::MatchedElfs;
use crate::llvm::LlvmTools;
use crate::term::warnings::Warnings;

/// The name of profiles without a label.
pub(crate) const UNLABELLED: &str = "(no label)";

/// The counts under one label, or without one.
pub(crate) struct MergedTest<'a> {
    pub(crate) name: String,
    /// The other labels that some of the counts may be of: they were open at the same time.
    pub(crate) shared_with: Vec<String>,
    pub(crate) merged: MergedProfiles<'a>,
}

/// The labels of the profiles.
///
/// # Errors
///
/// Fails if no profile has a label.
pub(crate) fn labels<'a>(
    matched: &MatchedElfs<'a>,
    data: &DataDirectory,
) -> Result<BTreeSet<Option<&'a Label>>> {
    let labels = matched.labels();
    if labels.iter().all(Option::is_none) {
        bail!("no labelled profiles in {data}: run each test under `rocov run --label NAME`");
    }
    Ok(labels)
}

/// The tests that share profiles of this label, in order; `None` for profiles without one.
pub(crate) fn sharing(label: Option<&Label>) -> BTreeSet<Option<Label>> {
    match label {
        Some(label) => label.shared().into_iter().map(Some).collect(),
        None => BTreeSet::from([None]),
    }
}

/// The name of a test.
pub(crate) fn name(test: Option<&Label>) -> String {
    test.map_or(UNLABELLED.to_owned(), ToString::to_string)
}

/// Merges the profiles of each test. A profile that several tests share counts for each.
///
/// # Errors
///
/// Fails if no profile has a label, or a tool fails.
pub(crate) fn merged<'a>(
    matched: &MatchedElfs<'a>,
    data: &DataDirectory,
    installed: &LlvmTools,
    warnings: &mut Warnings,
) -> Result<Vec<MergedTest<'a>>> {
    let mut others: BTreeMap<Option<Label>, BTreeSet<Option<Label>>> = BTreeMap::new();
    for label in labels(matched, data)? {
        let tests = sharing(label);
        for test in &tests {
            let more = tests.iter().filter(|other| *other != test).cloned();
            others.entry(test.clone()).or_default().extend(more);
        }
    }
    let mut merge = |(test, others): (Option<Label>, BTreeSet<Option<Label>>)| {
        let mut matched = matched.of_labels(|label| sharing(label).contains(&test));
        let merged = MergedProfiles::of(&mut matched, installed, warnings)?;
        Ok(MergedTest {
            name: name(test.as_ref()),
            shared_with: others.iter().map(|it| name(it.as_ref())).collect(),
            merged,
        })
    };
    others.into_iter().map(&mut merge).collect()
}
