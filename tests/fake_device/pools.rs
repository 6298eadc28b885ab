//! `%m`: one file to which all processes add.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use rocov::drain::Session;
use rocov::format::profraw::{Parts, ProfileError, RawProfile, Sum, Version, Word, encode};
use rocov::format::sections::PerSection;
use rocov::settings::{DocumentWhen, Keeping, ObjectsKept};
use rocov::store::{Keeper, Process, ProfileName, add_to_pool};
use rocov::support::diagnostic::Remedy;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::profile::raw_profiles;
use crate::{FIRST, VECADD, counts, loaded, merged, merged_of, profile_name};

/// Adds the counts of a process with this number of calls, which must go into the pool.
fn add(calls: u64, name: &ProfileName) {
    let device = loaded();
    device.count(FIRST, VECADD, &[calls, 1]);
    let outcome = Session::default().drain(&device, name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
}

/// Profiles that differ from `profile` only in a function's hash: one file of a process, and one
/// pool.
fn profiles_of_other_code(profile: &[u8], directory: &Path) -> [Vec<u8>; 2] {
    let RawProfile {
        header, sections, ..
    } = RawProfile::parse(profile).unwrap();
    let mut records = profile[sections.data].to_vec();
    records[8] ^= 1;
    let parts = Parts {
        version: *header.version(),
        build_id: None,
        sections: PerSection {
            data: &records,
            counters: &profile[sections.counters],
            bitmap: &[],
            uniform: &[],
            names: &profile[sections.names],
        },
        names_address: header.word(Word::NamesDelta),
    };
    let path = directory.join("other");
    add_to_pool(&path, &parts).unwrap();
    let pool = fs::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    assert_eq!(pool.len(), profile.len());
    [encode(&parts), pool]
}

/// The places of a pool's counts, the current ones first.
fn halves(pool: &[u8]) -> [Range<usize>; 2] {
    let profile = RawProfile::parse(pool).unwrap();
    let len = (profile.sections.names.start - profile.sections.data.end) / 2;
    let middle = profile.sections.data.end + len;
    let halves = [
        profile.sections.data.end..middle,
        middle..profile.sections.names.start,
    ];
    if profile.sections.counters.start < middle {
        halves
    } else {
        let [first, second] = halves;
        [second, first]
    }
}

#[test]
fn sessions_add_up_in_one_file_and_drain_again_without_doubling() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    // Sessions stand for processes that do not know each other.
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

/// Puts an object at a path.
type Put = fn(&Path);

#[test]
fn what_is_no_file_is_left_alone_and_counts_and_registry_are_beside_it() {
    let put: [(&str, Put); 5] = [
        ("a symbolic link", |at| symlink("nowhere", at).unwrap()),
        ("a symbolic link", |at| {
            let elsewhere = at.with_extension("elsewhere");
            fs::copy(at.with_extension("good"), &elsewhere).unwrap();
            symlink(&elsewhere, at).unwrap();
        }),
        ("a pipe", |at| {
            mknodat(CWD, at, FileType::Fifo, Mode::RWXU, 0).unwrap()
        }),
        ("a socket", |at| drop(UnixListener::bind(at).unwrap())),
        ("a directory", |at| fs::create_dir(at).unwrap()),
    ];
    for (found, put) in put {
        let directory = tempfile::tempdir().unwrap();
        let name = profile_name(directory.path(), "%m.profraw");
        let keeping = Keeping {
            document: DocumentWhen::Always,
            objects: ObjectsKept::None,
            objects_max: 0,
        };
        let run = || {
            let keeper = Keeper::new(keeping, Process::default(), &name);
            let mut session = Session::default().with_keeper(keeper);
            let device = loaded();
            session.loaded(&device, FIRST).unwrap();
            device.count(FIRST, VECADD, &[3, 1]);
            let mut outcome = session.drain(&device, &name);
            outcome.not_kept.extend(session.keep(&name));
            outcome
        };
        let pools = [run().files[0].clone(), name.for_registry()];
        for pool in &pools {
            fs::rename(pool, pool.with_extension("good")).unwrap();
            put(pool);
        }
        let outcome = run();
        let [loss] = outcome.losses.as_slice() else {
            panic!("{:?}", outcome.losses)
        };
        let [not_kept] = outcome.not_kept.as_slice() else {
            panic!("{:?}", outcome.not_kept)
        };
        let said = |pool: &Path| {
            let pool = pool.display();
            format!("cannot add to {pool}: it is {found}, not a regular file; the ")
        };
        let beside = outcome.files[0].display();
        let line = loss.to_string();
        let next = format!("move {} away", pools[0].display());
        let expected = format!("{}counts are in {beside}; {next}", said(&pools[0]));
        assert!(line.ends_with(&expected), "{line}");
        let line = not_kept.diagnostic().to_string();
        let beside = directory
            .path()
            .join(format!("registry/0.{}.kernels.json", std::process::id()));
        let expected = format!(
            "{}registry is in {}; move {} away",
            said(&pools[1]),
            beside.display(),
            pools[1].display()
        );
        assert_eq!(line, expected);
        assert!(beside.exists());
        assert_eq!(
            counts(&merged_of(&outcome.files, directory.path()), VECADD),
            [3, 1]
        );
        for pool in &pools {
            assert!(!fs::symlink_metadata(pool).unwrap().is_file());
            let [good, elsewhere] = ["good", "elsewhere"].map(|path| pool.with_extension(path));
            if elsewhere.exists() {
                assert_eq!(fs::read(elsewhere).unwrap(), fs::read(good).unwrap());
            }
        }
    }
}

#[test]
fn a_pool_of_other_code_or_damaged_is_left_alone_and_counts_are_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    let device = loaded();
    device.count(FIRST, VECADD, &[5, 1]);
    let file = Session::default().drain(&device, &name).files[0].clone();
    let good = fs::read(&file).unwrap();
    let [other, other_pool] = profiles_of_other_code(&good, directory.path());
    let changed = |places: &mut dyn Iterator<Item = usize>| {
        let mut bytes = good.clone();
        places.for_each(|at| bytes[at] = 99);
        bytes
    };
    let other_code = "it is a profile of other code, although its name says otherwise";
    for (contents, why) in [
        (
            good[..good.len() - 9].to_vec(),
            "raw profile is cut short: names should end at byte",
        ),
        (
            b"something else entirely".to_vec(),
            "not a raw profile: magic 0x6e69687465",
        ),
        (
            changed(&mut (8..12)),
            "unknown raw profile version 1667457891, expected 8 to 11",
        ),
        (
            changed(&mut halves(&good).into_iter().flatten()),
            "its counts are incomplete",
        ),
        (other, other_code),
        (other_pool, other_code),
    ] {
        fs::write(&file, &contents).unwrap();
        // Sessions stand for processes, here with one process id.
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
            let end = format!(
                "; the counts are in {}; move {} away",
                beside.display(),
                file.display()
            );
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
        beside
            .iter()
            .for_each(|profile| fs::remove_file(profile).unwrap());
    }
}

