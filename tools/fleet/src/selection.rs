//! The runs of a data set that meet conditions.

use std::collections::{BTreeSet, HashSet};

use anyhow::{Context, Result};
use rocov::format::registry::Grouped;
use rocov::support::diagnostic::{Diagnostic, diagnostic};

use crate::condition::{RunCondition, RunKey};
use crate::file::{SharedBytes, missing};
use crate::schema::{COUNTER, PROFILE, RUN};
use crate::store::{DataSet, PartFile};

/// The most values that a message lists.
const MOST: usize = 8;

/// The runs that are wanted.
pub struct SelectedRuns {
    /// Their registries, as one.
    pub registry: Grouped,
    runs: HashSet<Vec<u8>>,
    /// The files with such runs, by date, commit and name.
    files: HashSet<(String, String, String)>,
    /// True if all runs of these files are wanted.
    are_whole: bool,
}

impl SelectedRuns {
    /// Finds the runs of a data set that meet all `conditions`.
    ///
    /// # Errors
    ///
    /// Fails if files of the data set cannot be read, or are damaged.
    pub fn find(set: &DataSet, conditions: &[RunCondition]) -> Result<Self> {
        let mut runs = Self {
            registry: Grouped::default(),
            runs: HashSet::new(),
            files: HashSet::new(),
            are_whole: true,
        };
        for opened in set.files(&set.parts(&RUN, conditions)?, &RUN) {
            let (part, file) = opened?;
            let mut has_any = false;
            file.read(&["run", "registry"], |rows| {
                for (run, registry) in rows.bytes(0).iter().zip(rows.bytes(1)) {
                    let name = String::from_utf8_lossy(run.data());
                    if !RunCondition::allow(conditions, RunKey::Run, &name) {
                        runs.are_whole = false;
                        continue;
                    }
                    has_any = true;
                    runs.runs.insert(run.data().to_vec());
                    if !registry.is_empty() {
                        let added = runs.registry.add(registry.data());
                        added.with_context(|| {
                            format!("{}: the registry of run {name} is damaged", set.name(part))
                        })?;
                    }
                }
                Ok(())
            })?;
            if has_any {
                let entry = file.entry().map(|file| file.part);
                let name = entry.unwrap_or_else(|| part.name.clone());
                let (date, commit) = (part.date.clone(), part.commit.clone());
                runs.files.insert((date, commit, name));
            }
        }
        Ok(runs)
    }

    /// The files with profiles and with counts of these runs.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be listed, or if one is missing.
    pub fn files(&self, set: &DataSet, conditions: &[RunCondition]) -> Result<[Vec<PartFile>; 2]> {
        // A run has files on each of its archs: only all of them together show if one is missing.
        let mut of_runs = conditions.to_vec();
        of_runs.retain(|condition| !condition.is_of_arch());
        let key = |part: &PartFile| (part.date.clone(), part.commit.clone(), part.name.clone());
        let parts = |table| -> Result<_> {
            let mut parts = set.parts(table, &of_runs)?;
            parts.retain(|part| self.files.contains(&key(part)));
            Ok((table, parts))
        };
        let tables = [parts(&PROFILE)?, parts(&COUNTER)?];
        set.check_parts(&tables)?;
        let there: HashSet<_> = tables[0].1.iter().map(key).collect();
        if let Some((date, commit, name)) = self.files.iter().find(|file| !there.contains(file)) {
            let (path, table) = (set.path().display(), PROFILE.name);
            return Err(missing(&format!(
                "{path}/{table}/date={date}/commit={commit}/arch=.../{name}.parquet"
            ))
            .into());
        }
        Ok(tables.map(|(_, mut files)| {
            files.retain(|file| RunCondition::allow(conditions, RunKey::Arch, &file.arch));
            files
        }))
    }

    /// Returns whether the run with this name in [`SelectedRuns::files`] is one of them.
    pub fn has(&self, run: &SharedBytes) -> bool {
        self.are_whole || self.runs.contains(run.data())
    }

    /// The number of runs.
    pub fn number(&self) -> usize {
        self.runs.len()
    }
}

/// Makes the error that no run of a data set meets the conditions.
///
/// # Errors
///
/// Fails if the runs that are there cannot be listed.
pub fn no_run(set: &DataSet, conditions: &[RunCondition]) -> Result<Diagnostic> {
    let all = set.parts(&PROFILE, &[])?;
    let path = set.path().display();
    if all.is_empty() {
        return Ok(diagnostic!(
            "{path} contains no run";
            "write one there with `rocov export DIR --format parquet -o {path}`"
        ));
    }
    let conditions: Vec<_> = conditions.iter().map(ToString::to_string).collect();
    let commits: BTreeSet<_> = all.iter().map(|part| &*part.commit).collect();
    let archs: BTreeSet<_> = all.iter().map(|part| &*part.arch).collect();
    let some = |values: BTreeSet<&str>| {
        let more = match values.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let values: Vec<_> = values.into_iter().take(MOST).collect();
        values.join(", ") + &more
    };
    let dates = all.iter().map(|part| &*part.date);
    Ok(diagnostic!(
        "no run in {path} matches {}", conditions.join(" and ");
        "choose from the runs of {} to {}, of commits {}, on {}",
        dates.clone().min().unwrap_or_default(),
        dates.max().unwrap_or_default(),
        some(commits),
        some(archs)
    ))
}
