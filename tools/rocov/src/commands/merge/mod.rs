//! `rocov merge`: the profiles of many processes, ranks and GPUs into one for each code object.
//!
//! ```text
//! inputs: names -> sums: one per code object -> outputs: indexed profiles (-> pgo: flags), or a pooled directory
//! ```
//!
//! The number of code objects bounds the memory, not the contents of the files: rocov keeps the name of
//! a profile and its device and inode number. A directory that is written gets the registries too,
//! which are in memory until then.

mod damaged;
mod gathered;
mod index;
mod indexed;
mod inputs;
mod outputs;
mod pgo;
mod progress;
mod repeats;
mod shard;
mod sums;

use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::path::Path;
use std::thread;

use anyhow::Result;
use rocov::format::registry::Grouped;
use rocov::support::diagnostic::{diagnostic, fail};

use crate::cli::{FailureMode, IfExists, MergeArguments};
use crate::data::{CompletedData, DataListing, ProcessPlaces, profile_header};
use crate::llvm::LlvmTools;
use crate::profdata::pooled;
use crate::term::exit_status::CommandResult;
use crate::term::print;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;
use damaged::Damaged;
use gathered::{Gathered, HOST, compiler};
use inputs::MergeInputs;
use progress::Progress;

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
            print::message(explained(&error));
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
        fail!("{output} exists"; "remove it, or use --if-exists=replace or --if-exists=keep");
    }
    if !arguments.quiet {
        print::message(diagnostic!(
            "{output} exists, and was not changed";
            "use --if-exists=replace to merge again"
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
    let inputs = MergeInputs::find(arguments)?;
    let overlaps = arguments.data().is_some_and(|data| inputs.overlap(data));
    let (listing, all_builds) = (inputs.data, arguments.all_builds);
    let data = match arguments.pgo {
        Some(_) => listing.complete_without_zeros(all_builds),
        None => Warnings::printing(|warnings| listing.complete(all_builds, warnings))?,
    };
    if !arguments.quiet {
        print::warn(&data.files.left_out_merges());
        print::warn(&data.older);
    }
    let mut gathered = Gathered {
        overlaps,
        registry: match arguments.processes {
            true => Grouped::for_processes(),
            false => Grouped::default(),
        },
        ..Gathered::default()
    };
    let repeated = repeats::repeated(&data)?;
    let mut places = ProcessPlaces::default();
    let mut is_wanted = |path: &Path| {
        if arguments.shard.is_none() && repeated.is_empty() {
            return true;
        }
        let place = places.place(path);
        arguments
            .shard
            .is_none_or(|shard| shard::has(shard, &place))
            && !repeated.contains_key(&place.data)
    };
    gathered.add_kept(&data, arguments, &mut is_wanted);
    if arguments.pgo.is_some() {
        gathered.origins = data.registries.origins();
    }
    gathered.repeated = repeated.clone();
    let CompletedData {
        files,
        zeros,
        builds,
        ..
    } = data;
    let DataListing {
        device,
        host,
        damaged,
        ..
    } = files;
    gathered.zeros = zeros;
    let damaged = damaged
        .into_iter()
        .map(|(path, error)| Damaged { path, error });
    gathered.damaged.extend(damaged);
    let threads = arguments
        .num_threads
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZero::get);
    let progress = Progress::default();
    let is_shown = !arguments.quiet && io::stderr().is_terminal();
    let wanted = |arch: &str| arguments.arch.as_deref().is_none_or(|asked| asked == arch);
    let (mut optimizing, mut of_blocks) = (0, 0);
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
        fail!(
            "all profiles contain counts of a trace or of PTX, which clang cannot use to optimize";
            "compile with the flags that `rocov flags` prints"
        );
    }
    gathered.sums = sums;
    gathered.damaged.append(&mut gathered.sums.damaged);
    Ok(gathered)
}
