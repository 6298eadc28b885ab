//! `%m`: one file that everybody adds to.

use std::fs;
use std::thread;

use rocov::drain::Session;

use crate::support::profile::raw_profiles;
use crate::{FIRST, VECADD, counts, loaded, merged, merged_of, profile_name};

#[test]
fn sessions_add_up_in_one_file_and_drain_again_without_doubling() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    // Sessions stand for processes: they know nothing of each other.
    for calls in [5, 7] {
        let device = loaded();
        let mut session = Session::default();
        device.count(FIRST, VECADD, &[calls, 1]);
        session.drain(&device, &name);
        session.drain(&device, &name);
        device.count(FIRST, VECADD, &[100, 0]);
        let outcome = session.unloading(&device, FIRST, &name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    }
    assert_eq!(raw_profiles(directory.path()).len(), 1);
    assert_eq!(counts(&merged(directory.path()), VECADD), [212, 2]);
}

#[test]
fn a_reload_adds_to_the_pool() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "%m.profraw");
    let mut session = Session::default();
    for _ in 0..3 {
        let device = loaded();
        session.loaded(&device, FIRST).unwrap();
        device.count(FIRST, VECADD, &[2, 1]);
        session.unloading(&device, FIRST, &name);
    }
    assert_eq!(counts(&merged(directory.path()), VECADD), [6, 3]);
}

#[test]
fn a_pool_of_other_code_or_damaged_is_left_alone_and_counts_are_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    let device = loaded();
    device.count(FIRST, VECADD, &[5, 1]);
    let file = Session::default().drain(&device, &name).files[0].clone();
    let good = fs::read(&file).unwrap();
    let mut other = good.clone();
    // The hash of the first function: behind the header and the hash of its name.
    other[128 + 8] ^= 1;
    for (contents, why) in [
        (
            good[..good.len() - 9].to_vec(),
            "raw profile is cut short: names ends at byte",
        ),
        (
            b"something else entirely".to_vec(),
            "not a raw profile: magic 0x6e69687465",
        ),
        (
            other,
            "it is a profile of other code, although its name says otherwise",
        ),
    ] {
        fs::write(&file, &contents).unwrap();
        // Sessions stand for processes, here with the same process id.
        for calls in [3, 7] {
            let device = loaded();
            let mut session = Session::default();
            device.count(FIRST, VECADD, &[calls, 1]);
            let outcome = session.drain(&device, &name);
            let [loss] = outcome.losses.as_slice() else {
                panic!("{:?}", outcome.losses)
            };
            let [beside] = outcome.files.as_slice() else {
                panic!("{:?}", outcome.files)
            };
            let line = loss.to_string();
            let named = format!("cannot add to {}: {why}", file.display());
            assert!(line.contains(&named), "{line}");
            let end = format!("; the counts are in {}", beside.display());
            assert!(line.ends_with(&end), "{line}");
            device.count(FIRST, VECADD, &[100, 0]);
            let again = session.unloading(&device, FIRST, &name);
            assert!(again.losses.is_empty(), "{:?}", again.losses);
            assert_eq!(&again.files, std::slice::from_ref(beside));
            let of_one = merged_of(std::slice::from_ref(beside), directory.path());
            assert_eq!(counts(&of_one, VECADD), [100 + calls, 1]);
        }
        assert_eq!(fs::read(&file).unwrap(), contents);
        fs::remove_file(&file).unwrap();
        let beside = raw_profiles(directory.path());
        assert_eq!(beside.len(), 2, "{beside:?}");
        assert_eq!(counts(&merged(directory.path()), VECADD), [210, 2]);
        beside.iter().for_each(|it| fs::remove_file(it).unwrap());
    }
}

/// Threads of one process share fcntl's locks, which are the process's: what this shows is that
/// creating and replacing is safe. Processes are in the whole-program tests.
#[test]
fn only_one_of_many_creates_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    let device = || {
        let device = loaded();
        device.count(FIRST, VECADD, &[1, 1]);
        device
    };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let outcome = Session::default().drain(&device(), &name);
                assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
            });
        }
    });
    assert_eq!(raw_profiles(directory.path()).len(), 1);
    merged(directory.path());
}
