//! Adds up the raw profiles of each code object ([`counts`]), and merges those of each arch into an indexed
//! profile for llvm-cov.
//!
//! Two code objects can have the same function, and each has its own counts of it.

mod counts;
pub(crate) mod llvm_profdata;
pub(crate) mod per_label;
pub(crate) mod uniformity;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::data::DataDirectory;
use crate::data::device_elfs::ObjectFile;
use crate::data::match_elfs::{MatchedArch, MatchedCodeObject, MatchedElfs, leave_out_damaged};
use crate::llvm::LlvmTools;
use crate::support::parallel;
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
    /// The indexed profile of all of them.
    pub(crate) profile: PathBuf,
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

    /// Merges profiles that were matched, and copies device ELFs that lie in other files to places where
    /// llvm-cov can read them, all in a temporary directory. Profiles that llvm-profdata refuses are
    /// damaged: they are taken out of `matched`, and a warning names each.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or written, or no installed tool reads a profile.
    pub(crate) fn of(
        matched: &mut MatchedElfs<'a>,
        installed: &LlvmTools,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let directory = TempDir::new().context("cannot make a temporary directory")?;
        let output = directory.path();
        // Before the merges, as llvm-cov warns of objects that are newer than the profile.
        let mut elfs = BTreeMap::new();
        for (arch, objects) in &matched.archs {
            for (identity, object) in objects {
                let elf = object.file.place(object.elf, arch, output)?;
                elfs.insert((*arch, *identity), elf);
            }
        }
        let refused = merge_archs(&mut matched.archs, output, installed, warnings)?;
        matched.damaged += refused;

        let archs = matched.archs.iter();
        let merges = archs.flat_map(|(arch, objects)| objects.iter().map(move |it| (*arch, it)));
        let merges: Vec<_> = merges.collect();
        let objects = parallel::map(&merges, |(arch, (identity, object))| {
            let part = of_arch(output, &format!("{arch}.{identity}"));
            let (counts, said) = object_counts(object, part, installed)?;
            let object = MergedObject {
                identity,
                file: object.file,
                elf: elfs[&(*arch, **identity)].clone(),
                counts,
                raw: object.counted(),
            };
            Ok((object, said))
        })?;
        let mut archs: Vec<MergedArch<'_>> = Vec::new();
        for ((name, ..), (object, said)) in merges.iter().zip(objects) {
            warnings.extend(said);
            match archs.last_mut() {
                Some(arch) if arch.name == *name => arch.objects.push(object),
                _ => archs.push(MergedArch {
                    name,
                    objects: vec![object],
                    profile: of_arch(output, name),
                }),
            }
        }
        Ok(Self { archs, directory })
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
        match self.elf == self.file.path {
            true => file.to_string(),
            false => format!("{file}: code object {}", self.identity),
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

/// Merges the profiles of each arch. Takes out the profiles that llvm-profdata refuses, and returns
/// their number.
fn merge_archs(
    archs: &mut BTreeMap<&str, MatchedArch<'_>>,
    output: &Path,
    installed: &LlvmTools,
    warnings: &mut Warnings,
) -> Result<usize> {
    let merge = |arch: &str, objects: &MatchedArch<'_>| {
        let raw: Vec<_> = objects
            .values()
            .flat_map(MatchedCodeObject::paths)
            .collect();
        llvm_profdata::merge(&raw, &of_arch(output, arch), installed, &[])
    };
    let of_archs: Vec<_> = archs.iter().collect();
    let ended = parallel::map(&of_archs, |(arch, objects)| Ok(merge(arch, objects)))?;
    let mut refused = 0;
    for ((arch, objects), result) in archs.iter_mut().zip(ended) {
        let error = match result {
            Ok(said) => {
                warnings.extend(said);
                continue;
            }
            Err(error) => error,
        };
        // One that is refused makes llvm-profdata refuse all.
        let left_out = leave_out_damaged(objects, |profile| {
            llvm_profdata::check_by_tool(profile, installed)
        });
        if left_out.is_empty() {
            return Err(error);
        }
        refused += left_out.len();
        warnings.extend(left_out);
        if !objects.is_empty() {
            warnings.extend(merge(arch, objects)?);
        }
    }
    Ok(refused)
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
