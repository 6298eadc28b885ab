//! Finds the code that a report should have and lacks. A gate fails on it, and does not count it as zero.
//!
//! The registries and the kept device ELFs have what was loaded: either may be lost with the profiles.

use std::collections::BTreeSet;

use rocov::diagnostic;
use rocov::format::codeobject::{is_processor, sanitize_target};
use rocov::support::diagnostic::Diagnostic;

use super::components::Components;
use super::device_elfs::{DeviceElf, ObjectFile};
use super::matched_elfs::MatchedElfs;
use super::{Builds, Registries, ReportableData};
use crate::term::plural::count;
use crate::term::remedy::explained;

impl ReportableData {
    /// Returns a line for each thing that ran, or should have run, and is not in a report of `matched`. Only
    /// code of `archs`, or of all if there are none, and of `components` can be missing.
    pub(crate) fn missing(
        &self,
        matched: &MatchedElfs<'_>,
        archs: &[String],
        components: &Components,
    ) -> Vec<Diagnostic> {
        let mut missing = Vec::new();
        let mut left_out = |number: usize, what: &str| {
            if number > 0 {
                missing.push(diagnostic!("{} left out", count(number, what); "see above"));
            }
        };
        left_out(self.files.sections.len(), "file of sections");
        left_out(self.files.damaged.len(), "directory");
        left_out(self.kept.refused.len(), "kept device ELF");
        left_out(matched.strangers(), "code object without a device ELF");
        left_out(matched.damaged, "damaged profile");
        let damage = self.named.iter().map(|file| file.damage.len());
        left_out(damage.sum(), "damaged part of an object");
        let partial = self.partial_profiles(matched).len();
        if partial > 0 {
            let objects = count(partial, "code object");
            missing.push(diagnostic!("{objects} with partial profiles"; "see above"));
        }
        let non_atomic = matched.non_atomic().len();
        if non_atomic > 0 {
            let objects = count(non_atomic, "code object");
            missing.push(diagnostic!("{objects} with counts that are too low"; "see above"));
        }

        // An earlier warning covers profiles for optimization: they are not missing.
        let profiles = || self.files.device.iter().chain(&self.ir_level);
        let profiled: BTreeSet<_> = profiles()
            .map(|profile| profile.identity.as_str())
            .collect();
        let is_asked = |arch: &str| archs.is_empty() || archs.iter().any(|asked| asked == arch);
        // A program is compiled for more archs than it runs on: an arch that did not run lacks nothing.
        let is_reported = |arch: &str| matched.archs.contains_key(arch);
        let unused = self.other_elfs(&profiled);
        let mut said = BTreeSet::new();
        let kept = unused.iter().map(|file| (file, true));
        for (file, is_kept) in kept.chain(self.named.iter().map(|file| (file, false))) {
            for elf in &file.elfs {
                let identity = elf.identity.as_str();
                let is_expected = target(file, elf).is_none_or(|arch| {
                    if is_kept {
                        is_asked(arch)
                    } else {
                        is_reported(arch)
                    }
                });
                if is_expected
                    && components.have(identity)
                    && !profiled.contains(identity)
                    && file.is_instrumented(elf)
                    && said.insert(identity)
                {
                    missing.push(diagnostic!(
                        "code object {identity} in {} has no profile: it was never loaded, or its process was killed",
                        file.path.display(); "run the program again"
                    ));
                }
            }
        }

        let registries = &self.registries;
        let unread = registries.unread.iter();
        missing.extend(
            unread.map(|error| explained(error).within("the loaded code objects are not known")),
        );
        // A profile of zeros does not replace that of a process that launched the code.
        let counted = profiles().filter(|profile| !profile.is_of_zeros);
        let profiled: BTreeSet<_> = counted
            .map(|profile| (&*profile.arch, &*profile.identity))
            .collect();
        for (arch, identity) in loaded(registries, &self.builds) {
            if is_asked(&arch)
                && components.have(identity)
                && !said.contains(identity)
                && !profiled.contains(&(&*arch, identity))
            {
                missing.push(diagnostic!(
                    "code object {identity} was loaded on {arch}, according to the kernel registry, but has no \
                     profile: its process was killed, or the profile was removed"; "run the program again"
                ));
            }
        }
        missing
    }
}

/// The code objects with counters that processes have loaded, except from older builds. Each comes with the
/// name of its agent, as in the names of profiles.
fn loaded<'a>(registries: &'a Registries, builds: &Builds) -> BTreeSet<(String, &'a str)> {
    let named = || {
        registries
            .registries
            .iter()
            .filter(|registry| registry.is_named)
    };
    let objects = named().flat_map(|registry| &registry.code_objects);
    let instrumented: BTreeSet<_> = objects
        .filter(|object| object.instrumented)
        .map(|object| object.identity.as_str())
        .collect();
    let mut loaded = BTreeSet::new();
    for process in named().flat_map(|registry| &registry.processes) {
        for load in &process.loads {
            let agent = process
                .agents
                .iter()
                .find(|agent| agent.index == load.agent);
            if let (Some(agent), Some(identity)) = (agent, load.code_object.as_deref())
                && instrumented.contains(identity)
                && !builds.is_load_of_older(process, load)
            {
                loaded.insert((sanitize_target(&agent.name), identity));
            }
        }
    }
    loaded
}

/// The arch of a device ELF, without features: of its bundle, else of a kept file's name.
fn target<'a>(file: &'a ObjectFile, elf: &'a DeviceElf) -> Option<&'a str> {
    let name = || file.path.file_name()?.to_str()?.split('.').next();
    let target = elf.target.as_deref().or_else(name)?;
    let processor = target.split([':', '-']).next()?;
    is_processor(processor).then_some(processor)
}
