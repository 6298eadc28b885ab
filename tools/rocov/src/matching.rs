//! Which profile belongs to which device ELF: those of one identity.

use crate::objects::{DeviceElf, ObjectFile};
use crate::profiles::DeviceProfile;
use crate::words::count;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Profiles and device ELFs brought together, and what is left of both.
pub(crate) struct Matching<'a> {
    /// What belongs together, by arch.
    pub(crate) archs: BTreeMap<&'a str, Matched<'a>>,
    /// Profiles whose device ELF is in none of the files.
    strangers: BTreeMap<&'a str, Vec<&'a DeviceProfile>>,
    /// Device ELFs without a profile, by the file they are in.
    unused: Vec<(&'a ObjectFile, Vec<&'a DeviceElf>)>,
    /// Profiles that cannot be read, and why.
    damaged: Vec<(&'a DeviceProfile, anyhow::Error)>,
}

/// What belongs to one arch.
#[derive(Default)]
pub(crate) struct Matched<'a> {
    /// Profiles whose device ELF is known.
    pub(crate) profiles: Vec<&'a DeviceProfile>,
    /// By identity, so that each is there once though several files may hold it.
    pub(crate) elfs: BTreeMap<&'a str, (&'a ObjectFile, &'a DeviceElf)>,
}

impl<'a> Matching<'a> {
    /// Looks for the device ELFs of `profiles` in `files`.
    pub(crate) fn of(profiles: &'a [DeviceProfile], files: &'a [ObjectFile]) -> Self {
        let mut elfs = BTreeMap::new();
        for file in files {
            for elf in &file.elfs {
                elfs.entry(elf.identity.as_str()).or_insert((file, elf));
            }
        }
        let mut archs: BTreeMap<_, Matched<'_>> = BTreeMap::new();
        let mut strangers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for profile in profiles {
            let identity = profile.identity.as_str();
            if let Some(elf) = elfs.get(identity) {
                let matched = archs.entry(profile.arch.as_str()).or_default();
                matched.profiles.push(profile);
                matched.elfs.insert(identity, *elf);
            } else {
                strangers.entry(identity).or_default().push(profile);
            }
        }
        let profiled: BTreeSet<_> = profiles
            .iter()
            .map(|profile| profile.identity.as_str())
            .collect();
        let has_no_profile = |elf: &&DeviceElf| !profiled.contains(elf.identity.as_str());
        let unused = files
            .iter()
            .map(|file| (file, file.elfs.iter().filter(has_no_profile).collect()))
            .filter(|(_, elfs): &(_, Vec<_>)| !elfs.is_empty())
            .collect();
        Self {
            archs,
            strangers,
            unused,
            damaged: Vec::new(),
        }
    }

    /// Takes out the profiles that `check` refuses. A device ELF that is left without a profile goes
    /// with them: its lines would be reported as not run, which nobody knows.
    pub(crate) fn leave_out_damaged(&mut self, check: impl Fn(&Path) -> anyhow::Result<()>) {
        let damaged = &mut self.damaged;
        self.archs.retain(|_, matched| {
            matched.profiles.retain(|profile| {
                check(&profile.path)
                    .map_err(|error| damaged.push((profile, error)))
                    .is_ok()
            });
            let whole: BTreeSet<_> = matched
                .profiles
                .iter()
                .map(|profile| profile.identity.as_str())
                .collect();
            matched.elfs.retain(|identity, _| whole.contains(identity));
            !matched.profiles.is_empty()
        });
    }

    /// Whether a profile was taken out as damaged.
    pub(crate) fn has_damaged(&self) -> bool {
        !self.damaged.is_empty()
    }

    /// One line for each thing that is not in the report, though it could be expected there.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let strangers = self.strangers.iter().map(|(identity, profiles)| {
            format!(
                "left out: {} ({} of {} code object {identity}): its device ELF is in none of the \
                 given objects",
                profiles[0].path.display(),
                count(profiles.len(), "profile"),
                profiles[0].arch,
            )
        });
        let unused = self.unused.iter().map(|(file, elfs)| {
            let targets: BTreeSet<_> = elfs
                .iter()
                .filter_map(|elf| elf.target.as_deref())
                .collect();
            let targets: Vec<_> = targets.into_iter().collect();
            let targets = match targets.as_slice() {
                [] => String::new(),
                targets => format!(" ({})", targets.join(", ")),
            };
            format!(
                "left out: {} of {} in {}{targets}: without a profile, as not instrumented or \
                 never loaded",
                elfs.len(),
                count(file.elfs.len(), "device ELF"),
                file.path.display(),
            )
        });
        let damaged = self
            .damaged
            .iter()
            .map(|(profile, error)| format!("left out: {}: {error:#}", profile.path.display()));
        strangers.chain(unused).chain(damaged).collect()
    }
}
