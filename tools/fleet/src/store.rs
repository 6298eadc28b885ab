//! The files of a data set.
//!
//! An import writes the rows of several runs as one file in each table, all of one new name: a part. A last file, in
//! the table `run`, makes them count. It has the next number among the files of its partition, and the storage gives a
//! number to one importer only. Another importer then looks at what is there, and continues with the runs that are not. So
//! importers need no lock, and a run is there once. The tables of code are written in this way too.
//!
//! A part that no numbered file names is of an importer that works at this moment, or was killed. Readers skip it. If it
//! has a run that is there, the next numbered file abandons the part, and the importer removes it. Its own importer, if it
//! lives, finds it abandoned or its runs there, and writes what is left as a new part.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result};
use rocov::store::layout::DATA_SET;
use rocov::support::diagnostic::{Diagnostic, diagnostic, fail};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::condition::{RunCondition, RunKey};
use crate::file::{Entry, Rows, TableFile, damaged, missing};
use crate::schema::{
    BRANCH, CODE_OBJECT, COUNTER, DataTable, FUNCTION, LINE, PROFILE, REGION, RUN, TEST_LINE,
    VERSION,
};
use crate::storage::Storage;

/// The ending of the files of tables.
const PARQUET: &str = ".parquet";
/// The times that an importer finds another one faster before it gives up. Each time, the other has added something.
const MOST_TRIES: usize = 1000;

/// A table whose files make those of other tables count.
struct Ledger {
    table: &'static DataTable,
    /// The column that the rows of the other tables have too.
    key: &'static str,
    /// The other tables, in the order in which they are written.
    others: &'static [&'static DataTable],
}

static RUNS: Ledger = Ledger {
    table: &RUN,
    key: "run",
    others: &[&PROFILE, &COUNTER, &TEST_LINE],
};

static CODE: Ledger = Ledger {
    table: &CODE_OBJECT,
    key: "identity",
    others: &[&FUNCTION, &REGION, &BRANCH, &LINE],
};

/// The contents of the file [`DATA_SET`].
#[derive(Serialize, Deserialize)]
struct Mark {
    rocov_dataset: u32,
}

/// A data set.
#[derive(Debug)]
pub struct DataSet {
    path: PathBuf,
    storage: Storage,
    /// The runs and code objects that are there, by the directory of numbered files, as far as it was read.
    known: HashMap<String, Known>,
}

/// The runs of a date and commit that are in the data set, or the code objects of an arch.
#[derive(Debug, Default)]
struct Known {
    files: HashSet<String>,
    /// The highest number of a file.
    last: u64,
    /// The parts that count.
    parts: HashSet<String>,
    abandoned: HashSet<String>,
    /// The names of runs, or the identities of code objects.
    keys: HashSet<String>,
    /// The run of each process.
    processes: HashMap<u64, String>,
}

/// A file of a table, and its partitions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartFile {
    /// Its path below the data set.
    pub(crate) path: String,
    pub(crate) date: String,
    pub(crate) commit: String,
    /// The arch of its code objects. Empty for the table `run`.
    pub arch: String,
    /// The name without its ending.
    pub(crate) name: String,
}

impl AsRef<str> for PartFile {
    fn as_ref(&self) -> &str {
        &self.path
    }
}

/// The rows of a run.
pub struct RunRows {
    /// The name of the run in messages.
    pub place: String,
    /// The name of the run in the tables.
    pub run: String,
    /// The date of the run, as in `2026-11-24`.
    pub date: String,
    /// The commit that the run tested.
    pub commit: String,
    /// The hashes of its processes.
    pub processes: BTreeSet<u64>,
    /// The row of the run.
    pub row: Rows,
    /// The rows in the other tables, by arch, in their order.
    pub archs: BTreeMap<String, Vec<Rows>>,
}

impl RunRows {
    /// The number of its rows in the tables other than `run`.
    pub fn number(&self) -> usize {
        let rows = self.archs.values().flatten();
        rows.map(Rows::number).sum()
    }
}

/// The rows of a code object.
pub struct CodeRows {
    /// The arch that it is for.
    pub arch: String,
    /// Its identity in the tables.
    pub identity: String,
    /// The row of the code object.
    pub row: Rows,
    /// The rows in the other tables, in their order.
    pub others: Vec<Rows>,
}

