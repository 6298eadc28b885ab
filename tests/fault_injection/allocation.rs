//! Failing allocations: at every allocation of a drain, and for every size above a limit.
//!
//! The drain requests memory of a device-given size in a way that may fail. It then loses that code
//! object with a line, and drains all others. Small allocations then come from a reserve, as in
//! librocov. Each file on disk is the whole old or the whole new one.
//!
//! Each drain runs in a forked child of one process, so that the test can see its end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rocov::device::Executable;
use rocov::drain::Session;
use rocov::format::profraw::RawProfile;
use rocov::store::{PARTIAL, ProfileName};
use rocov::support::reserve::Reserve;
use tempfile::TempDir;

use crate::figure;
use crate::fixture::{Files, files, image, name_in};
use crate::support::artifacts::repository;
use crate::support::command::{limited, run};
use crate::support::compile::code_object_of;
use crate::support::fake_device::FakeDevice;

/// The system's allocator, which fails by script.
struct Failing;

/// The number of allocations that succeed before one fails.
static UNTIL: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Set if all later allocations fail too.
static FOR_GOOD: AtomicBool = AtomicBool::new(false);
/// Allocations with more bytes than this fail.
static LARGEST: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static ALLOCATOR: Reserve<Failing> = Reserve::new(Failing);

impl Failing {
    fn fails(size: usize) -> bool {
        if size > LARGEST.load(Ordering::Relaxed) {
            return true;
        }
        let left = UNTIL.load(Ordering::Relaxed);
        let stays = left == 0 && FOR_GOOD.load(Ordering::Relaxed);
        if left != usize::MAX && !stays {
            UNTIL.store(left.wrapping_sub(1), Ordering::Relaxed);
        }
        left == 0
    }
}

// SAFETY: all results are the system allocator's, or null, which an allocator may always return.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Self::fails(layout.size()) {
            true => std::ptr::null_mut(),
            // SAFETY: the caller's promise.
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Self::fails(layout.size()) {
            true => std::ptr::null_mut(),
            // SAFETY: the caller's promise.
            false => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match Self::fails(size) {
            true => std::ptr::null_mut(),
            // SAFETY: the caller's promise.
            false => unsafe { System.realloc(block, layout, size) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) };
    }
}

/// The end of a child.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ended {
    /// The drain was complete.
    Whole,
    /// The drain reported this number of losses.
    Losses(i32),
    /// The drain ended before the allocation that was to fail.
    Before,
}

/// The exit status of a child that panicked.
const PANICKED: i32 = 101;
/// The exit status for [`Ended::Before`].
const BEFORE: i32 = 100;

/// Runs `drain` in a child with failing allocations; `drain` returns the number of losses.
fn in_child(until: usize, largest: usize, drain: impl FnOnce() -> usize) -> Ended {
    // SAFETY: the process runs only this test, and no other thread does any work. The child ends
    // with `_exit`.
    let child = unsafe { fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        quieten();
        UNTIL.store(until, Ordering::Relaxed);
        LARGEST.store(largest, Ordering::Relaxed);
        let losses = catch_unwind(AssertUnwindSafe(drain));
        let left = UNTIL.load(Ordering::Relaxed);
        let has_failed = left == usize::MAX || left == 0 && FOR_GOOD.load(Ordering::Relaxed);
        let is_before = until != usize::MAX && !has_failed;
        let status = match losses {
            Ok(0) if is_before => BEFORE,
            Ok(losses) => i32::try_from(losses).expect("a few"),
            Err(_) => PANICKED,
        };
        // SAFETY: ends the child.
        unsafe { _exit(status) };
    }
    let mut status = 0;
    // SAFETY: the child is ours, and `status` is writable.
    assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
    match (status & 0x7f, status >> 8) {
        (0, 0) => Ended::Whole,
        (0, BEFORE) => Ended::Before,
        (0, losses) if losses < PANICKED => Ended::Losses(losses),
        _ => panic!("wait status {status:#x} at allocation {until}, at most {largest} bytes"),
    }
}

/// Silences "memory allocation of ... bytes failed", which appears thousands of times.
fn quieten() {
    let null = fs::File::options()
        .write(true)
        .open("/dev/null")
        .expect("/dev/null");
    // SAFETY: both files are open.
    unsafe { dup2(std::os::fd::AsRawFd::as_raw_fd(&null), 2) };
}

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    fn dup2(from: i32, to: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// A process that has drained once and then counted more.
struct Drained<'a> {
    device: FakeDevice,
    session: Session,
    name: &'a ProfileName,
    before: Files,
    /// Links to the files of `before`: a drain replaces only files that it has written itself.
    links: TempDir,
}

const SMALL: Executable = Executable(0x71);
const LARGE: Executable = Executable(0x72);

fn count(device: &FakeDevice, by: u64) {
    for (address, size) in device.counters() {
        let counters = (address..address + size).step_by(8);
        counters.for_each(|at| device.poke(at, &by.to_le_bytes()));
    }
}

