//! Adds up the raw profiles of each code object ([`counts`]).
//!
//! Two code objects can have the same function, and each has its own counts of it.

mod counts;
pub(crate) mod host_counts;
pub(crate) mod index_version;
pub(crate) mod indexed_profile;
mod indexed_reader;
pub(crate) mod kinds;
pub(crate) mod llvm_profdata;
pub(crate) mod named_counts;
pub(crate) mod per_label;
pub(crate) mod pooled;
mod profile_summary;
mod programs;
#[cfg(test)]
mod sizes_tests;
pub(crate) mod uniformity;
#[cfg(test)]
mod values_tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use rocov::format::bounds_table::OWN_VERSION_SYMBOL;
use rocov::format::codeobject::CodeObject;
use rocov::format::profraw::ProfileError;
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};
use tempfile::TempDir;

use crate::data::ReportableData;
use crate::data::device_elfs::ObjectFile;
use crate::data::matched_elfs::{MatchedArch, MatchedCodeObject, MatchedElfs, leave_out_damaged};
use crate::llvm::LlvmTools;
use crate::support::{mmap, parallel, temporary};
use crate::term::progress;
use crate::term::warnings::Warnings;

pub(crate) use counts::{BinaryCounts, ProfileCounts};
pub(crate) use kinds::{CountKind, CountKinds, CountUnit};
pub(crate) use programs::ProgramSizes;

/// The first raw version of compilers whose counters may skip blocks (`__llvm_profile_sampling_gpu`).
const FIRST_SAMPLED: u32 = 11;

/// Everything that was merged.
pub(crate) struct MergedProfiles<'a> {
    pub(crate) archs: Vec<MergedArch<'a>>,
    /// The temporary directory of the merged files.
    directory: TempDir,
}

/// The merged profiles of one arch.
pub(crate) struct MergedArch<'a> {
    /// The name, such as `gfx90a`.
    pub(crate) name: &'a str,
    /// The code objects in the order of their identities; at least one.
    pub(crate) objects: Vec<MergedObject<'a>>,
    /// The number that all counts were multiplied by.
    pub(crate) scale: u64,
}

/// A code object and its own counts.
pub(crate) struct MergedObject<'a> {
    pub(crate) identity: &'a str,
    /// The file that it was found in.
    pub(crate) file: &'a ObjectFile,
    /// The path of its device ELF.
    pub(crate) elf: PathBuf,
    /// The path of the PTX that its device ELF was made of, if rocov has made that count.
    pub(crate) ptx: Option<PathBuf>,
    pub(crate) counts: BinaryCounts,
    /// The kinds of its counts.
    pub(crate) kinds: CountKinds,
    /// The threads of its programs, if its counts are of programs.
    pub(crate) sizes: Arc<ProgramSizes>,
    /// The number of its raw profiles, without those of zeros: 0 if it was never launched.
    pub(crate) raw: usize,
    /// The number of its functions whose counts are too low, as they add without atomic operations.
    pub(crate) non_atomic: usize,
}

impl<'a> MergedProfiles<'a> {
    /// Merges the profiles of `data` that were matched.
    ///
    /// # Errors
    ///
    /// Fails if no profile can be merged, or if a tool fails.
    pub(crate) fn merge_data(
        matched: &mut MatchedElfs<'a>,
        data: &ReportableData,
        installed: &LlvmTools,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let merged = Self::merge(matched, installed, warnings)?;
        if merged.archs.is_empty() {
            fail!(
                "no profile in {data} can be read";
                "see the reasons above; if they are damaged, run the program again"
            );
        }
        Ok(merged)
    }

    /// Adds up the profiles that were matched, and copies device ELFs that are in other files to places where
    /// llvm-cov can read them, in a temporary directory. Takes damaged profiles out of `matched`, and warns of
    /// each.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or written, or if neither rocov nor an installed tool adds up the profiles
    /// of a code object.
    pub(crate) fn merge(
        matched: &mut MatchedElfs<'a>,
        installed: &LlvmTools,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let directory = temporary::directory()?;
        let mut archs = Vec::new();
        for (name, objects) in &mut matched.archs {
            let counts = match sums(objects)? {
                Some(sums) => sums,
                None => {
                    let left_out = leave_out_damaged(objects, |profile| {
                        check(profile, directory.path(), installed)
                    });
                    matched.damaged += left_out.len();
                    warnings.extend(left_out);
                    if objects.is_empty() {
                        continue;
                    }
                    each_counted(objects, directory.path(), installed, warnings)?
                }
            };
            let objects = objects
                .iter()
                .zip(counts)
                .map(|((identity, object), counts)| {
                    let elf = object.file.place(object.elf, name, directory.path())?;
                    let ptx = object.file.ptx();
                    let files: Vec<_> = [elf.clone()].into_iter().chain(ptx.clone()).collect();
                    Ok(MergedObject {
                        identity,
                        file: object.file,
                        kinds: kinds::kinds(&files, &counts),
                        elf,
                        ptx,
                        counts,
                        sizes: Arc::default(),
                        raw: object.counted(),
                        non_atomic: object.non_atomic,
                    })
                });
            let objects = objects.collect::<Result<_>>()?;
            archs.push(MergedArch {
                name,
                objects,
                scale: 1,
            });
        }
        matched.archs.retain(|_, objects| !objects.is_empty());
        Ok(Self { archs, directory })
    }

