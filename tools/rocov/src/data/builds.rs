//! Builds of programs and libraries. Two builds may come from different sources, so rocov does not add
//! their counts up. Reports take the newest build of each host file: the one that the process with the
//! latest start had.
//!
//! A kernel registry lists, for each process, the builds of its files and the profiles of their code. A
//! pooled profile has the build in its name. Reports use a profile if no registry contains its build.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use rocov::discover::host_files::{build_of, tag};
use rocov::format::registry::model::{Document, HostRecord, NeverLoadedRecord};
use rocov::store::ProfileNameParts;
use rocov::store::layout::{normal, unlabelled_directory};
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use super::names::DeviceProfile;
use super::registries::{Registries, RegistryLoad, RegistryProcess};
use crate::support::paths::{below, here};
use crate::support::time;
use crate::term::plural::count;

/// Bytes of a build in the name of a pool.
const TAG: usize = 16;

/// A build of a file: its path, and its build id or hash.
pub(crate) type Build = (String, String);

/// The builds that the registries contain.
#[derive(Debug, Default)]
pub(crate) struct Builds {
    /// The builds of each file, each with the last start of a process that had it.
    files: BTreeMap<String, BTreeMap<String, u64>>,
    /// The builds that a newer build of the file replaces.
    older: BTreeSet<Build>,
    /// The builds by their tags in names.
    tags: HashMap<String, Build>,
    /// For each profile, the start of the process that wrote it and the builds that its counts are of. The
    /// key is its directory, without that of a label, and its name.
    profiles: HashMap<(PathBuf, OsString), (u64, Vec<Build>)>,
    /// For each code object, the builds that have it and whose processes did not load it.
    never_loaded: HashMap<String, BTreeSet<Build>>,
    /// The code objects that only older builds have.
    older_code_objects: BTreeSet<String>,
    /// The processes that had a build.
    processes: BTreeMap<Build, usize>,
    /// The directories of profiles, by the directories of files: a merge has thousands of files in one.
    directories: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
}

impl Builds {
    /// Finds the builds in the registries.
    pub(crate) fn from_registries(registries: &Registries) -> Self {
        let mut builds = Self::default();
        for (registry, process) in registries.processes() {
            builds.add(process, &registry.side);
        }
        for (file, of_file) in &builds.files {
            let newest = of_file.iter().max_by_key(|(build, last)| (**last, *build));
            let others = of_file
                .keys()
                .filter(|older| Some(*older) != newest.map(|(build, _)| build))
                .map(|build| (file.clone(), build.clone()));
            builds.older.extend(others);
        }
        builds.older_code_objects = builds.code_objects_of_older(registries);
        builds
    }

    fn add(&mut self, process: &RegistryProcess, side: &Path) {
        let started = process.last;
        let mut of_process = BTreeSet::new();
        for host in &process.hosts {
            of_process.insert((host.path.clone(), host.build.clone()));
        }
        for never in &process.never_loaded {
            let Some(build) = &never.build else { continue };
            let build = (never.file.clone(), build.clone());
            for identity in &never.code_objects {
                let of_code_object = self.never_loaded.entry(identity.clone()).or_default();
                of_code_object.insert(build.clone());
            }
            of_process.insert(build);
        }
        for build in of_process {
            let (path, id) = build.clone();
            let last = self.files.entry(path).or_default().entry(id).or_default();
            *last = started.max(*last);
            self.tags.insert(tag(&build.0, &build.1), build.clone());
            *self.processes.entry(build).or_default() += process.runs.len();
        }
        for load in &process.loads {
            let (Some(host), Some(profile)) = (process.host(load), &load.profile) else {
                continue;
            };
            let build = (host.path.clone(), host.build.clone());
            let Some((directory, name)) = self.key(&side.join(profile)) else {
                continue;
            };
            // LLVM's runtime writes the profile of host code under the name of the pattern.
            if let Some(parts) = name.to_str().and_then(ProfileNameParts::parse) {
                let host = parts.name_of_llvm().into();
                self.wrote((directory.clone(), host), started, &build);
            }
            self.wrote((directory, name), started, &build);
        }
    }

    /// The directory and name of a profile, which it shares with those of its labels.
    fn key(&self, profile: &Path) -> Option<(PathBuf, OsString)> {
        let (parent, name) = (profile.parent()?, profile.file_name()?);
        let mut known = self.directories.borrow_mut();
        if let Some(directory) = known.get(parent) {
            return Some((directory.clone()?, name.to_owned()));
        }
        let directory = directory_of(parent);
        known.insert(parent.to_owned(), directory.clone());
        Some((directory?, name.to_owned()))
    }

