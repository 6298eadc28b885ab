//! What single tests counted: the profiles of each label.

use crate::data::DataDirectory;
use crate::llvm_tools::Installed;
use crate::matching::Matching;
use crate::merged::Merged;
use anyhow::{Result, bail};
use rocov::output::Label;
use std::collections::{BTreeMap, BTreeSet};

/// What stands for the label of profiles that have none.
pub(crate) const UNLABELLED: &str = "(no label)";

/// What was counted under one label, or without one.
pub(crate) struct Test<'a> {
    pub(crate) name: String,
    /// The other labels that some of it may be of: they were open at the same time.
    pub(crate) shared_with: Vec<String>,
    pub(crate) merged: Merged<'a>,
}

/// The labels whose profiles are merged together, by what they are called.
///
/// # Errors
///
/// When no profile has a label.
pub(crate) fn labels<'a>(
    matching: &Matching<'a>,
    data: &DataDirectory,
) -> Result<BTreeSet<Option<&'a Label>>> {
    let labels = matching.labels();
    if labels.iter().all(Option::is_none) {
        bail!("no labelled profiles in {data}: run each test under `rocov run --label NAME`");
    }
    Ok(labels)
}

/// The tests that share what has this label, in order; `None` for what has none.
pub(crate) fn sharing(label: Option<&Label>) -> BTreeSet<Option<Label>> {
    match label {
        Some(label) => label.shared().into_iter().map(Some).collect(),
        None => BTreeSet::from([None]),
    }
}

/// What a test is called.
pub(crate) fn name(test: Option<&Label>) -> String {
    test.map_or(UNLABELLED.to_owned(), ToString::to_string)
}

/// The profiles of each test, merged: those that it shares with others are each one's.
///
/// # Errors
///
/// When no profile has a label, or a tool fails.
pub(crate) fn merged<'a>(
    matching: &Matching<'a>,
    data: &DataDirectory,
    installed: &Installed,
) -> Result<Vec<Test<'a>>> {
    let mut others: BTreeMap<Option<Label>, BTreeSet<Option<Label>>> = BTreeMap::new();
    for label in labels(matching, data)? {
        let tests = sharing(label);
        for test in &tests {
            let more = tests.iter().filter(|other| *other != test).cloned();
            others.entry(test.clone()).or_default().extend(more);
        }
    }
    let test = |(test, others): (Option<Label>, BTreeSet<Option<Label>>)| {
        let mut matching = matching.of_labels(|label| sharing(label).contains(&test));
        let (merged, _) = Merged::of(&mut matching, installed)?;
        Ok(Test {
            name: name(test.as_ref()),
            shared_with: others.iter().map(|it| name(it.as_ref())).collect(),
            merged,
        })
    };
    others.into_iter().map(test).collect()
}