impl Drained<'_> {
    fn new<'a>(large: &[u8], name: &'a ProfileName) -> Drained<'a> {
        let mut device = FakeDevice::new(1);
        device.load(SMALL, 0, &image("vecadd"));
        device.load(LARGE, 0, large);
        count(&device, 5);
        let mut session = Session::default();
        let outcome = session.drain(&device, name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        count(&device, 7);
        let directory = name.layout().directory();
        let before = files(directory);
        let links = TempDir::new().expect("a directory can be made");
        for file in before.keys() {
            let link = links.path().join(file);
            fs::create_dir_all(link.parent().expect("a folder")).expect("a folder can be made");
            fs::hard_link(directory.join(file), link).expect("a link can be made");
        }
        Drained {
            device,
            session,
            name,
            before,
            links,
        }
    }

    /// The files of a drain with enough memory.
    fn whole(&mut self) -> Files {
        let (ended, whole) = self.drain(usize::MAX, usize::MAX);
        assert_eq!(ended, Ended::Whole);
        assert_ne!(whole, self.before);
        whole
    }

    /// Drains in a child. Returns its end and its files, then restores the old files.
    fn drain(&mut self, until: usize, largest: usize) -> (Ended, Files) {
        let ended = in_child(until, largest, || {
            self.session.drain(&self.device, self.name).losses.len()
        });
        let directory = self.name.layout().directory();
        let after = files(directory);
        for (name, contents) in &after {
            if self.before.get(name) != Some(contents) {
                fs::remove_file(directory.join(name)).expect("a file can be removed");
            }
        }
        for (name, contents) in &self.before {
            if after.get(name) != Some(contents) {
                let path = directory.join(name);
                let _ = fs::remove_file(&path);
                fs::hard_link(self.links.path().join(name), &path).expect("a link can be made");
                // A pool changes in place.
                fs::write(&path, contents).expect("a file can be written");
            }
        }
        (ended, after)
    }
}

/// Checks that each file of a child is the whole old one or the whole new one.
fn are_whole(before: &Files, whole: &Files, after: &Files, what: &str) {
    for name in before.keys() {
        let found = counts(&after[name]);
        let is_one = found == counts(&before[name]) || found == counts(&whole[name]);
        assert!(is_one, "{what}: {name} is neither");
    }
    for name in after.keys().filter(|name| !before.contains_key(*name)) {
        // A hidden file, which a later run removes.
        assert!(name.starts_with(PARTIAL), "{what}: {name}");
    }
}

/// The current counts: a pool has others next to them.
fn counts(file: &[u8]) -> &[u8] {
    let profile = RawProfile::parse(file).expect("a whole profile");
    &file[profile.sections.counters]
}

#[test]
#[ignore = "runs within the test below, in a process with nothing else"]
fn alone() {
    let source = repository("testdata/faults/many_counters.hip");
    let large = fs::read(code_object_of(&source, "gfx90a", "-O1", 4)).expect("a code object");
    let mut survived = 0;
    for pattern in ["app.profraw", "%m.profraw"] {
        survived += in_new(pattern, &image("collatz"), at_every_allocation);
        survived += in_new(pattern, &large, above_every_size);
    }
    figure("allocation_faults", survived);
}

/// Drains vecadd and another code object into a new directory.
fn in_new(pattern: &str, other: &[u8], run: impl Fn(&mut Drained<'_>) -> usize) -> usize {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let name = name_in(directory.path(), pattern);
    let survived = run(&mut Drained::new(other, &name));
    are_read(directory.path());
    survived
}

fn at_every_allocation(drained: &mut Drained<'_>) -> usize {
    let whole = drained.whole();
    [false, true]
        .map(|for_good| from_each(drained, &whole, for_good))
        .iter()
        .sum()
}

/// Fails each allocation in turn: only that one, or all from there on.
fn from_each(drained: &mut Drained<'_>, whole: &Files, for_good: bool) -> usize {
    FOR_GOOD.store(for_good, Ordering::Relaxed);
    let mut until = 0;
    loop {
        let (ended, after) = drained.drain(until, usize::MAX);
        are_whole(
            &drained.before,
            whole,
            &after,
            &format!("allocation {until}, {ended:?}"),
        );
        match ended {
            Ended::Losses(losses) => assert!(losses == 1 || for_good, "allocation {until}"),
            Ended::Whole => assert_eq!(&after, whole, "allocation {until}"),
            Ended::Before => return until,
        }
        until += 1;
    }
}

/// With each limit, the drain loses the large code object or none, and the process continues.
fn above_every_size(drained: &mut Drained<'_>) -> usize {
    let whole = drained.whole();
    // The decompressor of names takes some 40 KiB, whatever the size of the names.
    let sizes = (16..20).map(|power| 1 << power);
    let mut losses = Vec::new();
    for largest in sizes.clone() {
        let (ended, after) = drained.drain(usize::MAX, largest);
        are_whole(
            &drained.before,
            &whole,
            &after,
            &format!("at most {largest} bytes"),
        );
        let is_new = |name: &&String| after[*name] == whole[*name];
        let new = drained.before.keys().filter(is_new).count();
        match ended {
            Ended::Whole => assert_eq!(new, 2),
            Ended::Losses(1) => assert_eq!(new, 1, "the small one is drained"),
            _ => panic!("at most {largest} bytes: {ended:?}"),
        }
        losses.push(ended != Ended::Whole);
    }
    assert!(losses[0] && !losses[losses.len() - 1], "{losses:?}");
    losses.len()
}

fn are_read(directory: &Path) {
    let profiles = crate::support::profile::raw_profiles(directory);
    let merged = tempfile::tempdir().expect("a temporary directory");
    crate::support::profile::merge(&profiles, &merged.path().join("merged.profdata"));
}

#[test]
fn memory_may_run_out_at_every_allocation() {
    let this = std::env::current_exe().expect("a test knows its own path");
    let mut command = limited(this);
    command.args(["--exact", "allocation::alone"]).args([
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    crate::pass_on_figures(&run(&mut command).success());
}
