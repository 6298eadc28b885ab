//! Labels and windows: each count goes to one place, for any requests in any order.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rocov::device::Executable;
use rocov::drain::{Cause, Idle, Scope, Scopes, Session, Window};
use rocov::store::ProfileName;
use rocov::store::layout::PROFRAW;

use crate::support::fake_device::FakeDevice;
use crate::support::profile::raw_profiles;
use crate::{FIRST, SAXPY, SECOND, VECADD, counts, loaded, merged, output, profile_name, vecadd};

/// A session and the source of its requests.
struct Asked {
    session: Session,
    scopes: Scopes,
    device: FakeDevice,
    name: ProfileName,
}

impl Asked {
    fn new(device: FakeDevice, name: ProfileName) -> Self {
        Self {
            session: Session::default(),
            scopes: Scopes::new(name.label().cloned()),
            device,
            name,
        }
    }

    /// Applies a change of labels or windows, like the runtime.
    fn turn(&mut self, change: impl FnOnce(&mut Scopes)) {
        self.mark(self.scopes.current());
        change(&mut self.scopes);
        self.session.go_on_in(self.scopes.current());
    }

    fn mark(&mut self, scope: Scope) {
        let outcome = self
            .session
            .mark(&self.device, &self.name, scope, &Idle::new());
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    }

    fn push(&mut self, label: &str) {
        self.turn(|scopes| scopes.push(1, label).expect("a label"));
    }

    fn pop(&mut self) {
        self.turn(|scopes| assert!(scopes.pop(1)));
    }

    fn window(&mut self, window: Window) {
        self.turn(|scopes| scopes.set_window(window));
    }

    fn dump(&mut self, label: &str) {
        let scope = self.scopes.below(label).expect("a label");
        self.mark(scope);
    }

