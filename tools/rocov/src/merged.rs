//! Raw profiles into indexed ones: one for each arch, by llvm-profdata, and one for each code object.
//!
//! Two code objects can have the same function: only by itself each has its own counts.

use crate::llvm_tools::Installed;
use crate::matching::{CodeObject, Matching, OfArch, leave_out_damaged};
use crate::objects::ObjectFile;
use crate::{child, indexed, mapped, parallel, profdata};
use anyhow::{Context, Result};
use rocov::profraw::Sum;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Everything that was merged.
pub(crate) struct Merged<'a> {
    pub(crate) archs: Vec<Arch<'a>>,
    /// Has the files that are made for this.
    directory: TempDir,
}

/// What was merged of one arch.
pub(crate) struct Arch<'a> {
    /// Such as `gfx90a`.
    pub(crate) name: &'a str,
    /// By identity; at least one.
    pub(crate) objects: Vec<Object<'a>>,
    /// The indexed profile of all of them.
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
    /// The number of its raw profiles, without those of zeros: 0 if it was never launched.
    pub(crate) raw: usize,
}

impl<'a> Merged<'a> {
    /// Merges what belongs together, and puts device ELFs that lie in other files where llvm-cov can read
    /// them: all in a temporary directory. Profiles that llvm-profdata refuses are taken out of
    /// `matching`; their number comes with the result, and standard error says which.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written, or no installed tool reads a profile.
    pub(crate) fn of(matching: &mut Matching<'a>, installed: &Installed) -> Result<(Self, usize)> {
        let directory = TempDir::new().context("cannot make a temporary directory")?;
        let output = directory.path();
        // Before the merges, as llvm-cov warns of objects that are newer than the profile.
        let mut elfs = BTreeMap::new();
        for (arch, objects) in &matching.archs {
            for (identity, object) in objects {
                let elf = object.file.place(object.elf, arch, output)?;
                elfs.insert((*arch, *identity), elf);
            }
        }
        let refused = merge_archs(&mut matching.archs, output, installed)?;

        let archs = matching.archs.iter();
        let merges = archs.flat_map(|(arch, objects)| {
            let is_alone = objects.len() == 1;
            objects.iter().map(move |it| (*arch, is_alone, it))
        });
        let merges: Vec<_> = merges.collect();
        let objects = parallel::map(&merges, |(arch, is_alone, (identity, object))| {
            let profile = if *is_alone {
                of_arch(output, arch)
            } else {
                let part = of_arch(output, &format!("{arch}.{identity}"));
                merge_object(object, &part, installed)?;
                part
            };
            Ok(Object {
                identity,
                file: object.file,
                elf: elfs[&(*arch, **identity)].clone(),
                profile,
                raw: object.counted(),
            })
        })?;
        let mut archs: Vec<Arch<'_>> = Vec::new();
        for ((name, ..), object) in merges.iter().zip(objects) {
            match archs.last_mut() {
                Some(arch) if arch.name == *name => arch.objects.push(object),
                _ => archs.push(Arch {
                    name,
                    objects: vec![object],
                    profile: of_arch(output, name),
                }),
            }
        }
        let merged = Self { archs, directory };
        Ok((merged, refused))
    }

    /// A directory for files that are needed as long as this.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Whether a code object is among what was merged.
    pub(crate) fn has(&self, identity: &str) -> bool {
        let mut objects = self.archs.iter().flat_map(|arch| &arch.objects);
        objects.any(|object| object.identity == identity)
    }
}

impl Object<'_> {
    /// What the user calls the device ELF.
    pub(crate) fn name(&self) -> String {
        let file = self.file.path.display();
        match self.elf == self.file.path {
            true => file.to_string(),
            false => format!("{file}: code object {}", self.identity),
        }
    }
}

impl Arch<'_> {
    /// The device ELFs.
    pub(crate) fn elfs(&self) -> Vec<PathBuf> {
        self.objects.iter().map(|it| it.elf.clone()).collect()
    }
}

/// Where the indexed profile of this name is in a directory.
fn of_arch(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.profdata"))
}

/// Merges the profiles of each arch. What llvm-profdata refuses is taken out, and how many these were
/// is returned.
fn merge_archs(
    archs: &mut BTreeMap<&str, OfArch<'_>>,
    output: &Path,
    installed: &Installed,
) -> Result<usize> {
    let merge = |arch: &str, objects: &OfArch<'_>| {
        let raw: Vec<_> = objects.values().flat_map(CodeObject::paths).collect();
        profdata::merge(&raw, &of_arch(output, arch), installed, &[])
    };
    let of_archs: Vec<_> = archs.iter().collect();
    let ended = parallel::map(&of_archs, |(arch, objects)| Ok(merge(arch, objects)))?;
    let mut refused = 0;
    for ((arch, objects), result) in archs.iter_mut().zip(ended) {
        let Err(error) = result else { continue };
        // One that is refused makes llvm-profdata refuse all.
        let left_out = leave_out_damaged(objects, |profile| {
            profdata::check_by_tool(profile, installed)
        });
        if left_out.is_empty() {
            return Err(error);
        }
        child::say(&left_out);
        refused += left_out.len();
        if !objects.is_empty() {
            merge(arch, objects)?;
        }
    }
    Ok(refused)
}

/// Merges the profiles of one code object into `part`.
///
/// # Errors
///
/// When it cannot be written, or llvm-profdata fails.
pub(crate) fn merge_object(
    object: &CodeObject<'_>,
    part: &Path,
    installed: &Installed,
) -> Result<()> {
    let paths = object.paths();
    let indexed = || {
        let (first, more) = paths.split_first()?;
        let mut sum = Sum::of(&mapped::map(first).ok()?[..]).ok()?;
        for path in more {
            sum.add(&mapped::map(path).ok()?).ok()?;
        }
        indexed::write(&sum)
    };
    match indexed() {
        Some(bytes) => {
            fs::write(part, bytes).with_context(|| format!("cannot write {}", part.display()))
        }
        None => profdata::merge(&paths, part, installed, &[]),
    }
}
