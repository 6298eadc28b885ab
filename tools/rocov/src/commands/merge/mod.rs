//! `rocov merge`: the profiles of many processes, ranks and GPUs into one for each code object.
//!
//! ```text
//! inputs: names -> sums: one per code object -> outputs: indexed profiles (-> pgo: flags), or a pooled directory
//! ```
//!
//! The number of code objects bounds the memory, not the contents of the files: rocov keeps the name of
//! a profile and its device and inode number. A directory that is written gets the registries too,
//! which are in memory until then.

mod index;
mod inputs;
mod outputs;
mod pgo;
mod progress;
mod repeats;
mod shard;
mod sums;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Error, Result, anyhow, bail};
use rocov::format::registry::Grouped;
use tempfile::TempDir;

use crate::cli::{FailureMode, IfExists, MergeArguments};
use crate::data::{DataDirectory, Origins, ProcessPlaces, is_missing, non_atomic, profile_header};
use crate::llvm::{LlvmTools, clang_releases};
use crate::profdata::pooled;
use crate::profdata::pooled::{CodeObjectKey, Pool};
use crate::support::mmap;
use crate::support::paths::{below, here};
use crate::term::exit_status::CommandResult;
use crate::term::plural::count;
use crate::term::print;
use crate::term::warnings::Warnings;
use inputs::MergeInputs;
use progress::Progress;
use sums::Sums;

/// The name of host code in the place of an architecture.
const HOST: &str = "host";

/// An input that cannot be merged.
#[derive(Debug)]
struct Damaged {
    /// The path by which messages are sorted.
    path: PathBuf,
    /// The reason, which names the path.
    error: Error,
}

/// All that was found in the inputs.
#[derive(Default)]
struct Gathered {
    sums: Sums,
    /// Profiles of host code.
    host: Vec<PathBuf>,
    /// The indexed profiles of architectures and of host code that rocov made.
    indexed: BTreeMap<String, Vec<u8>>,
    /// The architectures, or host code, whose profiles only llvm-profdata merges: they have traces.
    unindexed: BTreeSet<String>,
    /// Kept device ELFs by identity.
    kept: BTreeMap<String, PathBuf>,
    /// The files that code objects were loaded from, for profiles that clang optimizes by.
    origins: Origins,
    /// The registries, if they are wanted.
    registry: Grouped,
    /// True if files in an output that is no pooled directory would be found as inputs, or replace one.
    overlaps: bool,
    /// The directories that were left out because others have their runs, each with one of those others.
    repeated: BTreeMap<PathBuf, PathBuf>,
    /// Saved sections, which nothing here reads: their number and the first.
    sections: Option<(usize, PathBuf)>,
    /// Architectures of all profiles, also of those that `--arch` leaves out.
    archs: BTreeSet<String>,
    damaged: Vec<Damaged>,
    /// The directories with files for code that was never launched, which are among the others.
    zeros: Vec<TempDir>,
}

/// Merges the inputs.
pub(crate) fn merge(arguments: &MergeArguments) -> CommandResult {
    if keeps_output(arguments)? {
        return Ok(0);
    }
    if let Some(directory) = &arguments.pooled {
        pooled::check_free(directory)?;
    }
    let mut gathered = gather(arguments)?;
    if arguments.llvm_bin.is_none() {
        index::all(&mut gathered, arguments)?;
    }
    let installed = tools(&mut gathered, arguments)?;
    gathered.say_unread();
    gathered.say_damaged();
    if gathered.is_empty() && !gathered.may_be_empty(arguments) {
        let error = gathered.nothing_to_merge(arguments.arch.as_deref());
        if arguments.failure_mode == FailureMode::Warn {
            print::message(format_args!("{error:#}"));
            return Ok(0);
        }
        return Err(error.into());
    }
    gathered.check_atomic(arguments)?;
    outputs::write(arguments, &gathered, installed.as_ref())?;
    if arguments.failure_mode == FailureMode::Any && !gathered.damaged.is_empty() {
        return Err(gathered.incomplete().into());
    }
    Ok(0)
}

