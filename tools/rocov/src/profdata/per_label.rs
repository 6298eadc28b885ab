//! The profiles of each label: those of single tests.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rocov::store::Label;

use crate::data::ReportableData;
use crate::data::matched_elfs::MatchedElfs;

/// The name of profiles without a label.
pub(crate) const UNLABELLED: &str = "(no label)";

/// The profiles under one label, or without one.
pub(crate) struct TestProfiles<'a> {
    pub(crate) name: String,
    /// The other labels that some of the counts may be of: they were open at the same time.
    pub(crate) shared_with: Vec<String>,
    pub(crate) matched: MatchedElfs<'a>,
}

/// The profiles under one label. Labels that share profiles are one here.
pub(crate) struct LabelProfiles<'a> {
    pub(crate) name: String,
    pub(crate) matched: MatchedElfs<'a>,
}

/// The labels of the profiles.
///
/// # Errors
///
/// Fails if no profile has a label.
pub(crate) fn labels<'a>(
    matched: &MatchedElfs<'a>,
    data: &ReportableData,
) -> Result<BTreeSet<Option<&'a Label>>> {
    let labels = matched.labels();
    if labels.iter().all(Option::is_none) {
        return Err(data.no_labels());
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

/// The profiles of each test. A profile that several tests share counts for each.
///
/// # Errors
///
/// Fails if no profile has a label.
pub(crate) fn tests<'a>(
    matched: &MatchedElfs<'a>,
    data: &ReportableData,
) -> Result<Vec<TestProfiles<'a>>> {
    let mut others: BTreeMap<Option<Label>, BTreeSet<Option<Label>>> = BTreeMap::new();
    for label in labels(matched, data)? {
        let tests = sharing(label);
        for test in &tests {
            let more = tests.iter().filter(|other| *other != test).cloned();
            others.entry(test.clone()).or_default().extend(more);
        }
    }
    let mut profiles = matched.grouped(sharing);
    let tests = others.into_iter().filter_map(|(test, others)| {
        Some(TestProfiles {
            name: name(test.as_ref()),
            shared_with: others.iter().map(|other| name(other.as_ref())).collect(),
            matched: profiles.remove(&test)?,
        })
    });
    Ok(tests.collect())
}

/// The profiles of each label, each in one place. Those without a label are left out.
pub(crate) fn apart<'a>(matched: &MatchedElfs<'a>) -> Vec<LabelProfiles<'a>> {
    let profiles = matched.grouped(|label| BTreeSet::from([label]));
    let labelled = profiles.into_iter().filter_map(|(label, matched)| {
        let name = label?.to_string();
        Some(LabelProfiles { name, matched })
    });
    labelled.collect()
}
