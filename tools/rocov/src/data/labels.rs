//! The choice of labels: the counts of some tests only.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result};
use rocov::store::Label;
use rocov::support::diagnostic::fail;

use super::matched_elfs::{MatchedCodeObject, MatchedElfs};
use super::{DeviceProfile, ReportableData};
use crate::support::failure::failure;

/// The most labels that a message lists.
const MOST: usize = 8;

/// The name of a label, or a glob. In a glob, `*` stands for a part of a name, and `**` for several names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelPattern(String);

impl LabelPattern {
    /// Returns whether this is the name of one of the labels that share `label`, or a glob that matches it.
    fn matches(&self, label: Option<&Label>) -> bool {
        let names = label.map(Label::shared).unwrap_or_default();
        let mut names = names.iter().map(ToString::to_string);
        names.any(|name| name == self.0 || fast_glob::glob_match(&self.0, &name))
    }
}

impl FromStr for LabelPattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for LabelPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ReportableData {
    /// The error that no profile has a label.
    pub(crate) fn no_labels(&self) -> Error {
        let profiles = self
            .files
            .device
            .iter()
            .filter(|profile| !profile.is_of_zeros);
        if profiles.into_iter().any(DeviceProfile::is_merged) {
            return failure!(
                "no labelled profiles in {self}";
                "`rocov merge` has added up the counts of all labels: name the directories that were merged, or \
                 merge them with --per-test"
            );
        }
        failure!("no labelled profiles in {self}"; "run each test under `rocov run --label NAME`")
    }
}

impl MatchedElfs<'_> {
    /// Takes the counts of the labels that `patterns` match, if there are any. All other code of `data` has
    /// counts of 0, as in a run of only these tests.
    ///
    /// # Errors
    ///
    /// Fails if a pattern matches no label.
    pub(crate) fn select_labels(
        &mut self,
        patterns: &[LabelPattern],
        data: &ReportableData,
    ) -> Result<()> {
        if patterns.is_empty() {
            return Ok(());
        }
        let labels = self.labels();
        let is_idle =
            |pattern: &&LabelPattern| !labels.iter().any(|label| pattern.matches(label.as_deref()));
        if let Some(pattern) = patterns.iter().find(is_idle) {
            let known: BTreeSet<_> = labels
                .into_iter()
                .flatten()
                .flat_map(Label::shared)
                .map(|pattern| pattern.to_string())
                .collect();
            if known.is_empty() {
                return Err(data.no_labels());
            }
            let more = match known.len().saturating_sub(MOST) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let known: Vec<_> = known.into_iter().take(MOST).collect();
            fail!(
                "no profile in {data} has the label {pattern}";
                "use one of these labels: {}{more}", known.join(", ")
            );
        }
        for object in self.archs.values_mut().flat_map(|arch| arch.values_mut()) {
            object.select_labels(patterns);
        }
        Ok(())
    }
}

impl MatchedCodeObject<'_> {
    fn select_labels(&mut self, patterns: &[LabelPattern]) {
        let is_wanted =
            |label: Option<&Label>| patterns.iter().any(|pattern| pattern.matches(label));
        let wanted: Vec<_> = self
            .profiles
            .iter()
            .copied()
            .filter(|profile| profile.is_of_zeros || is_wanted(profile.label.as_ref()))
            .collect();
        match wanted.is_empty() {
            true => self.is_silent = true,
            false => self.profiles = wanted,
        }
    }
}
