//! `rocov report`: profiles and device ELFs brought together, merged and shown per arch.

use crate::cli::ReportArguments;
use crate::components::Components;
use crate::coverage::{self, llvm_cov};
use crate::data::{DataDirectory, DeviceProfile, Origins};
use crate::inputs::Inputs;
use crate::llvm_tools::{Installed, Tools};
use crate::matching::Matching;
use crate::merged::{Arch, Merged, Object};
use crate::missing::missing;
use crate::objects::ObjectFile;
use crate::sources::{Asked, Found};
use crate::status::{self, Outcome};
use crate::words::count;
use crate::{child, per_test, profdata};
use anyhow::{Error, Result, anyhow, bail};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::PathBuf;

/// Prints the report.
pub(crate) fn report(arguments: &ReportArguments) -> Outcome {
    if arguments.quiet {
        child::be_quiet();
    }
    let texts = arguments.options.texts()?;
    let asked = Asked::of(arguments, &texts);
    let change = arguments.options.change()?;
    let archs = &arguments.options.filters.arch;
    let data =
        DataDirectory::open_builds(&arguments.directories, arguments.options.filters.all_builds)?;
    let inputs = read(data, &arguments.objects, archs)?;
    let mut origins = inputs.data.origins();
    let components = Components::of(&arguments.options.component, &mut origins)?;
    let mut installed = Installed::find(arguments.llvm_bin.as_deref())?;
    let (mut matching, damaged) = matched(&inputs, archs, &components, &mut installed)?;
    let (merged, refused) = merged(&mut matching, &inputs, &installed)?;
    let absent = components.absent(|identity| merged.has(identity));
    child::say(&absent);
    if arguments.show.is_some() {
        let found = show(&asked, &merged, &installed)?;
        let shown = found.shown.iter().map(|it| it.now.as_path()).collect();
        let report = of_device(&merged, &inputs, &origins);
        child::say(&report.stale(&shown, &arguments.options, &texts, &installed)?);
        return Ok(0);
    }
    let damaged = damaged + refused;
    let mut report = of_device(&merged, &inputs, &origins);
    for component in components.iter() {
        let name = component.path.display().to_string();
        report.add_component(name, component.identities.clone());
    }
    let tests = match arguments.options.per_test {
        true => per_test::merged(&matching, &inputs.data, &installed)?,
        false => Vec::new(),
    };
    for test in &tests {
        let (name, shared_with) = (test.name.clone(), test.shared_with.clone());
        report.add_test(name, shared_with, &test.merged.archs);
    }
    add_host(&mut report, arguments, &inputs.data, &merged, &installed)?;
    let mut missing = match arguments.options.gates.are_set() {
        true => missing(&inputs, &matching, archs, &components, damaged),
        false => Vec::new(),
    };
    missing.extend(absent);
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

/// Reads data directories that have something to report of `archs`, or of any if that is empty. Says
/// what has to be left out.
///
/// # Errors
///
/// When there is nothing to report.
pub(crate) fn read(data: DataDirectory, objects: &[PathBuf], archs: &[String]) -> Result<Inputs> {
    let inputs = Inputs::of(data, objects)?;
    let data = &inputs.data;
    if let Some(error) = data.not_there() {
        return Err(error);
    }
    if !data.device.is_empty() {
        check_archs(data.device.iter().map(|it| &*it.arch), archs, data)?;
    }
    for file in &data.sections {
        child::say(&[format!(
            "left out: {0}: sections of a raw version that is not known, saved as they are: see \
             `rocov show {0}`",
            file.display()
        )]);
    }
    match without_coverage(&inputs.ir_level, data) {
        Some(error) if data.device.is_empty() => return Err(error),
        Some(error) => child::say(&[format!("left out: {error}")]),
        None if data.device.is_empty() => return Err(data.nothing_to_report()),
        None => {}
    }
    Ok(inputs)
}

/// Brings profiles of `archs` and `components` and device ELFs together, and prefers the tools of their
/// compilers. Says what has to be left out; the number of damaged profiles comes with the result.
///
/// # Errors
///
/// When no device ELF belongs to a profile.
pub(crate) fn matched<'a>(
    inputs: &'a Inputs,
    archs: &[String],
    components: &Components,
    installed: &mut Installed,
) -> Result<(Matching<'a>, usize)> {
    let mut matching = Matching::of(&inputs.data.device, &inputs.kept.files, &inputs.named);
    let has_any = !matching.archs.is_empty();
    matching.select(archs, |identity| components.have(identity));
    if has_any && matching.archs.is_empty() && !components.are_all() {
        return Err(not_of_components(&inputs.data));
    }
    if matching.archs.is_empty() {
        child::say(&matching.left_out(&inputs.data));
        return Err(no_device_elf(&inputs.data));
    }
    let unmapped = matching.leave_out_unmapped();
    child::say(&unmapped);
    if matching.archs.is_empty() {
        return Err(no_mapping(&inputs.data));
    }
    installed.prefer(matching.compilers());
    let damaged = matching.leave_out_damaged(|profile| profdata::check(profile, installed));
    child::say(&matching.left_out(&inputs.data));
    child::say(&damaged);
    Ok((matching, damaged.len()))
}

