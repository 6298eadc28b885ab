use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

fn cache(directory: &Path, most: u64) -> InstrumentCache {
    InstrumentCache {
        directory: directory.to_owned(),
        most,
        unchecked: AtomicU64::new(u64::MAX),
    }
}

/// The owner of new files.
fn user() -> u32 {
    tempfile::tempfile().unwrap().metadata().unwrap().uid()
}

fn read(entry: &Path) -> Option<Vec<u8>> {
    InstrumentCache::read(entry, user())
}

/// Dates the last use of a file.
fn used(path: &Path, second: u64) {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    let times = fs::FileTimes::new().set_accessed(at).set_modified(at);
    let file = File::open(path).unwrap();
    file.set_times(times).unwrap();
}

#[test]
fn the_environment_names_the_place() {
    for (variables, place) in [
        (
            &[("ROCOV_CACHE", "/own"), ("HOME", "/home")][..],
            Some("/own"),
        ),
        (&[("ROCOV_CACHE", "own"), ("HOME", "/home")], None),
        (
            &[("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home")],
            Some("/xdg/rocov"),
        ),
        (
            &[("XDG_CACHE_HOME", "xdg"), ("HOME", "/home")],
            Some("/home/.cache/rocov"),
        ),
        (&[("XDG_CACHE_HOME", "xdg"), ("HOME", "home")], None),
        (&[], None),
    ] {
        let variable = |name: &str| {
            let found = variables.iter().find(|variable| variable.0 == name);
            found.map(|found| found.1.into())
        };
        let found = InstrumentCache::from_environment(variable);
        let found = found.as_ref().map(InstrumentCache::directory);
        assert_eq!(found, place.map(Path::new), "{variables:?}");
    }
}

#[test]
fn what_was_not_used_for_long_goes_first_in_each_folder() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path(), 300);
    let key = |number: u128| cache.code(number);
    let source = |number: u128| cache.source(&number.to_le_bytes());
    let places: [(CacheFolder, &dyn Fn(u128) -> PathBuf); 2] =
        [(CacheFolder::Code, &key), (CacheFolder::Sources, &source)];
    for (folder, place) in places {
        for number in 0..3 {
            cache.write(folder, &place(number), &[0; 100]).unwrap();
            used(&place(number), number as u64);
        }
        let foreign = place(0).with_file_name("notes");
        fs::write(&foreign, [0; 1000]).unwrap();
        assert_eq!(read(&place(0)).unwrap(), [0; 100]);
        assert!(cache.write(folder, &place(3), &[1; 100]).unwrap());
        let left: Vec<bool> = (0..4).map(|number| place(number).exists()).collect();
        assert_eq!(left, [true, false, true, true], "{folder:?}");
        assert!(!cache.write(folder, &place(4), &[0; 301]).unwrap());
        assert_eq!(read(&place(4)), None, "it is larger than the folder");
        assert!(foreign.exists() && place(3).exists());
    }
}

#[test]
fn results_of_triton_go_if_no_other_run_uses_them() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path(), 18_000);
    let triton = directory.path().join("triton");
    let kernel = |release: &str, key: &str| triton.join(release).join(key);
    let written = [
        ("0.1.0-1", "AA", 1),
        ("0.1.0-2", "BB", 3),
        ("0.1.0-2", "CC", 2),
    ];
    for (release, key, second) in written {
        let kernel = kernel(release, key);
        fs::create_dir_all(&kernel).unwrap();
        for file in ["kernel.cubin", "kernel.json"] {
            fs::write(kernel.join(file), [0; 3000]).unwrap();
            used(&kernel.join(file), second);
        }
        used(&kernel, 0);
    }
    let left = || written.map(|(release, key, _)| kernel(release, key).is_dir());
    // Another run.
    let other = File::open(&triton).unwrap();
    other.lock_shared().unwrap();
    let small = self::cache(directory.path(), 1);
    assert!(small.use_triton(Counting::Exact).is_some());
    assert_eq!(left(), [true; 3]);
    drop(other);
    let used = cache.use_triton(Counting::Exact).unwrap();
    assert_eq!(left(), [true; 3], "they are small enough");
    // Its own lock is one that others respect.
    assert!(small.use_triton(Counting::Exact).is_some());
    assert_eq!(left(), [true; 3]);
    drop(used);
    let smaller = InstrumentCache {
        most: cache.most - 1,
        ..cache
    };
    assert!(smaller.use_triton(Counting::Exact).is_some());
    assert_eq!(left(), [false, true, true]);
    assert!(smaller.results_of_triton(Counting::Exact).is_dir());
}

