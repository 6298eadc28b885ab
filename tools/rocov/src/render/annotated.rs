//! Annotated source, which llvm-cov prints.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::coverage;
use crate::coverage::llvm_cov::llvm_cov;
use crate::coverage::resolve_source::not_known;
use crate::coverage::{Misfit, PathMap, SourceTexts};
use crate::llvm::Tools;
use crate::system::command;
use crate::term::print;

/// The sources that the user asks for, and how to show them.
pub(crate) struct SourceRequest<'a> {
    /// Files and directories; none for all.
    pub(crate) sources: &'a [PathBuf],
    pub(crate) maps: &'a [PathMap],
    pub(crate) texts: &'a SourceTexts,
    /// True if to show them in colors.
    pub(crate) is_colored: bool,
}

impl SourceRequest<'_> {
    /// Returns whether `source` is one of those, or in a directory that is.
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

    /// Runs llvm-cov to print annotated `sources` of `elfs`, by their indexed profile.
    ///
    /// # Errors
    ///
    /// Fails if llvm-cov fails.
    pub(crate) fn show(
        &self,
        tools: &Tools,
        elfs: &[PathBuf],
        profile: &Path,
        sources: &AnnotatedSources,
    ) -> Result<()> {
        let sources = &sources.shown;
        let mut command = llvm_cov(tools, "show", elfs, profile);
        if let Some(cxxfilt) = &tools.cxxfilt {
            // Instantiations of a template are shown one by one, under their names.
            command.arg("-Xdemangler").arg(cxxfilt);
        }
        command.arg(format!("-use-color={}", self.is_colored));
        if self.texts.are_of_revision() {
            return self.show_copies(command, sources);
        }
        command.args(self.maps.iter().map(PathMap::option));
        command.args(sources.iter().map(|source| &source.now));
        command::show(&mut command)
    }

    /// Shows sources of a git revision. llvm-cov reads only files: it gets copies in a directory that
    /// stands for the root, and the name of that directory is removed from its output.
    fn show_copies(&self, mut command: Command, sources: &[AnnotatedSource]) -> Result<()> {
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
        let (_, said) = command::read(&mut command, |shown| {
            for line in BufReader::new(shown).split(b'\n') {
                let mut line = line.context("cannot read what llvm-cov shows")?;
                let named = line
                    .windows(root.len())
                    .position(|it| it == root.as_bytes());
                if let Some(at) = named {
                    line.drain(at..at + root.len());
                }
                line.push(b'\n');
                print::text(&line)?;
            }
            Ok(())
        })?;
        print::aside(&said.replace(&root, ""));
        Ok(())
    }

    /// Checks that something was shown.
    ///
    /// # Errors
    ///
    /// Fails if no source was shown, or one that the user named is not there.
    pub(crate) fn check(&self, found: &AnnotatedSources) -> Result<()> {
        let is_missing = |source: &&PathBuf| !self.texts.are_of_revision() && !source.exists();
        let missing: Vec<_> = self.sources.iter().filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(not_known(missing, &found.compiled));
        }
        if !found.shown.is_empty() {
            return Ok(());
        }
        if self.sources.is_empty() {
            bail!("no source can be shown: leave out --show to print the table");
        }
        Err(not_known(self.sources, &found.compiled))
    }
}

/// A source that is shown.
pub(crate) struct AnnotatedSource {
    /// The path that the compiler had.
    compiled: PathBuf,
    /// The path of the source now.
    pub(crate) now: PathBuf,
}

/// The sources that code objects were compiled from.
#[derive(Default)]
pub(crate) struct AnnotatedSources {
    /// The sources that the user asks for and that exist.
    pub(crate) shown: Vec<AnnotatedSource>,
    /// The sources that should be shown and do not exist, as the compiler named them.
    missing: Vec<PathBuf>,
    /// All sources, as the compiler named them.
    compiled: BTreeSet<PathBuf>,
}

impl AnnotatedSources {
    /// Looks for the sources of `elfs`.
    ///
    /// # Errors
    ///
    /// Fails if llvm-cov fails.
    pub(crate) fn of(
        tools: &Tools,
        elfs: &[PathBuf],
        merged: &Path,
        request: &SourceRequest<'_>,
    ) -> Result<Self> {
        let mut found = Self::default();
        for source in coverage::sources(tools, elfs, merged)? {
            let now = PathMap::apply(request.maps, &source);
            if !request.texts.has(&now) && request.sources.is_empty() {
                found.missing.push(source.clone());
            } else if request.has(&now) {
                let compiled = source.clone();
                found.shown.push(AnnotatedSource { compiled, now });
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

    /// Adds the sources of another arch.
    pub(crate) fn add(&mut self, other: Self) {
        self.shown.extend(other.shown);
        self.missing.extend(other.missing);
        self.compiled.extend(other.compiled);
    }
}
