//! The expected files of a process that drains many times.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rocov::device::{Device, Executable};
use rocov::discover::filter::Filter;
use rocov::drain::{Outcome, Session};
use rocov::format::codeobject::Identity;
use rocov::format::profraw::RawProfile;
use rocov::settings::{DocumentWhen, Keeping, ObjectsKept};
use rocov::store::{Keeper, Process, ProfileName};

use crate::file_faults::Faults;
use crate::fixture::image;
use crate::support::fake_device::FakeDevice;

/// One code object twice on one agent, so that both share a file, and another code object.
pub(crate) const LOADED: [(Executable, &str); 3] = [
    (Executable(0x61), "vecadd"),
    (Executable(0x62), "vecadd"),
    (Executable(0x63), "collatz"),
];

/// A process that drains many times, and the expected contents of its files.
pub(crate) struct Account<'a> {
    faults: &'a Faults,
    device: FakeDevice,
    pub(crate) session: Session,
    name: &'a ProfileName,
    directory: PathBuf,
    /// For each kernel, the value of every counter in its files.
    written: BTreeMap<&'static str, u64>,
    /// For each load, the counts that no file has yet.
    pending: BTreeMap<Executable, u64>,
    /// The messages.
    pub(crate) lines: Vec<String>,
    what: &'a str,
}

impl Account<'_> {
    pub(crate) fn new<'a>(faults: &'a Faults, name: &'a ProfileName, what: &'a str) -> Account<'a> {
        let keeping = Keeping {
            document: DocumentWhen::Always,
            objects: ObjectsKept::All,
            objects_max: 1 << 30,
        };
        let mut account = Account {
            faults,
            device: FakeDevice::new(1),
            session: Session::filtered(Filter::default()).with_keeper(Keeper::new(
                keeping,
                Process::default(),
                name,
            )),
            name,
            directory: {
                let profile = name.for_load("gfx90a", &Identity::from_sections([]), 0);
                profile.parent().expect("a directory").to_owned()
            },
            written: BTreeMap::new(),
            pending: BTreeMap::new(),
            lines: Vec::new(),
            what,
        };
        LOADED.into_iter().for_each(|load| account.load(load));
        account
    }

    pub(crate) fn load(&mut self, (executable, kernel): (Executable, &'static str)) {
        self.device.load(executable, 0, &image(kernel));
        let outcome = self
            .session
            .loaded(&self.device, executable)
            .expect("the device does not fail");
        self.say(&outcome);
        self.pending.insert(executable, 0);
    }

    /// All loads count: `by` for every counter.
    pub(crate) fn count(&mut self, by: u64) {
        for (address, size) in self.device.counters() {
            for at in (address..address + size).step_by(8) {
                let old = self.device.peek(at, 8).try_into().expect("8 bytes");
                let new = u64::from_le_bytes(old) + by;
                self.device.poke(at, &new.to_le_bytes());
            }
        }
        self.pending.values_mut().for_each(|pending| *pending += by);
    }

    pub(crate) fn drain(&mut self) {
        let outcome = self.session.drain(&self.device, self.name);
        let loads = LOADED
            .into_iter()
            .filter(|(place, _)| self.pending.contains_key(place));
        self.settle(&outcome, &loads.collect::<Vec<_>>());
    }

    pub(crate) fn unload(&mut self, (executable, kernel): (Executable, &'static str)) {
        let outcome = self.session.unloading(&self.device, executable, self.name);
        self.settle(&outcome, &[(executable, kernel)]);
        self.device.unload(executable);
        self.pending.remove(&executable);
    }

    /// A load that no message names as lost has all its counts in its file.
    fn settle(&mut self, outcome: &Outcome, loads: &[(Executable, &'static str)]) {
        self.say(outcome);
        for (executable, kernel) in loads {
            let loaded = self.device.code_objects(*executable).expect("loaded");
            let lost = |line: &&String| {
                line.starts_with(&loaded[0].uri) && line.contains("counts are lost: ")
            };
            let losses: Vec<String> = outcome.losses.iter().map(ToString::to_string).collect();
            let is_lost = match losses.iter().filter(lost).count() {
                0 => false,
                1 => true,
                _ => panic!("said twice: {losses:?}, {}", self.what),
            };
            if !is_lost {
                let pending = self.pending.get_mut(executable).expect("loaded");
                *self.written.entry(kernel).or_default() += std::mem::take(pending);
            }
        }
        self.faults.apart(|| self.check());
    }

    fn say(&mut self, outcome: &Outcome) {
        let losses = outcome.losses.iter().map(ToString::to_string);
        let not_kept = outcome.not_kept.iter().map(ToString::to_string);
        self.lines.extend(losses.chain(not_kept));
    }

    /// Compares every counter of every file with the account. A kernel that lost everything has no
    /// file.
    fn check(&self) {
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for (path, contents) in profiles(&self.directory) {
            let profile = RawProfile::parse(&contents)
                .unwrap_or_else(|error| panic!("{}: {error}: {}", path.display(), self.what));
            let mut counters = contents[profile.sections.counters]
                .chunks_exact(8)
                .map(|counter| u64::from_le_bytes(counter.try_into().expect("8 bytes")));
            let first = counters.next().expect("a counter");
            assert!(
                counters.all(|counter| counter == first),
                "torn: {}",
                self.what
            );
            // vecadd.hip has two functions, collatz.hip one.
            let kernel = match profile.sections.data.len() / 64 {
                1 => "collatz",
                _ => "vecadd",
            };
            *found.entry(kernel).or_default() += first;
        }
        found.retain(|_, count| *count > 0);
        let mut written = self.written.clone();
        written.retain(|_, count| *count > 0);
        assert_eq!(found, written, "{}: {:#?}", self.what, self.lines);
    }
}

/// The profiles in a directory, with their contents.
pub(crate) fn profiles(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = crate::support::profile::raw_profiles(directory).into_iter();
    paths
        .map(|path| (path.clone(), fs::read(&path).expect("a profile")))
        .collect()
}
