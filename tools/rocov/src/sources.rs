//! Annotated source: which files of it are asked for, and which of those are there.

use crate::cli::ReportArguments;
use crate::coverage::{self, PathMap};
use crate::llvm_tools::Tools;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the user asks for.
pub(crate) struct Asked<'a> {
    sources: &'a [PathBuf],
    maps: &'a [PathMap],
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
            maps: &arguments.options.filters.path_map,
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
             give --path-map",
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
            let now = PathMap::apply(asked.maps, &source);
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
                 with --path-map",
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