    fn drain(&mut self) {
        let outcome = self.session.drain(&self.device, &self.name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    }

    fn unload(&mut self, executable: Executable) {
        let outcome = self.session.unloading(&self.device, executable, &self.name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        self.device.unload(executable);
    }
}

fn vecadd_counts(directory: &Path) -> Vec<u64> {
    counts(&merged(directory), VECADD)
}

#[test]
fn each_label_has_what_was_counted_in_it() {
    let (directory, name) = output();
    let mut asked = Asked::new(loaded(), name);
    asked.session.loaded(&asked.device, FIRST).unwrap();
    asked.device.count(FIRST, VECADD, &[1, 0]);
    asked.push("suite");
    asked.device.count(FIRST, VECADD, &[2, 20]);
    asked.push("a");
    asked.device.count(FIRST, VECADD, &[4, 40]);
    asked.device.count(FIRST, SAXPY, &[9, 9]);
    asked.pop();
    asked.device.count(FIRST, VECADD, &[8, 80]);
    asked.pop();
    // A second use of the label: its counts add up.
    asked.push("suite/a");
    asked.device.count(FIRST, VECADD, &[16, 160]);
    asked.pop();
    asked.push("of nothing");
    asked.pop();
    asked.device.count(FIRST, VECADD, &[32, 320]);
    asked.unload(FIRST);

    let of = |label: &str| vecadd_counts(&directory.path().join(PROFRAW).join(label));
    assert_eq!(of(""), [33, 320]);
    assert_eq!(of("labels/suite"), [10, 100]);
    assert_eq!(of("labels/suite/a"), [20, 200]);
    assert!(
        !directory
            .path()
            .join("profraw/labels/of%20nothing")
            .exists()
    );
}

#[test]
fn a_dump_has_what_was_counted_since_the_last() {
    let (directory, name) = output();
    let mut asked = Asked::new(loaded(), name);
    asked.session.loaded(&asked.device, FIRST).unwrap();
    for (label, by) in [("one", 3), ("two", 4), ("three", 5)] {
        asked.device.count(FIRST, VECADD, &[by, 0]);
        asked.dump(label);
    }
    asked.device.count(FIRST, VECADD, &[7, 0]);
    asked.drain();
    let of = |label: &str| vecadd_counts(&directory.path().join(PROFRAW).join(label))[0];
    assert_eq!(
        ["labels/one", "labels/two", "labels/three", ""].map(of),
        [3, 4, 5, 7]
    );
}

/// Later drains do not count again what is in a label's files, and a label does not count again
/// what a drain has written.
#[test]
fn drains_in_between_change_nothing() {
    let (directory, name) = output();
    let mut asked = Asked::new(loaded(), name);
    asked.session.loaded(&asked.device, FIRST).unwrap();
    asked.drain();
    asked.device.count(FIRST, VECADD, &[1, 0]);
    asked.drain();
    asked.push("a");
    asked.device.count(FIRST, VECADD, &[2, 0]);
    asked.drain();
    asked.drain();
    asked.device.count(FIRST, VECADD, &[4, 0]);
    asked.pop();
    asked.drain();
    asked.unload(FIRST);
    assert_eq!(vecadd_counts(directory.path())[0], 1);
    assert_eq!(
        vecadd_counts(&directory.path().join("profraw/labels/a"))[0],
        6
    );
}

#[test]
fn only_what_is_counted_in_a_window_is_written() {
    let (directory, name) = output();
    let mut asked = Asked::new(loaded(), name);
    asked.session.loaded(&asked.device, FIRST).unwrap();
    asked.window(Window::Closed);
    asked.device.count(FIRST, VECADD, &[1, 0]);
    asked.window(Window::Open);
    asked.device.count(FIRST, VECADD, &[2, 0]);
    asked.push("a");
    asked.device.count(FIRST, VECADD, &[4, 0]);
    asked.window(Window::Closed);
    asked.device.count(FIRST, VECADD, &[8, 0]);
    // A new load counts from the next window on.
    asked.device.load(SECOND, 0, &vecadd());
    asked.session.loaded(&asked.device, SECOND).unwrap();
    asked.device.count(SECOND, VECADD, &[16, 0]);
    asked.pop();
    asked.window(Window::Open);
    asked.device.count(SECOND, VECADD, &[32, 0]);
    asked.window(Window::Closed);
    asked.device.count(FIRST, VECADD, &[64, 0]);
    asked.unload(FIRST);
    asked.drain();
    assert_eq!(vecadd_counts(directory.path())[0], 2 + 32);
    assert_eq!(
        vecadd_counts(&directory.path().join("profraw/labels/a"))[0],
        4
    );
    let total: u64 = 16 + 32;
    let place = asked.device.find(SECOND, &format!("__profc_{VECADD}")).0;
    assert_eq!(
        asked.device.peek(place, 8),
        total.to_le_bytes(),
        "the device's own counters are as they were"
    );
}

#[test]
fn nothing_of_a_program_without_a_window_is_written_but_zeros() {
    let (directory, name) = output();
    let mut asked = Asked::new(loaded(), name);
    asked.window(Window::Closed);
    asked.session.loaded(&asked.device, FIRST).unwrap();
    asked.device.count(FIRST, VECADD, &[9, 9]);
    asked.unload(FIRST);
    assert_eq!(vecadd_counts(directory.path()), [0, 0]);
}

#[test]
fn what_has_no_room_for_its_label_goes_without() {
    let (directory, name) = output();
    let mut asked = Asked::new(loaded(), name);
    asked.session.loaded(&asked.device, FIRST).unwrap();
    fs::create_dir(directory.path().join(PROFRAW)).unwrap();
    fs::write(directory.path().join("profraw/labels"), "not a directory").unwrap();
    asked.push("a");
    asked.device.count(FIRST, VECADD, &[5, 0]);
    let outcome = asked.session.unloading(&asked.device, FIRST, &asked.name);
    assert!(
        matches!(&outcome.losses[..], [loss] if matches!(loss.cause, Cause::Unlabelled { .. })),
        "{:?}",
        outcome.losses
    );
    let said = outcome.losses[0].to_string();
    assert!(
        said.ends_with("the counts for the label a go to profiles without it; move the existing file away, and \
                        run the program again"),
        "{said}"
    );
    fs::remove_file(directory.path().join("profraw/labels")).unwrap();
    assert_eq!(vecadd_counts(directory.path())[0], 5);
}

#[test]
fn zeroed_counters_start_anew_in_labels_too() {
    let (directory, name) = output();
    let mut asked = Asked::new(loaded(), name);
    asked.session.loaded(&asked.device, FIRST).unwrap();
    asked.push("a");
    asked.device.count(FIRST, VECADD, &[5, 0]);
    asked.mark(asked.scopes.current());
    let place = asked.device.find(FIRST, &format!("__profc_{VECADD}")).0;
    let zeroed = asked.session.zero(&asked.device);
    zeroed.unwrap();
    assert_eq!(asked.device.peek(place, 8), [0; 8]);
    // More than before, so the counters alone do not show it.
    asked.device.count(FIRST, VECADD, &[7, 0]);
    asked.pop();
    asked.device.count(FIRST, VECADD, &[1, 0]);
    asked.unload(FIRST);
    assert_eq!(
        vecadd_counts(&directory.path().join("profraw/labels/a"))[0],
        12
    );
    assert_eq!(vecadd_counts(directory.path())[0], 1);
}

/// No dump contains counts that a drain wrote before, even if the file has the counts of other
/// loads or processes.
#[test]
fn what_was_drained_before_is_not_dumped_again() {
    for pattern in ["app.profraw", "app.%m.profraw"] {
        let directory = tempfile::tempdir().unwrap();
        let name = profile_name(directory.path(), pattern);
        let mut asked = Asked::new(loaded(), name);
        asked.session.loaded(&asked.device, FIRST).unwrap();
        asked.device.count(FIRST, VECADD, &[10, 0]);
        asked.unload(FIRST);
        asked.device.load(SECOND, 0, &vecadd());
        asked.session.loaded(&asked.device, SECOND).unwrap();
        asked.device.count(SECOND, VECADD, &[20, 0]);
        asked.drain();
        asked.device.count(SECOND, VECADD, &[5, 0]);
        asked.dump("x");
        asked.window(Window::Closed);
        asked.device.count(SECOND, VECADD, &[7, 0]);
        asked.drain();
        asked.unload(SECOND);
        assert_eq!(vecadd_counts(directory.path())[0], 30, "{pattern}");
        let dumped = vecadd_counts(&directory.path().join("profraw/labels/x"));
        assert_eq!(dumped[0], 5, "{pattern}");
    }
}

/// A dump of a period has all its counts, whatever drains and unloads happen in it.
#[test]
fn a_dump_has_all_of_its_time() {
    let (directory, name) = output();
    let mut asked = Asked::new(loaded(), name);
    asked.session.loaded(&asked.device, FIRST).unwrap();
    asked.device.count(FIRST, VECADD, &[1, 0]);
    asked.turn(|scopes| scopes.set_dump(Some("x".to_owned())));
    asked.device.count(FIRST, VECADD, &[2, 0]);
    asked.drain();
    asked.device.count(FIRST, VECADD, &[4, 0]);
    asked.unload(FIRST);
    asked.device.load(FIRST, 0, &vecadd());
    asked.session.loaded(&asked.device, FIRST).unwrap();
    asked.device.count(FIRST, VECADD, &[8, 0]);
    asked.dump("x");
    asked.turn(|scopes| scopes.set_dump(None));
    asked.device.count(FIRST, VECADD, &[16, 0]);
    asked.unload(FIRST);
    assert_eq!(vecadd_counts(directory.path())[0], 17);
    let dumped = directory.path().join("profraw/labels/x");
    assert_eq!(vecadd_counts(&dumped)[0], 14);
    assert_eq!(asked.session.files_of(&"x".parse().unwrap()), 1);
}

/// The expected counts of each directory, and new counts that no drain has seen.
#[derive(Default)]
struct Expected {
    given: BTreeMap<String, u64>,
    /// New counts of each executable.
    pending: [u64; 2],
}

impl Expected {
    /// Assigns to `scope` the counts of these executables since the last look.
    fn give(&mut self, scope: &Scope, executables: &[usize]) {
        let directory = match scope {
            Scope::Unlabelled => String::new(),
            Scope::Labelled(label) => label.directory().to_str().expect("UTF-8").to_owned(),
            Scope::LeftOut => return self.pending = [0; 2],
        };
        for which in executables {
            let counted = std::mem::take(&mut self.pending[*which]);
            *self.given.entry(directory.clone()).or_default() += counted;
        }
    }
}

/// Sequences of all requests: in the end each count is once in the files of its scope, in files of
/// one process and in pools.
#[test]
fn the_sum_of_all_files_is_what_was_counted() {
    let mut places = 0;
    for seed in 1..=12_u64 {
        let directory = tempfile::tempdir().unwrap();
        let pattern = ["app.profraw", "app.%m.profraw"][seed as usize % 2];
        let name = profile_name(directory.path(), pattern);
        let mut asked = Asked::new(FakeDevice::new(2), name);
        let mut expected = Expected::default();
        let mut alive = [false; 2];
        let mut depth = 0;
        let mut random = random(seed);
        for step in 0..60 {
            let which = random(2);
            let executable = [FIRST, SECOND][which];
            let current = asked.scopes.current();
            match random(8) {
                // At first there are only drains.
                1 | 2 | 4 | 5 if step < 20 => {}
                0 if !alive[which] => {
                    asked.device.load(executable, which, &vecadd());
                    asked.session.loaded(&asked.device, executable).unwrap();
                    alive[which] = true;
                }
                0 if random(3) == 0 => {
                    expected.give(&current, &[which]);
                    asked.unload(executable);
                    alive[which] = false;
                }
                1 if depth < 3 => {
                    expected.give(&current, &[0, 1]);
                    asked.push(["a", "b", "a/c"][random(3)]);
                    depth += 1;
                }
                2 if depth > 0 => {
                    expected.give(&current, &[0, 1]);
                    asked.pop();
                    depth -= 1;
                }
                3 => {
                    expected.give(&current, &[0, 1]);
                    asked.drain();
                }
                4 => {
                    let scope = asked.scopes.below("dump").expect("a label");
                    expected.give(&scope, &[0, 1]);
                    asked.dump("dump");
                }
                5 if random(2) == 0 => {
                    expected.give(&current, &[0, 1]);
                    asked.window([Window::Open, Window::Closed][random(2)]);
                }
                _ if alive[which] => {
                    let by = random(1000) as u64;
                    asked.device.count(executable, VECADD, &[by, 0]);
                    expected.pending[which] += by;
                }
                _ => {}
            }
        }
        expected.give(&asked.scopes.current(), &[0, 1]);
        asked.drain();
        let mut found = BTreeMap::new();
        let profiles = directory.path().join(PROFRAW);
        for below in directories(&profiles) {
            let count = vecadd_counts(&profiles.join(&below))[0];
            found.insert(below, count);
        }
        found.retain(|_, count| *count > 0);
        expected.given.retain(|_, count| *count > 0);
        assert_eq!(found, expected.given, "seed {seed}");
        places += found.len();
    }
    assert!(places > 12, "only {places} places have counts");
}

/// Random numbers below a limit.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) as usize % below
    }
}

/// The directories below `root` with profiles.
fn directories(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        if !raw_profiles(&directory).is_empty() {
            let below = directory.strip_prefix(root).expect("below the root");
            found.push(below.to_str().expect("UTF-8").to_owned());
        }
        let entries = fs::read_dir(&directory).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        left.extend(paths.filter(|path| path.is_dir()));
    }
    found
}