/// Returns whether an output is there already, and stays as it is.
///
/// # Errors
///
/// Fails if an output is there that must not be.
fn keeps_output(arguments: &MergeArguments) -> Result<bool> {
    if arguments.if_exists == IfExists::Replace {
        return Ok(false);
    }
    let Some(output) = outputs::existing(arguments) else {
        return Ok(false);
    };
    let output = output.display();
    if arguments.if_exists == IfExists::Fail {
        bail!("{output} exists: remove it, or give --if-exists=replace or --if-exists=keep");
    }
    if !arguments.quiet {
        print::message(format_args!(
            "{output} exists, and stays as it is: give --if-exists=replace to merge again"
        ));
    }
    Ok(true)
}

/// The installed tools, if the user chose them, or if rocov cannot write a profile itself.
///
/// # Errors
///
/// Fails if there are none.
fn tools(gathered: &mut Gathered, arguments: &MergeArguments) -> Result<Option<LlvmTools>> {
    if arguments.llvm_bin.is_none() && gathered.unindexed.is_empty() {
        return Ok(None);
    }
    let found = LlvmTools::find(arguments.llvm_bin.as_deref());
    let mut installed = match arguments.llvm_bin {
        Some(_) => found?,
        None => found.map_err(|error| gathered.without_tools(&error))?,
    };
    installed.prefer(gathered.elfs().iter().filter_map(|(_, elf)| compiler(elf)));
    if !gathered.indexed.contains_key(HOST) {
        gathered.check_host(&installed);
    }
    Ok(Some(installed))
}

/// Finds all inputs and adds up those of code objects.
fn gather(arguments: &MergeArguments) -> Result<Gathered> {
    let mut inputs = MergeInputs::find(arguments)?;
    if arguments.pgo.is_none() {
        Warnings::printing(|warnings| inputs.data.add_zeros(warnings))?;
    }
    let mut left_out = inputs.data.left_out_merges();
    left_out.extend(inputs.data.take_builds(arguments.all_builds));
    if !arguments.quiet {
        print::warn(&left_out);
    }
    let mut gathered = Gathered {
        overlaps: arguments.data().is_some_and(|it| inputs.overlap(it)),
        registry: match arguments.processes {
            true => Grouped::for_processes(),
            false => Grouped::default(),
        },
        ..Gathered::default()
    };
    let repeated = repeats::repeated(&inputs.data)?;
    let mut places = ProcessPlaces::default();
    let mut is_wanted = |path: &Path| {
        if arguments.shard.is_none() && repeated.is_empty() {
            return true;
        }
        let place = places.of(path);
        arguments.shard.is_none_or(|it| shard::has(it, &place))
            && !repeated.contains_key(&place.data)
    };
    gathered.add_kept(&inputs.data, arguments, &mut is_wanted);
    if arguments.pgo.is_some() {
        gathered.origins = inputs.data.origins();
    }
    gathered.repeated = repeated.clone();
    gathered.zeros = std::mem::take(&mut inputs.data.zeros);
    let damaged = std::mem::take(&mut inputs.data.damaged).into_iter();
    let damaged = damaged.map(|(path, error)| Damaged { path, error });
    gathered.damaged.extend(damaged);
    let threads = arguments
        .num_threads
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZero::get);
    let progress = Progress::default();
    let is_shown = !arguments.quiet && io::stderr().is_terminal();
    let wanted = |arch: &str| arguments.arch.as_deref().is_none_or(|it| it == arch);
    let (mut optimizing, mut of_blocks) = (0, 0);
    let DataDirectory {
        device,
        host,
        builds,
        ..
    } = inputs.data;
    let (sums, ()) = progress.shown(is_shown, || {
        sums::add_all(threads, arguments.per_test, &progress, |adder| {
            for profile in device {
                if !gathered.archs.contains(&profile.arch) {
                    gathered.archs.insert(profile.arch.clone());
                }
                let is_for_clang = arguments.pgo.is_some();
                // clang would optimize code for size that was not launched in one run.
                let is_of_zeros = is_for_clang && profile.is_of_zeros;
                let is_of_blocks =
                    is_for_clang && !is_of_zeros && profile_header::has_blocks(&profile.path);
                let is_left_out = is_of_zeros || is_of_blocks;
                optimizing += usize::from(!is_left_out);
                of_blocks += usize::from(is_of_blocks);
                // Zeros may be in a temporary directory, and each share can have them.
                let is_wanted = profile.is_of_zeros || is_wanted(&profile.path);
                if wanted(&profile.arch) && !is_left_out && is_wanted {
                    let build = builds.tag_of(&profile);
                    adder.add(profile, build);
                }
            }
            for path in host {
                gathered.archs.insert(HOST.to_owned());
                if wanted(HOST) && is_wanted(&path) && adder.is_new(&path) {
                    gathered.host.push(path);
                }
            }
        })
    });
    if of_blocks > 0 && optimizing + gathered.host.len() == 0 {
        bail!(
            "all profiles have counts of a trace or of PTX, by which clang cannot optimize: compile with what `rocov flags` \
             prints"
        );
    }
    gathered.sums = sums;
    gathered.damaged.append(&mut gathered.sums.damaged);
    Ok(gathered)
}

