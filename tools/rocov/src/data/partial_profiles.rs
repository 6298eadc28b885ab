//! Profiles that lack counts: librocov could not read all copies of the counters, and has recorded why.

use std::collections::BTreeMap;

use rocov::format::codeobject::sanitize_target;
use rocov::support::diagnostic::Diagnostic;

use super::ReportableData;
use super::matched_elfs::MatchedElfs;

/// The reasons why profiles are partial, by the arch and the identity of the code object.
pub(crate) type PartialProfiles<'a> = BTreeMap<(String, &'a str), &'a str>;

impl ReportableData {
    /// Finds the code objects among `matched` with partial profiles. Each has the first reason.
    pub(super) fn partial_profiles(&self, matched: &MatchedElfs<'_>) -> PartialProfiles<'_> {
        let mut partial = BTreeMap::new();
        let processes = self.registries.processes();
        for (_, process) in processes.filter(|(registry, _)| registry.is_named) {
            for load in &process.loads {
                let agent = process
                    .agents
                    .iter()
                    .find(|agent| agent.index == load.agent);
                if let (Some(reason), Some(agent), Some(identity)) =
                    (&load.partial, agent, load.code_object.as_deref())
                    && !self.builds.is_load_of_older(process, load)
                {
                    let arch = sanitize_target(&agent.name);
                    let objects = matched.archs.get(arch.as_str());
                    if objects.is_some_and(|objects| objects.contains_key(identity)) {
                        partial.entry((arch, identity)).or_insert(reason.as_str());
                    }
                }
            }
        }
        partial
    }
}

/// A line for each code object with partial profiles.
pub(super) fn lines(partial: &PartialProfiles<'_>) -> impl Iterator<Item = Diagnostic> {
    let partial = partial.iter();
    partial.map(|((arch, identity), reason)| {
        Diagnostic::without_step(format!(
            "the profiles of code object {identity} on {arch} are partial: {reason}"
        ))
    })
}