#[test]
fn counts_are_added_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    add(5, &name);
    let file = raw_profiles(directory.path())[0].clone();
    let same = || {
        let metadata = fs::metadata(&file).unwrap();
        (metadata.ino(), metadata.len())
    };
    let first = same();
    for (calls, sum) in [(7, 12), (100, 112), (1, 113)] {
        add(calls, &name);
        assert_eq!(same(), first);
        assert_eq!(counts(&merged(directory.path()), VECADD)[0], sum);
    }
}

#[test]
fn a_file_of_one_process_is_added_to_and_in_place_from_then_on() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    // The future name of the pool.
    add(5, &profile_name(directory.path(), "app-0.profraw"));
    let file = raw_profiles(directory.path())[0].clone();
    let plain = fs::metadata(&file).unwrap().len();
    add(7, &name);
    let pooled = fs::metadata(&file).unwrap();
    assert!(pooled.len() > plain);
    add(1, &name);
    assert_eq!(fs::metadata(&file).unwrap().ino(), pooled.ino());
    assert_eq!(raw_profiles(directory.path()), [file]);
    assert_eq!(counts(&merged(directory.path()), VECADD), [13, 3]);
}

#[test]
fn writes_that_were_cut_off_cost_nothing_that_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    add(5, &name);
    let file = raw_profiles(directory.path())[0].clone();
    let before = fs::read(&file).unwrap();
    add(7, &name);
    let after = fs::read(&file).unwrap();
    let [new, old] = halves(&after);

    // A process died after it wrote a part of the sums, but not the header.
    let mut cut = before.clone();
    let middle = new.start + new.len() / 2;
    cut[new.start..middle].copy_from_slice(&after[new.start..middle]);
    // The machine crashed: the disk has the header, but not the sums.
    let mut lost = after.clone();
    lost[new].fill(0);
    assert_eq!(lost[old.clone()], before[old]);
    // A reader gets the error, and does not take the wrong sums for the current ones.
    let mut sum = Sum::new(before.clone()).expect("a pool");
    assert_eq!(sum.add(&lost), Err(ProfileError::NotWhole));
    sum.add(&cut).expect("the old sums are in force");
    for contents in [cut, lost] {
        fs::write(&file, contents).unwrap();
        add(100, &name);
        assert_eq!(counts(&merged(directory.path()), VECADD), [105, 2]);
        add(1000, &name);
        assert_eq!(counts(&merged(directory.path()), VECADD), [1105, 3]);
    }
}

/// fcntl's locks belong to the process, so its threads exclude each other with another lock.
/// [`crate::processes`] tests processes.
#[test]
fn threads_add_to_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let name = profile_name(directory.path(), "app-%m.profraw");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..100).for_each(|_| add(1, &name)));
        }
    });
    assert_eq!(raw_profiles(directory.path()).len(), 1);
    assert_eq!(counts(&merged(directory.path()), VECADD), [800, 800]);
}

#[test]
fn functions_that_ran_in_one_process_only_give_a_pool_their_size_of_waves() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pool");
    let profile = |sizes: [u16; 2], counts: [u64; 2], made: &mut dyn FnMut(&Parts<'_>)| {
        let records = [1_u64, 2].into_iter().zip(sizes).map(|(name, size)| {
            let mut record = [0; 72];
            record[..8].copy_from_slice(&name.to_le_bytes());
            // OffloadDeviceWaveSize, after NumValueSites[3].
            record[66..68].copy_from_slice(&size.to_le_bytes());
            record
        });
        made(&Parts {
            version: Version::from_word(11).unwrap(),
            build_id: None,
            sections: PerSection {
                data: &records.collect::<Vec<_>>().concat(),
                counters: &counts.map(u64::to_le_bytes).concat(),
                names: b"names",
                ..PerSection::default()
            },
            names_address: 0,
        });
    };
    let add = &mut |parts: &Parts<'_>| add_to_pool(&path, parts).unwrap();
    profile([64, 0], [5, 0], add);
    let made = fs::metadata(&path).unwrap().ino();
    profile([0, 64], [0, 7], add);
    assert_eq!(made, fs::metadata(&path).unwrap().ino(), "added in place");
    let sum = Sum::new(fs::read(&path).unwrap()).unwrap();
    profile([64, 64], [5, 7], &mut |expected| {
        assert_eq!(sum.bytes(), encode(expected));
    });
}
