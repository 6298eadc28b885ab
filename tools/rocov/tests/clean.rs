//! `rocov clean`, on directories that the tests make up.

#[path = "common/mod.rs"]
mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use common::{failure, rocov, run, stderr, stdout};

/// The first bytes of raw and indexed profiles, by `InstrProfData.inc` and `InstrProf.h` of LLVM 22.
const RAW: &[u8] = b"\x81rforpl\xff";
const INDEXED: &[u8] = b"\xfflprofi\x81";
const ELF: &[u8] = b"\x7fELF";

/// The files that rocov writes, with their starts.
const OWN: [(&str, &[u8]); 13] = [
    ("profraw/gfx90a.aa.0.4711.profraw", RAW),
    ("profraw/gfx90a.aa.0.zero.profraw", RAW),
    (
        "profraw/labels/unit%20tests/.add/gfx90a.aa.0.4711.profraw",
        RAW,
    ),
    ("profraw/4711.profraw", RAW),
    ("profraw/pooled-host.profdata", INDEXED),
    ("objects/gfx90a.aa.elf", ELF),
    ("registry/4711.kernels.json", b"{\"rocov_registry\":1,"),
    ("sections/gfx90a.aa.0.4711.3.sections", b"rocovsec"),
    ("7/profraw/gfx90a.aa.0.4711.profraw", RAW),
    ("gfx90a.profdata", INDEXED),
    ("host.profdata", INDEXED),
    ("rocpd.db", b"SQLite format 3\0"),
    (".rocov-00000000-abandoned", b""),
];

/// Files that only look like them.
const FOREIGN: [(&str, &[u8]); 16] = [
    ("notes.txt", b""),
    ("profraw/app.profraw", RAW),
    ("profraw/12.profraw", b"mine"),
    ("profraw/gfx90a.bb.0.12.profraw", b"mine"),
    ("4711.profraw", RAW),
    ("gfx90a.aa.elf", ELF),
    ("objects/gfx90a.mine.elf", ELF),
    ("objects/gfx90a.bb.elf", b"mine"),
    ("mine/x.kernels.json", b"{\"mine\": 1}"),
    ("mine/rocpd.db", b"SQLite format 3\0"),
    ("mine/profraw/12.profraw", RAW),
    ("all.profdata", INDEXED),
    ("gfx942.profdata", b"mine"),
    ("sections/gfx90a.aa.0.1.3.sections", b"mine"),
    (".hidden/gfx90a.aa.0.4711.profraw", RAW),
    ("report/index.html", b""),
];

struct Place(TempDir);

impl Place {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, contents) in files {
            let path = place.path().join("data").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, contents).unwrap();
            let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3601);
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(hour_ago).unwrap();
        }
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn clean(&self, arguments: &[&str]) -> Command {
        let mut command = rocov();
        command
            .current_dir(self.path())
            .arg("clean")
            .args(arguments);
        command
    }

    /// All files below, by their paths in the data directory.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut directories = vec![self.path().join("data")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap().is_dir() {
                    true => directories.push(entry.path()),
                    false => files.push(entry.path()),
                }
            }
        }
        let data = self.path().join("data");
        let names = files
            .iter()
            .map(|it| it.strip_prefix(&data).unwrap().to_str().unwrap());
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort();
        names
    }
}

fn sorted(files: &[(&str, &[u8])]) -> Vec<String> {
    let mut names: Vec<_> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_directory_of_rocovs_goes_as_a_whole() {
    let place = Place::with(&OWN);
    let said = stdout(&run(&mut place.clean(&["data"])));
    assert_eq!(
        said,
        "data: removed 1 database, 1 device ELF, 1 file of sections, 1 kernel registry, 3 merged \
         profiles, 4 profiles, 1 profile of host code, 1 unfinished file\n"
    );
    assert!(!place.path().join("data").exists());
    let said = stdout(&run(&mut place.clean(&["data"])));
    assert_eq!(said, "data: nothing of rocov's is there\n");
}

#[test]
fn what_rocov_did_not_write_stays() {
    let place = Place::with(&[&OWN[..], &FOREIGN].concat());
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("gfx90a.aa.0.1.profraw"), RAW).unwrap();
    symlink(&elsewhere, place.path().join("data/profraw/link")).unwrap();
    let target = elsewhere.join("gfx90a.aa.0.1.profraw");
    let link = "profraw/gfx90a.aa.0.9.profraw";
    symlink(&target, place.path().join("data").join(link)).unwrap();
    for empty in ["empty", "mine/objects", "mine/labels/x"] {
        fs::create_dir_all(place.path().join("data").join(empty)).unwrap();
    }

    // A dry run says the same, and removes nothing.
    let before = place.files();
    let said = stdout(&run(&mut place.clean(&["--dry-run", "data"])));
    assert_eq!(place.files(), before);
    let listed: Vec<_> = said
        .lines()
        .filter_map(|it| it.strip_prefix("data/"))
        .collect();
    let mut listed: Vec<_> = listed.into_iter().map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, sorted(&OWN));

    let output = run(&mut place.clean(&["data"]));
    assert!(
        stdout(&output).contains("not data of a run"),
        "{}",
        stdout(&output)
    );
    let mut expected = sorted(&FOREIGN);
    expected.extend(["profraw/link".to_owned(), link.to_owned()]);
    expected.sort();
    assert_eq!(place.files(), expected);
    assert!(target.exists());
    for empty in ["data/empty", "data/mine/objects", "data/mine/labels/x"] {
        assert!(place.path().join(empty).exists(), "{empty}");
    }
    for gone in ["data/registry", "data/7", "data/profraw/labels"] {
        assert!(!place.path().join(gone).exists(), "{gone}");
    }
}