#[test]
fn small_entries_are_looked_at_together() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path(), 1600);
    let write = |key: u128, bytes: usize| {
        let place = cache.code(key);
        cache
            .write(CacheFolder::Code, &place, &vec![1; bytes])
            .unwrap();
        used(&place, key as u64);
    };
    write(1, 1600);
    // 100 bytes, a sixteenth, may be too many.
    write(2, 60);
    assert!(cache.code(1).exists());
    write(3, 60);
    assert!(!cache.code(1).exists());
    assert!(cache.code(2).exists() && cache.code(3).exists());
}

#[test]
fn entries_of_other_users_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path(), 1000);
    let place = cache.code(1);
    cache.write(CacheFolder::Code, &place, b"one").unwrap();
    assert_eq!(read(&place).unwrap(), b"one");
    let by_another = InstrumentCache::read(&place, user() + 1);
    assert_eq!(by_another.is_some(), user() == 0, "root is trusted");
}

/// Somebody who can write to the directory exchanges the entry between a file of the user, which a look at the owner finds
/// right, and one of their own.
#[test]
fn an_entry_that_is_exchanged_meanwhile_is_not_read() {
    const FOREIGN: u32 = 4242;
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path(), 1000);
    let place = cache.code(1);
    cache.write(CacheFolder::Code, &place, b"own").unwrap();
    let beside = |name: &str| place.with_file_name(name);
    fs::write(beside("theirs"), "theirs").unwrap();
    // Without the right to give files away, only links are exchanged.
    let has_owner = chown(beside("theirs"), Some(FOREIGN), None).is_ok();
    let is_done = AtomicBool::new(false);
    let (mut own, mut foreign) = (0, Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let next = beside("next");
            let put = || fs::rename(&next, &place).unwrap();
            while !is_done.load(Ordering::Relaxed) {
                fs::write(&next, "own").unwrap();
                put();
                symlink("/etc/passwd", &next).unwrap();
                put();
                if has_owner {
                    fs::hard_link(beside("theirs"), &next).unwrap();
                    put();
                }
            }
        });
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            match read(&place).as_deref() {
                None => {}
                Some(b"own") => own += 1,
                Some(other) => foreign.push(other.to_vec()),
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(foreign, [b""; 0]);
    assert!(own > 0, "it is read while it is the user's");
}

#[test]
fn an_entry_that_others_can_write_is_written_anew() {
    let directory = tempfile::tempdir().unwrap();
    let cache = cache(directory.path(), 1000);
    let place = cache.code(1);
    cache.write(CacheFolder::Code, &place, b"one").unwrap();
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o600);
    assert_eq!(
        fs::metadata(place.parent().unwrap()).unwrap().mode() & 0o777,
        0o700
    );
    fs::set_permissions(&place, fs::Permissions::from_mode(0o664)).unwrap();
    assert_eq!(read(&place), None);
    cache.write(CacheFolder::Code, &place, b"two").unwrap();
    assert_eq!(read(&place).unwrap(), b"two");
}

#[test]
fn a_place_that_cannot_be_written_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let below_a_file = cache(&file.join("below"), 1000);
    let place = below_a_file.code(1);
    assert!(
        below_a_file
            .write(CacheFolder::Code, &place, b"one")
            .is_err()
    );
    assert_eq!(read(&place), None);
    assert!(below_a_file.use_triton(Counting::Exact).is_none());
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
    let closed = cache(&closed, 1000);
    let written = closed.write(CacheFolder::Code, &closed.code(1), b"one");
    // Root writes everywhere.
    assert_eq!(written.is_ok(), user() == 0);
    assert_eq!(read(&closed.code(1)).is_some(), user() == 0);
    assert_eq!(closed.use_triton(Counting::Exact).is_some(), user() == 0);
}

#[test]
fn several_writers_leave_whole_entries() {
    let directory = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let directory = directory.path();
            scope.spawn(move || {
                // Two of them have room for a few entries only, and remove those of the others.
                let cache = cache(directory, [1 << 20, 250_000][writer % 2]);
                for turn in 0..20_u8 {
                    let place = cache.code(u128::from(turn % 5));
                    let contents = vec![turn % 5; 100_000];
                    cache.write(CacheFolder::Code, &place, &contents).unwrap();
                    let found = read(&place);
                    assert!(found.is_none_or(|found| found == contents));
                }
            });
        }
    });
    let left = cache(directory.path(), 1000).found(CacheFolder::Code);
    assert!(!left.is_empty());
}
