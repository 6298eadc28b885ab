//! `rocov report`: profiles and device ELFs brought together, merged and shown per arch.

use crate::cli::ReportArguments;
use crate::coverage::{self, CodeObject, PathMap, llvm_cov};
use crate::inputs::Inputs;
use crate::llvm_tools::Installed;
use crate::matching::{Matched, Matching};
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
    let asked = Asked::of(arguments)?;
    let directory = &arguments.directory;
    let inputs = Inputs::read(directory, &arguments.objects)?;
    let listing = &inputs.listing;
    check_archs(&listing.device, &arguments.options.arch, directory)?;
    for file in &listing.sections {
        eprintln!(
            "rocov: left out: {0}: sections of a raw version that is not known, saved as they are: \
             see `rocov show {0}`",
            file.display()
        );
    }
    match without_coverage(&inputs.ir_level, directory) {
        Some(error) if listing.device.is_empty() => return Err(error.into()),
        Some(error) => eprintln!("rocov: left out: {error}"),
        None if listing.device.is_empty() => {
            return Err(nothing_to_report(directory, listing).into());
        }
        None => {}
    }
    let installed = Installed::find(arguments.llvm_bin.as_deref())?;

    let mut matching = Matching::of(&listing.device, &inputs.kept.files, &inputs.named);
    matching.select(&arguments.options.arch);
    if matching.archs.is_empty() {
        child::say(&matching.left_out(directory));
        return Err(no_device_elf(directory).into());
    }
    let damaged = matching.leave_out_damaged(|profile| profdata::check(profile, &installed));
    child::say(&matching.left_out(directory));
    child::say(&damaged);
    let mut reporter = Reporter {
        arguments,
        asked: &asked,
        installed: &installed,
        named: &inputs.named,
        damaged: damaged.len(),
        found: Found::default(),
        reported: false,
        report: coverage::Report::default(),
    };
    for (arch, matched) in &mut matching.archs {
        reporter.add(arch, matched)?;
    }
    if !reporter.reported {
        return Err(nothing_to_read(directory).into());
    }
    if arguments.show.is_some() {
        asked.check(&reporter.found)?;
        return Ok(0);
    }
    let damaged = reporter.damaged;
    let mut report = reporter.report;
    add_host(&mut report, arguments, listing, &installed)?;
    let missing = missing(directory, &inputs, &matching, damaged)?;
    let broken = report.write(&arguments.options, &installed, missing)?;
    for line in &broken {
        eprintln!("rocov: gate: {line}");
    }
    Ok(if broken.is_empty() {
        0
    } else {
        status::GATE_BROKEN
    })
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

/// Brings together what is reported of one arch after the other; source is printed at once.
struct Reporter<'a> {
    arguments: &'a ReportArguments,
    asked: &'a Asked<'a>,
    installed: &'a Installed,
    named: &'a [ObjectFile],
    /// The number of profiles that were left out as damaged.
    damaged: usize,
    /// The sources of all archs.
    found: Found,
    /// Whether there is anything to report.
    reported: bool,
    report: coverage::Report,
}

impl<'a> Reporter<'a> {
    /// Merges the profiles of one arch, and prints its source if that is asked for.
    fn add(&mut self, arch: &str, matched: &mut Matched<'_>) -> Result<()> {
        let directory = &self.arguments.directory;
        // Before the merge, as llvm-cov warns of objects that are newer than the profile.
        let mut elfs = place(arch, matched, directory)?;
        let merged = directory.join(format!("{arch}.profdata"));
        if let Err(error) = self.merge(matched, &merged) {
            // One that is refused makes llvm-profdata refuse all.
            let damaged = matched
                .leave_out_damaged(|profile| profdata::check_by_tool(profile, self.installed));
            if damaged.is_empty() {
                return Err(error);
            }
            child::say(&damaged);
            self.damaged += damaged.len();
            if matched.profiles.is_empty() {
                return Ok(());
            }
            elfs = place(arch, matched, directory)?;
            self.merge(matched, &merged)?;
        }
        self.reported = true;
        let heading = heading(arch, matched, &elfs, &merged);
        if self.arguments.show.is_some() {
            child::print(format!("{heading}\n").as_bytes())?;
            return self.show_source(&elfs, &merged);
        }
        let objects = matched.elfs.iter().zip(elfs);
        let objects = objects.map(|((identity, (file, _)), elf)| CodeObject {
            binary: self.binary(identity).unwrap_or(&file.path).to_path_buf(),
            elf,
            profiles: matched.profiles_of(identity),
        });
        let objects = objects.collect();
        self.report
            .add_arch(arch, objects, &merged, heading, self.installed)
    }

    /// The file with this code object among those that the user named.
    fn binary(&self, identity: &str) -> Option<&'a Path> {
        let has = |file: &&ObjectFile| file.elfs.iter().any(|elf| elf.identity == identity);
        self.named.iter().find(has).map(|file| file.path.as_path())
    }

    fn merge(&self, matched: &Matched<'_>, merged: &Path) -> Result<()> {
        let profiles = matched.profiles.iter();
        let profiles: Vec<_> = profiles.map(|profile| profile.path.as_path()).collect();
        profdata::merge(&profiles, merged, self.installed, &[])
    }

    /// Prints annotated source of the files that were asked for, as far as they are there.
    fn show_source(&mut self, elfs: &[PathBuf], merged: &Path) -> Result<()> {
        let tools = self.installed.newest();
        let found = Found::of(tools, elfs, merged, self.asked)?;
        child::say(&found.left_out());
        let mut command = llvm_cov(tools, "show", elfs, merged);
        if let Some(cxxfilt) = &tools.cxxfilt {
            // Instantiations of a template are shown one by one, under their names.
            command.arg("-Xdemangler").arg(cxxfilt);
        }
        let maps = &self.arguments.options.path_map;
        command.args(maps.iter().map(PathMap::option));
        command.args(&found.shown);
        let is_empty = found.shown.is_empty();
        self.found.add(found);
        // Without a name llvm-cov takes all.
        if is_empty {
            return Ok(());
        }
        child::show(&mut command)
    }
}

/// Puts the device ELFs of one arch where llvm-cov can read them.
fn place(arch: &str, matched: &Matched<'_>, directory: &Path) -> Result<Vec<PathBuf>> {
    let elfs = matched.elfs.values();
    elfs.map(|(file, elf)| file.place(elf, arch, directory))
        .collect()
}

fn heading(arch: &str, matched: &Matched<'_>, elfs: &[PathBuf], merged: &Path) -> String {
    let mut heading = format!(
        "{arch}: {} of {}\n",
        count(matched.profiles.len(), "profile"),
        count(elfs.len(), "code object"),
    );
    for elf in elfs {
        heading += &format!("  device ELF      {}\n", elf.display());
    }
    heading += &format!("  merged profile  {}\n", merged.display());
    heading
}

/// Says what to do with profiles that have no coverage.
fn without_coverage(profiles: &[DeviceProfile], directory: &Path) -> Option<Error> {
    let arch = &profiles.first()?.arch;
    Some(anyhow!(
        "{} of -fprofile-generate in {1}: for optimization, without coverage: merge with \
         `llvm-profdata merge -o {arch}.profdata {1}/{arch}.*.profraw` and compile with \
         -fprofile-use={arch}.profdata, or compile with what `rocov flags` prints",
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
