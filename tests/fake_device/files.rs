//! Failing file systems: one line names the file, no file is torn, and the other files are
//! complete.

use std::fs;
use std::path::Path;
use std::process::Command;

use rocov::drain::Session;

use crate::support::command::run;
use crate::support::fake_device::FakeDevice;
use crate::support::profile::raw_profiles;
use crate::{FIRST, SECOND, VECADD, collatz, counts, loaded, merged, profile_name};

/// A small separate file system, mounted on a directory and removed with it.
pub(crate) struct Mounted(tempfile::TempDir);

impl Mounted {
    pub(crate) fn new(options: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new("mount");
        command
            .args(["-t", "tmpfs", "-o", options, "rocov-test"])
            .arg(directory.path());
        run(&mut command).success();
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(Command::new("umount").arg(self.path())).success();
    }
}

/// Loaded and counted vecadd and collatz.
fn two() -> FakeDevice {
    let mut device = loaded();
    device.load(SECOND, 0, &collatz());
    device.count(FIRST, VECADD, &[3, 2]);
    device
}

/// The only line about a drain to `name` that failed for every code object.
fn the_line(directory: &Path, pattern: &str, objects: usize) -> String {
    let outcome = Session::default().drain(&two(), &profile_name(directory, pattern));
    assert_eq!(
        (outcome.files.len(), outcome.losses.len()),
        (0, objects),
        "{:?}",
        outcome.losses
    );
    outcome.losses[0].to_string()
}

#[test]
fn a_read_only_directory_is_named() {
    let mounted = Mounted::new("ro,size=64k");
    let line = the_line(mounted.path(), "app.profraw", 2);
    let expected = format!(
        "cannot make the directory {}/profraw: ",
        mounted.path().display()
    );
    assert!(line.contains(&expected), "{line}");
    assert!(
        line.ends_with("Read-only file system (os error 30); choose a place that is not read-only, and run the program again"),
        "{line}"
    );
    let line = the_line(mounted.path(), "new/app.profraw", 2);
    let expected = format!(
        "cannot make the directory {}/profraw/new: ",
        mounted.path().display()
    );
    assert!(line.contains(&expected), "{line}");
}

#[test]
fn a_full_disk_tears_nothing() {
    let mounted = Mounted::new("size=16k");
    let name = profile_name(mounted.path(), "app.profraw");
    let device = two();
    let mut session = Session::default();
    let before = session.drain(&device, &name);
    assert_eq!(before.files.len(), 2, "{:?}", before.losses);
    // Fill the disk, so that no new file has room.
    let mut filler = Command::new("dd");
    filler
        .args(["if=/dev/zero", "bs=4k"])
        .arg(format!("of={}/filler", mounted.path().display()));
    assert!(
        !run(&mut filler).status.success(),
        "the disk should be full"
    );

    device.count(FIRST, VECADD, &[10, 10]);
    let outcome = session.drain(&device, &name);
    let [loss] = outcome.losses.as_slice() else {
        panic!("{:?}", outcome.losses)
    };
    let line = loss.to_string();
    assert!(
        line.ends_with(
            "No space left on device (os error 28); make room, and run the program again"
        ),
        "{line}"
    );
    let profiles = fs::read_dir(mounted.path().join("profraw"));
    assert_eq!(profiles.unwrap().count(), 2, "no temporary file is left");
    let elsewhere = tempfile::tempdir().unwrap();
    for file in raw_profiles(mounted.path()) {
        fs::copy(&file, elsewhere.path().join(file.file_name().unwrap())).unwrap();
    }
    assert_eq!(
        counts(&merged(elsewhere.path()), VECADD),
        [3, 2],
        "the old file is whole"
    );

    fs::remove_file(mounted.path().join("filler")).unwrap();
    assert!(session.drain(&device, &name).losses.is_empty());
    let _ = fs::remove_dir_all(elsewhere.path());
    fs::create_dir(elsewhere.path()).unwrap();
    for file in raw_profiles(mounted.path()) {
        fs::copy(&file, elsewhere.path().join(file.file_name().unwrap())).unwrap();
    }
    assert_eq!(counts(&merged(elsewhere.path()), VECADD), [13, 12]);
}

#[test]
fn a_name_that_is_too_long_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let line = the_line(directory.path(), &"x".repeat(240), 2);
    assert!(
        line.contains("File name too long (os error 36); "),
        "{line}"
    );
    let profiles = fs::read_dir(directory.path().join("profraw"));
    assert_eq!(profiles.unwrap().count(), 0);
}

#[test]
fn a_file_where_a_directory_should_be_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("profraw");
    fs::write(&file, "mine").unwrap();
    let line = the_line(directory.path(), "app.profraw", 2);
    assert!(
        line.contains(&format!("cannot make the directory {}: ", file.display())),
        "{line}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}
