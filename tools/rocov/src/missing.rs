//! What a report should have and has not: with gates, it is a failure and no zero.
//!
//! What was loaded is known from the registries and from the kept device ELFs: either may be lost
//! with the profiles.

use crate::components::Components;
use crate::data::{Builds, Kept, Told};
use crate::inputs::Inputs;
use crate::matching::Matching;
use crate::objects::{DeviceElf, ObjectFile};
use crate::words::count;
use rocov::codeobject::sanitize_target;
use std::collections::BTreeSet;

/// One line for each kind of thing that is not in the report of `matching`, though it ran or should
/// have run. `damaged` profiles were left out. What is of no arch of `archs`, unless that is empty, or
/// of no component that is asked for is not missing.
pub(crate) fn missing(
    inputs: &Inputs,
    matching: &Matching<'_>,
    archs: &[String],
    components: &Components,
    damaged: usize,
) -> Vec<String> {
    let mut missing = Vec::new();
    let mut left_out = |number: usize, what: &str| {
        if number > 0 {
            missing.push(format!("{} left out: see above", count(number, what)));
        }
    };
    left_out(inputs.data.sections.len(), "file of sections");
    left_out(inputs.data.damaged.len(), "directory");
    left_out(inputs.kept.refused.len(), "kept device ELF");
    left_out(matching.strangers(), "code object without a device ELF");
    left_out(damaged, "damaged profile");
    let damage = inputs.named.iter().map(|file| file.damage.len());
    left_out(damage.sum(), "damaged part of an object");

    // What is for optimization was said to have no coverage: it is not lost.
    let profiles = || inputs.data.device.iter().chain(&inputs.ir_level);
    let profiled: BTreeSet<_> = profiles().map(|it| it.identity.as_str()).collect();
    let is_asked = |arch: &str| archs.is_empty() || archs.iter().any(|it| it == arch);
    // A program is compiled for more archs than it runs on: of the others nothing is missing.
    let is_reported = |arch: &str| matching.archs.contains_key(arch);
    let unused = Kept::others(&inputs.data, &profiled);
    let mut said = BTreeSet::new();
    let kept = unused.iter().map(|file| (file, true));
    for (file, is_kept) in kept.chain(inputs.named.iter().map(|file| (file, false))) {
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
                missing.push(format!(
                    "code object {identity} in {} has no profile: it was never loaded, or its \
                     process was killed",
                    file.path.display()
                ));
            }
        }
    }

    let told = inputs.data.told();
    let unread = told.unread.iter();
    missing.extend(unread.map(|error| format!("what was loaded is not known: {error:#}")));
    // A process that launched it is not answered for by one that did not.
    let counted = profiles().filter(|it| !it.is_of_zeros());
    let profiled: BTreeSet<_> = counted.map(|it| (&*it.arch, &*it.identity)).collect();
    for (arch, identity) in loaded(told, &inputs.data.builds) {
        if is_asked(&arch)
            && components.have(identity)
            && !said.contains(identity)
            && !profiled.contains(&(&*arch, identity))
        {
            missing.push(format!(
                "code object {identity} was loaded on {arch}, as the kernel registry says, and has no \
                 profile: its process was killed, or the profile was removed"
            ));
        }
    }
    missing
}

/// The code objects with counters that were loaded from builds that are taken: of each the agent, as in
/// the names of profiles, and the identity.
fn loaded<'a>(told: &'a Told, builds: &Builds) -> BTreeSet<(String, &'a str)> {
    let asked = || told.registries.iter().filter(|it| it.is_asked);
    let objects = asked().flat_map(|registry| &registry.code_objects);
    let instrumented = objects.filter(|it| it.instrumented);
    let instrumented: BTreeSet<_> = instrumented.map(|it| it.identity.as_str()).collect();
    let mut loaded = BTreeSet::new();
    for process in asked().flat_map(|registry| &registry.processes) {
        for load in &process.loads {
            let host = process.host(load);
            let agent = process.agents.iter().find(|it| it.index == load.agent);
            if let (Some(agent), Some(identity)) = (agent, load.code_object.as_deref())
                && instrumented.contains(identity)
                && host.is_none_or(|host| !builds.is_older(&host.path, &host.build))
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
    processor.starts_with("gfx").then_some(processor)
}
