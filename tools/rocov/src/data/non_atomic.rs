//! Code that adds to counters without atomic operations: its counts are too low.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rocov::format::codeobject::CodeObject;
use rocov::store::layout::{OBJECTS, elf_identity};
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::ReportableData;
use super::device_elfs::{DeviceElf, ObjectFile, open_kept};
use super::matched_elfs::MatchedElfs;
use super::registries::Registries;
use crate::support::parallel;
use crate::support::paths::{below, here};
use crate::term::plural::count;

impl ObjectFile {
    /// The number of functions of `elf` that add to counters without atomic operations. 0 if it cannot be read: that is
    /// for others to report.
    fn non_atomic(&self, elf: &DeviceElf) -> usize {
        let code_object = CodeObject::parse(self.bytes(elf));
        let functions = code_object.and_then(|object| object.non_atomic_functions());
        functions.map_or(0, |functions| functions.len())
    }
}

impl MatchedElfs<'_> {
    /// Looks for such code in the code objects that have counts.
    pub(super) fn find_non_atomic(&mut self) {
        let mut objects: Vec<_> = self
            .archs
            .values_mut()
            .flat_map(BTreeMap::values_mut)
            .filter(|object| object.counted() > 0)
            .collect();
        let code: Vec<_> = objects
            .iter()
            .map(|object| (object.file, object.elf))
            .collect();
        let found = parallel::map(&code, |(file, elf)| Ok(file.non_atomic(elf)))
            .expect("looking at code does not fail");
        for (object, found) in objects.iter_mut().zip(found) {
            object.non_atomic = found;
        }
    }

    /// The identities of the code objects with such code.
    pub(super) fn non_atomic(&self) -> BTreeSet<&str> {
        let objects = self.archs.values().flatten();
        let found = objects.filter(|(_, object)| object.non_atomic > 0);
        found.map(|(identity, _)| *identity).collect()
    }
}

impl ReportableData {
    /// A line about the code objects among `matched` that have such code, if there are some.
    pub(super) fn about_non_atomic(&self, matched: &MatchedElfs<'_>) -> Option<Diagnostic> {
        let found = matched.non_atomic();
        if found.is_empty() {
            return None;
        }
        let origins = self.registries.origins();
        let objects = matched
            .archs
            .values()
            .flatten()
            .filter(|(identity, _)| found.contains(*identity));
        let files = objects.map(|(identity, object)| {
            let origin = origins.get(identity);
            origin.unwrap_or(&object.file.path).to_path_buf()
        });
        line(&files.collect())
    }
}

/// A line about such code among the kept device ELFs `kept`, whose paths come with their identities, if there is some.
/// `origin` gives the file that a code object was loaded from.
pub(crate) fn line_of_kept<'a>(
    kept: &[(&'a str, &'a Path)],
    origin: impl Fn(&str) -> Option<PathBuf>,
) -> Option<Diagnostic> {
    let found = parallel::map(kept, |(identity, path)| {
        // A damaged ELF is for others to report.
        let file = open_kept(path, identity).ok();
        Ok(file.is_some_and(|file| file.elfs.iter().any(|elf| file.non_atomic(elf) > 0)))
    });
    let found = found.expect("looking at code does not fail");
    let found = kept.iter().zip(found).filter(|(_, found)| *found);
    let files =
        found.map(|((identity, path), _)| origin(identity).unwrap_or_else(|| path.to_path_buf()));
    line(&files.collect())
}

/// A line about such code that the processes of a run have loaded, if there is some. They have left these registries.
pub(crate) fn line_of_run(registries: &BTreeSet<PathBuf>) -> Option<Diagnostic> {
    let there = registries.iter().filter(|path| path.exists());
    let registries = Registries::read(there.map(|path| (path.as_path(), true)));
    let sides: BTreeSet<_> = registries
        .registries
        .iter()
        .map(|registry| &registry.side)
        .collect();
    let folders = sides.into_iter().map(|side| side.join(OBJECTS));
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    let kept: BTreeMap<_, _> = paths
        .filter_map(|path| Some((elf_identity(&path)?.to_owned(), path)))
        .collect();
    let processes = registries
        .processes()
        .flat_map(|(_, process)| process.loaded());
    let loaded: BTreeSet<_> = processes.map(|(_, identity)| identity).collect();
    let loaded: Vec<_> = loaded
        .into_iter()
        .filter_map(|identity| Some((identity, kept.get(identity)?.as_path())))
        .collect();
    let origins = registries.origins();
    line_of_kept(&loaded, |identity| {
        origins.get(identity).map(Path::to_path_buf)
    })
}

/// The line about the files with such code.
fn line(files: &BTreeSet<PathBuf>) -> Option<Diagnostic> {
    let first = below(&files.first()?.to_string_lossy(), &here()).into_owned();
    let more = match files.len() - 1 {
        0 => String::new(),
        more => format!(" and {}", count(more, "more file")),
    };
    Some(diagnostic!(
        "the GPU code of {first}{more} adds to its counters without atomic operations: counts are too low, and code \
         that ran may be reported as not run";
        "also compile it with -fprofile-update=atomic, which `rocov flags` prints"
    ))
}
