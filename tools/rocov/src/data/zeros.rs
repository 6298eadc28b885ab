//! Profiles of zeros for code that was never launched.
//!
//! librocov names the host files with device code that a process had, in its registry. This module looks for the
//! code objects with counters in them, or for all if the process was traced, selects those that a GPU of the process
//! could have loaded and the process did not load, and writes a profile of zeros and the device ELF of each, one for an architecture.
//!
//! Code that rocov makes count while the driver loads it (`rocov run --instrument`) is PTX in these files, as long as the
//! driver has not compiled it. It is selected if a function of it is in no PTX that a process of the registry has left.
//!
//! `rocov run` writes them to the data directory, and replaces the files in the registry by the code objects.
//! Commands that only read a data directory have a temporary directory for them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use memmap2::Mmap;
use object::elf::ELFMAG;
use rocov::device::Agent;
use rocov::discover::host_files::{build_of, tag};
use rocov::drain::{ZeroProfile, ZeroWriter};
use rocov::format::bundle::{SplitOff, split_off, starts_at};
use rocov::format::codeobject::{Identity, runs_on};
use rocov::format::ptx::{Module, modules};
use rocov::format::registry::Grouped;
use rocov::format::registry::model::{
    AgentRecord, CodeFileRecord, CodeObjectRecord, DeviceCodeRecord, Document, NeverLoadedRecord,
};
use rocov::settings::{DocumentWhen, Keeping, ObjectsKept};
use rocov::store::layout::{DataLayout, OBJECTS, REGISTRIES, SIDE, source_identity};
use rocov::store::{ProfileName, RegistryChange, change_registry};
use rocov::support::diagnostic::{Diagnostic, Remedy, diagnostic, fail};

use super::archives::archives_beside;
use super::code_cache::CodeCache;
use super::host_code::{Counted, CountingCode, FunctionKey, HostCode, at_rest, function_keys};
use super::registries::{ProcessKey, Registries, Registry, RegistryProcess};
use crate::support::failure::failure;
use crate::support::{mmap, parallel};
use crate::term::plural::count;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// The settings of a temporary data directory.
pub(super) const IN_A_DIRECTORY: Keeping = Keeping {
    document: DocumentWhen::None,
    objects: ObjectsKept::Instrumented,
    objects_max: u64::MAX,
};

/// The destination of profiles of zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ZeroPlaces<'a> {
    /// The places that the registries name. The device ELFs are kept that these settings ask for.
    Own(Keeping),
    /// One directory, with the layout and the settings of a data directory.
    Directory(&'a Path, Keeping),
}

/// The results for all registries.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    /// By the paths of the registries.
    registries: BTreeMap<PathBuf, CompletedRegistry>,
}

/// The records that complete a registry.
#[derive(Debug, Default)]
struct CompletedRegistry {
    processes: BTreeMap<ProcessKey, CompletedProcess>,
    /// Those of new profiles.
    code_objects: Vec<CodeObjectRecord>,
}

/// The records that complete a process.
#[derive(Debug)]
struct CompletedProcess {
    never_loaded: Vec<NeverLoadedRecord>,
    /// The files that could not be looked at.
    left: Vec<CodeFileRecord>,
}

/// A host file, as it is now.
struct CodeFile {
    /// Its path without links.
    path: PathBuf,
    build: String,
    /// The time of its last change, in nanoseconds since 1970.
    modified: Option<u64>,
    contents: Mmap,
    code: HostCode,
    /// The kpack archives to which its code was split off.
    archives: Vec<Self>,
}

/// The host files of all processes. A file that cannot be looked at has the reason instead.
type CodeFiles<'a> = BTreeMap<&'a CodeFileRecord, Result<CodeFile>>;

/// A profile of zeros that is to be written.
struct Wanted<'a> {
    file: &'a CodeFile,
    /// The offset of its container in the file.
    container: usize,
    agent: Agent,
    counted: Counted,
    /// The registry that gets its record.
    registry: &'a Path,
}

