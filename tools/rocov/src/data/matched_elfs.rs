//! Profiles paired with device ELFs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use rocov::store::Label;
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::device_elfs::{DeviceElf, ObjectFile};
use super::{DeviceProfile, ReportableData, profile_header};
use crate::llvm::LlvmTools;
use crate::term::plural::count;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// Profiles paired with device ELFs, and the rest of both.
pub(crate) struct MatchedElfs<'a> {
    /// The pairs, by arch.
    pub(crate) archs: BTreeMap<&'a str, MatchedArch<'a>>,
    /// Profiles whose device ELF is in none of the files, by identity.
    strangers: BTreeMap<&'a str, Vec<&'a DeviceProfile>>,
    /// Device ELFs without a profile, by the file they are in, of those that the user named.
    unused: Vec<(&'a ObjectFile, Vec<&'a DeviceElf>)>,
    /// The number of damaged profiles that were left out.
    pub(crate) damaged: usize,
}

/// A device ELF and its profiles on one arch.
pub(crate) struct MatchedCodeObject<'a> {
    /// The file that the device ELF is in: one, though several may hold it.
    pub(crate) file: &'a ObjectFile,
    pub(crate) elf: &'a DeviceElf,
    /// At least one.
    pub(crate) profiles: Vec<&'a DeviceProfile>,
    /// True if the counts of the profiles come from other labels than the user wants. They are taken as 0.
    pub(crate) is_silent: bool,
    /// The number of its functions that add to counters without atomic operations, if it was launched.
    pub(crate) non_atomic: usize,
}

/// The code objects of one arch, by identity.
pub(crate) type MatchedArch<'a> = BTreeMap<&'a str, MatchedCodeObject<'a>>;