    /// The builds in the file at `path`, and the start of the process that wrote it.
    fn written(&self, path: &Path) -> Option<&(u64, Vec<Build>)> {
        if self.profiles.is_empty() {
            return None;
        }
        self.profiles.get(&self.key(path)?)
    }

    /// Records that a process with a build wrote a profile.
    fn wrote(&mut self, key: (PathBuf, OsString), started: u64, build: &Build) {
        let (writer, of_file) = self.profiles.entry(key).or_insert((started, Vec::new()));
        // A later process has written another file of that name.
        if *writer < started {
            (*writer, *of_file) = (started, Vec::new());
        }
        if *writer == started && !of_file.contains(build) {
            of_file.push(build.clone());
        }
    }

    /// Treats no build as older.
    pub(super) fn take_all(&mut self) {
        self.older.clear();
        self.older_code_objects.clear();
    }

    /// The code objects that processes had only from older builds.
    fn code_objects_of_older(&self, registries: &Registries) -> BTreeSet<String> {
        let (mut older, mut others) = (BTreeSet::new(), BTreeSet::new());
        for (_, process) in registries.processes() {
            for load in &process.loads {
                let Some(identity) = &load.code_object else {
                    continue;
                };
                let is_older = self.is_load_of_older(process, load);
                let group = if is_older { &mut older } else { &mut others };
                group.insert(identity.clone());
            }
            for never in &process.never_loaded {
                let build = never.build.as_ref();
                let is_older = build.is_some_and(|build| self.is_older(&never.file, build));
                let group = if is_older { &mut older } else { &mut others };
                group.extend(never.code_objects.iter().cloned());
            }
        }
        older.retain(|identity| !others.contains(identity));
        older
    }

    /// Returns whether a newer build of a file is known.
    pub(crate) fn is_older(&self, path: &str, build: &str) -> bool {
        self.older.contains(&(path.to_owned(), build.to_owned()))
    }

    /// Returns whether processes had other builds of the file at `path` only.
    pub(crate) fn has_others_only(&self, path: &Path) -> bool {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let Some(builds) = self.files.get(&*real.to_string_lossy()) else {
            return false;
        };
        build_of(path).is_ok_and(|build| !builds.contains_key(&build))
    }

    /// Returns whether a process has loaded code from a file of which a newer build is known.
    pub(super) fn is_load_of_older(&self, process: &RegistryProcess, load: &RegistryLoad) -> bool {
        let host = process.host(load);
        host.is_some_and(|host| self.is_older(&host.path, &host.build))
    }

    /// Returns whether only older builds have a code object.
    pub(crate) fn has_only_older(&self, identity: &str) -> bool {
        self.older_code_objects.contains(identity)
    }

    /// The builds that the counts in a profile are of; empty if that is not known.
    pub(crate) fn for_profile(&self, profile: &DeviceProfile) -> Vec<Build> {
        if profile.is_of_zeros {
            let builds = self.never_loaded.get(&profile.identity);
            return builds.into_iter().flatten().cloned().collect();
        }
        self.for_counts(&profile.path, tag_in(&profile.path))
    }

    /// The builds that the counts in the profile at `path` are of, which has a `tag` in its name.
    fn for_counts(&self, path: &Path, tag: Option<&str>) -> Vec<Build> {
        if let Some(build) = tag.and_then(|tag| self.tags.get(tag)) {
            return vec![build.clone()];
        }
        let written = self.written(path);
        written
            .map(|(_, builds)| builds.clone())
            .unwrap_or_default()
    }

    /// The tag of a profile's build, for the name of a pool. `None` if the profile is of zeros or of several
    /// builds, or its build is not known.
    pub(crate) fn tag_of(&self, profile: &DeviceProfile) -> Option<String> {
        if profile.is_of_zeros {
            return None;
        }
        let in_name = tag_in(&profile.path);
        match &*self.for_counts(&profile.path, in_name) {
            [(path, build)] => Some(tag(path, build)),
            // The registry with its build may be in another directory.
            [] => in_name.map(str::to_owned),
            _ => None,
        }
    }

    /// Returns whether a profile has only counts of older builds.
    pub(crate) fn is_of_older(&self, profile: &DeviceProfile) -> bool {
        if self.older.is_empty() {
            return false;
        }
        let builds = self.for_profile(profile);
        !builds.is_empty() && builds.iter().all(|build| self.older.contains(build))
    }

