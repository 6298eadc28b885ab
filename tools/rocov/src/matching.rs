//! Which profile belongs to which device ELF: those of one identity.

use crate::data::{DataDirectory, DeviceProfile};
use crate::objects::{DeviceElf, ObjectFile};
use crate::words::count;
use anyhow::Result;
use rocov::output::Label;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Profiles and device ELFs brought together, and what is left of both.
pub(crate) struct Matching<'a> {
    /// What belongs together, by arch.
    pub(crate) archs: BTreeMap<&'a str, OfArch<'a>>,
    /// Profiles whose device ELF is in none of the files, by identity.
    strangers: BTreeMap<&'a str, Vec<&'a DeviceProfile>>,
    /// Device ELFs without a profile, by the file they are in, of those that the user named.
    unused: Vec<(&'a ObjectFile, Vec<&'a DeviceElf>)>,
}

/// A device ELF and its profiles on one arch.
pub(crate) struct CodeObject<'a> {
    /// The file that the device ELF is in: one, though several may hold it.
    pub(crate) file: &'a ObjectFile,
    pub(crate) elf: &'a DeviceElf,
    /// At least one.
    pub(crate) profiles: Vec<&'a DeviceProfile>,
}

/// The code objects of one arch, by identity.
pub(crate) type OfArch<'a> = BTreeMap<&'a str, CodeObject<'a>>;

impl<'a> Matching<'a> {
    /// Looks for the device ELFs of `profiles` in the files of the data directory, then in those
    /// that the user named.
    pub(crate) fn of(
        profiles: &'a [DeviceProfile],
        kept: &'a [ObjectFile],
        named: &'a [ObjectFile],
    ) -> Self {
        let mut elfs = BTreeMap::new();
        for file in kept.iter().chain(named) {
            for elf in &file.elfs {
                elfs.entry(elf.identity.as_str()).or_insert((file, elf));
            }
        }
        let mut archs: BTreeMap<_, OfArch<'_>> = BTreeMap::new();
        let mut strangers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for profile in profiles {
            let identity = profile.identity.as_str();
            if let Some((file, elf)) = elfs.get(identity) {
                let objects = archs.entry(profile.arch.as_str()).or_default();
                let object = objects.entry(identity).or_insert_with(|| CodeObject {
                    file,
                    elf,
                    profiles: Vec::new(),
                });
                object.profiles.push(profile);
            } else {
                strangers.entry(identity).or_default().push(profile);
            }
        }
        let profiled: BTreeSet<_> = profiles
            .iter()
            .map(|profile| profile.identity.as_str())
            .collect();
        let has_no_profile = |elf: &&DeviceElf| !profiled.contains(elf.identity.as_str());
        let unused = named
            .iter()
            .map(|file| (file, file.elfs.iter().filter(has_no_profile).collect()))
            .filter(|(_, elfs): &(_, Vec<_>)| !elfs.is_empty())
            .collect();
        Self {
            archs,
            strangers,
            unused,
        }
    }

    /// What the compilers of the device ELFs say of their versions, each once.
    pub(crate) fn compilers(&self) -> BTreeSet<String> {
        let objects = self.archs.values().flat_map(BTreeMap::values);
        objects
            .filter_map(|object| object.file.compiler(object.elf))
            .collect()
    }

    /// Takes these archs alone, all if there are none, and of them the code objects that are wanted.
    pub(crate) fn select(&mut self, archs: &[String], is_wanted: impl Fn(&str) -> bool) {
        let is_asked = |arch: &str| archs.is_empty() || archs.iter().any(|it| it == arch);
        self.archs.retain(|arch, objects| {
            objects.retain(|identity, _| is_wanted(identity));
            is_asked(arch) && !objects.is_empty()
        });
        self.strangers
            .retain(|identity, profiles| is_asked(&profiles[0].arch) && is_wanted(identity));
    }

