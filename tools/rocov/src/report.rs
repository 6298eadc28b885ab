//! `rocov report`: profiles and device ELFs brought together, merged and shown per arch.

use crate::cli::ReportArguments;
use crate::coverage::{self, llvm_cov};
use crate::inputs::Inputs;
use crate::llvm_tools::{Installed, Tools};
use crate::matching::Matching;
use crate::merged::{Arch, Merged, Object};
use crate::missing::missing;
use crate::objects::ObjectFile;
use crate::profiles::{DeviceProfile, Listing};
use crate::sources::{Asked, Found};
use crate::status::{self, Outcome};
use crate::words::count;
use crate::{child, profdata};
use anyhow::{Error, Result, anyhow, bail};
use rocov::registry::OBJECTS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Prints the report.
pub(crate) fn report(arguments: &ReportArguments) -> Outcome {
    let texts = arguments.options.texts()?;
    let asked = Asked::of(arguments, &texts)?;
    let change = arguments.options.change()?;
    let directory = &arguments.directory;
    let archs = &arguments.options.filters.arch;
    let inputs = read(directory, &arguments.objects, archs)?;
    let mut installed = Installed::find(arguments.llvm_bin.as_deref())?;
    let (matching, damaged) = matched(&inputs, directory, archs, &mut installed)?;
    let merged = merged(&matching, directory, &installed)?;
    if arguments.show.is_some() {
        return show(&asked, &merged, &installed);
    }
    let damaged = damaged + merged.damaged.len();
    let mut report = of_device(&merged, &inputs);
    add_host(&mut report, arguments, &inputs.listing, &installed)?;
    let missing = missing(directory, &inputs, &matching, damaged)?;
    let broken = report.write(
        &arguments.options,
        change.as_ref(),
        texts,
        &installed,
        missing,
    )?;
    for line in &broken {
        eprintln!("rocov: gate: {line}");
    }
    Ok(if broken.is_empty() {
        0
    } else {
        status::GATE_BROKEN
    })
}

/// Reads a data directory that has something to report of `archs`, or of any if that is empty. Says
/// what has to be left out.
///
/// # Errors
///
/// When there is nothing to report.
pub(crate) fn read(directory: &Path, objects: &[PathBuf], archs: &[String]) -> Result<Inputs> {
    let inputs = Inputs::read(directory, objects)?;
    let listing = &inputs.listing;
    check_archs(&listing.device, archs, directory)?;
    for file in &listing.sections {
        eprintln!(
            "rocov: left out: {0}: sections of a raw version that is not known, saved as they are: \
             see `rocov show {0}`",
            file.display()
        );
    }
    match without_coverage(&inputs.ir_level, directory) {
        Some(error) if listing.device.is_empty() => return Err(error),
        Some(error) => eprintln!("rocov: left out: {error}"),
        None if listing.device.is_empty() => return Err(nothing_to_report(directory, listing)),
        None => {}
    }
    Ok(inputs)
}

/// Brings profiles of `archs` and device ELFs together, and prefers the tools of their compilers. Says
/// what has to be left out; the number of damaged profiles comes with the result.
///
/// # Errors
///
/// When no device ELF belongs to a profile.
pub(crate) fn matched<'a>(
    inputs: &'a Inputs,
    directory: &Path,
    archs: &[String],
    installed: &mut Installed,
) -> Result<(Matching<'a>, usize)> {
    let mut matching = Matching::of(&inputs.listing.device, &inputs.kept.files, &inputs.named);
    matching.select(archs);
    if matching.archs.is_empty() {
        child::say(&matching.left_out(directory));
        return Err(no_device_elf(directory));
    }
    installed.prefer(matching.compilers());
    let damaged = matching.leave_out_damaged(|profile| profdata::check(profile, installed));
    child::say(&matching.left_out(directory));
    child::say(&damaged);
    Ok((matching, damaged.len()))
}

/// Merges what was matched. Says what has to be left out.
///
/// # Errors
///
/// When all of it has to be, or a tool fails.
pub(crate) fn merged<'a>(
    matching: &Matching<'a>,
    directory: &Path,
    installed: &'a Installed,
) -> Result<Merged<'a>> {
    let merged = Merged::of(matching, directory, installed)?;
    child::say(&merged.damaged);
    if merged.archs.is_empty() {
        return Err(nothing_to_read(directory));
    }
    Ok(merged)
}

/// The report of what was merged.
pub(crate) fn of_device(merged: &Merged<'_>, inputs: &Inputs) -> coverage::Report {
    let mut report = coverage::Report::default();
    for arch in &merged.archs {
        report.add_arch(arch, |object| binary(object, &inputs.named), heading(arch));
    }
    report
}