impl Gathered {
    /// Adds the files beside profiles.
    fn add_kept(
        &mut self,
        data: &DataDirectory,
        arguments: &MergeArguments,
        mut is_wanted: impl FnMut(&Path) -> bool,
    ) {
        for (identity, path) in data.elf_paths() {
            self.kept.insert(identity.to_owned(), path.to_owned());
        }
        if let Some(first) = data.sections.first() {
            self.sections = Some((data.sections.len(), first.clone()));
        }
        // A registry is no part of an indexed profile.
        if arguments.pooled.is_none() && arguments.data().is_none() {
            return;
        }
        for path in data.named_registry_paths().filter(|path| is_wanted(path)) {
            let Err(error) = data.add_registry(path, &mut self.registry) else {
                continue;
            };
            if arguments.pooled.is_none() {
                print::message(format_args!("left out: {error:#}"));
            } else {
                self.damaged.push(Damaged {
                    path: path.to_owned(),
                    error,
                });
            }
        }
    }

    /// Completes a pooled directory.
    fn keep_in(&self, pool: &Pool) -> Result<()> {
        pool.keep(&self.registry, self.kept.values().map(PathBuf::as_path))
    }

    fn is_empty(&self) -> bool {
        self.sums.code_objects.is_empty() && self.host.is_empty()
    }

    /// Returns whether the merge may be written without a profile: the user allows that, and all inputs are there
    /// and whole, or --failure-mode lets them be left out.
    fn may_be_empty(&self, arguments: &MergeArguments) -> bool {
        arguments.allow_empty
            && (self.damaged.is_empty() || arguments.failure_mode == FailureMode::Warn)
    }

    /// Code objects whose device ELFs were kept beside their profiles, with these.
    fn elfs(&self) -> Vec<(&CodeObjectKey, &Path)> {
        let code_objects = self.sums.code_objects.keys();
        code_objects
            .filter_map(|it| Some((it, self.kept.get(&it.identity)?.as_path())))
            .collect()
    }