/// Merges what was matched. Says what has to be left out; the number of profiles that llvm-profdata
/// refuses comes with the result.
///
/// # Errors
///
/// When all of it has to be, or a tool fails.
pub(crate) fn merged<'a>(
    matching: &mut Matching<'a>,
    inputs: &Inputs,
    installed: &Installed,
) -> Result<(Merged<'a>, usize)> {
    let (merged, refused) = Merged::of(matching, installed)?;
    if merged.archs.is_empty() {
        return Err(nothing_to_read(&inputs.data));
    }
    Ok((merged, refused))
}

/// The report of what was merged. The files that the user knows code objects by are those that were
/// named, else those that they were loaded from.
pub(crate) fn of_device(
    merged: &Merged<'_>,
    inputs: &Inputs,
    origins: &Origins,
) -> coverage::Report {
    let binary = |object: &Object<'_>| {
        let has = |file: &&ObjectFile| file.elfs.iter().any(|elf| elf.identity == object.identity);
        let named = inputs.named.iter().find(has);
        let named = named.map(|file| file.path.as_path());
        let known = named.or_else(|| origins.of(object.identity));
        known.unwrap_or(&object.file.path).to_path_buf()
    };
    let mut report = coverage::Report::default();
    for arch in &merged.archs {
        report.add_arch(arch, binary, heading(arch));
    }
    report
}

/// Checks that the archs that were asked for are among those that `place` has: data directories, or a
/// report in JSON.
///
/// # Errors
///
/// When there is none of one of them.
pub(crate) fn check_archs<'a>(
    known: impl Iterator<Item = &'a str>,
    archs: &[String],
    place: &dyn Display,
) -> Result<()> {
    let known: BTreeSet<_> = known.collect();
    if let Some(missing) = archs.iter().find(|arch| !known.contains(arch.as_str())) {
        let known: Vec<_> = known.into_iter().collect();
        bail!(
            "no profile of {missing} in {place}: run the program there, or ask for one of those that \
             are: {}",
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
    data: &DataDirectory,
    merged: &Merged<'_>,
    installed: &Installed,
) -> Result<()> {
    let binaries = &arguments.options.host_binary;
    if binaries.is_empty() {
        return Ok(());
    }
    let profiles: Vec<_> = data.host.iter().map(PathBuf::as_path).collect();
    if profiles.is_empty() {
        bail!("no profile of host code in {data}: compile with what `rocov flags --host` prints");
    }
    let merged = merged.directory().join("host.profdata");
    profdata::merge(&profiles, &merged, installed, &[])?;
    let mut about = format!("host: {}\n", count(profiles.len(), "profile"));
    for binary in binaries {
        about += &format!("  binary          {}\n", binary.display());
    }
    report.add_host(binaries, &merged, about);
    Ok(())
}

/// Prints annotated source of one arch after the other.
fn show(asked: &Asked<'_>, merged: &Merged<'_>, installed: &Installed) -> Result<Found> {
    let mut found = Found::default();
    for arch in &merged.archs {
        child::print(format!("{}\n", heading(arch)).as_bytes())?;
        found.add(show_source(asked, arch, installed.newest())?);
    }
    asked.check(&found)?;
    Ok(found)
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
    command.arg(format!("-use-color={}", asked.is_colored));
    // Without a name llvm-cov takes all.
    if !found.shown.is_empty() {
        asked.show(command, &found.shown)?;
    }
    Ok(found)
}

fn heading(arch: &Arch<'_>) -> String {
    let raw = arch.objects.iter().map(|object| object.raw).sum();
    let mut heading = format!(
        "{}: {} of {}",
        arch.name,
        count(raw, "profile"),
        count(arch.objects.len(), "code object"),
    );
    let never = arch.objects.iter().filter(|object| object.raw == 0);
    match never.count() {
        0 => {}
        never => heading += &format!(", {never} never launched"),
    }
    heading.push('\n');
    for object in &arch.objects {
        heading += &format!("  device ELF      {}\n", object.name());
    }
    heading
}

/// Says what to do with profiles that have no coverage.
fn without_coverage(profiles: &[DeviceProfile], data: &DataDirectory) -> Option<Error> {
    profiles.first()?;
    Some(anyhow!(
        "{} of -fprofile-generate in {data}: for optimization, without coverage: optimize with what \
         `rocov merge {data} --pgo OUT` prints, or compile with what `rocov flags` prints",
        count(profiles.len(), "profile"),
    ))
}

/// Says that no profile is of what was asked for.
fn not_of_components(data: &DataDirectory) -> Error {
    anyhow!(
        "no profile in {data} is of the components and archs that are asked for: they never ran, or \
         were rebuilt since"
    )
}

/// Says that no device ELF belongs to a profile.
fn no_device_elf(data: &DataDirectory) -> Error {
    anyhow!(
        "no profile in {data} is of device code that is kept there or in a given object: give the files \
         with the kernels that ran, as they were when they ran, with --object"
    )
}

/// Says that no code object has what coverage takes.
fn no_mapping(data: &DataDirectory) -> Error {
    anyhow!(
        "no code object in {data} has a coverage mapping: compile the program with all the flags that \
         `rocov flags` prints, -fcoverage-mapping among them, do not strip it, and run it again"
    )
}

/// Says that all that there is was left out.
fn nothing_to_read(data: &DataDirectory) -> Error {
    anyhow!(
        "no profile in {data} can be read: see the reasons above; if they are damaged, run the program again"
    )
}
