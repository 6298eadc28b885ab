//! Data directories into a data set. Each is a run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use rocov::format::profraw::Sum;
use rocov::format::registry::{Grouped, Runs};
use rocov::store::Label;
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};
use rocov_fleet::{
    Added, COUNTER, CodeRows, DataSet, PROFILE, RUN, Rows, RunRows, SharedBytes, TEST_LINE, hashes,
};
use tempfile::TempDir;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::code::Code;
use crate::data::matched_elfs::{MatchedCodeObject, MatchedElfs};
use crate::data::{DataListing, DeviceProfile, ReportableData};
use crate::profdata::ProfileCounts;
use crate::support::failure::failure;
use crate::support::{mmap, parallel, temporary, time};
use crate::term::plural::count;
use crate::term::remedy::explained;
use crate::term::warnings::Warnings;

/// The runs that are read at a time.
const AT_ONCE: usize = 64;
/// The rows in memory that are enough for files of their own.
const ROWS: usize = 1 << 20;
/// The runs that are enough for files of their own.
const RUNS: usize = 1024;

/// The properties of the runs that the user gives.
pub(crate) struct ImportOptions<'a> {
    pub(crate) commit: &'a str,
    /// The date, instead of that of the first process's start.
    pub(crate) date: Option<&'a str>,
    /// The name of the run: of one directory.
    pub(crate) run: Option<&'a str>,
    /// Files that device ELFs are looked for in.
    pub(crate) objects: &'a [PathBuf],
}

/// The name of a run, and its distinguishing part.
struct Identified {
    run: String,
    date: String,
    /// The start of the first process and of the last, in nanoseconds since 1970.
    times: [u64; 2],
    /// The number of processes, or of profiles if there is no registry.
    processes: usize,
    /// The hashes of the processes, as in a registry.
    hashes: String,
    command: String,
}

/// The code objects by arch and identity: one for each set of data records.
type KnownCodes = HashMap<(String, String), Vec<Arc<Code>>>;

/// The code objects that runs have, each read once.
struct Codes {
    known: Mutex<KnownCodes>,
    /// The rows of those that were not given to the data set yet.
    new: Mutex<Vec<CodeRows>>,
    directory: TempDir,
}

/// The result of an import.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    /// The number of runs that were added.
    pub(crate) added: usize,
    /// The number of runs that were there.
    pub(crate) known: usize,
    /// The reasons why other runs were not added.
    pub(crate) refused: Vec<Diagnostic>,
}

/// Adds the runs in `directories` to a data set, as far as it lacks them. A run that cannot be read whole is not added,
/// with a reason.
///
/// # Errors
///
/// Fails if the data set cannot be read or written. The runs before are in it.
pub(crate) fn import(
    set: &mut DataSet,
    directories: &[PathBuf],
    options: &ImportOptions<'_>,
    warnings: &mut Warnings,
) -> Result<Imported> {
    let codes = Codes {
        known: Mutex::default(),
        new: Mutex::default(),
        directory: temporary::directory()?,
    };
    let mut total = Imported::default();
    let mut waiting = Vec::new();
    let mut seen = HashSet::new();
    let mut known_dates = BTreeSet::new();
    for directories in directories.chunks(AT_ONCE) {
        let identified = parallel::map(directories, |directory| {
            Ok(Identified::from_directory(directory, options))
        })?;
        let mut wanted = Vec::new();
        for (directory, identified) in directories.iter().zip(identified) {
            match identified {
                Err(error) => total.refuse(directory, &error),
                Ok(run) if set.look_up(&run.date, options.commit, &run.run)? => {
                    total.known += 1;
                    known_dates.insert(run.date);
                }
                Ok(run) if !seen.insert((run.date.clone(), run.run.clone())) => total.known += 1,
                Ok(run) => wanted.push((directory, run)),
            }
        }
        let read = parallel::map(&wanted, |(directory, identified)| {
            let mut warnings = Warnings::default();
            let rows = read(directory, identified, options, &codes, &mut warnings);
            Ok((*directory, rows, warnings))
        })?;
        for (directory, rows, said) in read {
            warnings.extend(said.into_messages());
            match rows {
                Ok(rows) => waiting.push(rows),
                Err(error) => total.refuse(directory, &error),
            }
        }
        let rows = waiting.iter().map(RunRows::number).sum::<usize>();
        if rows >= ROWS || waiting.len() >= RUNS {
            let rows = std::mem::take(&mut waiting);
            total.take(set.add(rows, codes.take())?, set);
        }
    }
    if !waiting.is_empty() {
        total.take(set.add(waiting, codes.take())?, set);
    }
    for date in known_dates {
        set.tidy(&date, options.commit)?;
    }
    Ok(total)
}

impl Imported {
    /// Takes the result of adding rows to a data set.
    fn take(&mut self, more: Added, set: &DataSet) {
        self.added += more.added;
        self.known += more.known;
        let place = set.path().display();
        self.refused.extend(more.refused.iter().map(|run| {
            diagnostic!(
                "{} contains {} of run {}, which is already in {place}",
                run.place, count(run.processes, "process"), run.other;
                "import each process once, or remove that run"
            )
        }));
    }

