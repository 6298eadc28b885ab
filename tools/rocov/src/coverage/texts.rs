//! The text of source files: from the tree, or as git has it at a revision.

use super::places::{self, Match};
use crate::git::{Repository, Revision};
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Where the text of source files is taken from: the tree, unless a revision is given.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    revision: Option<RefCell<Revision>>,
}

impl Texts {
    /// Takes what git has at `revision` from there, in the repository that the current directory or
    /// `repository` is in.
    ///
    /// # Errors
    ///
    /// When there is no such revision.
    pub(crate) fn of(revision: &OsStr, repository: Option<&Path>) -> Result<Self> {
        let repository = Repository::of(repository.unwrap_or(Path::new(".")));
        let revision = repository.and_then(|repository| repository.revision(revision));
        let revision = revision.context("cannot take sources from git")?;
        Ok(Self {
            revision: Some(RefCell::new(revision)),
        })
    }

    /// Whether a revision is given.
    pub(crate) fn are_of_revision(&self) -> bool {
        self.revision.is_some()
    }

    /// The path from the root of the repository of the source at `place`, if the revision has it.
    ///
    /// A source may have been compiled anywhere: outside of the work tree it is known by the end of
    /// its path, unless it is there.
    pub(crate) fn path_in_git(&self, place: &Path) -> Option<String> {
        let revision = self.revision.as_ref()?.borrow();
        let root = revision.root.as_deref();
        let inside = root.and_then(|root| {
            let found = place.canonicalize();
            let place = found.as_deref().unwrap_or(place);
            Some(place.strip_prefix(root).ok()?.to_str()?.to_owned())
        });
        if let Some(path) = inside {
            return revision.files.contains(&path).then_some(path);
        }
        if place.exists() {
            return None;
        }
        let files = revision.files.iter().map(String::as_str);
        match places::find(place.to_str()?, None, files) {
            Match::Source(path) | Match::Likely(path) => Some(path.to_owned()),
            Match::Ambiguous(_) | Match::Nothing => None,
        }
    }

    /// Whether there is a source at `place`.
    pub(crate) fn has(&self, place: &Path) -> bool {
        self.path_in_git(place).is_some() || place.exists()
    }

    /// The text of the source at `place`.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn read(&self, place: &Path) -> Result<Vec<u8>> {
        if let (Some(revision), Some(path)) = (&self.revision, self.path_in_git(place)) {
            return revision.borrow_mut().read(&path);
        }
        fs::read(place).with_context(|| format!("cannot read {}", place.display()))
    }
}
