//! The directory of a data set.
//!
//! An import writes the rows of several runs as one file in each table, all of one name. It moves them into place under
//! a lock, that of the table `run` last. So a file without one of the runs beside it is what a killed import has left:
//! readers skip it, and the next import removes it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rocov::store::write_atomic;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::condition::{RunCondition, RunKey};
use super::file::{Rows, TableFile};
use super::schema::{CODE_OBJECT, DataTable, OF_CODE, OF_RUNS, Partition, RUN, VERSION};
use crate::data::DATA_SET;
use crate::support::atomic;
use crate::term::plural::count;

/// The file that importers lock.
const LOCK: &str = "rocov-dataset.lock";
/// The ending of the files of tables.
const PARQUET: &str = "parquet";

/// The contents of the file [`DATA_SET`].
#[derive(Serialize, Deserialize)]
struct Mark {
    rocov_dataset: u32,
}

/// A data set in a directory.
#[derive(Debug)]
pub(crate) struct DataSet {
    path: PathBuf,
    /// The runs of each date and commit, as far as they were read.
    runs: HashMap<(String, String), KnownRuns>,
    /// The code objects of each arch, as far as they were read.
    code: HashMap<String, KnownCode>,
}

/// The runs of a date and commit that are in the data set.
#[derive(Debug, Default)]
struct KnownRuns {
    files: HashSet<PathBuf>,
    runs: HashSet<String>,
    /// The run of each process.
    processes: HashMap<u64, String>,
}

/// The code objects of an arch that are in the data set.
#[derive(Debug, Default)]
struct KnownCode {
    files: HashSet<PathBuf>,
    identities: HashSet<Vec<u8>>,
}

/// A file of a table, and its partitions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartFile {
    pub(crate) path: PathBuf,
    pub(crate) date: String,
    pub(crate) commit: String,
    /// Empty for the table `run`.
    pub(crate) arch: String,
    /// The name without its ending.
    pub(crate) name: String,
}

/// The rows of a run.
pub(crate) struct RunRows {
    /// The name of the run in messages.
    pub(crate) place: String,
    pub(crate) run: String,
    pub(crate) date: String,
    pub(crate) commit: String,
    /// The hashes of its processes.
    pub(crate) processes: BTreeSet<u64>,
    /// The row of the run.
    pub(crate) row: Rows,
    /// The rows in the other tables, by arch, in the order of [`OF_RUNS`].
    pub(crate) archs: BTreeMap<String, Vec<Rows>>,
}

/// The rows of a code object.
pub(crate) struct CodeRows {
    pub(crate) arch: String,
    pub(crate) identity: String,
    /// In the order of [`OF_CODE`].
    pub(crate) rows: Vec<Rows>,
}

/// The result of an import.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// The number of runs that were added.
    pub(crate) added: usize,
    /// The number of runs that were there.
    pub(crate) known: usize,
    /// The reasons why other runs were not added.
    pub(crate) refused: Vec<String>,
}