    fn refuse(&mut self, directory: &Path, error: &anyhow::Error) {
        let directory = directory.display();
        self.refused
            .push(explained(error).within(format_args!("{directory} is not imported")));
    }
}

impl Codes {
    /// Takes the rows of code objects that were read since the last call.
    fn take(&self) -> Vec<CodeRows> {
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *new)
    }

    /// A code object, which has the profile `sum`.
    fn get_or_add(
        &self,
        arch: &str,
        object: &MatchedCodeObject<'_>,
        sum: &Sum,
    ) -> Result<Arc<Code>> {
        let key = (arch.to_owned(), object.elf.identity.as_str().to_owned());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(key).or_default();
        if let Some(code) = known.iter().find(|code| code.has_records_of(sum)) {
            return Ok(Arc::clone(code));
        }
        let (code, rows) = Code::read(arch, object, sum, self.directory.path())?;
        if known.iter().any(|other| other.identity == code.identity) {
            fail!(
                "a profile of code object {} has different data records from the first",
                rows.identity;
                "use another data set for it"
            );
        }
        let code = Arc::new(code);
        known.push(Arc::clone(&code));
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        new.push(rows);
        Ok(code)
    }
}

impl Identified {
    /// Finds the run in a directory.
    ///
    /// # Errors
    ///
    /// Fails if it has no profile, or a file that cannot be read.
    fn from_directory(directory: &Path, options: &ImportOptions<'_>) -> Result<Self> {
        let mut warnings = Warnings::default();
        let data = DataListing::open(&[directory], &mut warnings)?;
        if let Some(message) = warnings.into_messages().into_iter().next() {
            return Err(message.into());
        }
        if data.device.is_empty() {
            fail!("it contains no profile of GPU code"; "name the directory that `rocov run` wrote to");
        }
        let registries = data.read_registries();
        if let Some(error) = registries.unread.first() {
            return Err(explained(error).into());
        }
        let mut runs = Runs::default();
        let (mut first, mut last, mut command) = (u64::MAX, 0, None);
        for (_, process) in registries.processes() {
            runs.add(&process.runs);
            (first, last) = (first.min(process.first), last.max(process.last));
            command.get_or_insert_with(|| process.command.join(" "));
        }
        let hashes = serde_json::to_string(&runs)?.trim_matches('"').to_owned();
        let (mut run, mut processes) =
            (format!("{:032x}", xxh3_128(hashes.as_bytes())), runs.len());
        if runs.is_empty() {
            // Without a registry, the contents distinguish runs.
            let mut contents = Xxh3::new();
            for DeviceProfile { path, .. } in &data.device {
                contents.update(path.file_name().unwrap_or_default().as_encoded_bytes());
                contents.update(&mmap::read(path)?);
                let changed = fs::metadata(path)
                    .and_then(|metadata| metadata.modified())
                    .ok()
                    .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
                    .map_or(0, |duration| {
                        u64::try_from(duration.as_nanos()).unwrap_or(0)
                    });
                (first, last) = (first.min(changed), last.max(changed));
            }
            run = format!("{:032x}", contents.digest128());
            processes = data.device.len();
        }
        let date = options.date.map_or_else(
            || time::utc(first / 1_000_000_000)[..10].to_owned(),
            str::to_owned,
        );
        Ok(Self {
            run: options.run.map_or(run, str::to_owned),
            date,
            times: [first, last],
            processes,
            hashes,
            command: command.unwrap_or_default(),
        })
    }
}

/// Reads the rows of a run.
fn read(
    directory: &Path,
    identified: &Identified,
    options: &ImportOptions<'_>,
    codes: &Codes,
    warnings: &mut Warnings,
) -> Result<RunRows> {
    let data = DataListing::open(&[directory], warnings)?
        .complete(true, warnings)?
        .for_report(options.objects, &[], warnings)?;
    if let Some(path) = data.files.host.first() {
        warnings.add(diagnostic!(
            "left out: {} of host code in {}, such as {}: a data set contains only GPU code",
            count(data.files.host.len(), "profile"), directory.display(), path.display();
            "use `rocov report --host-binary` to see them"
        ));
    }
    let matched = data.match_all_elfs();
    check(&data, &matched)?;
    let mut registry = Grouped::default();
    for path in data.files.named_registry_paths() {
        data.completion.add_registry(path, &mut registry)?;
    }
    let registry = match registry.is_empty() {
        true => Vec::new(),
        false => registry.to_json(),
    };
    let run: SharedBytes = identified.run.as_str().into();
    let mut row = Rows::new(&RUN);
    let [first, last] = identified.times.map(|time| time / 1000);
    row.push([
        (&run).into(),
        first.into(),
        last.into(),
        identified.processes.into(),
        identified.hashes.as_str().into(),
        identified.command.as_str().into(),
        registry.into(),
    ]);
    let mut archs = BTreeMap::new();
    for (arch, objects) in &matched.archs {
        let mut rows = ArchRows::new(run.clone());
        for object in objects.values() {
            rows.add(arch, object, &data, codes)?;
        }
        archs.insert(
            (*arch).to_owned(),
            vec![rows.profiles, rows.counters, rows.lines],
        );
    }
    Ok(RunRows {
        place: directory.display().to_string(),
        run: identified.run.clone(),
        date: identified.date.clone(),
        commit: options.commit.to_owned(),
        processes: hashes(identified.hashes.as_bytes()).collect(),
        row,
        archs,
    })
}