/// Something that a numbered file has a row of.
trait Item {
    fn key(&self) -> &str;
    fn row(&self) -> &Rows;
    /// The rows in the other tables, with the directory that comes after that of the partition.
    fn others(&self) -> Vec<(String, &Rows)>;
}

impl Item for RunRows {
    fn key(&self) -> &str {
        &self.run
    }

    fn row(&self) -> &Rows {
        &self.row
    }

    fn others(&self) -> Vec<(String, &Rows)> {
        let all = self.archs.iter().flat_map(|(arch, rows)| {
            let directory = format!("/{}={arch}", RunKey::Arch.name());
            rows.iter().map(move |rows| (directory.clone(), rows))
        });
        all.collect()
    }
}

impl Item for CodeRows {
    fn key(&self) -> &str {
        &self.identity
    }

    fn row(&self) -> &Rows {
        &self.row
    }

    fn others(&self) -> Vec<(String, &Rows)> {
        let rows = self.others.iter();
        rows.map(|rows| (String::new(), rows)).collect()
    }
}

/// A part that was written, and does not count yet.
struct Written {
    name: String,
    /// The places of its items.
    items: Vec<usize>,
    files: Vec<String>,
}

/// The result of an import.
#[derive(Debug, Default)]
pub struct Added {
    /// The number of runs that were added.
    pub added: usize,
    /// The number of runs that were there.
    pub known: usize,
    /// The other runs, which were not added.
    pub refused: Vec<SharedProcesses>,
}

/// A run that was not added, because the data set has a run with some of its processes.
#[derive(Debug)]
pub struct SharedProcesses {
    /// The name of the run in messages.
    pub place: String,
    /// The number of the processes that both runs have.
    pub processes: usize,
    /// The run that the data set has.
    pub other: String,
}

impl DataSet {
    /// Opens the data set in a directory or bucket.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or one of another version.
    pub fn open(path: &Path) -> Result<Self> {
        let (set, _) = Self::open_any(path)?;
        Ok(set)
    }

    /// Opens a data set. Returns its version too.
    fn open_any(path: &Path) -> Result<(Self, u32)> {
        let storage = Storage::open(path)?;
        let mark = storage.name(DATA_SET);
        let Some(text) = storage.read(DATA_SET)? else {
            fail!(
                "{} is not a rocov data set: it contains no {DATA_SET}", path.display();
                "name the directory or bucket that `rocov export --format parquet` wrote to"
            );
        };
        let text = text
            .bytes()
            .with_context(|| format!("cannot read {mark}"))?;
        let version = serde_json::from_slice(&text)
            .ok()
            .map(|mark: Mark| mark.rocov_dataset);
        match version {
            Some(version @ 1..=VERSION) => {
                let set = Self {
                    path: path.to_owned(),
                    storage,
                    known: HashMap::new(),
                };
                Ok((set, version))
            }
            Some(found) => fail!(
                "{} is a data set of version {found}, expected 1 to {VERSION}", path.display();
                "use the rocov that wrote it"
            ),
            None => fail!(
                "{mark} is damaged";
                "write {{\"rocov_dataset\": {VERSION}}} into it if this rocov wrote its tables"
            ),
        }
    }

    /// Opens the data set in a directory or bucket for an import, or begins one there. One of version 1 becomes one of
    /// this version.
    ///
    /// # Errors
    ///
    /// Fails if something else is there, or nothing can be written there.
    pub fn open_or_begin(path: &Path) -> Result<Self> {
        let storage = Storage::open(path)?;
        let mark = || {
            serde_json::to_vec(&Mark {
                rocov_dataset: VERSION,
            })
        };
        if storage.read(DATA_SET)?.is_none() {
            // The mark is the first file: if others are of an importer that begins it now, it is there.
            if storage.has_any()? && storage.read(DATA_SET)?.is_none() {
                fail!(
                    "{} contains other files, but no {DATA_SET}", path.display();
                    "name a new directory, or that of a data set"
                );
            }
            storage.make()?;
            // If another importer has begun it meanwhile, that is it.
            storage.create(DATA_SET, mark()?)?;
        }
        let (set, version) = Self::open_any(path)?;
        if version < VERSION {
            set.storage.put(DATA_SET, mark()?)?;
        }
        if set.storage.create(DATA_SET, mark()?)? {
            fail!(
                "the server of {} ignores `If-None-Match: *`, so runs could be counted twice",
                path.display();
                "use a store that supports conditional writes, or import into a directory and copy that"
            );
        }
        Ok(set)
    }

