//! The text of source files: from the tree, as git has it at a revision, or from a code object.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::hiprtc::Texts;
use super::path_match::{Match, PathIndex};
use crate::support::mmap;
use crate::system::git::{Repository, Revision};

/// The text of source files: from the tree, unless a code object has it or a revision is given.
#[derive(Debug, Default)]
pub(crate) struct SourceTexts {
    /// The texts that code objects have, by the paths of the sources.
    embedded: Texts,
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
    /// Takes sources from code objects if these have their text, and else from the tree.
    pub(super) fn embedded<'a>(texts: impl IntoIterator<Item = &'a Texts>) -> Self {
        let mut embedded = Texts::new();
        for (path, text) in texts.into_iter().flatten() {
            let known = embedded.entry(Arc::clone(path));
            known.or_insert_with(|| Arc::clone(text));
        }
        Self {
            embedded,
            revision: None,
        }
    }

    /// Takes the sources that no code object has from where `other` does.
    pub(crate) fn with_others_of(&mut self, other: Self) {
        self.revision = other.revision;
    }

    /// The text that a code object has of the source at `place`.
    pub(super) fn in_code_object(&self, place: &Path) -> Option<&[u8]> {
        self.embedded.get(place.to_str()?).map(|text| &**text)
    }

    /// Returns whether a code object has the text of `source`, and `named` is the start or the end of its path.
    pub(crate) fn names_embedded(&self, named: &Path, source: &Path) -> bool {
        let fits = source.starts_with(named) || source.ends_with(named);
        fits && self.in_code_object(source).is_some()
    }

    /// Takes sources from `revision` of the git repository that the current directory or `repository`
    /// is in.
    ///
    /// # Errors
    ///
    /// Fails if there is no such revision.
    pub(crate) fn from_revision(revision: &OsStr, repository: Option<&Path>) -> Result<Self> {
        let failed = "cannot read sources from git";
        let repository =
            Repository::discover(repository.unwrap_or(Path::new("."))).context(failed)?;
        let (revision, paths) = repository.revision(revision).context(failed)?;
        Ok(Self {
            embedded: Texts::new(),
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
        self.in_code_object(place).is_some() || self.path_in_git(place).is_some() || place.exists()
    }

    /// The text of the source at `place`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub(crate) fn read(&self, place: &Path) -> Result<Vec<u8>> {
        if let Some(text) = self.in_code_object(place) {
            return Ok(text.to_vec());
        }
        if let (Some(files), Some(path)) = (&self.revision, self.path_in_git(place)) {
            return files.revision.borrow_mut().read(path);
        }
        mmap::read(place)
    }
}
