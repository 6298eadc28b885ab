//! A load in a pass: read, validate, encode, write.

use std::path::{Path, PathBuf};

use super::ledger::{Ledger, Step};
use super::outcome::{Cause, Copied, Taken};
use super::scope::Scope;
use super::shares::Shares;
use crate::discover::Load;
use crate::drain::error::Error;
use crate::format::codeobject::Identity;
use crate::format::profraw::{Counts, Parts, SavedSections, encode};
use crate::format::sections::PerSection;
use crate::read::copied_memory::CopiedMemory;
use crate::read::counted::Counted;
use crate::read::inserted::InsertedCounts;
use crate::read::snapshot::{KnownSnapshot, Located, Snapshot};
use crate::read::traced::ExecutionCounts;
use crate::store::{
    ProfileName, add_to_own, add_to_pool, create_at_or_beside, create_atomic, create_beside,
    write_atomic,
};
use crate::support::diagnostic::Remedy;
use crate::validate::{CopiesError, MAX_DEFECTS, NamesChecker};

/// The output of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// All counts.
    All,
    /// Only the counts of a label.
    Labels,
    /// All counts, but an existing file does not change.
    New,
}

/// A load on its way to a file.
pub(super) struct Pass<'a> {
    ledger: &'a mut Ledger,
    shares: &'a mut Shares,
    load: &'a Load,
    name: &'a ProfileName,
    /// The destination of the counts since the latest look.
    scope: &'a Scope,
    writes: Writes,
    /// The bytes that were copied from the device.
    pub(super) copied: Vec<Copied>,
    /// The load's own profile.
    pub(super) own: Option<PathBuf>,
    /// The files that have the counts of this pass: the load's own profile, that of a label, saved sections.
    pub(super) files: Vec<PathBuf>,
    /// The files whose names other processes have.
    pub(super) taken: Vec<Taken>,
    /// The reports about it.
    pub(super) causes: Vec<Cause>,
    /// The number of records that were left out. The first of them are among the causes.
    left_out: usize,
}

/// The line about functions of `load` into which rocov could not put counters. `None` if there are none.
fn uncounted(load: &Load) -> Option<String> {
    /// The most names in a message.
    const MOST: usize = 8;
    let functions = &load.inserted()?.uncounted;
    let names = functions.iter().take(MOST).map(String::as_str);
    let names = names.collect::<Vec<_>>().join(", ");
    let more = match functions.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!functions.is_empty()).then(|| {
        format!(
            "rocov could not insert counters into {names}{more}, so the report shows them as not run: `rocov run \
             --trace --gpu model` counts them"
        )
    })
}

impl<'a> Pass<'a> {
    /// Makes the pass of `load` to files called `name`.
    pub(super) fn new(
        load: &'a Load,
        name: &'a ProfileName,
        scope: &'a Scope,
        writes: Writes,
        ledger: &'a mut Ledger,
        shares: &'a mut Shares,
    ) -> Self {
        Pass {
            ledger,
            shares,
            load,
            name,
            scope,
            writes,
            copied: Vec::new(),
            own: None,
            files: Vec::new(),
            taken: Vec::new(),
            causes: Vec::new(),
            left_out: 0,
        }
    }

    /// Finds the sections, with the bytes that were already copied. Copies what is missing, then checks,
    /// encodes and writes the sections.
    pub(super) fn run(&mut self, memory: &mut CopiedMemory<'_>, checker: &mut NamesChecker) {
        let executions = match InsertedCounts::take(memory, self.load) {
            Ok(Some(inserted)) => Some(ExecutionCounts::Inserted(inserted)),
            Ok(None) => memory.device().executions().map(ExecutionCounts::Device),
            Err(error) => {
                self.causes.push(Cause::Failed(error.into()));
                return;
            }
        };
        let executions = executions.as_ref();
        if !self.load.is_instrumented() {
            let written = self.write_all(KnownSnapshot::without_counters(self.load), executions, 0);
            self.causes.extend(written.err().map(Cause::Failed));
            return;
        }
        let mut located = Located::take(memory, self.load);
        let doubts = std::mem::take(&mut located.doubts);
        if located.bounds.is_empty() {
            // Nothing else has the places of the sections, so an error in the tables is fatal.
            self.causes
                .extend(doubts.into_iter().map(|doubt| Cause::Failed(doubt.into())));
            return;
        }
        self.causes
            .extend(doubts.into_iter().map(|doubt| Cause::Doubt(doubt.into())));
        located.copy(memory, self.load);
        for (which, bounds) in located.bounds.iter().enumerate() {
            let snapshot = located
                .version_word(memory, self.load)
                .and_then(|word| Snapshot::take(memory, self.load, bounds, word, checker));
            let written = snapshot
                .map_err(Error::from)
                .and_then(|(snapshot, missing)| {
                    self.note_missing(missing);
                    match snapshot {
                        Snapshot::Known(known) => self.write_all(known, executions, which),
                        // Unreadable sections cannot be checked for zeros, or be split between labels.
                        Snapshot::Unreadable(..) if self.writes != Writes::All => Ok(()),
                        Snapshot::Unreadable(saved, error) => self.save(&saved, error.into()),
                    }
                });
            self.causes.extend(written.err().map(Cause::Failed));
        }
        if let more @ 1.. = self.left_out.saturating_sub(MAX_DEFECTS) {
            self.causes.push(Cause::MoreRecords(more));
        }
    }

