//! Loads, reloads, agents: every count ends in a file, and none twice.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt;

use rocov::device::{Device, DeviceError, DeviceRange, TakeParts};
use rocov::drain::{Idle, Session};
use rocov::store::layout::PROFRAW;

use crate::support::delegate::{AsDevice, Delegate};
use crate::support::fake_device::FakeDevice;
use crate::support::profile::raw_profiles;
use crate::{
    FIRST, SAXPY, SECOND, VECADD, collatz, counts, loaded, merged, merged_of, output, profile_name,
    vecadd,
};

#[test]
fn counters_come_home_at_destroy() {
    let (directory, name) = output();
    let device = loaded();
    let mut session = Session::default();
    let seen = session.loaded(&device, FIRST).unwrap();
    assert_eq!((seen.agents, seen.pairs, seen.found), (1, 1, 1));
    device.count(FIRST, VECADD, &[64, 60]);
    device.count(FIRST, SAXPY, &[7, 3]);

    let outcome = session.unloading(&device, FIRST, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert_eq!(outcome.files, raw_profiles(directory.path()));
    let functions = merged(directory.path());
    assert_eq!(counts(&functions, VECADD), [64, 60]);
    assert_eq!(counts(&functions, SAXPY), [7, 3]);
    assert!(session.is_empty());
}

#[test]
fn names_tell_arch_identity_and_agent() {
    let (directory, name) = output();
    let device = loaded();
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    let outcome = session.drain(&device, &name);
    let file = outcome.files[0]
        .strip_prefix(directory.path().join(PROFRAW))
        .unwrap()
        .to_str()
        .unwrap();
    let parts: Vec<&str> = file.split('.').collect();
    assert_eq!(
        (parts[0], parts[2], parts[3], parts[4]),
        ("gfx90a", "0", "app", "profraw")
    );
    assert_eq!(
        parts[1].len(),
        32,
        "an XXH3 hash, as clang writes no build id: {file}"
    );
}

#[test]
fn a_reload_adds_to_what_the_first_load_counted() {
    let (directory, name) = output();
    let mut device = loaded();
    let mut session = Session::default();
    for calls in [5, 11] {
        session.loaded(&device, FIRST).unwrap();
        device.count(FIRST, VECADD, &[calls, 1]);
        let outcome = session.unloading(&device, FIRST, &name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        device.unload(FIRST);
        // ROCr reuses handles.
        device.load(FIRST, 0, &vecadd());
    }
    assert_eq!(raw_profiles(directory.path()).len(), 1);
    assert_eq!(counts(&merged(directory.path()), VECADD), [16, 2]);
}

/// A file disappears between two drains. The next drain writes the profile of loaded code again,
/// with or without new counts, as LLVM does for host code. It does not take the counts for those in
/// another load's file.
#[test]
fn what_is_loaded_is_written_again_where_its_file_is_taken_away() {
    for put_another in [false, true] {
        let (directory, name) = output();
        let mut device = loaded();
        device.load(SECOND, 0, &vecadd());
        let mut session = Session::default();
        for executable in [FIRST, SECOND] {
            session.loaded(&device, executable).unwrap();
            device.count(executable, VECADD, &[64, 60]);
        }
        let files = session.drain(&device, &name).files;
        assert_eq!(counts(&merged(directory.path()), VECADD), [128, 120]);

        let taken = directory.path().join("taken");
        fs::rename(&files[0], &taken).unwrap();
        if put_another {
            fs::copy(&taken, &files[0]).unwrap();
        }
        device.count(SECOND, VECADD, &[64, 60]);
        session.drain(&device, &name);
        // The file that somebody has put there stays.
        let expected = if put_another { [320, 300] } else { [192, 180] };
        assert_eq!(counts(&merged(directory.path()), VECADD), expected);

        fs::remove_file(&files[0]).unwrap();
        session.drain(&device, &name);
        assert_eq!(counts(&merged(directory.path()), VECADD), [192, 180]);
    }
}

#[test]
fn two_live_loads_of_one_code_object_add_up_however_often_they_are_drained() {
    let (directory, name) = output();
    let mut device = loaded();
    device.load(SECOND, 0, &vecadd());
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    session.loaded(&device, SECOND).unwrap();
    device.count(FIRST, VECADD, &[100, 1]);
    device.count(SECOND, VECADD, &[20, 2]);
    session.drain(&device, &name);
    session.drain(&device, &name);
    assert_eq!(counts(&merged(directory.path()), VECADD), [120, 3]);
    device.count(FIRST, VECADD, &[3, 0]);
    session.unloading(&device, FIRST, &name);
    device.unload(FIRST);
    session.drain(&device, &name);
    assert_eq!(counts(&merged(directory.path()), VECADD), [123, 3]);
}

#[test]
fn a_second_drain_writes_only_what_changed() {
    let (directory, name) = output();
    let mut device = loaded();
    device.load(SECOND, 0, &collatz());
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    session.loaded(&device, SECOND).unwrap();
    device.count(FIRST, VECADD, &[1, 1]);
    session.drain(&device, &name);
    let files = raw_profiles(directory.path());
    assert_eq!(files.len(), 2);
    let inodes = || files.iter().map(|file| fs::metadata(file).unwrap().ino());
    let before: Vec<_> = inodes().collect();
    device.count(FIRST, VECADD, &[1, 0]);
    session.drain(&device, &name);
    let replaced = inodes()
        .zip(before)
        .filter(|(after, before)| after != before);
    assert_eq!(replaced.count(), 1);
    assert_eq!(counts(&merged(directory.path()), VECADD), [2, 1]);
}

#[test]
fn each_agent_has_its_own_profile() {
    let (directory, name) = output();
    let mut device = FakeDevice::new(2);
    device.load(FIRST, 0, &vecadd());
    device.load(SECOND, 1, &vecadd());
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    session.loaded(&device, SECOND).unwrap();
    device.count(FIRST, VECADD, &[4, 1]);
    device.count(SECOND, VECADD, &[9, 2]);
    session.drain(&device, &name);
    let files = raw_profiles(directory.path());
    assert_eq!(files.len(), 2);
    let of = |index: usize| counts(&merged_of(&files[index..=index], directory.path()), VECADD);
    assert_eq!([of(0), of(1)], [[4, 1], [9, 2]]);
    assert_eq!(counts(&merged(directory.path()), VECADD), [13, 3]);
}

#[test]
fn what_was_loaded_unseen_is_found_at_exit() {
    let (directory, name) = output();
    let device = loaded();
    device.count(FIRST, VECADD, &[2, 2]);
    let mut session = Session::default();
    let outcome = session.drain(&device, &name);
    assert_eq!(
        (outcome.pairs, outcome.found, outcome.files.len()),
        (1, 1, 1)
    );
    assert_eq!(counts(&merged(directory.path()), VECADD), [2, 2]);
}

#[test]
fn what_came_past_the_hooks_may_go_past_them() {
    let (directory, name) = output();
    let mut device = loaded();
    device.count(FIRST, VECADD, &[4, 2]);
    let mut session = Session::default();
    session.drain(&device, &name);
    device.unload(FIRST);
    let outcome = session.drain(&device, &name);
    assert_eq!((outcome.found, outcome.losses.len()), (0, 0));
    // Another load gets its handle, with and without a drain between them.
    for (by, sum) in [([3, 1], [7, 3]), ([1, 1], [8, 4])] {
        device.load(FIRST, 0, &vecadd());
        device.count(FIRST, VECADD, &by);
        let outcome = session.drain(&device, &name);
        assert_eq!((outcome.found, outcome.losses.len()), (1, 0));
        assert_eq!(counts(&merged(directory.path()), VECADD), sum);
        device.unload(FIRST);
    }
}

#[test]
fn zeroing_keeps_what_was_written_and_counts_on_from_there() {
    for pattern in ["app.profraw", "app-%m.profraw"] {
        let directory = tempfile::tempdir().unwrap();
        let name = profile_name(directory.path(), pattern);
        let device = loaded();
        let mut session = Session::default();
        session.loaded(&device, FIRST).unwrap();
        device.count(FIRST, VECADD, &[4, 2]);
        session.drain(&device, &name);
        device.count(FIRST, VECADD, &[1000, 0]);
        session.zero(&device).unwrap();
        device.count(FIRST, VECADD, &[3, 1]);
        session.drain(&device, &name);
        session.drain(&device, &name);
        assert_eq!(
            counts(&merged(directory.path()), VECADD),
            [7, 3],
            "{pattern}"
        );
    }
}

/// A drain reads nothing again if no kernel can have run since the last one, and only then.
#[test]
fn a_drain_is_complete_until_something_may_have_run() {
    let (_directory, name) = output();
    let device = loaded();
    let agent = device.agents().unwrap()[0].handle;
    let (idle, later) = (Idle::from([(agent, 7)]), Idle::from([(agent, 8)]));
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    assert!(!session.is_complete(FIRST, &idle), "it was not drained");
    session.drain_busy(&device, &name, &Idle::new());
    assert!(!session.is_complete(FIRST, &idle), "the agent was busy");
    assert_eq!(session.drain_busy(&device, &name, &idle).copied.len(), 1);
    assert!(session.is_complete(FIRST, &idle));
    assert_eq!(session.drain_busy(&device, &name, &idle).copied.len(), 0);
    assert_eq!(session.drain_busy(&device, &name, &later).copied.len(), 1);
    assert_eq!(session.drain_busy(&device, &name, &idle).copied.len(), 1);
    assert!(!session.is_complete(FIRST, &later) && !session.is_complete(FIRST, &Idle::new()));
    session.zero(&device).unwrap();
    assert!(!session.is_complete(FIRST, &idle), "it counts anew");
    session.drain_busy(&device, &name, &idle);
    session.go_on_beside(&name);
    assert!(
        !session.is_complete(FIRST, &idle),
        "its counts go to another name too"
    );
    session.drain_busy(&device, &name, &idle);
    session.unloading(&device, FIRST, &name);
    session.loaded(&device, FIRST).unwrap();
    assert!(!session.is_complete(FIRST, &idle), "it is another load");

    // A caller that loads without the hooks may also launch without them.
    let mut session = Session::default();
    session.drain_busy(&device, &name, &idle);
    assert!(!session.is_complete(FIRST, &idle));
}

/// Between the hook and the end of `hsa_executable_destroy`, the runtime still lists the
/// executable, but its memory may be gone. Another thread's drain must not read it.
#[test]
fn an_executable_that_is_being_destroyed_is_not_found_anew() {
    let (directory, name) = output();
    let device = loaded();
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    device.count(FIRST, VECADD, &[4, 2]);
    session.unloading(&device, FIRST, &name);
    let reads = device.reads.borrow().len();
    let outcome = session.drain(&device, &name);
    assert_eq!((outcome.pairs, outcome.found), (0, 0));
    assert_eq!(
        device.reads.borrow().len(),
        reads,
        "nothing is read any more"
    );
    assert_eq!(counts(&merged(directory.path()), VECADD), [4, 2]);
}

/// Processes that have one name, and programs of one process: each keeps its file.
#[test]
fn what_another_process_has_written_stays() {
    let (directory, name) = output();
    let sum = |expected: [u64; 2], files: usize| {
        assert_eq!(raw_profiles(directory.path()).len(), files);
        assert_eq!(counts(&merged(directory.path()), VECADD), expected);
    };
    let process = |calls, is_taken: bool| {
        let device = loaded();
        let mut session = Session::default();
        device.count(FIRST, VECADD, &[calls, 1]);
        let outcome = session.drain(&device, &name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        assert_eq!(outcome.taken.len(), usize::from(is_taken));
        if let [taken] = &outcome.taken[..] {
            assert_eq!(outcome.files, std::slice::from_ref(&taken.place));
        }
        (device, session, outcome.files)
    };
    let (device, mut first, file) = process(1000, false);
    process(5, true);
    sum([1005, 2], 2);
    process(7, true);
    sum([1012, 3], 3);
    // The first one continues, and finds its file.
    device.count(FIRST, VECADD, &[100, 0]);
    let outcome = first.drain(&device, &name);
    assert_eq!((outcome.files, outcome.taken), (file.clone(), vec![]));
    sum([1112, 3], 3);
    // Somebody has put another file in the place of its own.
    let theirs = fs::read(&file[0]).unwrap();
    // Under a name that is no profile's first, so that its inode is another.
    let new = directory.path().join("theirs");
    fs::write(&new, &theirs).unwrap();
    fs::rename(&new, &file[0]).unwrap();
    device.count(FIRST, VECADD, &[1, 0]);
    assert_eq!(first.drain(&device, &name).taken.len(), 1);
    assert_eq!(fs::read(&file[0]).unwrap(), theirs);
    sum([2213, 4], 4);
}

#[test]
fn a_runtime_that_is_shut_down_takes_its_loads_along() {
    let (directory, name) = output();
    let mut session = Session::default();
    for _ in 0..2 {
        let device = loaded();
        session.loaded(&device, FIRST).unwrap();
        device.count(FIRST, VECADD, &[4, 2]);
        session.drain(&device, &name);
        session.forget_all();
        assert!(session.is_empty());
    }
    assert_eq!(counts(&merged(directory.path()), VECADD), [8, 4]);
}

#[test]
fn an_elf_that_is_gone_costs_no_counts() {
    let (directory, name) = output();
    let mut device = loaded();
    device.images_gone = true;
    device.count(FIRST, VECADD, &[8, 7]);
    let mut session = Session::default();
    let outcome = session.drain(&device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert_eq!(counts(&merged(directory.path()), VECADD), [8, 7]);
}

#[test]
fn a_load_is_read_once_and_without_its_elf_twice() {
    for (images_gone, expected) in [(false, 1), (true, 2)] {
        let (directory, name) = output();
        let mut device = loaded();
        device.images_gone = images_gone;
        device.count(FIRST, VECADD, &[8, 7]);
        Session::default().drain(&device, &name);
        let reads = device.reads.borrow();
        assert_eq!(reads.len(), expected, "{reads:?}");
        assert_eq!(counts(&merged(directory.path()), VECADD), [8, 7]);
    }
}

/// Only the file has the sum of unloaded code. A later load adds to it. A load that had the file
/// for itself until then does not count twice.
#[test]
fn loads_that_share_a_file_add_up_however_they_come_and_go() {
    let (directory, name) = output();
    let mut device = loaded();
    let mut session = Session::default();
    let sum = |session: &mut Session, device: &FakeDevice, expected: [u64; 2]| {
        for _ in 0..2 {
            let outcome = session.drain(device, &name);
            assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
            assert_eq!(counts(&merged(directory.path()), VECADD), expected);
        }
    };
    device.count(FIRST, VECADD, &[1, 0]);
    sum(&mut session, &device, [1, 0]);
    device.count(FIRST, VECADD, &[1, 0]);
    sum(&mut session, &device, [2, 0]);
    device.load(SECOND, 0, &vecadd());
    device.count(SECOND, VECADD, &[10, 1]);
    sum(&mut session, &device, [12, 1]);
    device.count(FIRST, VECADD, &[100, 0]);
    sum(&mut session, &device, [112, 1]);
    device.count(SECOND, VECADD, &[0, 1000]);
    session.unloading(&device, FIRST, &name);
    device.unload(FIRST);
    sum(&mut session, &device, [112, 1001]);
    session.unloading(&device, SECOND, &name);
    device.unload(SECOND);
    device.load(FIRST, 0, &vecadd());
    session.loaded(&device, FIRST).unwrap();
    device.count(FIRST, VECADD, &[5, 5]);
    sum(&mut session, &device, [117, 1006]);
}

/// A device whose memory the host sees. It reads the parts of all loads but the last, and counts their bytes.
struct Seen<'a> {
    inner: &'a FakeDevice,
    bytes: Cell<u64>,
    copies: Cell<usize>,
}

impl Delegate for Seen<'_> {
    fn device(&self) -> &dyn Device {
        self.inner
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.copies.set(self.copies.get() + 1);
        self.inner.read(address, into)
    }

    fn read_parts(&self, loads: &[Vec<DeviceRange>], take: &mut TakeParts<'_>) -> usize {
        let read = loads.len() - 1;
        for (place, parts) in loads[..read].iter().enumerate() {
            let mut all = Vec::new();
            let mut end = 0;
            for part in parts {
                assert!(part.start >= end, "they are in their order: {parts:?}");
                end = part.start + part.len;
                let mut bytes = vec![0; part.len as usize];
                self.inner.read(part.start, &mut bytes).unwrap();
                all.extend(bytes);
            }
            self.bytes.set(self.bytes.get() + all.len() as u64);
            take(place, &all);
        }
        read
    }
}

#[test]
fn only_the_sections_are_read_where_the_host_sees_them() {
    let (directory, name) = output();
    let mut device = loaded();
    device.load(SECOND, 0, &vecadd());
    let mut session = Session::default();
    for executable in [FIRST, SECOND] {
        session.loaded(&device, executable).unwrap();
        device.count(executable, VECADD, &[64, 60]);
    }
    let seen = Seen {
        inner: &device,
        bytes: Cell::new(0),
        copies: Cell::new(0),
    };
    let outcome = session.drain(&AsDevice(&seen), &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    // The other load takes one copy.
    assert_eq!(seen.copies.get(), 1);
    let functions = merged(directory.path());
    assert_eq!(counts(&functions, VECADD), [128, 120]);
    // The profile has these sections and a header, which is about as long as the table of their bounds.
    let file = fs::metadata(&outcome.files[0]).unwrap().len();
    assert!(
        seen.bytes.get() <= file + 64,
        "{} of {file}",
        seen.bytes.get()
    );
}