/// The profiles of one place, by arch and identity.
type WantedHere<'a> = BTreeMap<(&'a str, &'a str), Wanted<'a>>;

/// The functions of PTX that processes have counted, by the sides of the registries.
#[derive(Debug)]
struct CountedPtx {
    functions: BTreeMap<PathBuf, HashSet<FunctionKey>>,
}

impl CountedPtx {
    /// Reads the PTX next to the registries, if any of the files has some. That of code which was never loaded is left out.
    fn read<'a>(files: &CodeFiles<'_>, registries: impl Iterator<Item = &'a Registry>) -> Self {
        let files = files.values().flatten();
        let never_loaded: BTreeSet<&str> =
            files.flat_map(|file| file.code.ptx_identities()).collect();
        let mut functions = BTreeMap::new();
        for registry in registries.filter(|_| !never_loaded.is_empty()) {
            functions.entry(registry.side.clone()).or_insert_with(|| {
                let kept = fs::read_dir(registry.side.join(OBJECTS))
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|file| file.path());
                let of_processes = kept.filter(|path| {
                    source_identity(path).is_some_and(|identity| !never_loaded.contains(identity))
                });
                of_processes.flat_map(|path| functions_of(&path)).collect()
            });
        }
        Self { functions }
    }

    /// Returns whether processes with registries in this side have counted all of these functions.
    fn has_all(&self, side: &Path, functions: &[FunctionKey]) -> bool {
        let counted = self.functions.get(side);
        counted.is_some_and(|counted| functions.iter().all(|function| counted.contains(function)))
    }
}

/// The functions in a file of PTX. None if rocov does not support the text.
fn functions_of(path: &Path) -> Vec<FunctionKey> {
    let text = mmap::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let parsed = modules(&text)
        .into_iter()
        .filter_map(|text| Module::parse(text).ok());
    parsed.flat_map(|module| function_keys(&module)).collect()
}

/// Looks for code that the processes of `registries` could have loaded and did not, and writes its profiles of
/// zeros. A file that cannot be looked at is a warning.
pub(crate) fn complete(
    registries: &[&Registry],
    places: ZeroPlaces<'_>,
    warnings: &mut Warnings,
) -> Completion {
    let processes = || {
        let processes = registries.iter().flat_map(|registry| {
            registry
                .processes
                .iter()
                .map(move |process| (*registry, process))
        });
        processes.filter_map(|(registry, process)| {
            Some((registry, process, process.device_code.as_ref()?))
        })
    };
    let files = code_files(processes().flat_map(|(_, _, code)| &code.files));
    warnings.extend(about_unread(&files));
    let counted = CountedPtx::read(&files, processes().map(|(registry, ..)| registry));
    let mut completion = Completion::default();
    let mut wanted: BTreeMap<_, WantedHere<'_>> = BTreeMap::new();
    for (registry, process, code) in processes() {
        let here = wanted.entry(places.layout(registry, code)).or_default();
        let completed = complete_process(registry, process, code, &files, &counted, here);
        let of_registry = completion
            .registries
            .entry(registry.path.clone())
            .or_default();
        of_registry.processes.insert(process.key.clone(), completed);
    }
    for ((profiles, side), wanted) in wanted {
        let layout = DataLayout::from_places(&profiles, &side);
        for (registry, object) in write(layout, places.keeping(), &wanted, warnings) {
            let of_registry = completion.registries.entry(registry.to_owned());
            of_registry.or_default().code_objects.push(object);
        }
    }
    completion
}

/// A line for each reason why files cannot be looked at.
fn about_unread(files: &CodeFiles<'_>) -> Vec<Diagnostic> {
    let mut reasons: BTreeMap<Diagnostic, BTreeSet<&str>> = BTreeMap::new();
    for (record, file) in files {
        if let Err(error) = file {
            let of_reason = reasons.entry(explained(error)).or_default();
            of_reason.insert(&record.path);
        }
    }
    let line = |(reason, paths): (Diagnostic, BTreeSet<&str>)| {
        let first = paths.first().copied().unwrap_or_default();
        match paths.len() - 1 {
            0 => reason.within(first),
            others => {
                let others = count(others, "other file");
                reason.within(format_args!("{first}, and {others}"))
            }
        }
    };
    reasons.into_iter().map(line).collect()
}

