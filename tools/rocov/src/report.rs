//! `rocov report`: profiles and device ELFs brought together, merged and shown per arch.

use crate::cli::ReportArguments;
use crate::llvm_tools::{Installed, Tools};
use crate::matching::{Matched, Matching};
use crate::objects::ObjectFile;
use crate::profiles::{self, Listing};
use crate::status::Outcome;
use crate::words::count;
use crate::{child, profdata};
use anyhow::{Context, Error, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints the report.
pub(crate) fn report(arguments: &ReportArguments) -> Outcome {
    check_sources(arguments.show.as_deref().unwrap_or_default())?;
    let directory = &arguments.directory;
    let listing = profiles::list(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    for file in &listing.sections {
        eprintln!(
            "rocov: left out: {0}: sections of a raw version that is not known, saved as they are: \
             see `rocov show {0}`",
            file.display()
        );
    }
    if listing.device.is_empty() {
        return Err(nothing_to_report(directory, &listing).into());
    }
    let files = arguments
        .objects
        .iter()
        .map(|path| ObjectFile::open(path))
        .collect::<Result<Vec<_>>>()?;
    let installed = Installed::find(arguments.llvm_bin.as_deref())?;

    let mut matching = Matching::of(&listing.device, &files);
    matching.leave_out_damaged(|profile| profdata::check(profile, &installed));
    for line in matching.left_out() {
        eprintln!("rocov: {line}");
    }
    if matching.archs.is_empty() && matching.has_damaged() {
        return Err(anyhow!(
            "no profile of the given objects in {} can be read: remove what was left out and run \
             the program again",
            directory.display()
        )
        .into());
    }
    if matching.archs.is_empty() {
        return Err(anyhow!(
            "no profile in {} is of device code in the given objects: give the files with the \
             kernels that ran, as they were when they ran",
            directory.display()
        )
        .into());
    }
    for (arch, matched) in &matching.archs {
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
    profdata::merge(&profiles, &merged, installed, &[])?;

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
    if !listing.sections.is_empty() {
        return anyhow!(
            "no device profiles in {}{host}: instrumented GPU code ran, and all that was saved of it \
             is sections that cannot be reported: compile with a clang that is known here",
            directory.display()
        );
    }
    anyhow!(
        "no device profiles in {}{host}: no instrumented GPU code ran; compile with the flags that \
         `rocov flags` prints and run the program under `rocov run`",
        directory.display()
    )
}
