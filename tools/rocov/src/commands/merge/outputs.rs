//! The outputs of a merge: indexed profiles, a pooled directory, or both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rocov::store::layout::PROFRAW;
use rocov::support::diagnostic::fail;

use super::gathered::{Gathered, HOST};
use super::indexed::Indexed;
use super::pgo;
use crate::cli::MergeArguments;
use crate::data::{POOLED_HOST, profile_header};
use crate::llvm::LlvmTools;
use crate::profdata::pooled::{CodeObjectKey, Pool};
use crate::profdata::{llvm_profdata, pooled};
use crate::support::atomic;
use crate::support::printable::printable;
use crate::term::plural::count;
use crate::term::print;

/// Profiles that go into one indexed profile.
struct Group {
    /// The contents, in words.
    contents: String,
    profiles: Vec<PathBuf>,
}

/// The first of the requested outputs that is there already. An empty directory is not.
pub(super) fn existing(arguments: &MergeArguments) -> Option<&Path> {
    let outputs = [arguments.pooled.as_deref(), arguments.indexed()];
    outputs.into_iter().flatten().find(|path| {
        let entries = fs::read_dir(path);
        entries.map_or_else(|_| path.exists(), |mut entries| entries.next().is_some())
    })
}

/// Writes the requested outputs, and prints their paths: on standard output, unless flags
/// are printed there.
///
/// # Errors
///
/// Fails if an output cannot be written, if one file would have to hold several profiles, or if
/// llvm-profdata is needed and is not installed or refuses a profile.
pub(super) fn write(
    arguments: &MergeArguments,
    gathered: &Gathered,
    installed: Option<&LlvmTools>,
) -> Result<()> {
    let pooled = arguments.pooled.as_deref();
    let place = pooled.map(atomic::parent).or(arguments.data());
    let pool = Pool::write(gathered.sums.pooled(), place)?;
    let mut said = String::new();
    let mut flags = None;
    if let Some(output) = arguments.indexed() {
        let written = write_indexed(output, gathered, &pool, installed, arguments)?;
        for Indexed {
            arch,
            contents,
            path,
        } in &written
        {
            let line = format!("{arch}: {contents}: {}", path.display());
            said += &format!("{}\n", printable(&line));
        }
        if arguments.pgo.is_some() {
            flags = Some(pgo::flags(&written, gathered)?);
        }
    }
    if let Some(directory) = pooled {
        said += &write_pooled(directory, gathered, &pool, installed, arguments)?;
        pool.put(directory)?;
    } else if let Some(directory) = arguments.data() {
        put_beside(directory, gathered, pool)?;
    }
    if arguments.quiet {
        said.clear();
    }
    match flags {
        Some(flags) => {
            print::aside(&said);
            print::text(&flags)
        }
        None => print::text(said.as_bytes()),
    }
}

/// Writes one indexed profile for each arch, and one for host code.
fn write_indexed<'a>(
    output: &Path,
    gathered: &Gathered,
    pool: &'a Pool,
    installed: Option<&LlvmTools>,
    arguments: &MergeArguments,
) -> Result<Vec<Indexed<'a>>> {
    let groups = groups(gathered, pool);
    let is_one = profile_header::is_indexed(output);
    if is_one && groups.len() > 1 {
        let archs: Vec<_> = groups.keys().copied().collect();
        fail!(
            "the profiles come from {}, but one file cannot keep their functions separate",
            archs.join(", ");
            "choose one with --arch, or name a directory with -o"
        );
    }
    let parent = if is_one {
        output.parent().unwrap_or(output)
    } else {
        output
    };
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let mut written = Vec::new();
    for (arch, group) in groups {
        let path = if is_one {
            output.to_owned()
        } else {
            output.join(format!("{arch}.profdata"))
        };
        match gathered.indexed.get(arch) {
            Some(bytes) => atomic::replace(&path, |file| Ok(fs::write(file, bytes)?))?,
            None => index(&group.profiles, &path, tools(installed)?, arguments)?,
        }
        written.push(Indexed {
            arch,
            contents: group.contents,
            path,
        });
    }
    Ok(written)
}

