//! The ways to drain a device under faults, and their results.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rocov::device::Executable;
use rocov::drain::{Outcome, Session};
use rocov::format::profraw::RawProfile;
use rocov::store::ProfileName;

use crate::fixture::{ALL, Files, PLAIN, Place, SPREAD, Undisturbed, device, files, name_in};
use crate::scripted::{Call, Scripted};
use crate::support::command::{limited, run};
use crate::support::fake_device::FakeDevice;
use crate::support::profile::profdata;

/// The settings of a drain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Hooks see each load, and two executables are unloaded before the exit.
    pub(crate) is_hooked: bool,
    /// The device copies ranges together.
    pub(crate) reads_each: bool,
}

impl Way {
    pub(crate) fn all() -> [Self; 4] {
        let ways = [(false, true), (false, false), (true, true), (true, false)];
        ways.map(|(is_hooked, reads_each)| Self {
            is_hooked,
            reads_each,
        })
    }
}

pub(crate) const UNLOADED: [Executable; 2] = [PLAIN[0], SPREAD];

/// The files and messages of a drain.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) files: Files,
    /// One line for each loss.
    pub(crate) lines: Vec<String>,
    pub(crate) outcome: Outcome,
}

impl Way {
    pub(crate) fn drain(
        self,
        session: &mut Session,
        device: &Scripted<'_>,
        name: &ProfileName,
        directory: &Path,
    ) -> Left {
        let mut left = Left::default();
        if self.is_hooked {
            for executable in ALL {
                // The drain searches again for code that it cannot see now.
                if let Ok(outcome) = session.loaded(device, executable) {
                    left.say(&outcome);
                }
            }
            for executable in UNLOADED {
                let outcome = session.unloading(device, executable, name);
                left.say(&outcome);
                device.device.borrow_mut().unload(executable);
            }
        }
        left.outcome = session.drain(device, name);
        let outcome = std::mem::take(&mut left.outcome);
        left.say(&outcome);
        left.outcome = outcome;
        left.files = files(directory);
        left
    }
}

impl Left {
    fn say(&mut self, outcome: &Outcome) {
        self.lines
            .extend(outcome.losses.iter().map(ToString::to_string));
    }

    /// The places without their exact counts. A file may have another name, if there was no ELF for
    /// the name; its counts are the expected ones.
    pub(crate) fn lost(&self, undisturbed: &Undisturbed) -> BTreeSet<Place> {
        let others = || self.files.values().filter_map(|file| counters(file));
        let is_lost = |(name, file): &(String, Vec<u8>)| {
            self.files.get(name) != Some(file)
                && !others().any(|others| Some(others) == counters(file))
        };
        let lost = undisturbed.of.iter().filter(|(_, file)| is_lost(file));
        lost.map(|(place, _)| *place).collect()
    }
}
impl Way {
    pub(crate) fn on(self, device: &RefCell<FakeDevice>) -> Scripted<'_> {
        let mut device = Scripted::quiet(device);
        device.reads_each = self.reads_each;
        device
    }

    pub(crate) fn drain_again(
        self,
        session: &mut Session,
        device: &Scripted<'_>,
        name: &ProfileName,
        directory: &Path,
    ) -> Left {
        let way = Self {
            is_hooked: false,
            ..self
        };
        way.drain(session, device, name, directory)
    }

    /// The number of calls of each kind without faults.
    pub(crate) fn calls(self) -> BTreeMap<Call, usize> {
        let device = RefCell::new(device());
        let device = self.on(&device);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let name = name_in(directory.path(), "app.profraw");
        let left = self.drain(&mut Session::default(), &device, &name, directory.path());
        assert!(left.lines.is_empty(), "{:?}", left.lines);
        device.calls()
    }
}
fn counters(file: &[u8]) -> Option<&[u8]> {
    let profile = RawProfile::parse(file).ok()?;
    Some(&file[profile.sections.counters])
}
/// Unexpected profiles for llvm-profdata to read, each once.
#[derive(Default)]
pub(crate) struct Unforeseen(BTreeSet<Vec<u8>>);

impl Unforeseen {
    pub(crate) fn see(&mut self, left: &Left, undisturbed: &Undisturbed) {
        for (name, file) in &left.files {
            let is_known = undisturbed.of.values().any(|(_, known)| known == file);
            if !is_known && name.ends_with(".profraw") {
                self.0.insert(file.clone());
            }
        }
    }

    /// Expects that llvm-profdata reads every profile.
    pub(crate) fn are_read(&self) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("app.profraw");
        for file in &self.0 {
            fs::write(&path, file).expect("a file can be written");
            run(limited(profdata()).arg("show").arg(&path)).success();
        }
    }
}