    /// The directory or bucket, as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of a file in messages.
    pub fn name(&self, part: &PartFile) -> String {
        self.storage.name(&part.path)
    }

    /// The error that a file is damaged.
    pub fn damaged(&self, part: &PartFile) -> Diagnostic {
        damaged(&self.name(part))
    }

    /// Opens files of a table, in this order.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, is damaged, or is of another version.
    pub fn files<'a>(
        &'a self,
        parts: &'a [PartFile],
        table: &'static DataTable,
    ) -> impl Iterator<Item = Result<(&'a PartFile, TableFile)>> + 'a {
        TableFile::open_all(&self.storage, parts, table).map(|opened| {
            let (part, file) = opened?;
            let file = file.with_context(
                || diagnostic!("{} no longer exists", self.name(part); "try again"),
            )?;
            Ok((part, file))
        })
    }

    /// Returns whether a run is in the data set.
    ///
    /// # Errors
    ///
    /// Fails if the files of that date and commit cannot be read.
    pub fn look_up(&mut self, date: &str, commit: &str, run: &str) -> Result<bool> {
        let partition = runs_partition(date, commit);
        // An importer asks for each run: what others add meanwhile, it finds when it adds its own.
        if !self.known.contains_key(&directory(&RUN, &partition)) {
            self.refresh(&RUNS, &partition)?;
        }
        let known = self.known.get(&directory(&RUN, &partition));
        Ok(known.is_some_and(|known| known.keys.contains(run)))
    }

    /// Reads the numbered files of a partition that were not read before.
    fn refresh(&mut self, ledger: &Ledger, partition: &str) -> Result<&mut Known> {
        let directory = directory(ledger.table, partition);
        let mut files = self.storage.list(&directory, &|_| false)?;
        let known = self.known.entry(directory).or_default();
        files.retain(|path| name_of(path).is_some() && known.files.insert(path.clone()));
        for opened in TableFile::open_all(&self.storage, &files, ledger.table) {
            let (path, Some(file)) = opened? else {
                continue;
            };
            let name = name_of(path).unwrap_or_default();
            let entry = file.entry();
            if entry.is_some() {
                known.last = known.last.max(name.parse().unwrap_or(0));
            }
            let entry = entry.unwrap_or_else(|| Entry {
                part: name.to_owned(),
                abandoned: Vec::new(),
            });
            known.parts.insert(entry.part);
            known.abandoned.extend(entry.abandoned);
            let processes = (ledger.table.column("process_hashes")).map(|_| "process_hashes");
            let columns: Vec<_> = [ledger.key].into_iter().chain(processes).collect();
            file.read(&columns, |part| {
                for (row, key) in part.bytes(0).iter().enumerate() {
                    let key = String::from_utf8_lossy(key.data()).into_owned();
                    if processes.is_some() {
                        for process in hashes(part.bytes(1)[row].data()) {
                            known.processes.insert(process, key.clone());
                        }
                    }
                    known.keys.insert(key);
                }
                Ok(())
            })?;
        }
        Ok(known)
    }

    /// Adds runs and the code objects that they have, as far as they are not there. A run that shares processes with
    /// another is refused.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or written. Runs of a date and commit are then there together or not at all.
    pub fn add(&mut self, runs: Vec<RunRows>, code: Vec<CodeRows>) -> Result<Added> {
        let mut archs: BTreeMap<String, Vec<CodeRows>> = BTreeMap::new();
        for code in code {
            archs.entry(code.arch.clone()).or_default().push(code);
        }
        for (arch, code) in archs {
            self.append(&CODE, &arch_partition(&arch), &code, |known| {
                let new = |index: &usize| !known.keys.contains(&code[*index].identity);
                (0..code.len()).filter(new).collect()
            })?;
        }
        let mut added = Added::default();
        let mut groups: BTreeMap<(String, String), Vec<RunRows>> = BTreeMap::new();
        for run in runs {
            let key = (run.date.clone(), run.commit.clone());
            groups.entry(key).or_default().push(run);
        }
        for ((date, commit), runs) in groups {
            let mut of_group = Added::default();
            self.append(&RUNS, &runs_partition(&date, &commit), &runs, |known| {
                let new;
                (new, of_group) = sort_out(&runs, known);
                new
            })?;
            added.take(of_group);
        }
        Ok(added)
    }

    /// Finishes what killed imports of a date and commit have left.
    ///
    /// # Errors
    ///
    /// Fails if files there cannot be read or removed.
    pub fn tidy(&mut self, date: &str, commit: &str) -> Result<()> {
        let none: [RunRows; 0] = [];
        self.append(&RUNS, &runs_partition(date, commit), &none, |_| Vec::new())
    }

    /// Adds those of `items` to a partition that `choose` chooses, when it knows what is there. Removes parts that do
    /// not count and have something that is there.
    fn append<T: Item>(
        &mut self,
        ledger: &Ledger,
        partition: &str,
        items: &[T],
        mut choose: impl FnMut(&Known) -> Vec<usize>,
    ) -> Result<()> {
        let place = directory(ledger.table, partition);
        let mut written: Option<Written> = None;
        for _ in 0..MOST_TRIES {
            self.refresh(ledger, partition)?;
            let known = &self.known[&place];
            // The answer to the request that wrote our file can have been lost.
            if written
                .as_ref()
                .is_some_and(|written| known.parts.contains(&written.name))
            {
                return self.remove_abandoned(ledger, partition);
            }
            let new = choose(known);
            let is_stale =
                |written: &Written| written.items != new || known.abandoned.contains(&written.name);
            if let Some(stale) = written.take_if(|written| is_stale(written)) {
                stale
                    .files
                    .iter()
                    .try_for_each(|file| self.storage.remove(file))?;
            }
            if written.is_none() && !new.is_empty() {
                written = Some(self.write(ledger, partition, items, new.clone())?);
            }
            let own = written.as_ref().map(|written| written.name.clone());
            let mut keys: HashSet<&str> = known.keys.iter().map(String::as_str).collect();
            keys.extend(new.iter().map(|index| items[*index].key()));
            let dead = self.overlapping(ledger, partition, &keys, own.as_deref())?;
            if new.is_empty() && dead.is_empty() {
                return self.remove_abandoned(ledger, partition);
            }
            let mut rows = Rows::new(ledger.table);
            for item in &new {
                rows.append(items[*item].row().clone());
            }
            let entry = Entry {
                part: own.unwrap_or_default(),
                abandoned: dead,
            };
            let path = format!("{place}/{:08}{PARQUET}", self.known[&place].last + 1);
            if self.storage.create(&path, rows.file(Some(&entry))?)? {
                self.refresh(ledger, partition)?;
                return self.remove_abandoned(ledger, partition);
            }
        }
        fail!(
            "cannot add to {}: other importers were faster {MOST_TRIES} times",
            self.storage.name(&place);
            "try this import again"
        )
    }

    /// Writes the rows of items in the other tables, as a part with a new name.
    fn write<T: Item>(
        &self,
        ledger: &Ledger,
        partition: &str,
        items: &[T],
        new: Vec<usize>,
    ) -> Result<Written> {
        let mut written = Written {
            name: new_name(),
            items: new,
            files: Vec::new(),
        };
        // By the place of the table in its order, and by directory.
        let mut tables: BTreeMap<(usize, String), Rows> = BTreeMap::new();
        for item in &written.items {
            for (below, rows) in items[*item].others() {
                let mut others = ledger.others.iter();
                let table = others.position(|other| other.name == rows.table.name);
                let key = (table.unwrap_or(usize::MAX), below);
                match tables.get_mut(&key) {
                    None => _ = tables.insert(key, rows.clone()),
                    Some(all) => all.append(rows.clone()),
                }
            }
        }
        for ((_, below), rows) in tables {
            let directory = directory(rows.table, partition);
            let path = format!("{directory}{below}/{}{PARQUET}", written.name);
            self.storage.put(&path, rows.file(None)?)?;
            written.files.push(path);
        }
        Ok(written)
    }

    /// The parts in a partition that do not count, and have one of `keys`: not `own`, nor those that are abandoned.
    fn overlapping(
        &self,
        ledger: &Ledger,
        partition: &str,
        keys: &HashSet<&str>,
        own: Option<&str>,
    ) -> Result<Vec<String>> {
        let known = &self.known[&directory(ledger.table, partition)];
        let first = ledger.others[0];
        let mut files = self.storage.list(&directory(first, partition), &|_| true)?;
        files.retain(|path| {
            name_of(path).is_some_and(|name| {
                own != Some(name) && !known.parts.contains(name) && !known.abandoned.contains(name)
            })
        });
        let mut found = BTreeSet::new();
        for opened in TableFile::open_all(&self.storage, &files, first) {
            // Its importer may have removed it.
            let (path, Some(file)) = opened? else {
                continue;
            };
            let name = name_of(path).unwrap_or_default();
            file.read(&[ledger.key], |part| {
                let mut all = part.bytes(0).iter();
                if all.any(|key| keys.contains(&*String::from_utf8_lossy(key.data()))) {
                    found.insert(name.to_owned());
                }
                Ok(())
            })?;
        }
        Ok(found.into_iter().collect())
    }

    /// Removes the files of abandoned parts.
    fn remove_abandoned(&self, ledger: &Ledger, partition: &str) -> Result<()> {
        let known = &self.known[&directory(ledger.table, partition)];
        if known.abandoned.is_empty() {
            return Ok(());
        }
        // The first table last: its file shows the others to the next importer.
        for table in ledger.others.iter().rev() {
            for path in self.storage.list(&directory(table, partition), &|_| true)? {
                if name_of(&path).is_some_and(|name| known.abandoned.contains(name)) {
                    self.storage.remove(&path)?;
                }
            }
        }
        Ok(())
    }

    /// The files of a table with the partitions that meet all `conditions`, in order.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be listed.
    pub fn parts(
        &self,
        table: &'static DataTable,
        conditions: &[RunCondition],
    ) -> Result<Vec<PartFile>> {
        let keys = table.partition.keys();
        let is_wanted = |name: &str| {
            partition_of(name)
                .is_some_and(|(key, value)| RunCondition::allow(conditions, key, value))
        };
        let files = self.storage.list(table.name, &is_wanted)?;
        let parts = files.into_iter().filter_map(|path| {
            let values: Vec<_> = path.split('/').filter_map(partition_of).collect();
            if !values.iter().map(|(key, _)| key).eq(keys) {
                return None;
            }
            let value = |key| {
                let value = values.iter().find(|(other, _)| *other == key);
                value.map_or_else(String::new, |(_, value)| (*value).to_owned())
            };
            let (date, commit) = (value(RunKey::Date), value(RunKey::Commit));
            let (arch, name) = (value(RunKey::Arch), name_of(&path)?.to_owned());
            Some(PartFile {
                path,
                date,
                commit,
                arch,
                name,
            })
        });
        let mut parts: Vec<_> = parts.collect();
        parts.sort();
        Ok(parts)
    }

    /// Checks that each of some tables has the files that one of them has.
    ///
    /// # Errors
    ///
    /// Fails if one is missing.
    pub(crate) fn check_parts(&self, tables: &[(&DataTable, Vec<PartFile>)]) -> Result<()> {
        let below = |file: &PartFile| file.path.split_once('/').map(|(_, rest)| rest.to_owned());
        let files = tables.iter().flat_map(|(_, files)| files);
        let all: BTreeSet<_> = files.filter_map(below).collect();
        for (table, files) in tables {
            let there: HashSet<_> = files.iter().filter_map(below).collect();
            if let Some(rest) = all.iter().find(|file| !there.contains(*file)) {
                let path = format!("{}/{rest}", table.name);
                return Err(missing(&self.storage.name(&path)).into());
            }
        }
        Ok(())
    }

    /// All tables, each with its files that count at this moment.
    ///
    /// # Errors
    ///
    /// Fails if files cannot be listed, if one that makes others count is damaged, or if one of these is missing.
    #[cfg(feature = "query")]
    pub(crate) fn tables(&self) -> Result<Vec<(&'static DataTable, Vec<PartFile>)>> {
        let mut tables = Vec::new();
        for ledger in [&RUNS, &CODE] {
            let is_of_arch = ledger.table.partition.keys().contains(&RunKey::Arch);
            let key = |file: &PartFile, name: &str| {
                let arch = if is_of_arch { &*file.arch } else { "" };
                [&*file.date, &*file.commit, arch, name].map(str::to_owned)
            };
            // First those that make others count: what an importer adds meanwhile is left out everywhere.
            let numbered = self.parts(ledger.table, &[])?;
            let mut counted = HashSet::new();
            for opened in self.files(&numbered, ledger.table) {
                let (part, file) = opened?;
                let name = file
                    .entry()
                    .map_or_else(|| part.name.clone(), |entry| entry.part);
                counted.insert(key(part, &name));
            }
            let mut others = Vec::new();
            for table in ledger.others {
                let mut files = self.parts(table, &[])?;
                files.retain(|file| counted.contains(&key(file, &file.name)));
                others.push((*table, files));
            }
            self.check_parts(&others)?;
            tables.push((ledger.table, numbered));
            tables.append(&mut others);
        }
        Ok(tables)
    }
}

