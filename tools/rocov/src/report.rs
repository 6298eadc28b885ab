//! `rocov report`: profiles and device ELFs brought together, merged and shown per arch.

use crate::cli::ReportArguments;
use crate::coverage::llvm_cov;
use crate::inputs::Inputs;
use crate::llvm_tools::Installed;
use crate::matching::{Matched, Matching};
use crate::profiles::{DeviceProfile, Listing};
use crate::sources::{Asked, Found};
use crate::status::Outcome;
use crate::words::count;
use crate::{child, profdata};
use anyhow::{Error, Result, anyhow};
use rocov::registry::OBJECTS;
use std::path::{Path, PathBuf};

/// Prints the report.
pub(crate) fn report(arguments: &ReportArguments) -> Outcome {
    let asked = Asked::of(arguments)?;
    let directory = &arguments.directory;
    let inputs = Inputs::read(directory, &arguments.objects)?;
    let listing = &inputs.listing;
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
        found: Found::default(),
        reported: false,
    };
    for (arch, matched) in &mut matching.archs {
        reporter.report(arch, matched)?;
    }
    if !reporter.reported {
        return Err(nothing_to_read(directory).into());
    }
    asked.check(&reporter.found)?;
    Ok(0)
}

/// Prints the report of one arch after the other.
struct Reporter<'a> {
    arguments: &'a ReportArguments,
    asked: &'a Asked<'a>,
    installed: &'a Installed,
    /// The sources of all archs.
    found: Found,
    /// Whether anything was printed.
    reported: bool,
}

impl Reporter<'_> {
    /// Merges the profiles of one arch and prints its table or its source.
    fn report(&mut self, arch: &str, matched: &mut Matched<'_>) -> Result<()> {
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
            if matched.profiles.is_empty() {
                return Ok(());
            }
            elfs = place(arch, matched, directory)?;
            self.merge(matched, &merged)?;
        }
        self.reported = true;
        child::print(heading(arch, matched, &elfs, &merged).as_bytes())?;
        if self.arguments.show.is_some() {
            return self.show_source(&elfs, &merged);
        }
        let mut table = llvm_cov(self.installed.newest(), "report", &elfs, &merged);
        child::show(&mut table)
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
        if let Some(equivalence) = &self.arguments.path_equivalence {
            command.arg(format!("-path-equivalence={equivalence}"));
        }
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
    heading += &format!("  merged profile  {}\n\n", merged.display());
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