/// Writes profiles of zeros to `directory` for the code in `objects` that `agents` could load, as far as it
/// `is_wanted` on an agent. A failure is a warning.
///
/// # Errors
///
/// Fails if an object cannot be read.
pub(crate) fn for_objects(
    objects: &[&Path],
    agents: &[AgentRecord],
    is_wanted: impl Fn(&AgentRecord, &str) -> bool,
    directory: &Path,
    warnings: &mut Warnings,
) -> Result<()> {
    let cache = CodeCache::for_user();
    let files: Vec<_> = objects
        .iter()
        .map(|path| CodeFile::from_path(path, &cache))
        .collect::<Result<_>>()?;
    let mut wanted = WantedHere::new();
    for (path, file) in objects.iter().zip(&files) {
        for agent in one_of_each(agents) {
            for (file, code) in file.taken_by(agent, Counted::WithCounters) {
                if is_wanted(agent, code.identity) {
                    let key = (agent.name.as_str(), code.identity);
                    wanted.entry(key).or_insert_with(|| Wanted {
                        file,
                        container: code.container,
                        agent: arch_agent(agent),
                        counted: Counted::WithCounters,
                        registry: path,
                    });
                }
            }
        }
    }
    // The objects have the device ELFs.
    let keeping = Keeping::default();
    write(DataLayout::from_data(directory), keeping, &wanted, warnings);
    Ok(())
}

/// Writes profiles of zeros and device ELFs to `directory` for the code with counters in `files` that is for none of the
/// archs that `ran`. Takes the code objects that are wanted, by their identity, of the archs that are. Returns their
/// records. A file that is not the one that a process had is left out.
pub(crate) fn from_other_archs(
    files: &BTreeSet<CodeFileRecord>,
    ran: &BTreeSet<&str>,
    is_wanted: impl Fn(&str, &str) -> bool,
    directory: &Path,
    warnings: &mut Warnings,
) -> Vec<CodeObjectRecord> {
    let files = code_files(files.iter());
    let files: Vec<_> = files.values().flatten().collect();
    let mut wanted = WantedHere::new();
    for file in files {
        let runs = |processor: &&str| ran.iter().any(|arch| runs_on(processor, arch));
        let processors = file.parts().flat_map(|file| file.code.processors());
        let others = processors.filter(|processor| !runs(processor));
        for arch in others.collect::<BTreeSet<_>>() {
            let agent = agent_of(arch);
            for (file, code) in file.taken_by(&agent, Counted::WithCounters) {
                if is_wanted(arch, code.identity) {
                    let key = (arch, code.identity);
                    wanted.entry(key).or_insert_with(|| Wanted {
                        file,
                        container: code.container,
                        agent: arch_agent(&agent),
                        counted: Counted::WithCounters,
                        registry: &file.path,
                    });
                }
            }
        }
    }
    let layout = DataLayout::from_data(directory);
    let records = write(layout, IN_A_DIRECTORY, &wanted, warnings);
    records.into_iter().map(|(_, record)| record).collect()
}