impl DataSet {
    /// Opens the data set in a directory.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or one of another version.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mark = path.join(DATA_SET);
        let text = fs::read(&mark)
            .with_context(|| format!("{} is no data set of rocov", path.display()))?;
        let version = serde_json::from_slice(&text)
            .ok()
            .map(|it: Mark| it.rocov_dataset);
        match version {
            Some(VERSION) => Ok(Self {
                path: path.to_owned(),
                runs: HashMap::new(),
                code: HashMap::new(),
            }),
            Some(found) => bail!(
                "{} is a data set of version {found}, expected {VERSION}: take the rocov that wrote it",
                path.display()
            ),
            None => bail!(
                "{0} is damaged: write {{\"rocov_dataset\": {VERSION}}} into it if its tables are of this rocov",
                mark.display()
            ),
        }
    }

    /// Opens the data set in a directory, or begins one there.
    ///
    /// # Errors
    ///
    /// Fails if something else is there, or the directory cannot be made.
    pub(crate) fn open_or_begin(path: &Path) -> Result<Self> {
        if !path.join(DATA_SET).exists() {
            let mut entries = fs::read_dir(path).into_iter().flatten().flatten();
            // Another importer begins it at this moment.
            let is_own = |name: &str| name == DATA_SET || name.starts_with('.');
            if entries.any(|entry| !is_own(&entry.file_name().to_string_lossy())) {
                bail!(
                    "{} has other files, and no {DATA_SET}: give a new directory, or that of a data set",
                    path.display()
                );
            }
            let mark = Mark {
                rocov_dataset: VERSION,
            };
            write_atomic(&path.join(DATA_SET), &serde_json::to_vec(&mark)?)?;
        }
        Self::open(path)
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until no other importer moves files into place, and keeps others from that.
    fn lock(&self) -> Result<File> {
        let path = self.path.join(LOCK);
        let file = File::options().create(true).append(true).open(&path);
        let locked = file.and_then(|file| {
            file.lock()?;
            Ok(file)
        });
        locked.with_context(|| format!("cannot lock {}", path.display()))
    }

    /// Returns whether a run is in the data set.
    ///
    /// # Errors
    ///
    /// Fails if the files of that date and commit cannot be read.
    pub(crate) fn has(&mut self, date: &str, commit: &str, run: &str) -> Result<bool> {
        Ok(self.known(date, commit)?.runs.contains(run))
    }

    /// The runs of a date and commit.
    fn known(&mut self, date: &str, commit: &str) -> Result<&mut KnownRuns> {
        let directory = self.directory(&RUN, date, commit, "");
        let known = self.runs.entry((date.to_owned(), commit.to_owned()));
        let known = known.or_default();
        for path in files(&directory)? {
            if !known.files.insert(path.clone()) {
                continue;
            }
            TableFile::open(&path, &RUN)?.read(&["run", "process_hashes"], |part| {
                for (run, processes) in part.bytes(0).iter().zip(part.bytes(1)) {
                    let run = String::from_utf8_lossy(run.data()).into_owned();
                    for process in hashes(processes.data()) {
                        known.processes.insert(process, run.clone());
                    }
                    known.runs.insert(run);
                }
                Ok(())
            })?;
        }
        Ok(known)
    }

    /// The code objects of an arch.
    fn known_code(&mut self, arch: &str) -> Result<&mut KnownCode> {
        let directory = self.directory(&CODE_OBJECT, "", "", arch);
        let known = self.code.entry(arch.to_owned()).or_default();
        for path in files(&directory)? {
            if known.files.insert(path.clone()) {
                TableFile::open(&path, &CODE_OBJECT)?.read(&["identity"], |part| {
                    let identities = part.bytes(0).iter().map(|it| it.data().to_vec());
                    known.identities.extend(identities);
                    Ok(())
                })?;
            }
        }
        Ok(known)
    }

    /// Adds runs and the code objects that they have, as far as they are not there. A run that shares processes with
    /// another is refused.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or written. Runs of a date and commit are then there together or not at all.
    pub(crate) fn add(&mut self, runs: Vec<RunRows>, code: Vec<CodeRows>) -> Result<Added> {
        let _locked = self.lock()?;
        self.add_code(code)?;
        let mut added = Added::default();
        let mut groups: BTreeMap<(String, String), Vec<RunRows>> = BTreeMap::new();
        for run in runs {
            let key = (run.date.clone(), run.commit.clone());
            groups.entry(key).or_default().push(run);
        }
        for ((date, commit), runs) in groups {
            self.sweep(&OF_RUNS, &date, &commit)?;
            let place = self.path.display().to_string();
            let known = self.known(&date, &commit)?;
            let mut new: Vec<RunRows> = Vec::new();
            for run in runs {
                let other = run.processes.iter().find_map(|it| known.processes.get(it));
                if known.runs.contains(&run.run) {
                    added.known += 1;
                } else if let Some(other) = other {
                    let shared = run.processes.iter();
                    let shared = shared.filter(|it| known.processes.contains_key(it)).count();
                    added.refused.push(format!(
                        "{} has {} of run {other}, which {place} has: import each process once, or remove that run",
                        run.place,
                        count(shared, "process"),
                    ));
                } else {
                    known.runs.insert(run.run.clone());
                    let processes = run.processes.iter();
                    known
                        .processes
                        .extend(processes.map(|it| (*it, run.run.clone())));
                    new.push(run);
                }
            }
            if !new.is_empty() {
                added.added += new.len();
                self.add_runs(&date, &commit, new)?;
            }
        }
        Ok(added)
    }

    /// Adds runs of a date and commit.
    fn add_runs(&mut self, date: &str, commit: &str, runs: Vec<RunRows>) -> Result<()> {
        let names: BTreeSet<_> = runs.iter().map(|it| it.run.clone()).collect();
        let name = name_of(names.iter().map(String::as_str));
        let mut all = Rows::new(&RUN);
        let mut archs: BTreeMap<String, Vec<Rows>> = BTreeMap::new();
        for run in runs {
            all.append(run.row);
            for (arch, rows) in run.archs {
                match archs.get_mut(&arch) {
                    None => _ = archs.insert(arch, rows),
                    Some(known) => {
                        known
                            .iter_mut()
                            .zip(rows)
                            .for_each(|(known, more)| known.append(more));
                    }
                }
            }
        }
        let mut files = Vec::new();
        for (arch, rows) in archs {
            for rows in rows {
                files.push((self.directory(rows.table, date, commit, &arch), rows));
            }
        }
        files.push((self.directory(&RUN, date, commit, ""), all));
        self.put(&name, files)?;
        let own = self
            .directory(&RUN, date, commit, "")
            .join(format!("{name}.{PARQUET}"));
        self.known(date, commit)?.files.insert(own);
        Ok(())
    }

    /// Adds code objects that are not there.
    fn add_code(&mut self, code: Vec<CodeRows>) -> Result<()> {
        let mut archs: BTreeMap<String, Vec<CodeRows>> = BTreeMap::new();
        for code in code {
            let known = self.known_code(&code.arch)?;
            if known.identities.insert(code.identity.as_bytes().to_vec()) {
                archs.entry(code.arch.clone()).or_default().push(code);
            }
        }
        for (arch, code) in archs {
            self.sweep_code(&arch)?;
            let name = name_of(code.iter().map(|it| it.identity.as_str()));
            let mut all: Vec<_> = OF_CODE.iter().map(|table| Rows::new(table)).collect();
            for code in code {
                all.iter_mut()
                    .zip(code.rows)
                    .for_each(|(all, more)| all.append(more));
            }
            let files = all.into_iter();
            let files = files.map(|rows| (self.directory(rows.table, "", "", &arch), rows));
            self.put(&name, files.collect())?;
        }
        Ok(())
    }

    /// Writes files of one name, and moves them into place in this order.
    fn put(&self, name: &str, files: Vec<(PathBuf, Rows)>) -> Result<()> {
        let partial = atomic::directory_in(&self.path, 0o777);
        let partial = partial.with_context(|| format!("cannot write {}", self.path.display()))?;
        let mut written = Vec::new();
        for (number, (directory, rows)) in files.into_iter().enumerate() {
            let path = partial.path.path().join(number.to_string());
            rows.write(&path)?;
            written.push((path, directory));
        }
        for (path, directory) in written {
            let to = directory.join(format!("{name}.{PARQUET}"));
            fs::create_dir_all(&directory)
                .and_then(|()| fs::rename(path, &to))
                .with_context(|| format!("cannot write {}", to.display()))?;
        }
        Ok(())
    }

    /// Removes the files that killed imports have left in the partition of a date and commit.
    fn sweep(&self, tables: &[&'static DataTable], date: &str, commit: &str) -> Result<()> {
        let is_whole = |it: &Path| {
            let run = self.directory(&RUN, date, commit, "");
            run.join(it.file_name().unwrap_or_default()).exists()
        };
        for table in tables {
            let directory = self.directory(table, date, commit, "");
            let archs = fs::read_dir(&directory).into_iter().flatten().flatten();
            for arch in archs.filter(|it| it.path().is_dir()) {
                remove_unless(&arch.path(), is_whole)?;
            }
        }
        Ok(())
    }

    /// Removes the files of code that killed imports have left.
    fn sweep_code(&self, arch: &str) -> Result<()> {
        let last = self.directory(&CODE_OBJECT, "", "", arch);
        let is_whole = |it: &Path| last.join(it.file_name().unwrap_or_default()).exists();
        for table in OF_CODE {
            remove_unless(&self.directory(table, "", "", arch), is_whole)?;
        }
        Ok(())
    }

    /// The directory of the files of a table with these partitions. Without `arch` it is the one above.
    fn directory(&self, table: &DataTable, date: &str, commit: &str, arch: &str) -> PathBuf {
        let mut directory = self.path.join(table.name);
        if table.partition != Partition::Arch {
            directory.push(format!("{}={date}", RunKey::Date.name()));
            directory.push(format!("{}={commit}", RunKey::Commit.name()));
        }
        if !arch.is_empty() {
            directory.push(format!("{}={arch}", RunKey::Arch.name()));
        }
        directory
    }

    /// The files of a table with the partitions that meet all `conditions`, in order. Files without one of the runs
    /// are left out.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub(crate) fn parts(
        &self,
        table: &'static DataTable,
        conditions: &[RunCondition],
    ) -> Result<Vec<PartFile>> {
        let mut keys = match table.partition {
            Partition::Run => vec![RunKey::Date, RunKey::Commit],
            Partition::RunAndArch => vec![RunKey::Date, RunKey::Commit, RunKey::Arch],
            Partition::Arch => vec![RunKey::Arch],
        };
        keys.reverse();
        let mut found = Vec::new();
        self.walk(
            &self.path.join(table.name),
            keys,
            conditions,
            &mut Vec::new(),
            &mut found,
        )?;
        if table.partition == Partition::RunAndArch {
            found.retain(|part| {
                let run = self.directory(&RUN, &part.date, &part.commit, "");
                run.join(part.path.file_name().unwrap_or_default()).exists()
            });
        }
        found.sort();
        Ok(found)
    }

    fn walk(
        &self,
        directory: &Path,
        mut keys: Vec<RunKey>,
        conditions: &[RunCondition],
        values: &mut Vec<(RunKey, String)>,
        found: &mut Vec<PartFile>,
    ) -> Result<()> {
        let Some(key) = keys.pop() else {
            let value = |key| {
                let value = values.iter().find(|(it, _)| *it == key);
                value.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            found.extend(files(directory)?.into_iter().map(|path| {
                PartFile {
                    date: value(RunKey::Date),
                    commit: value(RunKey::Commit),
                    arch: value(RunKey::Arch),
                    name: path
                        .file_stem()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned(),
                    path,
                }
            }));
            return Ok(());
        };
        for path in entries(directory)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let value = name
                .strip_prefix(key.name())
                .and_then(|it| it.strip_prefix('='));
            let Some(value) = value.filter(|it| RunCondition::allow(conditions, key, it)) else {
                continue;
            };
            values.push((key, value.to_owned()));
            self.walk(&path, keys.clone(), conditions, values, found)?;
            values.pop();
        }
        Ok(())
    }
}

/// The hashes in text: 16 hexadecimal digits for each.
pub(super) fn hashes(text: &[u8]) -> impl Iterator<Item = u64> {
    let digits = text.chunks(16);
    digits.filter_map(|it| u64::from_str_radix(std::str::from_utf8(it).ok()?, 16).ok())
}

/// The name of a file with these runs or code objects.
fn name_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    format!("{:032x}", xxh3_128(names.join("\n").as_bytes()))
}

/// The files of a table in a directory, if it is there.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = entries(directory)?;
    files.retain(|path| path.extension().is_some_and(|it| it == PARQUET));
    Ok(files)
}

/// The paths in a directory, if it is there.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).and_then(|entries| {
        entries
            .map(|entry| entry.map(|it| it.path()))
            .collect::<Result<Vec<_>, _>>()
    });
    entries.with_context(|| format!("cannot read {}", directory.display()))
}

/// Removes the files of a table in a directory that are not whole.
fn remove_unless(directory: &Path, is_whole: impl Fn(&Path) -> bool) -> Result<()> {
    for path in files(directory)? {
        if !is_whole(&path) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}