    /// Keeps the counts of one kind.
    ///
    /// # Errors
    ///
    /// Fails if no code object has them.
    pub(crate) fn select_kind(&mut self, kind: CountKind, data: &ReportableData) -> Result<()> {
        for arch in &mut self.archs {
            arch.objects.retain(|object| object.kinds.contains(&kind));
            for object in &mut arch.objects {
                object.kinds = CountKinds::from([kind]);
            }
        }
        self.archs.retain(|arch| !arch.objects.is_empty());
        if self.archs.is_empty() {
            fail!(
                "no code object in {data} has counts of this kind ({})", kind.name();
                "leave out --counts, or run the program so that it has such counts"
            );
        }
        Ok(())
    }

    /// Multiplies all counts by `factor`.
    ///
    /// # Errors
    ///
    /// Fails if rocov cannot read the profiles of a code object itself.
    pub(crate) fn scale(&mut self, factor: u64) -> Result<()> {
        for arch in &mut self.archs {
            arch.scale = factor;
        }
        for object in self.archs.iter_mut().flat_map(|arch| &mut arch.objects) {
            let BinaryCounts::Summed(counts) = &object.counts else {
                fail!(
                    "cannot scale the counts of {}: rocov does not read raw profiles of this form",
                    object.name();
                    "leave out --scale"
                );
            };
            object.counts = BinaryCounts::Summed(Arc::new(counts.scaled(factor)));
        }
        Ok(())
    }

    /// Makes counts those of programs if the code requires the threads of one. Returns the mangled names of the kernels
    /// that ran and whose counts are still of threads.
    pub(crate) fn count_programs(&mut self) -> BTreeSet<String> {
        let mut per_thread = BTreeSet::new();
        for object in self.archs.iter_mut().flat_map(|arch| &mut arch.objects) {
            let BinaryCounts::Summed(counts) = &object.counts else {
                continue;
            };
            let sizes = ProgramSizes::read(&object.files());
            per_thread.extend(sizes.per_thread(counts).map(str::to_owned));
            object.counts = sizes.apply(object.counts.clone());
            object.sizes = Arc::new(sizes);
        }
        per_thread
    }

    /// A directory for files that are needed as long as this.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns whether the profiles of a code object were merged.
    pub(crate) fn has(&self, identity: &str) -> bool {
        self.objects().any(|object| object.identity == identity)
    }

    /// The code objects of all archs.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &MergedObject<'a>> {
        self.archs.iter().flat_map(|arch| &arch.objects)
    }
}

impl MergedObject<'_> {
    /// The files with its code: a device ELF, and the PTX that it was made of if rocov has made it count.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        [self.elf.clone()]
            .into_iter()
            .chain(self.ptx.clone())
            .collect()
    }

    /// The unit of its counts, if a user can choose it.
    pub(crate) fn unit(&self) -> Option<CountUnit> {
        self.sizes.unit(&self.kinds, &self.counts)
    }

    /// The kinds of its counts in words.
    pub(crate) fn counted_by(&self) -> String {
        kinds::in_words(&self.kinds, self.unit())
    }

    /// Returns whether the counts may be of some of the blocks. From clang 23 on, LLVM's own device code decides
    /// for each block if it counts, while that of rocov's header counts all.
    pub(crate) fn may_be_sampled(&self) -> bool {
        let BinaryCounts::Summed(counts) = &self.counts else {
            return false;
        };
        let has_header = || {
            let elf = mmap::map(&self.elf).ok()?;
            let elf = CodeObject::parse(&elf[..]).ok()?;
            let variable = elf.variable(OWN_VERSION_SYMBOL.as_bytes());
            variable.ok().map(|variable| variable.is_some())
        };
        counts.version.layout().version >= FIRST_SAMPLED && has_header() == Some(false)
    }

    /// The name of the device ELF in messages.
    pub(crate) fn name(&self) -> String {
        let file = self.file.path.display();
        match &self.file.origin {
            Some(origin) => format!("{}: code object {}", origin.display(), self.identity),
            None if self.elf == self.file.path => file.to_string(),
            None => format!("{file}: code object {}", self.identity),
        }
    }
}