/// Finds the code that a process could have loaded and did not. Adds it to the profiles `here`.
fn complete_process<'a>(
    registry: &'a Registry,
    process: &'a RegistryProcess,
    code: &'a DeviceCodeRecord,
    files: &'a CodeFiles<'_>,
    counted_ptx: &CountedPtx,
    here: &mut WantedHere<'a>,
) -> CompletedProcess {
    let (mut never_loaded, mut left) = (Vec::new(), Vec::new());
    let loaded = process.loaded();
    for record in &code.files {
        let Ok(file) = &files[record] else {
            left.push(record.clone());
            continue;
        };
        let counted = match code.traced && !is_of_system(&file.path) {
            true => Counted::Traced,
            false => Counted::WithCounters,
        };
        for agent in one_of_each(&process.agents) {
            let mut code_objects = BTreeSet::new();
            let code = file.taken_by(agent, counted);
            let code =
                code.filter(|(_, code)| !loaded.contains(&(agent.name.as_str(), code.identity)));
            let ptx = file.code.ptx_taken_by(agent);
            let ptx = ptx.filter(|ptx| !counted_ptx.has_all(&registry.side, ptx.functions));
            let code = code.map(|(file, code)| (file, code.identity, code.container, counted));
            let ptx = ptx.map(|ptx| (file, ptx.identity, ptx.container, Counted::WithCounters));
            for (file, identity, container, counted) in code.chain(ptx) {
                code_objects.insert(identity.to_owned());
                let key = (agent.name.as_str(), identity);
                here.entry(key).or_insert_with(|| Wanted {
                    file,
                    container,
                    agent: arch_agent(agent),
                    counted,
                    registry: &registry.path,
                });
            }
            if !code_objects.is_empty() {
                never_loaded.push(NeverLoadedRecord {
                    file: file.path.to_string_lossy().into_owned(),
                    build: Some(file.build.clone()),
                    agent: agent.index,
                    code_objects: code_objects.into_iter().collect(),
                });
            }
        }
    }
    CompletedProcess { never_loaded, left }
}

/// Writes the profiles of one place that are not there. Returns the record of each new one, and the registry
/// that it belongs to. A failure is a warning.
fn write<'a>(
    layout: DataLayout,
    keeping: Keeping,
    wanted: &WantedHere<'a>,
    warnings: &mut Warnings,
) -> Vec<(&'a Path, CodeObjectRecord)> {
    let name = ProfileName::zeros_in(layout.clone());
    let mut missing: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for ((arch, identity), wanted) in wanted {
        let is_there = Identity::from_digits(identity)
            .is_some_and(|identity| name.for_load(arch, &identity, 0).exists());
        if !is_there {
            let place = (&wanted.file.path, wanted.container);
            missing.entry(place).or_default().push((*identity, wanted));
        }
    }
    let mut records = Vec::new();
    if missing.is_empty() {
        return records;
    }
    let kept = size_of(&layout.side().join(OBJECTS));
    let mut writer = ZeroWriter::new(layout, keeping, kept);
    for ((path, container), wanted) in missing {
        let contents = &wanted[0].1.file.contents;
        let code = wanted.iter();
        let code: Vec<_> = code
            .map(|(identity, code)| (*identity, &code.agent, code.counted))
            .collect();
        match at_rest(contents, container, &code) {
            Ok(devices) => {
                for (device, (_, wanted)) in devices.iter().zip(&wanted) {
                    let ZeroProfile {
                        outcome,
                        code_object,
                    } = writer.write(device);
                    warnings.extend(outcome.losses.iter().map(|loss| loss.diagnostic()));
                    warnings.extend(outcome.not_kept.iter().map(Remedy::diagnostic));
                    records.extend(code_object.map(|object| (wanted.registry, object)));
                }
            }
            Err(error) => warnings.add(diagnostic!(
                "cannot write zeros for the code in {} that was never launched: {}; reports will not show this code",
                path.display(), explained(&error).what();
                "run the program again"
            )),
        }
    }
    records
}

impl ZeroPlaces<'_> {
    /// The directories of profiles and of everything else, for the processes of a registry.
    fn layout(&self, registry: &Registry, code: &DeviceCodeRecord) -> (PathBuf, PathBuf) {
        match self {
            Self::Own(_) => {
                let profiles = registry.side.join(&code.profiles);
                (
                    rocov::store::layout::normal(&profiles),
                    registry.side.clone(),
                )
            }
            Self::Directory(directory, _) => {
                let layout = DataLayout::from_data(directory);
                (layout.profiles().to_owned(), layout.side().to_owned())
            }
        }
    }

    fn keeping(&self) -> Keeping {
        match self {
            Self::Own(keeping) | Self::Directory(_, keeping) => *keeping,
        }
    }
}