    /// Returns whether a profile of host code comes from a process that had an older build of any file.
    pub(super) fn is_host_of_older(&self, path: &Path) -> bool {
        let builds = self.written(path);
        builds.is_some_and(|(_, builds)| builds.iter().any(|build| self.older.contains(build)))
    }

    /// Returns a message for each file whose older builds have profiles that were left out.
    pub(super) fn about(&self, left_out: &[DeviceProfile], place: &dyn Display) -> Vec<Diagnostic> {
        let counted = left_out.iter().filter(|profile| !profile.is_of_zeros);
        let left_out: BTreeSet<_> = counted
            .flat_map(|profile| self.for_profile(profile))
            .collect();
        let files: BTreeSet<_> = left_out.iter().map(|(file, _)| file).collect();
        let about = |file: &String| {
            let builds = &self.files[file];
            let newest = builds.values().max().copied().unwrap_or_default();
            let runs = left_out
                .iter()
                .filter(|(path, _)| path == file)
                .map(|build| self.processes[build])
                .sum();
            diagnostic!(
                "{}: {} in {place}: rocov uses the newest ({}) and leaves out {} of older ones",
                below(file, &here()),
                count(builds.len(), "build"),
                time::local(newest),
                count(runs, "run");
                "--all-builds adds them up, `rocov clean` removes them all"
            )
        };
        files.into_iter().map(about).collect()
    }

    /// Removes the records of older builds from a registry.
    pub(crate) fn leave_out(&self, document: &mut Document) {
        let is_older = |hosts: &[HostRecord], host: Option<usize>| {
            let host = host.and_then(|host| hosts.get(host));
            host.is_some_and(|host| self.is_older(&host.path, &host.build))
        };
        let is_current = |never: &NeverLoadedRecord| {
            let build = never.build.as_ref();
            build.is_none_or(|build| !self.is_older(&never.file, build))
        };
        for process in &mut document.processes {
            let hosts = &process.hosts;
            process.loads.retain(|load| !is_older(hosts, load.host));
            process.never_loaded.retain(is_current);
        }
        for group in &mut document.groups {
            let hosts = &group.hosts;
            group.loads.retain(|load| !is_older(hosts, load.host));
            group.never_loaded.retain(is_current);
        }
        let objects = &mut document.code_objects;
        objects.retain(|object| !self.has_only_older(&object.identity));
    }
}

/// The directory of profiles, without that of a label. It has no links.
fn directory_of(profiles: &Path) -> Option<PathBuf> {
    let absolute = normal(&std::path::absolute(profiles).ok()?);
    let directory = unlabelled_directory(&absolute);
    Some(directory.canonicalize().unwrap_or(directory))
}

/// The build in the path of a pool: `0f3c9b21a0457e1d_0`.
fn tag_in(path: &Path) -> Option<&str> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    path.iter()
        .rev()
        .filter_map(|path| path.to_str())
        .find_map(|name| {
            let mut ends = name.match_indices('_').map(|(at, _)| at);
            ends.find_map(|end| {
                let tag = name.get(end.checked_sub(TAG)?..end)?;
                let is_numbered = name[end + 1..].starts_with(|c: char| c.is_ascii_digit());
                (is_numbered && tag.as_bytes().iter().all(is_digit)).then_some(tag)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_stand_in_the_names_of_pools() {
        for (path, expected) in [
            (
                "d/gfx90a.aa.0.0f3c9b21a0457e1d_0.profraw",
                Some("0f3c9b21a0457e1d"),
            ),
            (
                "d/gfx90a.aa.0.x_y-0f3c9b21a0457e1d_12",
                Some("0f3c9b21a0457e1d"),
            ),
            (
                "d/0f3c9b21a0457e1d_0/gfx90a.aa.0.x",
                Some("0f3c9b21a0457e1d"),
            ),
            ("d/gfx90a.aa.0.0.profraw", None),
            ("d/gfx90a.aa.0.0f3c9b21a0457e1_0.profraw", None),
            ("d/gfx90a.aa.0.0f3c9b21a0457e1d_x.profraw", None),
        ] {
            assert_eq!(tag_in(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_profile_and_those_of_its_labels_are_of_one_writer() {
        let key = |path: &str| Builds::default().key(Path::new(path)).unwrap();
        let own = key("/n/profraw/7/x.profraw");
        assert_eq!(key("/n/profraw/7/labels/a/b/x.profraw"), own);
        assert_eq!(key("/n/registry/../profraw/7/labels/x.profraw"), own);
        assert_ne!(key("/n/profraw/8/x.profraw"), own);
        assert_eq!(key("/labels/profraw/x").0, Path::new("/labels/profraw"));
    }
}