/// Checks that a data set can give back all that a report would have.
fn check(data: &ReportableData, matched: &MatchedElfs<'_>) -> Result<()> {
    if let Some(error) = data.kept.refused.first() {
        return Err(explained(error).into());
    }
    if matched.strangers() > 0 {
        let profiles = matched.archs.values().flatten();
        let known: BTreeSet<_> = profiles.map(|(identity, _)| *identity).collect();
        let mut others = data.files.device.iter().map(|profile| &*profile.identity);
        let other = others
            .find(|identity| !known.contains(identity))
            .unwrap_or_default();
        fail!(
            "the device ELF of code object {other} is not kept there";
            "use --object to name the file that contained its kernels when they ran"
        );
    }
    Ok(())
}

/// The rows of a run on an arch.
struct ArchRows {
    run: SharedBytes,
    profiles: Rows,
    counters: Rows,
    lines: Rows,
}

impl ArchRows {
    fn new(run: SharedBytes) -> Self {
        let [profiles, counters, lines] = [&PROFILE, &COUNTER, &TEST_LINE].map(Rows::new);
        Self {
            run,
            profiles,
            counters,
            lines,
        }
    }

    /// Adds the counts of a code object.
    fn add(
        &mut self,
        arch: &str,
        object: &MatchedCodeObject<'_>,
        data: &ReportableData,
        codes: &Codes,
    ) -> Result<()> {
        let mut groups: BTreeMap<(String, Option<&Label>), Vec<&DeviceProfile>> = BTreeMap::new();
        for profile in &object.profiles {
            let build = data.builds.tag_of(profile).unwrap_or_default();
            let label = profile.label.as_ref();
            groups.entry((build, label)).or_default().push(profile);
        }
        for ((build, label), profiles) in groups {
            let sum = sum(&profiles)?;
            let code = codes.get_or_add(arch, object, &sum)?;
            let build: SharedBytes = build.as_str().into();
            let directory = label.map(Label::directory);
            let own: SharedBytes = directory.map_or_else(String::new, encoded).as_str().into();
            self.profiles.push([
                (&self.run).into(),
                (&code.identity).into(),
                (&build).into(),
                (&own).into(),
                profiles.iter().all(|profile| profile.is_of_zeros).into(),
                profiles.len().into(),
            ]);
            let counts = sum.counts()?;
            let mut again = sum.blank();
            for count in &counts {
                again.add_count(count)?;
            }
            if again.bytes() != sum.bytes() {
                return Err(failure!(
                    "it has counts that no data record names, which a data set cannot contain";
                    "merge it with `rocov merge`"
                ))
                .with_context(|| format!("cannot use {}", profiles[0].path.display()));
            }
            for counted in &counts {
                self.counters.push([
                    (&self.run).into(),
                    (&code.identity).into(),
                    (&build).into(),
                    (&own).into(),
                    counted.kind.name().into(),
                    counted.record.into(),
                    counted.index.into(),
                    counted.count.into(),
                ]);
            }
            if !counts.is_empty() {
                self.add_lines(&code, &sum, label)?;
            }
        }
        Ok(())
    }

    /// Adds the lines that the tests of a label reached.
    fn add_lines(&mut self, code: &Code, sum: &Sum, label: Option<&Label>) -> Result<()> {
        let counts = ProfileCounts {
            version: *sum.profile().header.version(),
            functions: sum.functions()?,
        };
        let tests = match label {
            Some(label) => label.shared().iter().map(ToString::to_string).collect(),
            None => vec![String::new()],
        };
        let tests: Vec<SharedBytes> = tests.iter().map(|test| test.as_str().into()).collect();
        for (path, line, count) in code.counted(&counts)? {
            if count == 0 {
                continue;
            }
            for test in &tests {
                self.lines.push([
                    (&self.run).into(),
                    test.into(),
                    (&code.identity).into(),
                    (&path).into(),
                    line.into(),
                    count.into(),
                ]);
            }
        }
        Ok(())
    }
}

/// The sum of profiles of one code object.
fn sum(profiles: &[&DeviceProfile]) -> Result<Sum> {
    let failed = |profile: &DeviceProfile| format!("cannot read {}", profile.path.display());
    let mut sum: Option<Sum> = None;
    for profile in profiles {
        let file = mmap::read(&profile.path)?;
        let added = match &mut sum {
            Some(sum) => sum.add(&file),
            None => Sum::new(file).map(|first| sum = Some(first)),
        };
        added.with_context(|| failed(profile))?;
    }
    sum.context("no raw profile is given")
}

/// A label as its directory is called, without the directory of all labels.
fn encoded(directory: PathBuf) -> String {
    let names: Vec<_> = directory
        .iter()
        .skip(1)
        .map(|name| name.to_string_lossy())
        .collect();
    names.join("/")
}