impl<'a> MatchedElfs<'a> {
    pub(super) fn new(data: &'a ReportableData) -> Self {
        let (profiles, kept, named) = (&data.files.device, &data.kept.files, &data.named);
        let mut elfs = BTreeMap::new();
        for file in kept.iter().chain(named) {
            for elf in &file.elfs {
                elfs.entry(elf.identity.as_str()).or_insert((file, elf));
            }
        }
        let mut archs: BTreeMap<_, MatchedArch<'_>> = BTreeMap::new();
        let mut strangers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for profile in profiles {
            let identity = profile.identity.as_str();
            if let Some((file, elf)) = elfs.get(identity) {
                let objects = archs.entry(profile.arch.as_str()).or_default();
                let object = objects
                    .entry(identity)
                    .or_insert_with(|| MatchedCodeObject {
                        file,
                        elf,
                        profiles: Vec::new(),
                        is_silent: false,
                        non_atomic: 0,
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
            damaged: 0,
        }
    }

    /// The versions that the compilers of the device ELFs wrote into them, each once.
    fn compilers(&self) -> BTreeSet<String> {
        let objects = self.archs.values().flat_map(BTreeMap::values);
        objects
            .filter_map(|object| object.file.compiler(object.elf))
            .collect()
    }

    /// Keeps these archs, all if there are none, and of them the code objects that are wanted.
    pub(crate) fn select(&mut self, archs: &[String], is_wanted: impl Fn(&str) -> bool) {
        let is_asked = |arch: &str| archs.is_empty() || archs.iter().any(|asked| asked == arch);
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
        let objects = self.archs.values().flat_map(MatchedArch::values);
        let profiles = objects.flat_map(|object| &object.profiles);
        let counted = profiles.filter(|profile| !profile.is_of_zeros);
        counted.map(|profile| profile.label.as_ref()).collect()
    }

    /// Makes copies that have the profiles of one key each. `keys` gives those of a label.
    pub(crate) fn grouped<K: Ord + Clone>(
        &self,
        keys: impl Fn(Option<&'a Label>) -> BTreeSet<K>,
    ) -> BTreeMap<K, Self> {
        let mut of_label: BTreeMap<Option<&Label>, BTreeSet<K>> = BTreeMap::new();
        let mut groups: BTreeMap<K, Self> = BTreeMap::new();
        for (arch, objects) in &self.archs {
            for (identity, object) in objects {
                for profile in &object.profiles {
                    let label = profile.label.as_ref();
                    for key in &*of_label.entry(label).or_insert_with(|| keys(label)) {
                        let group = groups.entry(key.clone()).or_insert_with(Self::empty);
                        let objects = group.archs.entry(*arch).or_default();
                        let of_group = objects.entry(*identity);
                        let of_group = of_group.or_insert_with(|| MatchedCodeObject {
                            profiles: Vec::new(),
                            ..*object
                        });
                        of_group.profiles.push(*profile);
                    }
                }
            }
        }
        groups
    }

    fn empty() -> Self {
        Self {
            archs: BTreeMap::new(),
            strangers: BTreeMap::new(),
            unused: Vec::new(),
            damaged: 0,
        }
    }

    /// The number of code objects whose profiles have no device ELF.
    pub(crate) fn strangers(&self) -> usize {
        self.strangers.len()
    }

    /// Takes out code objects that llvm-cov cannot show, and returns a line for each.
    pub(super) fn leave_out_unmapped(&mut self) -> Vec<Diagnostic> {
        let mut left_out = Vec::new();
        self.archs.retain(|arch, objects| {
            objects.retain(|identity, object| {
                let is_placed = object.is_placed();
                if !is_placed {
                    left_out.push(diagnostic!(
                        "left out: {arch} code object {identity}: it has no coverage mapping, because it was \
                         compiled without -fcoverage-mapping, or stripped";
                        "compile with the flags that `rocov flags` prints"
                    ));
                }
                is_placed
            });
            !objects.is_empty()
        });
        left_out
    }

    /// Leaves out damaged profiles, and the code objects that have no others. Prefers the tools of the
    /// compilers of the rest. All that is left out is a warning.
    pub(crate) fn leave_out_damaged(
        &mut self,
        data: &ReportableData,
        installed: &mut LlvmTools,
        warnings: &mut Warnings,
    ) {
        installed.prefer(self.compilers());
        let mut damaged = Vec::new();
        self.archs.retain(|_, objects| {
            let check = |profile: &Path| profile_header::check(profile, installed);
            damaged.extend(leave_out_damaged(objects, check));
            !objects.is_empty()
        });
        self.damaged = damaged.len();
        warnings.extend(self.left_out(data));
        warnings.extend(damaged);
    }

    /// One line for each thing that is not in the report, though it could be expected there.
    pub(super) fn left_out(&self, data: &ReportableData) -> Vec<Diagnostic> {
        let mut lines = Vec::new();
        let mut stale = BTreeSet::new();
        for (identity, profiles) in &self.strangers {
            let first = profiles[0];
            let place = format!(
                "left out: {} ({} of {} code object {identity})",
                first.path.display(),
                count(profiles.len(), "profile"),
                first.arch,
            );
            let reason = match self.unused.iter().find_map(|file| others(file, first)) {
                Some((file, found)) => {
                    stale.insert(file);
                    diagnostic!(
                        "{} is rejected, because its device ELF for {} is code object {}: rebuilt since the run, or \
                         from another program",
                        file.display(), first.arch, found.join(", ");
                        "name the file that ran, or run this one"
                    )
                }
                None => diagnostic!(
                    "its device ELF is neither in {data} nor in any --object file";
                    "use --object to name the file that contained its kernels when they ran"
                ),
            };
            lines.push(reason.within(place));
        }
        let unused = self
            .unused
            .iter()
            .filter(|(file, _)| !stale.contains(file.path.as_path()));
        lines.extend(unused.map(|(file, elfs)| without_a_profile(file, elfs)));
        lines
    }
}

/// Takes out the profiles that `check` refuses, and returns a line for each. A device ELF that is left
/// without a profile goes with them: its lines would be reported as not run, which nobody knows.
pub(crate) fn leave_out_damaged(
    objects: &mut MatchedArch<'_>,
    check: impl Fn(&Path) -> Result<()>,
) -> Vec<Diagnostic> {
    let mut left_out = Vec::new();
    objects.retain(|_, object| {
        left_out.extend(object.leave_out_damaged(&check));
        !object.profiles.is_empty()
    });
    left_out
}

impl MatchedCodeObject<'_> {
    /// The files with its code: a device ELF, which may be copied to `directory`, and the PTX that it was made of if rocov
    /// has made that count.
    ///
    /// # Errors
    ///
    /// Fails if the device ELF cannot be written there.
    pub(crate) fn files(&self, arch: &str, directory: &Path) -> Result<Vec<PathBuf>> {
        let elf = self.file.place(self.elf, arch, directory)?;
        Ok([elf].into_iter().chain(self.file.ptx()).collect())
    }

    /// The files of its profiles.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        let profiles = self.profiles.iter();
        profiles.map(|profile| profile.path.as_path()).collect()
    }

    /// Returns whether its counts have places in the source: it has a coverage mapping, or a profile has counts that a
    /// line table gives places.
    pub(crate) fn is_placed(&self) -> bool {
        let mut profiles = self.profiles.iter();
        self.file.is_mapped(self.elf)
            || profiles.any(|profile| profile_header::has_blocks(&profile.path))
    }

    /// The number of its profiles, without those of zeros.
    pub(crate) fn counted(&self) -> usize {
        if self.is_silent {
            return 0;
        }
        let profiles = self.profiles.iter();
        profiles.filter(|profile| !profile.is_of_zeros).count()
    }

    fn leave_out_damaged(&mut self, check: impl Fn(&Path) -> Result<()>) -> Vec<Diagnostic> {
        let mut left_out = Vec::new();
        self.profiles.retain(|profile| match check(&profile.path) {
            Ok(()) => true,
            Err(error) => {
                let place = format!("left out: {}", profile.path.display());
                left_out.push(explained(&error).within(place));
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

/// Makes the line that a file's device ELFs are not in the report.
fn without_a_profile(file: &ObjectFile, elfs: &[&DeviceElf]) -> Diagnostic {
    let targets: BTreeSet<_> = elfs
        .iter()
        .filter_map(|elf| elf.target.as_deref())
        .collect();
    let targets: Vec<_> = targets.into_iter().collect();
    let targets = match targets.as_slice() {
        [] => String::new(),
        targets => format!(" ({})", targets.join(", ")),
    };
    let path = file.path.display();
    diagnostic!(
        "left out: {} of {} in {path}{targets}: without a profile: not instrumented, not for an arch of the report, \
         or rebuilt since the run",
        elfs.len(), count(file.elfs.len(), "device ELF");
        "see `rocov doctor {path}`"
    )
}
