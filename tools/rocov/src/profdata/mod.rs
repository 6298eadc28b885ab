//! Adds up the raw profiles of each code object ([`counts`]). For annotated source, merges those of an arch into
//! an indexed profile, as llvm-cov reads it.
//!
//! Two code objects can have the same function, and each has its own counts of it.

mod counts;
pub(crate) mod llvm_profdata;
pub(crate) mod per_label;
pub(crate) mod uniformity;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::data::DataDirectory;
use crate::data::device_elfs::ObjectFile;
use crate::data::match_elfs::{MatchedArch, MatchedCodeObject, MatchedElfs, leave_out_damaged};
use crate::llvm::LlvmTools;
use crate::support::parallel;
use crate::term::print;
use crate::term::warnings::Warnings;

pub(crate) use counts::{BinaryCounts, ProfileCounts};

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
    /// The raw profiles of all of them.
    raw: Vec<PathBuf>,
}

/// A code object and its own counts.
pub(crate) struct MergedObject<'a> {
    pub(crate) identity: &'a str,
    /// The file that it was found in.
    pub(crate) file: &'a ObjectFile,
    /// The path of its device ELF.
    pub(crate) elf: PathBuf,
    pub(crate) counts: BinaryCounts,
    /// The number of its raw profiles, without those of zeros: 0 if it was never launched.
    pub(crate) raw: usize,
}

impl<'a> MergedProfiles<'a> {
    /// Merges the profiles of `data` that were matched.
    ///
    /// # Errors
    ///
    /// Fails if no profile can be merged, or if a tool fails.
    pub(crate) fn of_data(
        matched: &mut MatchedElfs<'a>,
        data: &DataDirectory,
        installed: &LlvmTools,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let merged = Self::of(matched, installed, warnings)?;
        if merged.archs.is_empty() {
            bail!(
                "no profile in {data} can be read: see the reasons above; if they are damaged, run the \
                 program again"
            );
        }
        Ok(merged)
    }

    /// Adds up the profiles that were matched, and copies device ELFs that lie in other files to places where
    /// llvm-cov can read them, in a temporary directory. Takes damaged profiles out of `matched`, and warns of
    /// each.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or written, or if neither rocov nor an installed tool adds up the profiles
    /// of a code object.
    pub(crate) fn of(
        matched: &mut MatchedElfs<'a>,
        installed: &LlvmTools,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let directory = TempDir::new().context("cannot make a temporary directory")?;
        let mut archs = Vec::new();
        for (name, objects) in &mut matched.archs {
            let counts = match sums(objects)? {
                Some(sums) => sums,
                None => {
                    let left_out = leave_out_damaged(objects, counts::check);
                    matched.damaged += left_out.len();
                    warnings.extend(left_out);
                    if objects.is_empty() {
                        continue;
                    }
                    each_counted(objects, directory.path(), installed, warnings)?
                }
            };
            let objects = objects.iter().zip(counts);
            let mut raw = Vec::new();
            let objects = objects.map(|((identity, object), counts)| {
                raw.extend(object.paths().into_iter().map(Path::to_path_buf));
                Ok(MergedObject {
                    identity,
                    file: object.file,
                    elf: object.file.place(object.elf, name, directory.path())?,
                    counts,
                    raw: object.counted(),
                })
            });
            let objects = objects.collect::<Result<_>>()?;
            archs.push(MergedArch { name, objects, raw });
        }
        matched.archs.retain(|_, objects| !objects.is_empty());
        Ok(Self { archs, directory })
    }

    /// The indexed profile of an arch, for llvm-cov.
    ///
    /// # Errors
    ///
    /// Fails if llvm-profdata fails.
    pub(crate) fn indexed(&self, arch: &MergedArch<'_>, installed: &LlvmTools) -> Result<PathBuf> {
        let profile = of_arch(self.directory(), arch.name);
        let raw: Vec<_> = arch.raw.iter().map(PathBuf::as_path).collect();
        print::warn(&llvm_profdata::merge(&raw, &profile, installed, &[])?);
        Ok(profile)
    }

    /// A directory for files that are needed as long as this.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns whether the profiles of a code object were merged.
    pub(crate) fn has(&self, identity: &str) -> bool {
        let mut objects = self.archs.iter().flat_map(|arch| &arch.objects);
        objects.any(|object| object.identity == identity)
    }
}

impl MergedObject<'_> {
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

impl MergedArch<'_> {
    /// The device ELFs.
    pub(crate) fn elfs(&self) -> Vec<PathBuf> {
        self.objects.iter().map(|it| it.elf.clone()).collect()
    }
}

/// The path of the indexed profile of this name in a directory.
fn of_arch(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.profdata"))
}

/// The sums of the profiles of each code object; `None` if some cannot be added up.
fn sums(objects: &MatchedArch<'_>) -> Result<Option<Vec<BinaryCounts>>> {
    let objects: Vec<_> = objects.values().collect();
    let sums = parallel::map(&objects, |object| {
        let sum = ProfileCounts::of(&object.paths()).ok();
        Ok(sum.map(|sum| BinaryCounts::Summed(Arc::new(sum))))
    })?;
    Ok(sums.into_iter().collect())
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
        object_counts(object, of_arch(output, identity), installed)
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
) -> Result<(BinaryCounts, Vec<String>)> {
    match ProfileCounts::of(&object.paths()) {
        Ok(counts) => Ok((BinaryCounts::Summed(Arc::new(counts)), Vec::new())),
        Err(_) => {
            let said = llvm_profdata::merge(&object.paths(), &part, installed, &[])?;
            Ok((BinaryCounts::Indexed(part), said))
        }
    }
}