impl Completion {
    /// Completes the registry that was read from `path`.
    pub(super) fn apply(&self, path: &Path, document: &mut Document) {
        if let Some(completed) = self.registries.get(path) {
            completed.apply(document);
        }
    }

    /// Completes the parts of registries that all commands read.
    pub(super) fn apply_to_parts(&self, registries: &mut Registries) {
        for registry in &mut registries.registries {
            if let Some(completed) = self.registries.get(&registry.path) {
                completed.apply_to_part(registry);
            }
        }
    }

    /// Adds the registry in the file at `path` to others.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn add_registry(&self, path: &Path, merged: &mut Grouped) -> Result<()> {
        let text = mmap::map(path)?;
        let added = match self.registries.get(path) {
            None => merged.add(&text),
            Some(completed) => Document::parse(&text).and_then(|mut document| {
                completed.apply(&mut document);
                merged.add(&document.to_json())
            }),
        };
        added.with_context(|| format!("cannot merge {}", path.display()))
    }
}

impl CompletedRegistry {
    /// Adds the records to the registry.
    fn apply(&self, document: &mut Document) {
        for process in &mut document.processes {
            let key = ProcessKey::new(process);
            if let Some(completed) = self.processes.get(&key) {
                completed.apply(&mut process.device_code, &mut process.never_loaded);
            }
        }
        for (number, group) in document.groups.iter_mut().enumerate() {
            if let Some(completed) = self.processes.get(&ProcessKey::Group(number)) {
                completed.apply(&mut group.device_code, &mut group.never_loaded);
            }
        }
        for object in &self.code_objects {
            let is_it = |other: &CodeObjectRecord| {
                (&other.identity, &other.target) == (&object.identity, &object.target)
            };
            if !document.code_objects.iter().any(is_it) {
                document.code_objects.push(object.clone());
            }
        }
        let objects = &mut document.code_objects;
        objects.sort_by(|a, b| (&a.identity, &a.target).cmp(&(&b.identity, &b.target)));
    }

    /// Adds the records to the part of the registry that all commands read.
    fn apply_to_part(&self, registry: &mut Registry) {
        for process in &mut registry.processes {
            if let Some(completed) = self.processes.get(&process.key) {
                completed.apply(&mut process.device_code, &mut process.never_loaded);
            }
        }
    }

    /// The number of code objects that some process could have loaded and did not.
    fn never_loaded(&self) -> usize {
        let processes = self.processes.values();
        let records = processes.flat_map(|process| &process.never_loaded);
        let code_objects = records.flat_map(|record| &record.code_objects);
        code_objects.collect::<BTreeSet<_>>().len()
    }
}

impl CompletedProcess {
    fn apply(
        &self,
        device_code: &mut Option<DeviceCodeRecord>,
        never_loaded: &mut Vec<NeverLoadedRecord>,
    ) {
        let Some(code) = device_code else { return };
        code.files.clone_from(&self.left);
        if code.files.is_empty() {
            *device_code = None;
        }
        never_loaded.extend(self.never_loaded.iter().cloned());
    }
}

