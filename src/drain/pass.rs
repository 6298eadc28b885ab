//! One load's way through a pass: read, validate, encode, write.

use std::path::{Path, PathBuf};

use super::copies::Copies;
use super::ledger::{Ledger, Step};
use super::outcome::{Cause, Copied};
use super::snapshot::{KnownSnapshot, Located, Snapshot};
use crate::codeobject::Identity;
use crate::error::Error;
use crate::load::Load;
use crate::output::{
    ProfileName, add_to_own, add_to_pool, create_atomic, create_beside, write_atomic,
};
use crate::profraw::{Parts, SavedSections, encode};

/// One load on its way to a file.
pub(super) struct Pass<'a> {
    ledger: &'a mut Ledger,
    load: &'a Load,
    name: &'a ProfileName,
    /// Whether a file that is there already is left alone.
    pub(super) only_new: bool,
    /// What was copied from the device.
    pub(super) copied: Vec<Copied>,
    /// What is to be said of it.
    pub(super) causes: Vec<Cause>,
}

impl<'a> Pass<'a> {
    /// The way of `load` to files called `name`.
    pub(super) fn of(load: &'a Load, name: &'a ProfileName, ledger: &'a mut Ledger) -> Self {
        Pass {
            ledger,
            load,
            name,
            only_new: false,
            copied: Vec::new(),
            causes: Vec::new(),
        }
    }

    /// Locates the sections in what was copied of the load and reads what more it takes; then
    /// checks, encodes and writes them. Returns the files.
    pub(super) fn run(&mut self, copies: &mut Copies<'_>) -> Vec<PathBuf> {
        let mut located = Located::of(copies, self.load);
        let doubts = std::mem::take(&mut located.doubts);
        if located.bounds.is_empty() {
            // Nothing else says where the sections are: what was wrong with the tables is fatal.
            self.causes.extend(doubts.into_iter().map(Cause::Failed));
            return Vec::new();
        }
        self.causes.extend(doubts.into_iter().map(Cause::Doubt));
        let mut files = Vec::new();
        for bounds in &located.bounds {
            let snapshot = located
                .version_word(copies, self.load)
                .and_then(|word| Snapshot::take(copies, self.load, bounds, word));
            let written = snapshot.and_then(|snapshot| match snapshot {
                Snapshot::Known(known) => self.write(known),
                // What nobody can read tells nobody that it is zero.
                Snapshot::Unknown(_) if self.only_new => Ok(None),
                Snapshot::Unknown(saved) => self.save(&saved),
            });
            match written {
                Ok(path) => files.extend(path),
                Err(error) => self.causes.push(Cause::Failed(error)),
            }
        }
        files
    }

    /// Writes a profile. A code object without a single record has nothing to write: readers
    /// refuse such a profile.
    fn write(&mut self, snapshot: KnownSnapshot<'_>) -> Result<Option<PathBuf>, Error> {
        let KnownSnapshot {
            version,
            records,
            counted,
            names,
            names_address,
        } = snapshot;
        self.causes
            .extend(records.defects.into_iter().map(Cause::Record));
        let records = &records.bytes;
        self.copied.push(Copied {
            counters: counted.counters.len(),
            data: records.len(),
            names: names.len(),
            uniform: counted.uniform.len(),
        });
        if records.is_empty() {
            return Ok(None);
        }
        let (identity, build_id) = match &self.load.elf {
            Some(elf) => (elf.identity.clone(), elf.build_id.as_deref()),
            None => (Identity::of_sections([names, records]), None),
        };
        let agent = &self.load.agent;
        let path = self.name.for_load(&agent.name, &identity, agent.index);
        let mut parts = Parts {
            version,
            build_id,
            records,
            counters: counted.counters,
            bitmap: counted.bitmap,
            uniform: counted.uniform,
            names,
            names_address,
        };
        if self.only_new {
            let is_new = create_atomic(&path, &encode(&parts))?;
            return Ok(is_new.then_some(path));
        }
        let (generation, is_pool) = (self.load.generation, self.name.is_pooled());
        let step = self
            .ledger
            .step(&path, generation, &counted, &version, is_pool);
        match &step {
            Step::Nothing => {}
            Step::Replace => write_atomic(self.ledger.place(&path), &encode(&parts))?,
            Step::Add(news) => {
                if let Some(news) = news {
                    parts.counters = &news.counters;
                    parts.bitmap = &news.bitmap;
                    parts.uniform = &news.uniform;
                }
                self.add(&path, &parts)?;
            }
        }
        self.ledger
            .written(&path, generation, &counted, &step, is_pool);
        if !is_pool {
            self.ledger.own(&path);
        }
        Ok(Some(self.ledger.place(&path).to_owned()))
    }

    /// Adds counts to the file at `path`, a pool or one that has the counts of other loads. Where
    /// that cannot be done, a new file takes its place: what is there may be of use to others.
    fn add(&mut self, path: &Path, parts: &Parts<'_>) -> Result<(), Error> {
        let place = self.ledger.place(path);
        let added = match self.name.is_pooled() {
            true => add_to_pool(place, parts),
            false => add_to_own(place, parts),
        };
        let Err(error) = added else {
            return Ok(());
        };
        // If not even a new file can be made, it is the first reason that tells more.
        let Ok(place) = create_beside(path, &encode(parts)) else {
            return Err(error.into());
        };
        self.causes.push(Cause::Beside {
            error,
            path: place.clone(),
        });
        self.ledger.moved(path.to_owned(), place);
        Ok(())
    }

    /// Saves sections that are not understood, beside where their profile would be. A file for
    /// each load: what cannot be read cannot be added up.
    fn save(&mut self, saved: &SavedSections) -> Result<Option<PathBuf>, Error> {
        let identity = match &self.load.elf {
            Some(elf) => elf.identity.clone(),
            // The first and the last do not change while kernels run: records and names.
            None => Identity::of_sections(
                [saved.sections.first(), saved.sections.last()]
                    .into_iter()
                    .flatten()
                    .map(|section| section.bytes.as_slice()),
            ),
        };
        let agent = &self.load.agent;
        let path = self.name.for_load(&agent.name, &identity, agent.index);
        let path = path.with_extension(format!("{}.sections", self.load.generation));
        let place = self.ledger.place(&path).to_owned();
        let place = if self.name.is_pooled() && place == path {
            // The name is that of every process's first load, second load and so on.
            let place = create_beside(&path, &saved.encode())?;
            self.ledger.moved(path, place.clone());
            place
        } else {
            write_atomic(&place, &saved.encode())?;
            self.ledger.own(&path);
            place
        };
        self.causes.push(Cause::Saved {
            word: saved.word,
            path: place.clone(),
        });
        Ok(Some(place))
    }
}
