//! Annotated source: which files of it are asked for, and which of those are there.

use crate::cli::ReportArguments;
use crate::coverage;
use crate::llvm_tools::Tools;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where sources are that were somewhere else when they were compiled: llvm-cov's option of the
/// same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathEquivalence {
    from: PathBuf,
    to: PathBuf,
}

impl FromStr for PathEquivalence {
    type Err = String;

    fn from_str(value: &str) -> Result<Self, String> {
        match value.split_once(',') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok(Self {
                from: from.into(),
                to: std::path::absolute(to).map_err(|error| error.to_string())?,
            }),
            _ => Err("expected two directories, FROM,TO".to_owned()),
        }
    }
}

/// Displays the value of llvm-cov's option.
impl fmt::Display for PathEquivalence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{},{}", self.from.display(), self.to.display())
    }
}

impl PathEquivalence {
    /// Where the source at `path` is now.
    fn apply(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.from)
            .map_or_else(|_| path.to_path_buf(), |rest| self.to.join(rest))
    }
}

/// What the user asks for.
pub(crate) struct Asked<'a> {
    sources: &'a [PathBuf],
    equivalence: Option<&'a PathEquivalence>,
    is_asked: bool,
}

impl<'a> Asked<'a> {
    /// Takes it from the command line.
    ///
    /// # Errors
    ///
    /// When a source that is named is not there.
    pub(crate) fn of(arguments: &'a ReportArguments) -> Result<Self> {
        let sources = arguments.show.as_deref().unwrap_or_default();
        if let Some(missing) = sources.iter().find(|source| !source.exists()) {
            bail!(
                "no source file {}: give its path as seen from here",
                missing.display()
            );
        }
        Ok(Self {
            sources,
            equivalence: arguments.path_equivalence.as_ref(),
            is_asked: arguments.show.is_some(),
        })
    }

    /// Whether `source` is one of those, or in a directory that is.
    fn has(&self, source: &Path) -> bool {
        let is_in = |asked: &PathBuf| {
            let asked = asked.canonicalize().unwrap_or_else(|_| asked.clone());
            let source = source.canonicalize();
            source.is_ok_and(|source| source.starts_with(asked))
        };
        self.sources.is_empty() || self.sources.iter().any(is_in)
    }

    /// Checks that something could be shown.
    ///
    /// # Errors
    ///
    /// When source was asked for and none was shown.
    pub(crate) fn check(&self, found: &Found) -> Result<()> {
        if !self.is_asked || !found.shown.is_empty() {
            return Ok(());
        }
        let list = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            let paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
            paths.join(", ")
        };
        if self.sources.is_empty() {
            bail!("no source is there to be shown: without --show, the table is printed");
        }
        bail!(
            "no GPU code that ran is known to be of {}: it was compiled from {}; if that has moved, \
             give --path-equivalence",
            list(&mut self.sources.iter()),
            list(&mut found.compiled.iter()),
        )
    }
}

/// The sources that code objects were compiled from.
#[derive(Default)]
pub(crate) struct Found {
    /// Those that are asked for and there, by the path that they are at now.
    pub(crate) shown: Vec<PathBuf>,
    /// Those that would be shown and are not there, as they were named when they were compiled.
    missing: Vec<PathBuf>,
    /// All of them, as they were named.
    compiled: BTreeSet<PathBuf>,
}

impl Found {
    /// Looks for the sources of `elfs`.
    ///
    /// # Errors
    ///
    /// When llvm-cov fails.
    pub(crate) fn of(
        tools: &Tools,
        elfs: &[PathBuf],
        merged: &Path,
        asked: &Asked<'_>,
    ) -> Result<Self> {
        let mut found = Self::default();
        for source in coverage::sources(tools, elfs, merged)? {
            let equivalence = asked.equivalence;
            let now = equivalence.map_or_else(|| source.clone(), |it| it.apply(&source));
            if !now.exists() && asked.sources.is_empty() {
                found.missing.push(source.clone());
            } else if asked.has(&now) {
                found.shown.push(now);
            }
            found.compiled.insert(source);
        }
        Ok(found)
    }

    /// One line for each source that is not there.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let line = |source: &PathBuf| {
            format!(
                "left out: {}: the source is not there any more: put it back, or say where it is \
                 with --path-equivalence",
                source.display()
            )
        };
        self.missing.iter().map(line).collect()
    }

    /// Adds what was found for another arch.
    pub(crate) fn add(&mut self, other: Self) {
        self.shown.extend(other.shown);
        self.missing.extend(other.missing);
        self.compiled.extend(other.compiled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_equivalence_is_of_directories() {
        let equivalence: PathEquivalence = "/old/src,/new".parse().unwrap();
        assert_eq!(equivalence.to_string(), "/old/src,/new");
        for (path, now) in [
            ("/old/src/a/b.hip", "/new/a/b.hip"),
            ("/old/srcs/b.hip", "/old/srcs/b.hip"),
        ] {
            assert_eq!(equivalence.apply(Path::new(path)), Path::new(now));
        }
        for value in ["", "/old", "/old,", ",/new"] {
            assert!(value.parse::<PathEquivalence>().is_err(), "{value}");
        }
    }
}
