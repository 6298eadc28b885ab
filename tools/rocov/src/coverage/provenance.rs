//! The origin of a report: the time, the commit of the sources, the commands that ran, and the compilers.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::view::View;
use crate::data::{Registries, RegistryProcess};
use crate::support::time;
use crate::system::command::quoted;
use crate::system::git::{Commit, Repository, WorkTrees};

/// The origin of a report.
#[derive(Debug)]
pub(crate) struct Provenance {
    /// The time of the report in seconds since 1970.
    pub(crate) written: u64,
    /// The commit of the sources, if git has them.
    pub(crate) commit: Option<Commit>,
    /// The runs that counted, if the registries have them.
    pub(crate) runs: Option<Runs>,
    /// The compilers of device code, by their names of themselves.
    pub(crate) compilers: BTreeSet<String>,
}

/// The processes that loaded code of a report, or could have loaded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) processes: usize,
    /// The starts of the first process and of the last one, in seconds since 1970.
    pub(crate) started: [u64; 2],
    /// The command lines as a shell takes them, each once with its number of processes, by the start of the
    /// first.
    pub(crate) commands: Vec<(String, usize)>,
}

impl Provenance {
    /// Finds the origin of a report. `repository` is the one that the user named for the sources.
    ///
    /// # Errors
    ///
    /// Fails if `SOURCE_DATE_EPOCH` is not a number of seconds.
    pub(crate) fn find(
        view: &View,
        registries: &Registries,
        repository: Option<&Path>,
    ) -> Result<Self> {
        let compilers = view.columns.iter().flat_map(|column| &column.compilers);
        Ok(Self {
            written: time::report_time()?,
            commit: commit(view, repository),
            runs: Runs::find(view, registries),
            compilers: compilers.cloned().collect(),
        })
    }
}

impl Runs {
    fn find(view: &View, registries: &Registries) -> Option<Self> {
        let identities = view.columns.iter().flat_map(|column| &column.identities);
        let identities: BTreeSet<&str> = identities.map(String::as_str).collect();
        let mut processes: Vec<_> = registries
            .processes()
            .filter(|(registry, process)| {
                let loaded = process
                    .loads
                    .iter()
                    .filter_map(|load| load.code_object.as_ref());
                let never = process.never_loaded.iter();
                let mut all = loaded.chain(never.flat_map(|object| &object.code_objects));
                registry.is_named && all.any(|identity| identities.contains(identity.as_str()))
            })
            .map(|(_, process)| process)
            .collect();
        processes.sort_by_key(|process| (process.first, &process.command));
        let first = processes.iter().map(|process| process.first).min()?;
        let last = processes.iter().map(|process| process.last).max()?;
        let mut places: HashMap<&[String], usize> = HashMap::new();
        let mut commands: Vec<(String, usize)> = Vec::new();
        for RegistryProcess { command, runs, .. } in &processes {
            let place = *places.entry(command).or_insert_with(|| {
                let words = command.iter().map(|word| quoted(word.as_ref()));
                commands.push((words.collect::<Vec<_>>().join(" "), 0));
                commands.len() - 1
            });
            commands[place].1 += runs.len();
        }
        Some(Self {
            processes: processes.iter().map(|process| process.runs.len()).sum(),
            started: [first, last].map(|nanoseconds| nanoseconds / 1_000_000_000),
            commands,
        })
    }
}

/// The commit of the sources: the revision that they are taken from, else that of the repository that has
/// most of them.
fn commit(view: &View, repository: Option<&Path>) -> Option<Commit> {
    if let Some(hash) = view.texts.commit() {
        return Some(Commit {
            hash,
            is_modified: false,
        });
    }
    let root = match repository {
        Some(repository) => repository.to_path_buf(),
        None => root_of_most(view)?,
    };
    Repository::discover(&root).ok()?.commit()
}

/// The root of the git repository that has most of the sources.
fn root_of_most(view: &View) -> Option<PathBuf> {
    let mut trees = WorkTrees::default();
    let mut sources: HashMap<Arc<Path>, usize> = HashMap::new();
    for path in &view.paths {
        if let Some(root) = trees.root_of(Path::new(&**path)) {
            *sources.entry(root).or_default() += 1;
        }
    }
    // If two have as many, always one of them.
    let most = sources
        .into_iter()
        .max_by_key(|(root, number)| (*number, Arc::clone(root)));
    most.map(|(root, _)| root.to_path_buf())
}