    /// Looks for code whose counts are too low, before indexed profiles are written.
    ///
    /// # Errors
    ///
    /// Fails if clang is to optimize by them, unless the user allows that.
    fn check_atomic(&self, arguments: &MergeArguments) -> Result<()> {
        if arguments.indexed().is_none() {
            return Ok(());
        }
        let elfs = self.elfs().into_iter();
        let elfs: BTreeMap<_, _> = elfs.map(|(key, path)| (&*key.identity, path)).collect();
        let elfs: Vec<_> = elfs.into_iter().collect();
        let origin = |identity: &str| self.origins.of(identity).map(Path::to_owned);
        match non_atomic::line_of_kept(&elfs, origin) {
            Some(line) if arguments.pgo.is_some() && !arguments.allow_non_atomic => {
                bail!(
                    "{line}, and run it again, or give --allow-non-atomic to write the profile as it is"
                )
            }
            line => {
                print::warn(line.as_slice());
                Ok(())
            }
        }
    }

    /// The error that there are no tools, which profiles with traces need.
    fn without_tools(&self, error: &Error) -> Error {
        let archs = self.unindexed.iter().map(|arch| match arch.as_str() {
            HOST => "host code",
            arch => arch,
        });
        let archs: Vec<_> = archs.collect();
        anyhow!(
            "cannot merge profiles of {}: they have traces of first calls (-pgo-temporal-instrumentation), which only \
             llvm-profdata merges: {error:#}, or compile without that option",
            archs.join(", ")
        )
    }

    /// The releases of clang that may have compiled a code object, if its device ELF was kept and names its
    /// compiler.
    fn clang(&self, code_object: &CodeObjectKey) -> Option<RangeInclusive<u32>> {
        clang_releases(&compiler(self.kept.get(&code_object.identity)?)?)
    }

    /// Takes out profiles of host code that are not whole.
    fn check_host(&mut self, installed: &LlvmTools) {
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
    fn say_unread(&self) {
        if let Some((number, first)) = &self.sections {
            let files = count(*number, "file");
            print::message(format_args!(
                "left out: {files} of saved sections (see `rocov show`), such as {}",
                first.display()
            ));
        }
        for (directory, other) in &self.repeated {
            let here = here();
            print::message(format_args!(
                "{} has only runs of {}, which count once: leave it out",
                below(&directory.to_string_lossy(), &here),
                below(&other.to_string_lossy(), &here)
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
    fn say_damaged(&mut self) {
        self.damaged.sort_by(|a, b| a.path.cmp(&b.path));
        let prefix = if self.is_empty() { "" } else { "left out: " };
        for damaged in &self.damaged {
            print::message(format_args!("{prefix}{:#}", damaged.error));
        }
    }

    /// Makes the error that a merge lacks damaged or missing inputs.
    fn incomplete(&self) -> Error {
        let missing = self.damaged.iter().filter(|it| is_missing(&it.error));
        let missing = missing.count();
        let mut inputs = Vec::new();
        if let number @ 1.. = self.damaged.len() - missing {
            inputs.push(count(number, "damaged input"));
        }
        if missing > 0 {
            inputs.push(count(missing, "missing input"));
        }
        anyhow!(
            "the merge was written without {}: name other inputs, or allow this with --failure-mode=all",
            inputs.join(" and ")
        )
    }

    /// Makes the error that there is nothing to merge, with the reason.
    fn nothing_to_merge(&self, arch: Option<&str>) -> Error {
        let archs: Vec<_> = self.archs.iter().map(String::as_str).collect();
        match arch {
            _ if !self.damaged.is_empty() => {
                anyhow!("nothing written: no input can be merged: see the reasons above")
            }
            Some(arch) if !archs.is_empty() => anyhow!(
                "nothing written: no profile is of {arch}: choose one of these with --arch: {}",
                archs.join(", ")
            ),
            _ => anyhow!(
                "nothing written: no profile in the inputs: give the directories that `rocov run` wrote to; it \
                 writes none if no instrumented GPU code ran (--allow-empty lets a task write a pooled directory \
                 without any)"
            ),
        }
    }
}

/// The version that the compiler of a device ELF wrote into it. A damaged one has none.
fn compiler(elf: &Path) -> Option<String> {
    let elf = mmap::map(elf).ok()?;
    rocov::format::codeobject::CodeObject::parse(&elf[..])
        .ok()?
        .compiler()
}