/// Checks that there are profiles of the archs that were asked for.
///
/// # Errors
///
/// When there is none of one of them.
fn check_archs(profiles: &[DeviceProfile], archs: &[String], directory: &Path) -> Result<()> {
    let has = |arch: &&String| profiles.iter().any(|profile| profile.arch == **arch);
    if let Some(missing) = archs.iter().find(|arch| !has(arch)) {
        let known: BTreeSet<_> = profiles.iter().map(|it| it.arch.as_str()).collect();
        let known: Vec<_> = known.into_iter().collect();
        bail!(
            "no profile of {missing} in {}: run the program there, or ask for one of those that \
             are: {}",
            directory.display(),
            known.join(", ")
        );
    }
    Ok(())
}

/// Adds host code to the report, where it was asked for.
///
/// # Errors
///
/// When there is no profile of it, or a tool fails.
fn add_host(
    report: &mut coverage::Report,
    arguments: &ReportArguments,
    listing: &Listing,
    installed: &Installed,
) -> Result<()> {
    let binaries = &arguments.options.host_binary;
    if binaries.is_empty() {
        return Ok(());
    }
    let directory = &arguments.directory;
    let profiles: Vec<_> = listing.other.iter().map(PathBuf::as_path).collect();
    if profiles.is_empty() {
        bail!(
            "no profile of host code in {}: compile with what `rocov flags --host` prints",
            directory.display()
        );
    }
    let merged = directory.join("host.profdata");
    profdata::merge(&profiles, &merged, installed, &[])?;
    let mut about = format!("host: {}\n", count(profiles.len(), "profile"));
    for binary in binaries {
        about += &format!("  binary          {}\n", binary.display());
    }
    about += &format!("  merged profile  {}\n", merged.display());
    report.add_host(binaries, &merged, about);
    Ok(())
}

/// Prints annotated source of one arch after the other.
fn show(asked: &Asked<'_>, merged: &Merged<'_>, installed: &Installed) -> Outcome {
    let mut found = Found::default();
    for arch in &merged.archs {
        child::print(format!("{}\n", heading(arch)).as_bytes())?;
        found.add(show_source(asked, arch, installed.newest())?);
    }
    asked.check(&found)?;
    Ok(0)
}

/// Prints annotated source of the files that were asked for, as far as they are there.
fn show_source(asked: &Asked<'_>, arch: &Arch<'_>, tools: &Tools) -> Result<Found> {
    let elfs = arch.elfs();
    let found = Found::of(tools, &elfs, &arch.profile, asked)?;
    child::say(&found.left_out());
    let mut command = llvm_cov(tools, "show", &elfs, &arch.profile);
    if let Some(cxxfilt) = &tools.cxxfilt {
        // Instantiations of a template are shown one by one, under their names.
        command.arg("-Xdemangler").arg(cxxfilt);
    }
    // Without a name llvm-cov takes all.
    if !found.shown.is_empty() {
        asked.show(command, &found.shown)?;
    }
    Ok(found)
}

/// The file that the user knows a code object by: the one with it among those that are named, else
/// where it was found.
fn binary(object: &Object<'_>, named: &[ObjectFile]) -> PathBuf {
    let has = |file: &&ObjectFile| file.elfs.iter().any(|elf| elf.identity == object.identity);
    let file = named.iter().find(has).unwrap_or(object.file);
    file.path.clone()
}

fn heading(arch: &Arch<'_>) -> String {
    let raw = arch.objects.iter().map(|object| object.raw).sum();
    let mut heading = format!(
        "{}: {} of {}\n",
        arch.name,
        count(raw, "profile"),
        count(arch.objects.len(), "code object"),
    );
    for object in &arch.objects {
        heading += &format!("  device ELF      {}\n", object.elf.display());
    }
    heading += &format!("  merged profile  {}\n", arch.profile.display());
    heading
}

/// Says what to do with profiles that have no coverage.
fn without_coverage(profiles: &[DeviceProfile], directory: &Path) -> Option<Error> {
    profiles.first()?;
    Some(anyhow!(
        "{} of -fprofile-generate in {1}: for optimization, without coverage: optimize with what \
         `rocov merge {1} --pgo OUT` prints, or compile with what `rocov flags` prints",
        count(profiles.len(), "profile"),
        directory.display(),
    ))
}

/// Says that no device ELF belongs to a profile.
fn no_device_elf(directory: &Path) -> Error {
    anyhow!(
        "no profile in {0} is of device code in {0}/{1} or in a given object: give the files with \
         the kernels that ran, as they were when they ran, with --object",
        directory.display(),
        OBJECTS,
    )
}

/// Says that all that there is was left out.
fn nothing_to_read(directory: &Path) -> Error {
    anyhow!(
        "no profile in {} can be read: remove what was left out and run the program again",
        directory.display()
    )
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