impl Added {
    /// Adds another result.
    fn take(&mut self, more: Self) {
        self.added += more.added;
        self.known += more.known;
        self.refused.extend(more.refused);
    }
}

/// The places of the runs that are not known, and what becomes of all.
fn sort_out(runs: &[RunRows], known: &Known) -> (Vec<usize>, Added) {
    let mut added = Added::default();
    let mut new = Vec::new();
    let mut names: HashSet<&str> = HashSet::new();
    let mut processes: HashMap<u64, &str> = HashMap::new();
    for (number, run) in runs.iter().enumerate() {
        let other_of = |process: &u64| {
            let other = known.processes.get(process).map(String::as_str);
            other.or_else(|| processes.get(process).copied())
        };
        if known.keys.contains(&run.run) || names.contains(&*run.run) {
            added.known += 1;
        } else if let Some(other) = run.processes.iter().find_map(other_of) {
            let shared = run
                .processes
                .iter()
                .filter(|process| other_of(process).is_some())
                .count();
            added.refused.push(SharedProcesses {
                place: run.place.clone(),
                processes: shared,
                other: other.to_owned(),
            });
        } else {
            names.insert(&run.run);
            processes.extend(run.processes.iter().map(|process| (*process, &*run.run)));
            new.push(number);
        }
    }
    added.added = new.len();
    (new, added)
}

