//! The contents of the inputs of a merge, before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use rocov::format::registry::Grouped;
use rocov::support::diagnostic::{diagnostic, fail};
use tempfile::TempDir;

use super::damaged::Damaged;
use super::sums::Sums;
use crate::cli::{FailureMode, MergeArguments};
use crate::data::{CompletedData, Origins, is_missing, non_atomic, profile_header};
use crate::llvm::{LlvmTools, clang_releases};
use crate::profdata::pooled::{CodeObjectKey, Pool};
use crate::support::failure::failure;
use crate::support::mmap;
use crate::support::paths::{below, here};
use crate::term::plural::count;
use crate::term::print;
use crate::term::remedy::explained;

/// The name of host code in the place of an architecture.
pub(super) const HOST: &str = "host";

/// All that was found in the inputs.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) sums: Sums,
    /// Profiles of host code.
    pub(super) host: Vec<PathBuf>,
    /// The indexed profiles of architectures and of host code that rocov made.
    pub(super) indexed: BTreeMap<String, Vec<u8>>,
    /// The architectures, or host code, whose profiles only llvm-profdata merges: they have traces.
    pub(super) unindexed: BTreeSet<String>,
    /// Kept device ELFs by identity.
    pub(super) kept: BTreeMap<String, PathBuf>,
    /// The files that code objects were loaded from, for profiles that clang optimizes by.
    pub(super) origins: Origins,
    /// The registries, if they are wanted.
    pub(super) registry: Grouped,
    /// True if files in an output that is no pooled directory would be found as inputs, or replace one.
    pub(super) overlaps: bool,
    /// The directories that were left out because others have their runs, each with one of those others.
    pub(super) repeated: BTreeMap<PathBuf, PathBuf>,
    /// Saved sections, which nothing here reads: their number and the first.
    pub(super) sections: Option<(usize, PathBuf)>,
    /// Architectures of all profiles, also of those that `--arch` leaves out.
    pub(super) archs: BTreeSet<String>,
    pub(super) damaged: Vec<Damaged>,
    /// The directories with files for code that was never launched, which are among the others.
    pub(super) zeros: Vec<TempDir>,
}

impl Gathered {
    /// Adds the files next to profiles.
    pub(super) fn add_kept(
        &mut self,
        data: &CompletedData,
        arguments: &MergeArguments,
        mut is_wanted: impl FnMut(&Path) -> bool,
    ) {
        for (identity, path) in data.files.elf_paths() {
            self.kept.insert(identity.to_owned(), path.to_owned());
        }
        if let Some(first) = data.files.sections.first() {
            self.sections = Some((data.files.sections.len(), first.clone()));
        }
        // A registry is no part of an indexed profile.
        if arguments.pooled.is_none() && arguments.data().is_none() {
            return;
        }
        for path in data
            .files
            .named_registry_paths()
            .filter(|path| is_wanted(path))
        {
            let Err(error) = data.completion.add_registry(path, &mut self.registry) else {
                continue;
            };
            if arguments.pooled.is_none() {
                print::message(explained(&error).within("left out"));
            } else {
                self.damaged.push(Damaged {
                    path: path.to_owned(),
                    error,
                });
            }
        }
    }

    /// Completes a pooled directory.
    pub(super) fn keep_in(&self, pool: &Pool) -> Result<()> {
        pool.keep(&self.registry, self.kept.values().map(PathBuf::as_path))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sums.code_objects.is_empty() && self.host.is_empty()
    }

    /// Returns whether the merge may be written without a profile: the user allows that, and all inputs are there
    /// and whole, or --failure-mode lets them be left out.
    pub(super) fn may_be_empty(&self, arguments: &MergeArguments) -> bool {
        arguments.allow_empty
            && (self.damaged.is_empty() || arguments.failure_mode == FailureMode::Warn)
    }

    /// Code objects whose device ELFs were kept next to their profiles, with these.
    pub(super) fn elfs(&self) -> Vec<(&CodeObjectKey, &Path)> {
        let code_objects = self.sums.code_objects.keys();
        code_objects
            .filter_map(|code_object| {
                Some((code_object, self.kept.get(&code_object.identity)?.as_path()))
            })
            .collect()
    }

    /// Looks for code whose counts are too low, before indexed profiles are written.
    ///
    /// # Errors
    ///
    /// Fails if clang is to optimize by them, unless the user allows that.
    pub(super) fn check_atomic(&self, arguments: &MergeArguments) -> Result<()> {
        if arguments.indexed().is_none() {
            return Ok(());
        }
        let elfs: BTreeMap<_, _> = self
            .elfs()
            .into_iter()
            .map(|(key, path)| (&*key.identity, path))
            .collect();
        let elfs: Vec<_> = elfs.into_iter().collect();
        let origin = |identity: &str| self.origins.get(identity).map(Path::to_owned);
        match non_atomic::line_of_kept(&elfs, origin) {
            Some(line) if arguments.pgo.is_some() && !arguments.allow_non_atomic => {
                fail!(
                    "{}", line.what();
                    "{}, and run it again, or use --allow-non-atomic to write the profile anyway",
                    line.next()
                )
            }
            line => {
                print::warn(line.as_slice());
                Ok(())
            }
        }
    }