    /// Reports copies whose counts are missing. If the code never ran, they have none.
    fn note_missing(&mut self, missing: Vec<CopiesError>) {
        if self.writes != Writes::New {
            self.causes.extend(missing.into_iter().map(Cause::Partial));
        }
    }

    /// The first reason why the profile lacks counts, and the next step. `None` if it lacks none.
    pub(super) fn partial(&self) -> Option<String> {
        self.causes
            .iter()
            .find_map(|cause| match cause {
                Cause::Partial(error) => Some(error.diagnostic().to_string()),
                _ => None,
            })
            .or_else(|| uncounted(self.load))
    }

    /// Writes the profiles of bounds number `which`, with the executed instructions if the device counts them.
    fn write_all(
        &mut self,
        mut snapshot: KnownSnapshot<'_>,
        executions: Option<&ExecutionCounts<'_>>,
        which: usize,
    ) -> Result<(), Error> {
        let added = snapshot.add_trace(self.load, executions);
        self.causes.extend(added.err().map(Cause::Untraced));
        self.write(snapshot, which)
    }

    /// Writes the profiles of bounds number `which`. Writes nothing for a code object without records:
    /// readers reject such a profile.
    fn write(&mut self, snapshot: KnownSnapshot<'_>, which: usize) -> Result<(), Error> {
        let KnownSnapshot {
            version,
            records,
            sections,
            copies,
            names_address,
        } = snapshot;
        let room = MAX_DEFECTS.saturating_sub(self.left_out);
        self.left_out += records.defects.len() + records.more_defects;
        let said = records.defects.into_iter().take(room);
        self.causes.extend(said.map(Cause::Record));
        let records = &records.bytes;
        let sections = PerSection {
            data: records.as_slice(),
            ..sections.slices()
        };
        self.copied.push(Copied {
            sections: sections.map(|section| section.len()),
            copies,
        });
        if records.is_empty() {
            return Ok(());
        }
        let (identity, build_id) = match &self.load.elf {
            Some(elf) => (elf.identity.clone(), elf.build_id.as_deref()),
            None => (Identity::from_sections([sections.names, records]), None),
        };
        let parts = Parts {
            version,
            build_id,
            sections,
            names_address,
        };
        let path = self.path(self.name, &identity);
        let rest = self.share_out(&parts, &identity, &path, which);
        if self.writes == Writes::Labels {
            return Ok(());
        }
        let parts = rest.as_ref().map_or(parts, |rest| parts.counting(rest));
        if self.writes == Writes::New {
            let is_new = create_atomic(&path, &encode(&parts))?;
            self.own = is_new.then_some(path);
        } else {
            let step = self.put(&path, &parts)?;
            let (generation, is_pool) = (self.load.generation, self.name.is_pooled());
            let counted = Counted::from_parts(&parts);
            self.ledger
                .written(&path, generation, &counted, &step, is_pool);
            self.own = Some(self.ledger.place(&path).to_owned());
        }
        self.files.extend(self.own.clone());
        Ok(())
    }

    /// The path of a profile of this load.
    fn path(&self, name: &ProfileName, identity: &Identity) -> PathBuf {
        let agent = &self.load.agent;
        let build = self.load.host.as_ref().filter(|_| name.is_pooled());
        let build = build.map(|host| host.tag());
        name.for_build(build.as_deref(), &agent.name, identity, agent.index)
    }

