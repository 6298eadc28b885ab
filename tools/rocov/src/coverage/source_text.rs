//! The text of source files: from the tree, or as git has it at a revision.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::path_match::{Match, PathIndex};
use crate::system::git::{Repository, Revision};

/// The text of source files: from the tree, unless a revision is given.
#[derive(Debug, Default)]
pub(crate) struct SourceTexts {
    revision: Option<Files>,
}

/// The files of a revision.
#[derive(Debug)]
struct Files {
    revision: RefCell<Revision>,
    /// The root of the work tree, if there is one.
    root: Option<PathBuf>,
    /// The paths of files, from the root.
    paths: BTreeSet<String>,
    places: PathIndex,
}

impl SourceTexts {
    /// Takes sources from `revision` of the git repository that the current directory or `repository`
    /// is in.
    ///
    /// # Errors
    ///
    /// Fails if there is no such revision.
    pub(crate) fn of(revision: &OsStr, repository: Option<&Path>) -> Result<Self> {
        let failed = "cannot take sources from git";
        let repository = Repository::of(repository.unwrap_or(Path::new("."))).context(failed)?;
        let (revision, paths) = repository.revision(revision).context(failed)?;
        Ok(Self {
            revision: Some(Files {
                revision: RefCell::new(revision),
                root: repository.root,
                places: PathIndex::new(None, paths.iter().map(String::as_str)),
                paths,
            }),
        })
    }

    /// The hash of the revision's commit, if a revision is given.
    pub(crate) fn commit(&self) -> Option<String> {
        let files = self.revision.as_ref()?;
        Some(files.revision.borrow().commit.clone())
    }

    /// Returns whether a revision is given.
    pub(crate) fn are_of_revision(&self) -> bool {
        self.revision.is_some()
    }

    /// The path from the root of the repository of the source at `place`, if the revision has it.
    ///
    /// A source may have been compiled anywhere: outside of the work tree it is known by the end of
    /// its path, unless it is there.
    pub(crate) fn path_in_git(&self, place: &Path) -> Option<&str> {
        let files = self.revision.as_ref()?;
        let found = place.canonicalize();
        let here = found.as_deref().unwrap_or(place);
        let inside = files.root.as_ref().map(|root| here.strip_prefix(root));
        if let Some(Ok(inside)) = inside {
            return files.paths.get(inside.to_str()?).map(String::as_str);
        }
        if place.exists() {
            return None;
        }
        match files.places.find(place.to_str()?) {
            Match::Source(path) | Match::Likely(path) => Some(path),
            Match::Ambiguous(_) | Match::Nothing => None,
        }
    }

    /// Returns whether there is a source at `place`.
    pub(crate) fn has(&self, place: &Path) -> bool {
        self.path_in_git(place).is_some() || place.exists()
    }

    /// The text of the source at `place`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn read(&self, place: &Path) -> Result<Vec<u8>> {
        if let (Some(files), Some(path)) = (&self.revision, self.path_in_git(place)) {
            return files.revision.borrow_mut().read(path);
        }
        fs::read(place).with_context(|| format!("cannot read {}", place.display()))
    }
}