/// Completes the registries at these paths, which processes of a run have left, in their own data directories.
/// Returns the number of code objects that count as never loaded.
///
/// A registry without instrumented code goes, with its directories if they are empty. `made` is a data directory
/// that was not there before the run.
pub(crate) fn complete_run(
    paths: &BTreeSet<PathBuf>,
    keeping: Keeping,
    made: Option<&Path>,
    warnings: &mut Warnings,
) -> usize {
    // A program that has called `exec` has moved its registry.
    let there = paths.iter().filter(|path| path.exists());
    let registries = Registries::read(there.map(|path| (path.as_path(), true)));
    warnings.extend(registries.unread.iter().map(explained));
    let all: Vec<_> = registries.registries.iter().collect();
    let completion = complete(&all, ZeroPlaces::Own(keeping), warnings);
    let mut never_loaded = 0;
    for (path, completed) in &completion.registries {
        never_loaded += completed.never_loaded();
        let mut is_removed = false;
        let changed = change_registry(path, |mut document| {
            completed.apply(&mut document);
            is_removed = !is_asked_for(&document, keeping.document);
            match is_removed {
                true => RegistryChange::Remove,
                false => RegistryChange::Replace(document),
            }
        });
        match changed {
            Ok(()) if is_removed => remove_directories(path, made),
            Ok(()) => {}
            Err(error) => warnings.add(diagnostic!(
                "cannot complete {}: {error}", path.display();
                "`rocov report` looks again for code that was never launched"
            )),
        }
    }
    never_loaded
}

/// Returns whether a registry is to be written under these settings, now that it is complete.
fn is_asked_for(document: &Document, when: DocumentWhen) -> bool {
    let mut processes = document.processes.iter();
    let has_code = document
        .code_objects
        .iter()
        .any(|code_object| code_object.instrumented)
        || processes
            .any(|process| process.device_code.is_some() || !process.never_loaded.is_empty());
    let has_loads = || {
        document
            .processes
            .iter()
            .any(|process| !process.loads.is_empty())
    };
    has_code || when == DocumentWhen::Always && has_loads()
}

/// Removes the directories above a registry that are empty and that rocov has made.
fn remove_directories(registry: &Path, made: Option<&Path>) {
    let named = |path: &Path, name: &str| path.file_name().is_some_and(|found| found == name);
    let mut in_registries = true;
    for directory in registry.ancestors().skip(1) {
        let is_side = directory
            .extension()
            .is_some_and(|extension| SIDE.strip_prefix('.').is_some_and(|side| extension == side))
            || named(directory, SIDE)
            || directory.parent().is_some_and(|parent| named(parent, SIDE));
        if !(in_registries || is_side || Some(directory) == made) {
            break;
        }
        in_registries &= !named(directory, REGISTRIES);
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
}

/// Opens the files, each once, and finds the code in them.
fn code_files<'a>(records: impl Iterator<Item = &'a CodeFileRecord>) -> CodeFiles<'a> {
    let records: BTreeSet<_> = records.collect();
    let records: Vec<_> = records.into_iter().collect();
    let cache = CodeCache::for_user();
    let found = parallel::map(&records, |record| Ok(CodeFile::open(record, &cache)))
        .expect("each file has its own result");
    records.into_iter().zip(found).collect()
}

