//! Raw profiles into indexed ones: one for each code object, and of these one for each arch.
//!
//! Two code objects can have the same function: only by itself each has its own counts.

use crate::llvm_tools::{Installed, Tools};
use crate::matching::{CodeObject, Matching};
use crate::objects::ObjectFile;
use crate::{parallel, profdata};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Everything that was merged.
pub(crate) struct Merged<'a> {
    pub(crate) archs: Vec<Arch<'a>>,
    /// One line for each profile that was left out, as llvm-profdata refuses it.
    pub(crate) damaged: Vec<String>,
    /// The directory of the profiles of code objects that are not alone on their arch.
    _parts: TempDir,
}

/// What was merged of one arch.
pub(crate) struct Arch<'a> {
    /// Such as `gfx90a`.
    pub(crate) name: &'a str,
    /// By identity; at least one.
    pub(crate) objects: Vec<Object<'a>>,
    /// The indexed profile of all of them, in the data directory.
    pub(crate) profile: PathBuf,
}

/// A code object and the indexed profile of it alone.
pub(crate) struct Object<'a> {
    pub(crate) identity: &'a str,
    /// The file that it was found in.
    pub(crate) file: &'a ObjectFile,
    /// Where it lies by itself.
    pub(crate) elf: PathBuf,
    pub(crate) profile: PathBuf,
    /// The number of its raw profiles.
    pub(crate) raw: usize,
    /// What wrote the profile.
    tools: &'a Tools,
}

impl<'a> Merged<'a> {
    /// Merges what belongs together, and puts device ELFs where llvm-cov can read them.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written, or no installed tool reads a profile.
    pub(crate) fn of(
        matching: &Matching<'a>,
        directory: &Path,
        installed: &'a Installed,
    ) -> Result<Self> {
        let parts = TempDir::new().context("cannot make a temporary directory")?;
        let of_arch = |arch: &str| directory.join(format!("{arch}.profdata"));
        let mut merges = Vec::new();
        for (arch, objects) in &matching.archs {
            for (identity, object) in objects {
                let is_alone = objects.len() == 1;
                let part = || parts.path().join(format!("{arch}.{identity}.profdata"));
                merges.push(Merge {
                    arch,
                    identity,
                    object,
                    // Before the merge, as llvm-cov warns of objects that are newer than the profile.
                    elf: object.file.place(object.elf, arch, directory)?,
                    profile: if is_alone { of_arch(arch) } else { part() },
                });
            }
        }
        let mut archs: Vec<Arch<'_>> = Vec::new();
        let mut damaged = Vec::new();
        let ended = parallel::map(&merges, |merge| merge.run(installed))?;
        for (merge, (object, left_out)) in merges.iter().zip(ended) {
            damaged.extend(left_out);
            let Some(object) = object else { continue };
            match archs.last_mut() {
                Some(arch) if arch.name == merge.arch => arch.objects.push(object),
                _ => archs.push(Arch {
                    name: merge.arch,
                    objects: vec![object],
                    profile: of_arch(merge.arch),
                }),
            }
        }
        parallel::map(&archs, |arch| arch.join(installed))?;
        Ok(Self {
            archs,
            damaged,
            _parts: parts,
        })
    }
}

impl Arch<'_> {
    /// The device ELFs.
    pub(crate) fn elfs(&self) -> Vec<PathBuf> {
        self.objects.iter().map(|it| it.elf.clone()).collect()
    }

    /// Merges the profiles of its code objects.
    fn join(&self, installed: &Installed) -> Result<()> {
        let objects = self.objects.iter();
        let parts: Vec<_> = objects
            .filter(|object| object.profile != self.profile)
            .map(|object| (object.profile.as_path(), object.tools))
            .collect();
        if parts.is_empty() {
            return Ok(());
        }
        profdata::join(&parts, &self.profile, installed)
    }
}

/// The merge of one code object's profiles.
struct Merge<'a, 'm> {
    arch: &'a str,
    identity: &'a str,
    object: &'m CodeObject<'a>,
    elf: PathBuf,
    profile: PathBuf,
}

impl<'a> Merge<'a, '_> {
    /// Merges. With the result, a line for each profile that was left out; without one, all were.
    fn run(&self, installed: &'a Installed) -> Result<(Option<Object<'a>>, Vec<String>)> {
        let merge = |object: &CodeObject<'_>| {
            profdata::merge(&object.paths(), &self.profile, installed, &[])
        };
        let mut object = self.object.clone();
        let mut left_out = Vec::new();
        let tools = match merge(&object) {
            Ok(tools) => tools,
            Err(error) => {
                // One that is refused makes llvm-profdata refuse all.
                left_out =
                    object.leave_out_damaged(|profile| profdata::check_by_tool(profile, installed));
                if left_out.is_empty() {
                    return Err(error);
                }
                if object.profiles.is_empty() {
                    return Ok((None, left_out));
                }
                merge(&object)?
            }
        };
        let merged = Object {
            identity: self.identity,
            file: object.file,
            elf: self.elf.clone(),
            profile: self.profile.clone(),
            raw: object.profiles.len(),
            tools,
        };
        Ok((Some(merged), left_out))
    }
}
