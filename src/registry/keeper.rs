//! What is kept beside the profiles: the registry as a document, and device ELFs.
//!
//! All of it is apart from the drain: what fails here is said, and costs no counts.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::document::{Process, document};
use super::json::DocumentError;
use super::model::Document;
use super::objects::Objects;
use super::pool::merge;
use super::record::Registry;
use super::settings::{DocumentWhen, Keeping, ObjectsKept};
use crate::codeobject::Identity;
use crate::device::{Device, DeviceError};
use crate::error::Error;
use crate::load::Found;
use crate::output::{
    OutputError, ProfileName, create_beside, move_beside, read, update_pooled, write_atomic,
};

/// What could not be kept beside the profiles. No counts are lost by it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The registry cannot be written.
    #[error("the registry is not written: {0}")]
    NotWritten(#[from] OutputError),
    /// The pool cannot be added to: the registry is in a file of this process's own.
    #[error("cannot add to {}: {source}; the registry is in {}", pool.display(), place.display())]
    Beside {
        /// The pool, which is left as it is.
        pool: PathBuf,
        /// Why.
        source: DocumentError,
        /// The file.
        place: PathBuf,
    },
    /// What is in the pool's place is no file: the registry is in one of this process's own.
    #[error("{source}; the registry is in {}", place.display())]
    Elsewhere {
        /// What is there.
        source: OutputError,
        /// The file.
        place: PathBuf,
    },
    /// Nothing can be kept, as its place cannot be written to.
    #[error(
        "cannot write to {}: {source}; device ELFs and the kernel registry are not kept: make it \
         writable, or give `rocov report` the files that ran with --object",
        place.display()
    )]
    NoPlace {
        /// The directory of all that is no profile.
        place: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A device ELF cannot be read or written.
    #[error("the device ELF of code object {identity} is not kept: {source}")]
    NotKept {
        /// The code object.
        identity: Identity,
        /// What failed.
        source: Error,
    },
    /// A device ELF was replaced by another while it was being kept.
    #[error("the device ELF of code object {identity} is not kept: there is another in its place")]
    Changed {
        /// The code object.
        identity: Identity,
    },
    /// There is no room for a device ELF, nor perhaps for others after it.
    #[error(
        "the device ELF of code object {identity} is not kept, nor are others for which there is \
         no room: with its {size} bytes there would be more than the {max} that are allowed"
    )]
    Full {
        /// The code object.
        identity: Identity,
        /// Bytes of its ELF.
        size: u64,
        /// Bytes that are allowed in all.
        max: u64,
    },
}

impl KeepError {
    /// Makes one error of all that concern `place`, if the system lets nothing be written there: it is
    /// reported once, and not for each file.
    pub(super) fn at(self, place: &Path) -> KeepError {
        let no_place = |source| {
            let place = place.to_owned();
            KeepError::NoPlace { place, source }
        };
        match self {
            KeepError::NotWritten(OutputError::Io { source, .. })
            | KeepError::NotKept {
                source: Error::Output(OutputError::Io { source, .. }),
                ..
            } if is_refusal(&source) => no_place(source),
            error => error,
        }
    }
}

/// Returns whether the system lets nobody, or not this user, write to a place.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory
    )
}

/// Keeps what a session's settings ask for.
#[derive(Debug, Default)]
pub struct Keeper {
    when: DocumentWhen,
    which: ObjectsKept,
    process: Process,
    objects: Objects,
    /// The document's path and the registry's changes when it was written last.
    written: Option<(PathBuf, u64)>,
    /// Documents of this process alone, under names that another may take.
    own: Vec<PathBuf>,
    /// Where documents are that are elsewhere than their name says, and this process's alone.
    moved: HashMap<PathBuf, PathBuf>,
}

impl Keeper {
    /// A keeper that starts with the directory of `name`.
    #[must_use]
    pub fn new(keeping: Keeping, process: Process, name: &ProfileName) -> Keeper {
        Keeper {
            when: keeping.document,
            which: keeping.objects,
            process,
            objects: Objects::new(name.layout().side().to_owned(), keeping.objects_max),
            ..Keeper::default()
        }
    }

    /// Keeps the device ELF of a code object that has just been found, as it may be out of reach
    /// later.
    pub(crate) fn keep(&mut self, device: &dyn Device, found: &Found) -> Result<(), KeepError> {
        let Some(elf) = &found.elf else {
            return Ok(());
        };
        let is_kept = match self.which {
            ObjectsKept::All => true,
            ObjectsKept::Instrumented => elf.is_instrumented(),
            ObjectsKept::None => false,
        };
        if !is_kept {
            return Ok(());
        }
        self.objects.keep(elf, || {
            let mut bytes = Vec::new();
            let mut image = device.image(&found.code_object)?;
            let uri = || found.code_object.uri.clone();
            image
                .read_to_end(&mut bytes)
                .map_err(|source| DeviceError::Image { uri: uri(), source })?;
            Ok(bytes)
        })
    }