    /// The labels of the profiles, and `None` if some have none. Code that was never launched is of no
    /// test.
    pub(crate) fn labels(&self) -> BTreeSet<Option<&'a Label>> {
        let objects = self.archs.values().flat_map(OfArch::values);
        let profiles = objects.flat_map(|object| &object.profiles);
        let counted = profiles.filter(|profile| !profile.is_of_zeros());
        counted.map(|profile| profile.label.as_ref()).collect()
    }

    /// The same with the profiles of labels that are wanted alone.
    pub(crate) fn of_labels(&self, is_wanted: impl Fn(Option<&Label>) -> bool) -> Self {
        let is_of_label = |profile: &&&DeviceProfile| is_wanted(profile.label.as_ref());
        let mut archs: BTreeMap<_, OfArch<'_>> = BTreeMap::new();
        for (arch, objects) in &self.archs {
            for (identity, object) in objects {
                let profiles = object.profiles.iter().filter(is_of_label);
                let profiles: Vec<_> = profiles.copied().collect();
                if !profiles.is_empty() {
                    let object = CodeObject {
                        profiles,
                        ..*object
                    };
                    archs.entry(*arch).or_default().insert(*identity, object);
                }
            }
        }
        Self {
            archs,
            strangers: BTreeMap::new(),
            unused: Vec::new(),
        }
    }

    /// The number of code objects whose profiles have no device ELF.
    pub(crate) fn strangers(&self) -> usize {
        self.strangers.len()
    }

    /// Takes out code objects that llvm-cov cannot show, and returns a line for each.
    pub(crate) fn leave_out_unmapped(&mut self) -> Vec<String> {
        let mut left_out = Vec::new();
        self.archs.retain(|arch, objects| {
            objects.retain(|identity, object| {
                let is_mapped = object.file.is_mapped(object.elf);
                if !is_mapped {
                    left_out.push(format!(
                        "left out: {arch} code object {identity}: it has no coverage mapping, as it was \
                         compiled without -fcoverage-mapping, or stripped"
                    ));
                }
                is_mapped
            });
            !objects.is_empty()
        });
        left_out
    }

    /// Takes out the profiles that `check` refuses, and returns a line for each. What is left without
    /// a profile goes with them.
    pub(crate) fn leave_out_damaged(&mut self, check: impl Fn(&Path) -> Result<()>) -> Vec<String> {
        let mut left_out = Vec::new();
        self.archs.retain(|_, objects| {
            left_out.extend(leave_out_damaged(objects, &check));
            !objects.is_empty()
        });
        left_out
    }

    /// One line for each thing that is not in the report, though it could be expected there.
    pub(crate) fn left_out(&self, data: &DataDirectory) -> Vec<String> {
        let mut lines = Vec::new();
        let mut stale = BTreeSet::new();
        for (identity, profiles) in &self.strangers {
            let first = profiles[0];
            let mut line = format!(
                "left out: {} ({} of {} code object {identity}): ",
                first.path.display(),
                count(profiles.len(), "profile"),
                first.arch,
            );
            match self.unused.iter().find_map(|it| others(it, first)) {
                Some((file, found)) => {
                    line += &format!(
                        "{} is refused, as its device ELF for {} is code object {}: rebuilt since the \
                         run, or of another program; give the file that ran, or run this one",
                        file.display(),
                        first.arch,
                        found.join(", "),
                    );
                    stale.insert(file);
                }
                None => {
                    line += &format!(
                        "its device ELF is neither kept in {data} nor in a given object: give the file \
                         with its kernels, as it was when they ran, with --object"
                    );
                }
            }
            lines.push(line);
        }
        let unused = self.unused.iter();
        let unused = unused.filter(|(file, _)| !stale.contains(file.path.as_path()));
        lines.extend(unused.map(|(file, elfs)| without_a_profile(file, elfs)));
        lines
    }
}

/// Takes out the profiles that `check` refuses, and returns a line for each. A device ELF that is left
/// without a profile goes with them: its lines would be reported as not run, which nobody knows.
pub(crate) fn leave_out_damaged(
    objects: &mut OfArch<'_>,
    check: impl Fn(&Path) -> Result<()>,
) -> Vec<String> {
    let mut left_out = Vec::new();
    objects.retain(|_, object| {
        left_out.extend(object.leave_out_damaged(&check));
        !object.profiles.is_empty()
    });
    left_out
}

impl CodeObject<'_> {
    /// The files of its profiles.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        let profiles = self.profiles.iter();
        profiles.map(|profile| profile.path.as_path()).collect()
    }

    /// The number of its profiles, without those of zeros.
    pub(crate) fn counted(&self) -> usize {
        let profiles = self.profiles.iter();
        profiles.filter(|profile| !profile.is_of_zeros()).count()
    }

    fn leave_out_damaged(&mut self, check: impl Fn(&Path) -> Result<()>) -> Vec<String> {
        let mut left_out = Vec::new();
        self.profiles.retain(|profile| match check(&profile.path) {
            Ok(()) => true,
            Err(error) => {
                left_out.push(format!("left out: {}: {error:#}", profile.path.display()));
                false
            }
        });
        left_out
    }
}

/// The identities of the device ELFs in a file that `profile` could be expected to be of, and is not.
fn others<'a>(
    (file, elfs): &(&'a ObjectFile, Vec<&'a DeviceElf>),
    profile: &DeviceProfile,
) -> Option<(&'a Path, Vec<&'a str>)> {
    let is_for_arch = |elf: &&&DeviceElf| {
        let target = elf.target.as_deref();
        target.is_none_or(|target| target.split(':').next() == Some(&profile.arch))
    };
    let elfs = elfs.iter().filter(is_for_arch);
    let identities: Vec<_> = elfs.map(|elf| elf.identity.as_str()).collect();
    (!identities.is_empty()).then_some((&file.path, identities))
}

/// Says that a file's device ELFs are not in the report.
fn without_a_profile(file: &ObjectFile, elfs: &[&DeviceElf]) -> String {
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
        "left out: {} of {} in {}{targets}: without a profile, as not instrumented or never loaded",
        elfs.len(),
        count(file.elfs.len(), "device ELF"),
        file.path.display(),
    )
}