/// Completes the pooled directory that is to be put at `directory`.
fn write_pooled(
    directory: &Path,
    gathered: &Gathered,
    pool: &Pool,
    installed: Option<&LlvmTools>,
    arguments: &MergeArguments,
) -> Result<String> {
    gathered.keep_in(pool)?;
    let mut said = String::new();
    for (arch, group) in groups(gathered, pool) {
        let mut place = directory.to_owned();
        if arch == HOST {
            let host = pool.profraw().join(POOLED_HOST);
            match gathered.indexed.get(HOST) {
                Some(bytes) => {
                    fs::write(&host, bytes)
                        .with_context(|| format!("cannot write {}", host.display()))?;
                }
                None => index(&group.profiles, &host, tools(installed)?, arguments)?,
            }
            place = place.join(PROFRAW).join(POOLED_HOST);
        }
        said += &format!("{arch}: {}: {}\n", group.contents, place.display());
    }
    Ok(said)
}

/// Puts the files that a report needs next to the indexed profiles in `directory`, unless raw profiles
/// are there that it would replace or add to.
fn put_beside(directory: &Path, gathered: &Gathered, pool: Pool) -> Result<()> {
    if gathered.overlaps {
        return Ok(());
    }
    if !pooled::is_of_merges(directory)? {
        print::message(format_args!(
            "{0}/{PROFRAW} contains profiles of runs, and was not changed: `rocov report {0}` reports on those; name \
            another directory to report on the merged profiles",
            directory.display()
        ));
        return Ok(());
    }
    gathered.keep_in(&pool)?;
    if !gathered.host.is_empty() {
        let [from, to] = [
            directory.join(format!("{HOST}.profdata")),
            pool.profraw().join(POOLED_HOST),
        ];
        fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    pool.put_into(directory)
}

/// The profiles of each arch and of host code.
fn groups<'a>(gathered: &Gathered, pool: &'a Pool) -> BTreeMap<&'a str, Group> {
    let mut groups = BTreeMap::new();
    for (arch, profiles) in &pool.profiles {
        let of_arch = |(code_object, _): &(&CodeObjectKey, _)| code_object.arch == *arch;
        let summed = gathered.sums.code_objects.iter().filter(of_arch);
        let number = summed.clone().map(|(_, summed)| summed.profiles).sum();
        let identities: BTreeSet<_> = summed
            .map(|(code_object, _)| &code_object.identity)
            .collect();
        let contents = format!(
            "{} of {}",
            count(number, "profile"),
            count(identities.len(), "code object")
        );
        let profiles = profiles.clone();
        groups.insert(arch.as_str(), Group { contents, profiles });
    }
    if !gathered.host.is_empty() {
        let group = Group {
            contents: format!("{} of host code", count(gathered.host.len(), "profile")),
            profiles: gathered.host.clone(),
        };
        groups.insert(HOST, group);
    }
    groups
}

/// The installed tools.
///
/// # Errors
///
/// Fails if rocov did not look for them.
fn tools(installed: Option<&LlvmTools>) -> Result<&LlvmTools> {
    installed.context("rocov looked for no tools of LLVM")
}

/// Runs llvm-profdata to merge `profiles`.
fn index(
    profiles: &[PathBuf],
    output: &Path,
    installed: &LlvmTools,
    arguments: &MergeArguments,
) -> Result<()> {
    let profiles: Vec<_> = profiles.iter().map(PathBuf::as_path).collect();
    let mut options = vec![format!("--failure-mode={}", arguments.failure_mode)];
    options.extend(
        arguments
            .num_threads
            .map(|number| format!("--num-threads={number}")),
    );
    options.extend(arguments.sparse.then(|| "--sparse".to_owned()));
    print::warn(&llvm_profdata::merge(
        &profiles, output, installed, &options,
    )?);
    Ok(())
}