    /// Device ELFs that are loaded from now on go to the directory of `name`.
    pub(crate) fn go_on_in(&mut self, name: &ProfileName) {
        self.objects.go_on_in(name.layout().side().to_owned());
    }

    /// The directory of `name` gets the device ELFs of what was loaded before, too.
    pub(crate) fn gather_in(&mut self, name: &ProfileName) -> Vec<KeepError> {
        self.go_on_in(name);
        self.objects.gather()
    }

    /// Writes the registry beside the profiles of this name, if it has changed.
    pub(crate) fn write(
        &mut self,
        registry: &Registry,
        name: &ProfileName,
    ) -> Result<(), KeepError> {
        self.write_after(registry, name, |written, now| written != now)
    }

    /// The same where it has changed a lot: programs that load and unload all the time would
    /// otherwise write a growing file again and again. Like this, they write no more than twice
    /// what they write in the end.
    pub(crate) fn write_now_and_then(
        &mut self,
        registry: &Registry,
        name: &ProfileName,
    ) -> Result<(), KeepError> {
        self.write_after(registry, name, |written, now| now >= 2 * written)
    }

    fn write_after(
        &mut self,
        registry: &Registry,
        name: &ProfileName,
        is_due: impl Fn(u64, u64) -> bool,
    ) -> Result<(), KeepError> {
        let is_asked_for = match self.when {
            DocumentWhen::Auto => registry.is_instrumented(),
            DocumentWhen::Always => registry.is_instrumented() || !registry.loads().is_empty(),
            DocumentWhen::None => false,
        };
        let path = name.for_registry();
        let is_written = self
            .written
            .as_ref()
            .is_some_and(|(last, changes)| *last == path && !is_due(*changes, registry.changes()));
        if !is_asked_for || is_written {
            return Ok(());
        }
        let document = document(registry, &self.process, name.layout(), |elf| {
            self.objects.file(elf)
        });
        let result = match self.moved.get(&path) {
            Some(place) => write_atomic(place, &document.to_json()).map_err(KeepError::from),
            None if name.is_pooled() || self.is_shared(&path) => add_to_pool(&path, &document),
            None => write_atomic(&path, &document.to_json())
                .map(|()| self.own(&path))
                .map_err(KeepError::from),
        };
        match &result {
            Ok(()) => {}
            Err(KeepError::Beside { place, .. } | KeepError::Elsewhere { place, .. }) => {
                self.moved.insert(path.clone(), place.clone());
            }
            Err(_) => return result.map_err(|error| error.at(name.layout().side())),
        }
        self.written = Some((path, registry.changes()));
        result
    }

    /// Returns whether another process has left a document at `path`, by the number that this one has now, or by
    /// a name that all have. It is added to: it says which builds the profiles are of that are still
    /// there.
    fn is_shared(&self, path: &Path) -> bool {
        !self.own.iter().any(|own| own == path) && path.exists()
    }

    /// Notes a document that is this process's alone.
    fn own(&mut self, path: &Path) {
        if !self.own.iter().any(|own| own == path) {
            self.own.push(path.to_owned());
        }
    }

    /// Another program may write to this process's names soon: its documents get others. Returns
    /// these.
    pub(crate) fn hand_over(&mut self) -> Vec<Result<PathBuf, OutputError>> {
        let own = std::mem::take(&mut self.own).into_iter();
        own.map(|path| {
            let place = move_beside(&path)?;
            self.moved.insert(path, place.clone());
            Ok(place)
        })
        .collect()
    }
}

/// Adds `ours` to the document at `path`, or writes it beside what else is there.
fn add_to_pool(path: &Path, ours: &Document) -> Result<(), KeepError> {
    let ours = ours.to_json();
    let added = update_pooled(path, &|| ours.clone(), |file| {
        let merged = merge(&read(file, path)?, &ours);
        merged.map(Some).or_else(|source| {
            let place = create_beside(path, &ours)?;
            Err(KeepError::Beside {
                pool: path.to_owned(),
                source,
                place,
            })
        })
    });
    match added {
        Err(KeepError::NotWritten(source @ OutputError::NotRegular { .. })) => {
            let place = create_beside(path, &ours)?;
            Err(KeepError::Elsewhere { source, place })
        }
        added => added,
    }
}