/// The partition of a date and commit.
fn runs_partition(date: &str, commit: &str) -> String {
    let [of_date, of_commit] = [RunKey::Date, RunKey::Commit].map(RunKey::name);
    format!("{of_date}={date}/{of_commit}={commit}")
}

/// The partition of an arch.
fn arch_partition(arch: &str) -> String {
    format!("{}={arch}", RunKey::Arch.name())
}

/// The directory of a partition in a table.
fn directory(table: &DataTable, partition: &str) -> String {
    format!("{}/{partition}", table.name)
}

/// The key and the value in the name of a directory.
fn partition_of(name: &str) -> Option<(RunKey, &str)> {
    let (key, value) = name.split_once('=')?;
    let keys = [RunKey::Date, RunKey::Commit, RunKey::Arch];
    let key = keys.into_iter().find(|known| known.name() == key)?;
    Some((key, value))
}

/// The name of a file of a table, without its ending.
fn name_of(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.strip_suffix(PARQUET)
}

/// A name that no other importer gives: files of a part can be removed without a look at others.
fn new_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut hash = Xxh3::new();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    hash.update(&now.map_or(0, |duration| duration.as_nanos()).to_le_bytes());
    hash.update(&process::id().to_le_bytes());
    hash.update(&NUMBER.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    // Two machines can have one process id and time. The system gives each process a number of its own.
    hash.update(&std::fs::read("/proc/sys/kernel/random/uuid").unwrap_or_default());
    format!("{:032x}", hash.digest128())
}

/// The hashes in text: 16 hexadecimal digits for each.
pub fn hashes(text: &[u8]) -> impl Iterator<Item = u64> {
    let digits = text.chunks(16);
    digits.filter_map(|digits| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
}
