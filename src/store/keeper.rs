//! Keeps the registry document and device ELFs next to the profiles.
//!
//! This is separate from the drain: a failure here is reported, and costs no counts.

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::device::{Device, DeviceError, ElfBytes, Executable, LoadedCodeObject};
use crate::discover::{ElfFacts, Found, Registry};
use crate::format::registry::merge;
use crate::format::registry::model::Document;
use crate::instrument::amdgcn::CounterMap;
use crate::settings::{DocumentWhen, Keeping, ObjectsKept};
use crate::store::device_elfs::{Contents, Objects};
use crate::store::keep_error::KeepError;
use crate::store::registry_document::{Process, document};
use crate::store::{OutputError, ProfileName, create_beside, read, update_pooled, write_atomic};

/// Keeps the files that a session's settings request.
#[derive(Debug, Default)]
pub struct Keeper {
    when: DocumentWhen,
    which: ObjectsKept,
    process: Process,
    objects: Objects,
    /// True if nothing is written.
    is_nowhere: bool,
    /// The code objects whose device ELFs wait for a drain.
    waiting: Vec<(Arc<ElfFacts>, LoadedCodeObject)>,
    /// The document's path, and the registry's number of changes at the last write.
    written: Option<(PathBuf, u64)>,
    /// Documents of this process only.
    own: Vec<PathBuf>,
    /// Documents of this process that are in another place than their name says: the name, and the place.
    moved: HashMap<PathBuf, PathBuf>,
}

impl Keeper {
    /// Makes a keeper that starts with the directory of `name`.
    #[must_use]
    pub fn new(keeping: Keeping, process: Process, name: &ProfileName) -> Self {
        Self {
            when: keeping.document,
            which: keeping.objects,
            process,
            objects: Objects::new(name.layout().side().to_owned(), keeping.objects_max),
            is_nowhere: name.is_nowhere(),
            ..Self::default()
        }
    }

    /// Counts `kept` bytes of device ELFs that are there already.
    pub(crate) fn with_kept(mut self, kept: u64) -> Self {
        self.objects.count(kept);
        self
    }

    /// The path of a kept device ELF, from the directory of all files next to profiles on.
    pub(crate) fn kept_file(&self, elf: &ElfFacts) -> Option<String> {
        self.objects.file(elf)
    }

    /// The file with the registry, if one was written.
    pub(crate) fn registry_file(&self) -> Option<&Path> {
        let (path, _) = self.written.as_ref()?;
        Some(self.moved.get(path).unwrap_or(path))
    }

    /// Keeps the device ELF of a code object when it is found, because later it may be gone. If it lasts, it is kept with the
    /// next drain: a program that loads much code waits for no file.
    pub(crate) fn keep(&mut self, device: &dyn Device, found: &mut Found) -> Result<(), KeepError> {
        let Some(elf) = &found.elf else {
            return Ok(());
        };
        let is_kept = match self.which {
            ObjectsKept::All => true,
            ObjectsKept::Instrumented => elf.is_counted(),
            ObjectsKept::None => false,
        };
        if !is_kept {
            return Ok(());
        }
        let wait = |this: &mut Self| this.waiting.push((elf.clone(), found.code_object.clone()));
        if self.is_nowhere || device.has_lasting_image(&found.code_object) {
            wait(self);
            return Ok(());
        }
        match self.keep_image(device, elf, &found.code_object, found.image.take()) {
            // The next drain tries again, and reports it.
            Err(error) if error.may_pass() => {
                wait(self);
                Ok(())
            }
            kept => kept,
        }
    }

    /// Keeps the device ELFs that wait for a drain: those of `only`, or all. Those that the system does not let be
    /// written wait for the next drain.
    pub(crate) fn keep_waiting(
        &mut self,
        device: &dyn Device,
        only: Option<Executable>,
    ) -> Vec<KeepError> {
        let mut errors = Vec::new();
        for (elf, code_object) in std::mem::take(&mut self.waiting) {
            if only.is_some_and(|only| only != code_object.executable) {
                self.waiting.push((elf, code_object));
            } else if let Err(error) = self.keep_image(device, &elf, &code_object, None) {
                if error.may_pass() {
                    self.waiting.push((elf, code_object));
                }
                errors.push(error);
            }
        }
        errors
    }

