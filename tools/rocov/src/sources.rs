//! Annotated source: which files of it are asked for, and which of those are there.

use crate::child;
use crate::cli::ReportArguments;
use crate::coverage::{self, Misfit, PathMap, Texts};
use crate::llvm_tools::Tools;
use anyhow::{Context, Error, Result, anyhow, bail};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What the user asks for.
pub(crate) struct Asked<'a> {
    sources: &'a [PathBuf],
    maps: &'a [PathMap],
    texts: &'a Texts,
    is_asked: bool,
    /// Whether it is shown in colors.
    pub(crate) is_colored: bool,
}

impl<'a> Asked<'a> {
    /// Takes it from the command line; `texts` has the sources.
    pub(crate) fn of(arguments: &'a ReportArguments, texts: &'a Texts) -> Self {
        let sources = arguments.show.as_deref().unwrap_or_default();
        Self {
            sources,
            maps: &arguments.options.filters.path_map,
            texts,
            is_asked: arguments.show.is_some(),
            is_colored: arguments.options.is_colored(),
        }
    }

    /// Whether `source` is one of those, or in a directory that is.
    fn has(&self, source: &Path) -> bool {
        let in_git = self.texts.path_in_git(source);
        let is_in = |asked: &PathBuf| {
            let is_in_git = in_git.is_some_and(|it| Path::new(it).starts_with(asked));
            let asked = asked.canonicalize().unwrap_or_else(|_| asked.clone());
            let source = source.canonicalize();
            is_in_git || source.is_ok_and(|source| source.starts_with(asked))
        };
        self.sources.is_empty() || self.sources.iter().any(is_in)
    }

    /// Has `command`, an `llvm-cov show`, show these sources.
    ///
    /// # Errors
    ///
    /// When it fails.
    pub(crate) fn show(&self, mut command: Command, sources: &[Shown]) -> Result<()> {
        if self.texts.are_of_revision() {
            return self.show_copies(command, sources);
        }
        command.args(self.maps.iter().map(PathMap::option));
        command.args(sources.iter().map(|source| &source.now));
        child::show(&mut command)
    }

    /// The same where llvm-cov, which reads files alone, would not find them: it gets copies in a
    /// directory that stands for the root, and what it prints has that taken out again.
    fn show_copies(&self, mut command: Command, sources: &[Shown]) -> Result<()> {
        let root = TempDir::new().context("cannot make a temporary directory")?;
        let root = root.path();
        command.arg(format!("-path-equivalence=/,{}/", root.display()));
        for source in sources {
            let copy = root.join(
                source
                    .compiled
                    .strip_prefix("/")
                    .unwrap_or(&source.compiled),
            );
            let text = self.texts.read(&source.now)?;
            fs::create_dir_all(copy.parent().unwrap_or(root))
                .and_then(|()| fs::write(&copy, text))
                .with_context(|| format!("cannot write {}", copy.display()))?;
            command.arg(copy);
        }
        let root = root.display().to_string();
        let (_, said) = child::read(&mut command, |shown| {
            for line in BufReader::new(shown).split(b'\n') {
                let mut line = line.context("cannot read what llvm-cov shows")?;
                let named = line
                    .windows(root.len())
                    .position(|it| it == root.as_bytes());
                if let Some(at) = named {
                    line.drain(at..at + root.len());
                }
                line.push(b'\n');
                child::print(&line)?;
            }
            Ok(())
        })?;
        eprint!("{}", said.replace(&root, ""));
        Ok(())
    }

    /// Checks that something could be shown.
    ///
    /// # Errors
    ///
    /// When source was asked for and none was shown, or one that was named is not there.
    pub(crate) fn check(&self, found: &Found) -> Result<()> {
        let is_missing = |source: &&PathBuf| !self.texts.are_of_revision() && !source.exists();
        let missing: Vec<_> = self.sources.iter().filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(not_known(missing, &found.compiled));
        }
        if !self.is_asked || !found.shown.is_empty() {
            return Ok(());
        }
        if self.sources.is_empty() {
            bail!("no source is there to be shown: without --show, the table is printed");
        }
        Err(not_known(self.sources, &found.compiled))
    }
}

/// Says that none of the sources that code was `compiled` from is one of those that were asked for.
pub(crate) fn not_known(
    asked: impl IntoIterator<Item = impl AsRef<Path>>,
    compiled: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Error {
    fn list(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> String {
        let paths = paths.into_iter();
        let paths = paths.map(|path| path.as_ref().display().to_string());
        paths.collect::<Vec<_>>().join(", ")
    }
    anyhow!(
        "no GPU code that ran is known to be of {}: it was compiled from {}; if that has moved, give \
         --path-map",
        list(asked),
        list(compiled),
    )
}

/// A source that is shown.
pub(crate) struct Shown {
    /// As it was named when it was compiled.
    compiled: PathBuf,
    /// Where it is now.
    pub(crate) now: PathBuf,
}

/// The sources that code objects were compiled from.
#[derive(Default)]
pub(crate) struct Found {
    /// Those that are asked for and there.
    pub(crate) shown: Vec<Shown>,
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
            if !asked.texts.has(&now) && asked.sources.is_empty() {
                found.missing.push(source.clone());
            } else if asked.has(&now) {
                let compiled = source.clone();
                found.shown.push(Shown { compiled, now });
            }
            found.compiled.insert(source);
        }
        Ok(found)
    }

    /// One line for each source that is not there.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let line =
            |source: &PathBuf| format!("left out: {}", Misfit::Missing.about(source.display()));
        self.missing.iter().map(line).collect()
    }

    /// Adds what was found for another arch.
    pub(crate) fn add(&mut self, other: Self) {
        self.shown.extend(other.shown);
        self.missing.extend(other.missing);
        self.compiled.extend(other.compiled);
    }
}