/// The path of the indexed profile of this name in a directory.
fn indexed_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.profdata"))
}

/// The sums of the profiles of each code object; `None` if some cannot be added up.
fn sums(objects: &MatchedArch<'_>) -> Result<Option<Vec<BinaryCounts>>> {
    let objects: Vec<_> = objects.values().collect();
    let sums = progress::counted(objects.len(), "code object", |done| {
        parallel::map(&objects, |object| {
            let sum = summed(object).ok();
            done.fetch_add(1, Ordering::Relaxed);
            Ok(sum)
        })
    })?;
    Ok(sums.into_iter().collect())
}

/// Checks that rocov reads a raw profile, or that the installed llvm-profdata does. Without tools, a profile that
/// needs them passes: the merge then fails, and names the tools to install.
///
/// # Errors
///
/// Fails if the profile is damaged, with rocov's reason and no line of llvm-profdata.
fn check(profile: &Path, directory: &Path, installed: &LlvmTools) -> Result<()> {
    let Some(reason) = counts::unread(profile)? else {
        return Ok(());
    };
    let output = indexed_path(directory, "one");
    let is_merged = || llvm_profdata::merge(&[profile], &output, installed, &[]).is_ok();
    if installed.newest().is_err() || is_merged() {
        return Ok(());
    }
    Err(reason.into())
}

/// The counts of each code object, by llvm-profdata if rocov cannot add up the profiles.
fn each_counted(
    objects: &MatchedArch<'_>,
    output: &Path,
    installed: &LlvmTools,
    warnings: &mut Warnings,
) -> Result<Vec<BinaryCounts>> {
    let objects: Vec<_> = objects.iter().collect();
    let counts = parallel::map(&objects, |(identity, object)| {
        object_counts(object, indexed_path(output, identity), installed)
    })?;
    let (counts, said): (_, Vec<_>) = counts.into_iter().unzip();
    warnings.extend(said.concat());
    Ok(counts)
}

/// The counts of one code object, and the lines that llvm-profdata printed. If rocov cannot add up its
/// profiles, llvm-profdata merges them into `part`.
///
/// # Errors
///
/// Fails if llvm-profdata fails.
pub(crate) fn object_counts(
    object: &MatchedCodeObject<'_>,
    part: PathBuf,
    installed: &LlvmTools,
) -> Result<(BinaryCounts, Vec<Diagnostic>)> {
    match summed(object) {
        Ok(counts) => Ok((counts, Vec::new())),
        Err(error) if object.is_silent => Err(error.context(diagnostic!(
            "rocov cannot leave out the counts of other labels";
            "report the directory of the label, DIR/profraw/labels/NAME"
        ))),
        Err(_) => {
            let said = llvm_profdata::merge(&object.paths(), &part, installed, &[])?;
            Ok((BinaryCounts::Indexed(part), said))
        }
    }
}

/// The counts of programs and libraries on the host, and the lines that llvm-profdata printed. It merges `profiles`
/// into `part` if one is of a version that rocov does not support.
///
/// # Errors
///
/// Fails if a profile is damaged or does not fit to the first, or if llvm-profdata fails.
pub(crate) fn host_counts(
    profiles: &[&Path],
    part: PathBuf,
    installed: &LlvmTools,
) -> Result<(BinaryCounts, Vec<Diagnostic>)> {
    let error = match ProfileCounts::read_programs(profiles) {
        Ok(counts) => return Ok((BinaryCounts::Summed(Arc::new(counts)), Vec::new())),
        Err(error) => error,
    };
    let reason = error.root_cause().downcast_ref();
    if !matches!(reason, Some(ProfileError::UnknownVersion { .. })) {
        return Err(error);
    }
    let said = llvm_profdata::merge(profiles, &part, installed, &[])?;
    Ok((BinaryCounts::Indexed(part), said))
}

/// The sum of the profiles of a code object.
fn summed(object: &MatchedCodeObject<'_>) -> Result<BinaryCounts> {
    let counts = ProfileCounts::read(&object.paths())?;
    let counts = match object.is_silent {
        true => counts.zeros(),
        false => counts,
    };
    Ok(BinaryCounts::Summed(Arc::new(counts)))
}