    /// Assigns the counts since the latest look to the scope, and writes them if it is a label. Returns the
    /// counts for the load's own profile at `own`; `None` if that gets all counts.
    fn share_out(
        &mut self,
        parts: &Parts<'_>,
        identity: &Identity,
        own: &Path,
        which: usize,
    ) -> Option<Counts> {
        let (generation, version) = (self.load.generation, &parts.version);
        let counted = Counted::from_parts(parts);
        let share = self.shares.share(generation, which)?;
        share.begin(|| {
            let contributed = self.ledger.contributed(own, generation, &counted);
            contributed.unwrap_or_else(|error| {
                self.causes.push(Cause::Doubt(error.into()));
                Some(counted.to_counts())
            })
        });
        let news = share.advance(counted.to_counts(), version);
        let goes_elsewhere = match self.scope {
            Scope::Unlabelled => false,
            Scope::LeftOut => true,
            Scope::Labelled(_) if news.is_nothing(version) => false,
            Scope::Labelled(label) => {
                let name = self.name.clone().with_label(Some(label.clone()));
                let path = self.path(&name, identity);
                match self.put(&path, &parts.counting(&news)) {
                    Ok(_) => {
                        self.ledger.settled(&path, name.is_pooled());
                        self.files.push(self.ledger.place(&path).to_owned());
                        true
                    }
                    Err(error) => {
                        let label = label.clone();
                        self.causes.push(Cause::Unlabelled { error, label });
                        false
                    }
                }
            }
        };
        let share = self.shares.share(generation, which)?;
        if goes_elsewhere {
            share.leave_out(news, version);
        }
        share.rest(&counted, version)
    }

    /// Writes the counts of `parts` to the file called `path`. Returns the step that it took.
    fn put(&mut self, path: &Path, parts: &Parts<'_>) -> Result<Step, Error> {
        let (generation, is_pool) = (self.load.generation, self.name.is_pooled());
        let counted = Counted::from_parts(parts);
        let step = self
            .ledger
            .step(path, generation, &counted, &parts.version, is_pool)?;
        match &step {
            Step::Nothing => {}
            Step::Create => self.create(path, &encode(parts))?,
            Step::Replace => write_atomic(self.ledger.place(path), &encode(parts))?,
            Step::Add(None) => self.add(path, parts)?,
            Step::Add(Some(news)) => self.add(path, &parts.counting(news))?,
        }
        Ok(step)
    }

    /// Makes the file called `path`. If another process has one of this name, makes a file next to it.
    fn create(&mut self, path: &Path, contents: &[u8]) -> Result<(), Error> {
        let place = create_at_or_beside(path, contents)?;
        let is_expected = self.name.is_pooled() || self.name.is_of_one_process();
        if !is_expected && place != path {
            self.taken.push(Taken {
                path: path.to_owned(),
                place: place.clone(),
            });
        }
        self.ledger.moved(path, place);
        Ok(())
    }

    /// Adds counts to the file at `path`: a pool, or a file with the counts of other loads. If that fails,
    /// makes a new file next to it: the old one may be of use to others.
    fn add(&mut self, path: &Path, parts: &Parts<'_>) -> Result<(), Error> {
        let place = self.ledger.place(path);
        let added = match self.name.is_pooled() {
            true => add_to_pool(place, parts),
            false => add_to_own(place, parts),
        };
        let Err(error) = added else {
            return Ok(());
        };
        // If a new file cannot be made either, the first error is more useful.
        let Ok(place) = create_beside(path, &encode(parts)) else {
            return Err(error.into());
        };
        self.causes.push(Cause::Beside {
            error,
            path: place.clone(),
        });
        self.ledger.moved(path, place);
        Ok(())
    }

    /// Saves raw sections that rocov cannot read, and reports why. Each load has its own file, because such
    /// sections cannot be added up.
    fn save(&mut self, saved: &SavedSections, error: Error) -> Result<(), Error> {
        let identity = match &self.load.elf {
            Some(elf) => elf.identity.clone(),
            // The first and the last section do not change while kernels run: records and names.
            None => Identity::from_sections(
                [saved.sections.first(), saved.sections.last()]
                    .into_iter()
                    .flatten()
                    .map(|section| section.bytes.as_slice()),
            ),
        };
        let profile = self.path(self.name, &identity);
        let path = self.name.for_sections(&profile, self.load.generation);
        match self.ledger.has(&path) {
            true => write_atomic(self.ledger.place(&path), &saved.encode())?,
            // Other processes may have this name for their first load, their second load and so on.
            false => self.create(&path, &saved.encode())?,
        }
        self.ledger.settled(&path, self.name.is_pooled());
        let place = self.ledger.place(&path).to_owned();
        self.causes.push(Cause::Saved {
            error,
            path: place.clone(),
        });
        self.own = Some(place.clone());
        self.files.push(place);
        Ok(())
    }
}