#[test]
fn what_lies_beside_an_own_pattern_goes_too() {
    let place = Place::with(&[("gfx90a.aa.0.x.profraw", RAW), ("notes.txt", b"")]);
    let registry = |directory: &str| -> PathBuf {
        let path = place.path().join(directory).join("registry/x.kernels.json");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{\"rocov_registry\":1}").unwrap();
        path
    };
    let [mine, hidden, other] = ["data.rocov", ".rocov/data", ".rocov/other"].map(registry);
    run(&mut place.clean(&["data"]));
    assert_eq!(place.files(), ["notes.txt"]);
    assert!(!mine.exists() && !hidden.exists() && other.exists());
    run(&mut place.clean(&["other"]));
    assert!(!place.path().join(".rocov").exists());
}

#[test]
fn what_is_not_done_is_told() {
    let place = Place::with(&[("profraw/gfx90a.aa.0.1.profraw", RAW)]);
    symlink("data", place.path().join("link")).unwrap();
    let message = failure(&place.clean(&["link"]).output().unwrap(), 1);
    assert!(message.contains("link is a symbolic link"), "{message}");
    fs::write(place.path().join("file"), "").unwrap();
    let message = failure(&place.clean(&["file"]).output().unwrap(), 1);
    assert!(message.contains("file is not a directory"), "{message}");

    // Another process writes it now.
    let partial = format!("{}x", rocov::store::partial_prefix());
    let partial = place.path().join("data/profraw").join(partial);
    let file = fs::File::create(&partial).unwrap();
    assert!(rocov::store::hold(&file));
    let output = place.clean(&["data"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("another process may still write it"),
        "{}",
        stderr(&output)
    );
    assert!(partial.exists());
}

#[test]
fn the_cache_goes_only_if_it_is_named() {
    let place = Place::with(&[("profraw/gfx90a.aa.0.1.profraw", RAW)]);
    let caches = place.path().join("caches");
    let entries = caches.join("rocov/device-code");
    fs::create_dir_all(&entries).unwrap();
    for name in ["aa.1.2_000000003.json", "bb.1.2_000000003.json"] {
        fs::write(entries.join(name), "{}").unwrap();
    }
    fs::write(caches.join("other"), "").unwrap();
    let clean = |arguments: &[&str]| {
        let output = place
            .clean(arguments)
            .env("XDG_CACHE_HOME", &caches)
            .output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let listed = clean(&["--cache", "--dry-run"]);
    assert_eq!(listed.matches("_000000003.json\n").count(), 2, "{listed}");
    assert!(
        listed.ends_with("device-code: would remove 2 cache entries\n"),
        "{listed}"
    );
    clean(&["data"]);
    assert_eq!(fs::read_dir(&entries).unwrap().count(), 2);
    let removed = clean(&["--cache"]);
    assert!(
        removed.ends_with("device-code: removed 2 cache entries\n"),
        "{removed}"
    );
    let left: Vec<_> = fs::read_dir(&caches).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(clean(&["--cache"]).ends_with("device-code: nothing of rocov's is there\n"));
    // A relative path counts as none (XDG Base Directory Specification).
    let mut relative = place.clean(&["--cache"]);
    relative.env("XDG_CACHE_HOME", "caches").env_remove("HOME");
    let message = failure(&relative.output().unwrap(), 1);
    assert!(
        message.contains("set HOME or XDG_CACHE_HOME to an absolute path"),
        "{message}"
    );
}