    /// Returns whether device ELFs of an executable wait for a drain.
    pub(crate) fn waits_for(&self, executable: Executable) -> bool {
        self.waiting
            .iter()
            .any(|(_, waiting)| waiting.executable == executable)
    }

    /// Forgets the device ELFs of an executable that wait for a drain: nothing of it was drained.
    pub(crate) fn forget(&mut self, executable: Executable) {
        self.waiting
            .retain(|(_, waiting)| waiting.executable != executable);
    }

    /// Keeps a device ELF, whose identity is that of `image`. Opens it if there is none.
    fn keep_image(
        &mut self,
        device: &dyn Device,
        elf: &ElfFacts,
        code_object: &LoadedCodeObject,
        image: Option<ElfBytes>,
    ) -> Result<(), KeepError> {
        self.objects.keep(elf, || {
            let mut image = match image.map(ElfBytes::into_memory) {
                Some(Ok(bytes)) => return Ok(Contents::Known(bytes)),
                Some(Err(image)) => image,
                None => device.image(code_object)?,
            };
            let mut bytes = Vec::new();
            let uri = || code_object.uri.clone();
            image
                .rewind()
                .and_then(|()| image.read_to_end(&mut bytes))
                .map_err(|source| DeviceError::Image { uri: uri(), source })?;
            // rocov may have put counters into it: the report needs the one that the program had.
            let bytes = match CounterMap::find(&bytes) {
                Ok(Some(map)) => map.original().to_vec(),
                _ => bytes,
            };
            Ok(Contents::Read(bytes))
        })?;
        match device.source(code_object) {
            Some(source) => self.objects.keep_source(elf, &source),
            None => Ok(()),
        }
    }

    /// Keeps later device ELFs in the directory of `name`.
    pub(crate) fn go_on_in(&mut self, name: &ProfileName) {
        self.objects.go_on_in(name.layout().side().to_owned());
        self.is_nowhere = name.is_nowhere();
    }

    /// Copies the device ELFs of earlier loads into the directory of `name` too.
    pub(crate) fn gather_in(&mut self, name: &ProfileName) -> Vec<KeepError> {
        self.go_on_in(name);
        self.objects.gather()
    }

    /// Writes the registry next to the profiles of this name, if it has changed.
    pub(crate) fn write(
        &mut self,
        registry: &Registry,
        name: &ProfileName,
    ) -> Result<(), KeepError> {
        self.write_after(registry, name, |written, now| written != now)
    }

    /// Writes the registry only if it has changed a lot. A program that loads and unloads all the time would
    /// otherwise write a growing file again and again. With this rule it writes at most twice the final size.
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
            // Nobody knows yet if the device code of other files is instrumented.
            DocumentWhen::Auto => registry.is_instrumented() || !registry.device_code().is_empty(),
            DocumentWhen::Always => {
                !registry.loads().is_empty() || !registry.device_code().is_empty()
            }
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
            None if !name.is_of_one_process() || self.is_shared(&path) => {
                add_to_pool(&path, &document)
            }
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

    /// Returns whether another process has left a document at `path`, by chance of the words. This process then adds
    /// to it, because it names the builds of the profiles that are there.
    fn is_shared(&self, path: &Path) -> bool {
        !self.own.iter().any(|own| own == path) && path.exists()
    }

    /// Records a document of this process only.
    fn own(&mut self, path: &Path) {
        if !self.own.iter().any(|own| own == path) {
            self.own.push(path.to_owned());
        }
    }
}

/// Adds `ours` to the document at `path`. If that is not a document, writes `ours` next to it.
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