    /// The error that there are no tools, which profiles with traces need.
    pub(super) fn without_tools(&self, error: &Error) -> Error {
        let archs = self.unindexed.iter().map(|arch| match arch.as_str() {
            HOST => "host code",
            arch => arch,
        });
        let archs: Vec<_> = archs.collect();
        let error = explained(error);
        failure!(
            "cannot merge profiles of {}: they have traces of first calls (-pgo-temporal-instrumentation), which \
             only llvm-profdata merges: {}",
            archs.join(", "), error.what();
            "{}, or compile without that option", error.next()
        )
    }

    /// The releases of clang that may have compiled a code object, if its device ELF was kept and names its
    /// compiler.
    pub(super) fn clang(&self, code_object: &CodeObjectKey) -> Option<RangeInclusive<u32>> {
        clang_releases(&compiler(self.kept.get(&code_object.identity)?)?)
    }

    /// Takes out profiles of host code that are not whole.
    pub(super) fn check_host(&mut self, installed: &LlvmTools) {
        let damaged = &mut self.damaged;
        self.host.retain(|path| {
            if profile_header::is_indexed(path) {
                return true;
            }
            let result = profile_header::check(path, installed);
            let refused = result.map_err(|error| {
                damaged.push(Damaged {
                    error: error.context(format!("cannot merge {}", path.display())),
                    path: path.clone(),
                });
            });
            refused.is_ok()
        });
    }

    /// Prints the files that are in no output, though a user could expect them there.
    pub(super) fn say_unread(&self) {
        if let Some((number, first)) = &self.sections {
            let files = count(*number, "file");
            print::message(format_args!(
                "left out: {files} of saved sections (see `rocov show`), such as {}",
                first.display()
            ));
        }
        for (directory, other) in &self.repeated {
            let here = here();
            print::message(diagnostic!(
                "{} contains only runs that are also in {}, and which are counted once",
                below(&directory.to_string_lossy(), &here), below(&other.to_string_lossy(), &here);
                "leave it out"
            ));
        }
        if let Some((number, first)) = &self.sums.repeated {
            print::message(format_args!(
                "{} given more than once, counted once, such as {}",
                count(*number, "profile"),
                first.display()
            ));
        }
    }

    /// Names the damaged inputs.
    pub(super) fn say_damaged(&mut self) {
        self.damaged.sort_by(|a, b| a.path.cmp(&b.path));
        let is_empty = self.is_empty();
        for damaged in &self.damaged {
            let message = explained(&damaged.error);
            print::message(match is_empty {
                true => message,
                false => message.within("left out"),
            });
        }
    }

    /// Makes the error that a merge lacks damaged or missing inputs.
    pub(super) fn incomplete(&self) -> Error {
        let missing = self
            .damaged
            .iter()
            .filter(|input| is_missing(&input.error))
            .count();
        let mut inputs = Vec::new();
        if let number @ 1.. = self.damaged.len() - missing {
            inputs.push(count(number, "damaged input"));
        }
        if missing > 0 {
            inputs.push(count(missing, "missing input"));
        }
        failure!(
            "the merge was written without {}", inputs.join(" and ");
            "name other inputs, or allow this with --failure-mode=all"
        )
    }

    /// Makes the error that there is nothing to merge, with the reason.
    pub(super) fn nothing_to_merge(&self, arch: Option<&str>) -> Error {
        let archs: Vec<_> = self.archs.iter().map(String::as_str).collect();
        match arch {
            _ if !self.damaged.is_empty() => {
                failure!("nothing written: no input can be merged"; "see the reasons above")
            }
            Some(arch) if !archs.is_empty() => {
                failure!(
                    "nothing written: no profile belongs to {arch}";
                    "choose one of these with --arch: {}", archs.join(", ")
                )
            }
            _ => {
                failure!(
                    "nothing written: no profile in the inputs";
                    "name the directories that `rocov run` wrote to; it writes none if no instrumented GPU code ran \
                     (--allow-empty lets a task write a pooled directory without any)"
                )
            }
        }
    }
}

/// The version that the compiler of a device ELF wrote into it. A damaged one has none.
pub(super) fn compiler(elf: &Path) -> Option<String> {
    let elf = mmap::map(elf).ok()?;
    rocov::format::codeobject::CodeObject::parse(&elf[..])
        .ok()?
        .compiler()
}
