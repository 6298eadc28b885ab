//! The reason why there is nothing to report, and what to do next: a message for each way to come here.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Error;
use rocov::store::layout::PROFRAW;
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::{DataListing, ReportableData};
use crate::support::failure::failure;
use crate::support::paths::{Absent, below, here};
use crate::term::plural::count;

/// The name of the first page of `rocov report --html`.
const PAGES: &str = "index.html";

impl ReportableData {
    /// The reason why there are no device profiles.
    pub(crate) fn nothing_to_report(&self) -> Error {
        if let Some(error) = self.files.not_there() {
            return error;
        }
        if !self.files.sections.is_empty() {
            return failure!(
                "no device profiles in {self}: instrumented GPU code ran, but rocov could only save its sections \
                 unchanged, and cannot report on them";
                "compile with clang 15 or later, or use a newer rocov"
            );
        }
        if let Some(profile) = self.files.of_offload_runtime.first() {
            return failure!(
                "no device profiles in {self}: only {}, which LLVM's offload runtime wrote",
                profile.display();
                "read it with llvm-profdata, or run the program again without --drain=llvm"
            );
        }
        if let Some(about) = self.files.about_llvms() {
            return about
                .within(format_args!("no device profiles of rocov in {self}"))
                .into();
        }
        if let Some(pages) = self.files.with_file(|name| name == PAGES) {
            return failure!(
                "no device profiles in {self}: {} is a page of a report", pages.display();
                "name the directory that `rocov run` wrote to"
            );
        }
        if let Some(merged) = self.files.with_file(|name| name.ends_with(".profdata")) {
            return failure!(
                "no device profiles in {self}: {} is a merged profile, but a report needs raw profiles",
                merged.display();
                "name the directories that were merged"
            );
        }
        if let Some(whole) = self.files.whole() {
            let whole = whole.display();
            return failure!(
                "no device profiles in {self}, which is part of {whole}";
                "`rocov report {whole}` reports on all of it"
            );
        }
        if let Some((_, elf)) = self.files.elf_paths().next() {
            return failure!(
                "no device profiles in {self}: instrumented GPU code was loaded ({}), but its process was killed \
                before the counters were drained",
                elf.display();
                "run it again, with `rocov run --snapshot-every 1s` if it does not end by itself"
            );
        }
        let host = match self.files.host.len() + self.files.empty_host.len() {
            0 => String::new(),
            number => format!(" (only {}, of host code)", count(number, "profile")),
        };
        let registries = self.registries.registries.iter();
        if (self.registries.processes()).any(|(_, process)| process.is_of_notes()) {
            return failure!(
                "no device profiles in {self}{host}: a process ended before its counters were drained";
                "run it again, with `rocov run --snapshot-every 1s` if it does not end by itself"
            );
        }
        let named = registries.filter(|registry| registry.is_named);
        let mut processes = named.flat_map(|registry| &registry.processes);
        if processes.any(|process| !process.loads.is_empty()) {
            return failure!(
                "no device profiles in {self}{host}: the GPU code that ran is not instrumented";
                "compile it with the flags that `rocov flags` prints, or have hipRTC compile it with those that \
                 `rocov flags --hiprtc` prints; `rocov doctor PROGRAM` lists what is instrumented"
            );
        }
        if host.is_empty() && self.files.with_file(|_| true).is_none() {
            return failure!(
                "{self} is empty";
                "name the directory that `rocov run` wrote to; it writes nothing if no instrumented GPU code ran"
            );
        }
        failure!(
            "no device profiles in {self}{host}: no instrumented GPU code ran";
            "compile the program with the flags that `rocov flags` prints, and run it under `rocov run`"
        )
    }
}

impl DataListing {
    /// Returns a line about LLVM's own drain, if it has written profiles. Their names do not have the identity of
    /// a code object, so that no device ELF can be found for them.
    pub(super) fn about_llvms(&self) -> Option<Diagnostic> {
        let profile = self.of_llvm.first()?;
        Some(diagnostic!(
            "{} was written by LLVM's own drain, and does not name its code object",
            profile.display();
            "run the program again with `rocov run --drain=rocov`, or pass the file to llvm-profdata and llvm-cov, \
             with a device ELF that `rocov extract PROGRAM` writes"
        ))
    }

    /// The error that a directory that was named is not there.
    pub(crate) fn not_there(&self) -> Option<Error> {
        let remedy = "name the directory that `rocov run` wrote to; it writes none if no instrumented GPU code ran";
        let absent = self.absent.first()?;
        let error = match in_build_directory(absent) {
            Some(found) => Absent::new(absent, format!("name {}, which does", found.display())),
            None => Absent::new(absent, remedy),
        };
        Some(error.into())
    }

    /// The data directory that a directory that was named is a part of, if it has profiles.
    fn whole(&self) -> Option<PathBuf> {
        let has_profiles = |parent: &PathBuf| parent.join(PROFRAW).is_dir();
        let mut parents = self.names.iter().filter_map(|name| {
            let name = name.canonicalize().ok()?;
            Some(name.parent()?.to_owned())
        });
        let whole = parents.find(has_profiles)?;
        Some(below(&whole.to_string_lossy(), &here()).into_owned().into())
    }

    /// The first file with such a name directly in one of the directories.
    fn with_file(&self, is_wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
        let files = |directory: &PathBuf| {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
            paths.sort();
            paths
        };
        let has_name = |path: &PathBuf| {
            let name = Path::file_name(path).and_then(|name| name.to_str());
            name.is_some_and(&is_wanted)
        };
        self.names.iter().flat_map(files).find(has_name)
    }
}

/// The data directory `name` in the newest of the directories here that has one, such as `build/rocov-data`.
fn in_build_directory(name: &Path) -> Option<PathBuf> {
    if name.components().count() != 1 {
        return None;
    }
    let entries = fs::read_dir(".").ok()?;
    let places =
        entries.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name()).join(name)));
    let written = places.filter_map(|place| {
        let profiles = fs::metadata(place.join(PROFRAW)).ok()?;
        Some((profiles.modified().ok()?, place))
    });
    written.max().map(|(_, place)| place)
}
