//! The sources of annotated source: those that the user names, and that can be read.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rocov::support::diagnostic::Diagnostic;

use super::misfit::Misfit;
use super::resolve_source::not_known;
use super::source_text::SourceTexts;
use super::staleness::misfit;
use super::view::View;

/// The sources that are shown.
pub(crate) struct SourcesToShow<'a> {
    /// In order; none if no source exists.
    pub(crate) paths: Vec<&'a str>,
    /// A line for each source that should be shown and does not exist.
    pub(crate) left_out: Vec<Diagnostic>,
}

impl<'a> SourcesToShow<'a> {
    /// The sources of `view` that are one of the files `wanted` or in one of these directories. All of `view`
    /// if none is named.
    ///
    /// # Errors
    ///
    /// Fails if nothing is at one of the paths `wanted`, or if no source is at any of them.
    pub(crate) fn find(view: &'a View, wanted: &[PathBuf]) -> Result<Self> {
        let texts = &view.texts;
        let is_embedded = |named: &Path| {
            let mut sources = view.paths.iter();
            sources.any(|source| texts.names_embedded(named, Path::new(&**source)))
        };
        let is_gone =
            |path: &&PathBuf| !texts.are_of_revision() && !path.exists() && !is_embedded(path);
        let gone: Vec<_> = wanted.iter().filter(is_gone).collect();
        let all = || view.paths.iter().map(|path| Path::new(&**path));
        if !gone.is_empty() {
            return Err(not_known(gone, all()));
        }
        let (mut paths, mut left_out) = (Vec::new(), Vec::new());
        for path in &view.paths {
            let place = Path::new(&**path);
            if wanted.is_empty() && !texts.has(place) {
                left_out.push(Misfit::Missing.about(path).within("left out"));
            } else if wanted.is_empty() || wanted.iter().any(|path| holds(path, place, texts)) {
                paths.push(&**path);
            }
        }
        match paths.is_empty() && !wanted.is_empty() {
            true => Err(not_known(wanted, all())),
            false => Ok(Self { paths, left_out }),
        }
    }

    /// A line for each source that has changed since it was compiled.
    pub(crate) fn stale(&self, view: &View) -> Vec<Diagnostic> {
        let stale = self.paths.iter().filter_map(|path| {
            let misfit = misfit(view, path, &view.texts)?;
            misfit.stale().is_some().then(|| misfit.about(path))
        });
        stale.collect()
    }
}

/// Returns whether `source` is at the path `named`, or in that directory.
fn holds(named: &Path, source: &Path, texts: &SourceTexts) -> bool {
    if texts.names_embedded(named, source) {
        return true;
    }
    let in_git = texts.path_in_git(source);
    let named_in_git = in_git.is_some_and(|path| Path::new(path).starts_with(named));
    let named = named.canonicalize().unwrap_or_else(|_| named.to_owned());
    let source = source.canonicalize();
    named_in_git || source.is_ok_and(|source| source.starts_with(named))
}
