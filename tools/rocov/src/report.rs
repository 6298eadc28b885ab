//! `rocov report`: profiles and device ELFs brought together, merged and shown per arch.

use crate::cli::ReportArguments;
use crate::llvm_tools::{Installed, Tools};
use crate::objects::{DeviceElf, ObjectFile};
use crate::profiles::{self, DeviceProfile, Listing};
use crate::status::Outcome;
use crate::{child, merge};
use anyhow::{Context, Error, Result, anyhow, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints the report.
pub(crate) fn report(arguments: &ReportArguments) -> Outcome {
    check_sources(arguments.show.as_deref().unwrap_or_default())?;
    let directory = &arguments.directory;
    let listing = profiles::list(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    if listing.device.is_empty() {
        return Err(nothing_to_report(directory, &listing).into());
    }
    let files = arguments
        .objects
        .iter()
        .map(|path| ObjectFile::open(path))
        .collect::<Result<Vec<_>>>()?;
    let installed = Installed::find(arguments.llvm_bin.as_deref())?;

    let archs = match_up(&listing.device, &files);
    for line in left_out(&listing, &files) {
        eprintln!("rocov: {line}");
    }
    if archs.is_empty() {
        return Err(anyhow!(
            "no profile in {} is of device code in the given objects: give the files with the \
             kernels that ran, as they were when they ran",
            directory.display()
        )
        .into());
    }
    for (arch, matched) in &archs {
        report_arch(arch, matched, arguments, &installed)?;
    }
    Ok(0)
}

/// Refuses source files that are not there: llvm-cov ignores them, and then shows all files.
fn check_sources(sources: &[PathBuf]) -> Result<()> {
    match sources.iter().find(|source| !source.exists()) {
        Some(missing) => bail!(
            "no source file {}: give its path as seen from here",
            missing.display()
        ),
        None => Ok(()),
    }
}

/// What belongs to one arch.
#[derive(Default)]
struct Matched<'a> {
    profiles: Vec<&'a DeviceProfile>,
    /// By identity, so that each is there once though several files may hold it.
    elfs: BTreeMap<&'a str, (&'a ObjectFile, &'a DeviceElf)>,
}

/// Finds the device ELF of each profile; leaves out profiles that have none.
fn match_up<'a>(
    profiles: &'a [DeviceProfile],
    files: &'a [ObjectFile],
) -> BTreeMap<&'a str, Matched<'a>> {
    let mut elfs = BTreeMap::new();
    for file in files {
        for elf in &file.elfs {
            elfs.entry(elf.identity.as_str()).or_insert((file, elf));
        }
    }
    let mut archs: BTreeMap<_, Matched<'_>> = BTreeMap::new();
    for profile in profiles {
        if let Some((identity, elf)) = elfs.get_key_value(profile.identity.as_str()) {
            let matched = archs.entry(profile.arch.as_str()).or_default();
            matched.profiles.push(profile);
            matched.elfs.insert(identity, *elf);
        }
    }
    archs
}

/// One line for each thing that is not in the report, though it could be expected there.
fn left_out(listing: &Listing, files: &[ObjectFile]) -> Vec<String> {
    let known: BTreeSet<_> = files
        .iter()
        .flat_map(|file| &file.elfs)
        .map(|elf| elf.identity.as_str())
        .collect();
    let mut strangers: BTreeMap<_, Vec<&DeviceProfile>> = BTreeMap::new();
    let mut profiled = BTreeSet::new();
    for profile in &listing.device {
        let identity = profile.identity.as_str();
        profiled.insert(identity);
        if !known.contains(identity) {
            let key = (profile.arch.as_str(), identity);
            strangers.entry(key).or_default().push(profile);
        }
    }
    let mut lines = Vec::new();
    for ((arch, identity), profiles) in strangers {
        lines.push(format!(
            "left out: {} ({} of {arch} code object {identity}): its device ELF is in none of the \
             given objects",
            profiles[0].path.display(),
            count(profiles.len(), "profile"),
        ));
    }
    for file in files {
        let unused: Vec<_> = file
            .elfs
            .iter()
            .filter(|elf| !profiled.contains(elf.identity.as_str()))
            .collect();
        if !unused.is_empty() {
            let targets: BTreeSet<_> = unused
                .iter()
                .filter_map(|elf| elf.target.as_deref())
                .collect();
            let targets: Vec<_> = targets.into_iter().collect();
            lines.push(format!(
                "left out: {} of {} in {}{}: without a profile, as not instrumented or never loaded",
                unused.len(),
                count(file.elfs.len(), "device ELF"),
                file.path.display(),
                if targets.is_empty() { String::new() } else { format!(" ({})", targets.join(", ")) },
            ));
        }
    }
    lines
}

/// Merges the profiles of one arch and prints its table or its source.
fn report_arch(
    arch: &str,
    matched: &Matched<'_>,
    arguments: &ReportArguments,
    installed: &Installed,
) -> Result<()> {
    let directory = &arguments.directory;
    // Before the merge, as llvm-cov warns of objects that are newer than the profile.
    let elfs = matched
        .elfs
        .values()
        .map(|(file, elf)| file.place(elf, arch, directory))
        .collect::<Result<Vec<_>>>()?;
    let merged = directory.join(format!("{arch}.profdata"));
    let profiles: Vec<_> = matched
        .profiles
        .iter()
        .map(|profile| profile.path.as_path())
        .collect();
    merge::merge(&profiles, &merged, installed)?;

    let mut heading = format!(
        "{arch}: {} of {}\n",
        count(profiles.len(), "profile"),
        count(elfs.len(), "code object"),
    );
    for elf in &elfs {
        heading += &format!("  device ELF      {}\n", elf.display());
    }
    heading += &format!("  merged profile  {}\n\n", merged.display());
    child::print(heading.as_bytes())?;

    child::show(&mut llvm_cov(
        installed.newest(),
        &elfs,
        &merged,
        arguments.show.as_deref(),
    ))
}

/// llvm-cov's command line for the table, or for annotated source of `sources`, all when empty.
fn llvm_cov(
    tools: &Tools,
    elfs: &[PathBuf],
    merged: &Path,
    sources: Option<&[PathBuf]>,
) -> Command {
    let mut command = Command::new(&tools.cov);
    command.arg(if sources.is_some() { "show" } else { "report" });
    command.arg("-instr-profile").arg(merged);
    if let (Some(_), Some(cxxfilt)) = (sources, &tools.cxxfilt) {
        // Instantiations of a template are shown one by one, under their names.
        command.arg("-Xdemangler").arg(cxxfilt);
    }
    // The first object is the positional argument, and everything after it is a source.
    let mut elfs = elfs.iter();
    if let Some(first) = elfs.next() {
        command.arg(first);
    }
    for elf in elfs {
        command.arg("-object").arg(elf);
    }
    command.args(sources.unwrap_or_default());
    command
}

/// Says why there is nothing, and what to do about it.
fn nothing_to_report(directory: &Path, listing: &Listing) -> Error {
    let host = match listing.other.len() {
        0 => String::new(),
        number => format!(" (only {}, of host code)", count(number, "profile")),
    };
    anyhow!(
        "no device profiles in {}{host}: no instrumented GPU code ran; compile with the flags that \
         `rocov flags` prints and run the program under `rocov run`",
        directory.display()
    )
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
