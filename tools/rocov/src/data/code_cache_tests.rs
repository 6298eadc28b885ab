//! Entries that are whole, damaged, planted or no files.

use std::cell::Cell;

use super::*;

/// A cache, a host file, and the number of looks at it.
struct Tried {
    directory: tempfile::TempDir,
    cache: CodeCache,
    looks: Cell<usize>,
}

impl Tried {
    fn new(max: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("library.so"), "code").unwrap();
        Self {
            cache: CodeCache {
                directory: Some(directory.path().join("cache/rocov")),
                max,
            },
            directory,
            looks: Cell::new(0),
        }
    }

    fn find(&self, build: &str) -> usize {
        let file = fs::metadata(self.directory.path().join("library.so")).unwrap();
        self.cache.find_or(
            build,
            &file,
            |_| true,
            || {
                self.looks.set(self.looks.get() + 1);
                HostCode::default()
            },
        );
        self.looks.get()
    }

    /// Checks that the one entry is written again, and is read then. `what` is wrong with it.
    fn is_written_anew(&self, what: &str) {
        let before = self.looks.get();
        assert_eq!(self.find("aa"), before + 1, "{what}");
        assert_eq!(self.find("aa"), before + 1, "{what}");
    }

    fn entries(&self) -> Vec<PathBuf> {
        self.cache.entries().collect()
    }
}

#[test]
fn a_file_is_looked_at_once_until_it_changes() {
    let tried = Tried::new(MAX);
    assert_eq!((tried.find("aa"), tried.find("aa")), (1, 1));
    fs::write(tried.directory.path().join("library.so"), "other code").unwrap();
    assert_eq!((tried.find("aa"), tried.find("aa")), (2, 2));
    assert_eq!(tried.find("bb"), 3);
}

#[test]
fn a_damaged_entry_is_written_anew() {
    let tried = Tried::new(MAX);
    tried.find("aa");
    let entries = tried.entries();
    let whole = fs::read(&entries[0]).unwrap();
    let other = String::from_utf8(whole.clone())
        .unwrap()
        .replace("\"rocov_device_code\":4", "\"rocov_device_code\":5");
    for damaged in [&whole[..whole.len() / 2], b"", other.as_bytes()] {
        let before = tried.looks.get();
        fs::write(&entries[0], damaged).unwrap();
        assert_eq!(tried.find("aa"), before + 1);
        assert_eq!(fs::read(&entries[0]).unwrap(), whole);
        assert_eq!(tried.find("aa"), before + 1);
    }
}

#[test]
fn an_entry_that_was_changed_or_moved_is_written_anew() {
    let tried = Tried::new(MAX);
    tried.find("aa");
    let entry = tried.entries().remove(0);
    let whole = fs::read_to_string(&entry).unwrap();
    let earlier = "{\"rocov_device_code\":3,\"code\":{\"containers\":[],\"ptx\":[]}}";
    let changed = whole.replace("\"ptx\":[]", "\"ptx\":[[]]");
    let unhashed =
        "{\"rocov_device_code\":4,\"hash\":\"\",\"code\":{\"containers\":[],\"ptx\":[]}}";
    for planted in [earlier, &changed, unhashed] {
        assert_ne!(planted, whole);
        fs::write(&entry, planted).unwrap();
        tried.is_written_anew(planted);
    }
    tried.find("bb");
    let other = tried.entries().into_iter().find(|other| *other != entry);
    fs::copy(other.unwrap(), &entry).unwrap();
    tried.is_written_anew("another entry");
    assert_eq!(fs::read_to_string(&entry).unwrap(), whole);
}

#[test]
fn an_entry_that_does_not_fit_is_written_anew() {
    let tried = Tried::new(MAX);
    tried.find("aa");
    let file = fs::metadata(tried.directory.path().join("library.so")).unwrap();
    let looks = Cell::new(0);
    let look = || {
        looks.set(looks.get() + 1);
        HostCode::default()
    };
    tried.cache.find_or("aa", &file, |_| false, look);
    assert_eq!(looks.get(), 1);
}

#[test]
fn what_others_can_have_written_is_not_believed() {
    const FOREIGN: u32 = 4242;
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let tried = Tried::new(MAX);
    tried.find("aa");
    let entry = tried.entries().remove(0);
    let directory = entry.parent().unwrap().to_owned();
    assert_eq!(fs::metadata(&entry).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    for writable in [0o620, 0o602, 0o666] {
        mode(&entry, writable);
        tried.is_written_anew("a mode");
    }
    fs::rename(&entry, directory.join("other")).unwrap();
    std::os::unix::fs::symlink("other", &entry).unwrap();
    tried.is_written_anew("a link");
    mode(&directory, 0o777);
    let before = tried.looks.get();
    tried.find("aa");
    assert_eq!(tried.looks.get(), before, "others lose the right first");
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    let give = |path: &Path| std::os::unix::fs::chown(path, Some(FOREIGN), None).is_ok();
    // Only root can give files away.
    if give(&entry) {
        tried.is_written_anew("an owner");
        assert_eq!(fs::metadata(&entry).unwrap().uid(), user());
        assert!(give(&directory));
        let before = tried.looks.get();
        tried.find("aa");
        assert_eq!(tried.find("aa"), before + 2, "there is no cache");
    }
}

#[test]
fn pipes_devices_and_endless_files_are_no_entries() {
    let tried = Tried::new(MAX);
    tried.find("aa");
    let entry = tried.entries().remove(0);
    let put: [&dyn Fn(); 4] = [
        &|| {
            let made = std::process::Command::new("mkfifo").arg(&entry).status();
            assert!(made.unwrap().success());
        },
        &|| std::os::unix::fs::symlink("/dev/zero", &entry).unwrap(),
        &|| {
            let sparse = fs::File::create_new(&entry).unwrap();
            sparse.set_len(20 << 30).unwrap();
        },
        &|| fs::create_dir(&entry).unwrap(),
    ];
    for (number, put) in put.iter().enumerate() {
        fs::remove_file(&entry).unwrap();
        put();
        match entry.is_dir() {
            // It cannot be replaced.
            true => _ = tried.find("aa"),
            false => tried.is_written_anew(&number.to_string()),
        }
    }
}

#[test]
fn the_oldest_entries_go_first() {
    let tried = Tried::new(MAX);
    tried.find("aa");
    let size = fs::metadata(&tried.entries()[0]).unwrap().len();
    let tried = Tried::new(3 * size);
    for build in ["aa", "bb", "cc", "dd", "ee"] {
        tried.find(build);
        // The clock of files has coarse steps.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let entries = tried.entries();
    let has = |build: &str| {
        let mut names = entries
            .iter()
            .filter_map(|entry| entry.file_name()?.to_str());
        names.any(|name| name.starts_with(build))
    };
    let left = ["aa", "bb", "cc", "dd", "ee"].map(has);
    assert_eq!(left, [false, false, true, true, true], "{entries:?}");
}

#[test]
fn without_a_place_there_is_no_cache() {
    let mut tried = Tried::new(MAX);
    // No file can be made below a file.
    tried.cache.directory = Some(tried.directory.path().join("library.so/rocov"));
    assert_eq!((tried.find("aa"), tried.find("aa")), (1, 2));
    tried.cache.directory = None;
    assert_eq!((tried.find("aa"), tried.find("aa")), (3, 4));
}
