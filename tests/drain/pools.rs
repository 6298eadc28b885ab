//! `%m`: one file that everybody adds to.

use std::fs;
use std::thread;

use rocov::drain::Session;

use crate::support::profile::raw_profiles;
use crate::{FIRST, VECADD, counts, loaded, merged, profile_name};

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
fn a_pool_of_other_code_or_damaged_is_left_alone_and_named() {
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
        let outcome = Session::default().drain(&device, &name);
        let [loss] = outcome.losses.as_slice() else {
            panic!("{:?}", outcome.losses)
        };
        let line = loss.to_string();
        assert!(
            line.contains(&format!("cannot add to {}: ", file.display())),
            "{line}"
        );
        assert!(line.contains(why), "{line}");
        assert_eq!(fs::read(&file).unwrap(), contents);
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