impl CodeFile {
    /// Opens a file, and checks that it is the one that a process had.
    ///
    /// # Errors
    ///
    /// Fails if it is another one, or cannot be read.
    fn open(record: &CodeFileRecord, cache: &CodeCache) -> Result<Self> {
        let path = fs::canonicalize(&record.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                failure!(
                    "the file was removed after the program had loaded it, so reports will not show its code that was \
                    never launched";
                    "run the program again, and keep the file until `rocov run` has ended"
                )
            }
            _ => failure!(
                "cannot find the file: {error}; reports will not show its code that was never launched";
                "run the program again"
            ),
        })?;
        let file = Self::from_path(&path, cache).map_err(|error| {
            let error = explained(&error);
            failure!(
                "the file cannot be used: {}; reports will not show its code that was never launched",
                error.what();
                "{}", error.next_or("run the program again")
            )
        })?;
        let is_it = match (&record.build, record.modified) {
            (Some(had), _) => *had == file.build,
            (None, Some(had)) => Some(had) == file.modified,
            (None, None) => true,
        };
        if !is_it {
            fail!(
                "the file was replaced after the program had loaded it, so reports will not show its code that was \
                never launched";
                "run the program again, and keep the file until `rocov run` has ended"
            );
        }
        Ok(file)
    }

    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    fn from_path(path: &Path, cache: &CodeCache) -> Result<Self> {
        let contents = mmap::map(path)?;
        // The build of anything else is a hash of all of it, which may be endless.
        if !contents.starts_with(&ELFMAG) && !starts_at(&contents, 0) {
            fail!(
                "{} is neither an ELF nor a container of device code", path.display();
                "name another file"
            );
        }
        let metadata = fs::metadata(path)?;
        let build = build_of(path)?;
        let fits = |code: &HostCode| code.fits(&contents);
        let code = cache.find_or(&build, &metadata, fits, || HostCode::parse(&contents));
        let archives = match split_off(&contents) {
            None => Vec::new(),
            Some(reference) => archives_beside(path, &reference)?
                .iter()
                .map(|archive| Self::from_archive(archive, &reference, &build, cache))
                .collect::<Result<_>>()?,
        };
        Ok(Self {
            path: path.to_owned(),
            modified: modified(&metadata),
            build,
            contents,
            code,
            archives,
        })
    }

    /// Opens the kpack archive at `path`, for the code of the host file with this reference and `build`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    fn from_archive(
        path: &Path,
        reference: &SplitOff,
        build: &str,
        cache: &CodeCache,
    ) -> Result<Self> {
        let contents = mmap::map(path)?;
        let metadata = fs::metadata(path)?;
        let fits = |code: &HostCode| code.fits(&contents);
        let look = || HostCode::parse_archive(&contents, &reference.name);
        // The hash of an archive of many gigabytes would take longer than a look at its list.
        let code = cache.find_or(&tag(&path.to_string_lossy(), build), &metadata, fits, look);
        Ok(Self {
            path: path.to_owned(),
            modified: modified(&metadata),
            build: build.to_owned(),
            contents,
            code,
            archives: Vec::new(),
        })
    }

    /// This file and the archives with its code.
    fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.archives)
    }

    /// The `counted` code objects of all parts that `agent` could load, each with its part.
    fn taken_by(
        &self,
        agent: &AgentRecord,
        counted: Counted,
    ) -> impl Iterator<Item = (&Self, CountingCode<'_>)> {
        self.parts().flat_map(move |file| {
            let code = file.code.taken_by(agent, counted);
            code.map(move |code| (file, code))
        })
    }
}

/// Returns whether a file is of the system or of ROCm. Zeros for all their kernels would take gigabytes, and nobody asks
/// for them: the code there has no counters.
fn is_of_system(path: &Path) -> bool {
    let starts = ["/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/", "/opt/rocm"];
    let path = path.to_string_lossy();
    starts.iter().any(|start| path.starts_with(start))
}

/// The time of a file's last change, in nanoseconds since 1970.
fn modified(file: &fs::Metadata) -> Option<u64> {
    let seconds = u64::try_from(file.mtime()).ok()?;
    let nanoseconds = u64::try_from(file.mtime_nsec()).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// The first agent of each instruction set.
fn one_of_each(agents: &[AgentRecord]) -> Vec<&AgentRecord> {
    let mut known = BTreeSet::new();
    let mut first: Vec<_> = agents.iter().collect();
    first.retain(|agent| known.insert(agent.isa.as_ref().unwrap_or(&agent.name)));
    first
}

/// An agent of which only the architecture is known.
pub(super) fn agent_of(arch: &str) -> AgentRecord {
    AgentRecord {
        index: 0,
        name: arch.to_owned(),
        isa: None,
        uuid: None,
        node: None,
    }
}

/// An agent that stands for all of its architecture.
fn arch_agent(agent: &AgentRecord) -> Agent {
    Agent {
        handle: 0,
        index: 0,
        name: agent.name.clone(),
        isa: agent.isa.clone(),
        uuid: None,
        node: None,
    }
}

/// The size of all files in a directory, in bytes. 0 if it is not there.
fn size_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| entry.metadata().ok());
    sizes.map(|metadata| metadata.len()).sum()
}
