//! Copies of counters: each count in a copy comes home once, whatever the requests, and a bad table costs only
//! itself.
//!
//! The tests write words into the areas of testdata/copies/tally.hip, whose source tells where they are.

use std::fs;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use rocov::device::{Device, DeviceError, Executable};
use rocov::drain::{Cause, Idle, Outcome, Scope, Session};
use rocov::format::profraw::SavedSections;
use rocov::format::registry::model::Document;

use crate::kills::keeping;
use crate::support::artifacts::repository;
use crate::support::compile::{clang, code_object_of, device_only};
use crate::support::delegate::{AsDevice, Delegate};
use crate::support::fake_device::{FAILED, FakeDevice};
use crate::support::profile::raw_profiles;
use crate::{FIRST, SECOND, VECADD, counts, merged, output, profile_name, vecadd};

const THIRD: Executable = Executable(0x53);
const TALLY: &str = "_Z5tallyPjj";
const COPIES_SECTION: &str = "__rocov_copies";
/// From one copy to the next, in bytes.
const STRIDE: u64 = 128;
/// The places of the tables in their section.
const SECOND_TABLE: u64 = 48;
const THIRD_TABLE: u64 = 128;
/// The places of words in a table.
const VERSION: u64 = 8;
const START: u64 = 16;
const STOP: u64 = 24;
const RANGE_START: u64 = 32;

/// The counters of `tally` as words of a copy: the second area has them in reverse.
const FIRST_AREA: (&str, [u64; 2]) = ("first_area", [0, 1]);
const SECOND_AREA: (&str, [u64; 2]) = ("second_area", [1, 0]);

fn tally() -> Vec<u8> {
    let source = repository("testdata/copies/tally.hip");
    fs::read(code_object_of(&source, "gfx90a", "-O1", 4)).expect("a compiled code object")
}

fn loaded_of(image: &[u8]) -> FakeDevice {
    let mut device = FakeDevice::new(1);
    device.load(FIRST, 0, image);
    device
}

pub(crate) fn loaded() -> FakeDevice {
    loaded_of(&tally())
}

/// Adds to the counters in a copy, like a kernel.
fn count_in(device: &FakeDevice, (area, order): (&str, [u64; 2]), copy: u64, by: [u64; 2]) {
    let (start, _) = device.find(FIRST, area);
    for (word, more) in order.into_iter().zip(by) {
        let at = start + STRIDE * copy + 8 * word;
        let old = u64::from_le_bytes(device.peek(at, 8).try_into().expect("8 bytes"));
        device.poke(at, &old.wrapping_add(more).to_le_bytes());
    }
}

/// Adds 1111 to the first counter and 222 to the second: in the counters and in five copies of both areas.
fn count_everywhere(device: &FakeDevice) {
    device.count(FIRST, TALLY, &[1, 2]);
    count_in(device, FIRST_AREA, 0, [10, 20]);
    count_in(device, FIRST_AREA, 3, [100, 200]);
    count_in(device, SECOND_AREA, 0, [300, 0]);
    count_in(device, SECOND_AREA, 2, [500, 0]);
    count_in(device, SECOND_AREA, 3, [200, 0]);
    // There is no room for a fifth copy.
    count_in(device, SECOND_AREA, 4, [7777, 7777]);
}

/// The image with another word in the tables: a relocated one if `at` has a relocation.
fn changed(image: &[u8], at: u64, change: impl Fn(u64) -> u64) -> Vec<u8> {
    let elf = ElfFile64::<LittleEndian>::parse(image).expect("a device ELF");
    let place = |name: &str| {
        let section = elf.section_by_name(name).expect("a section");
        let (offset, size) = section.file_range().expect("contents");
        (section.address(), offset, size)
    };
    let (address, offset, _) = place(COPIES_SECTION);
    let (_, relocations, size) = place(".rela.dyn");
    let word = |at: u64| {
        let at = at as usize;
        u64::from_le_bytes(image[at..at + 8].try_into().expect("8 bytes"))
    };
    let mut entries = (relocations..relocations + size).step_by(24);
    let relocation = entries.find(|entry| word(*entry) == address + at);
    let place = relocation.map_or(offset + at, |entry| entry + 16);
    let mut image = image.to_vec();
    let new = change(word(place)).to_le_bytes();
    image[place as usize..][..8].copy_from_slice(&new);
    image
}

/// Drains the load twice. Returns the first outcome and the counts of `tally`.
fn drained(device: &dyn Device) -> (Outcome, Vec<u64>) {
    let (directory, name) = output();
    let mut session = Session::default();
    session.loaded(device, FIRST).unwrap();
    let outcome = session.drain(device, &name);
    session.drain(device, &name);
    let counts = counts(&merged(directory.path()), TALLY);
    (outcome, counts)
}

/// The lines about the load, without its name.
fn lines(outcome: &Outcome) -> Vec<String> {
    let line = |line: String| {
        let (_, line) = line.split_once(" on gfx90a 0: ").expect("the agent");
        line.to_owned()
    };
    let losses = outcome.losses.iter();
    losses.map(|loss| line(loss.to_string())).collect()
}

#[test]
fn all_copies_come_home_in_one_read_with_the_elf_and_without_it() {
    for (images_gone, reads) in [(false, 1), (true, 4)] {
        let mut device = loaded();
        device.images_gone = images_gone;
        count_everywhere(&device);
        let (directory, name) = output();
        let outcome = Session::default().drain(&device, &name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        assert_eq!(counts(&merged(directory.path()), TALLY), [1111, 222]);
        let done = device.reads.borrow();
        assert_eq!(done.len(), reads, "{images_gone}: {done:?}");
        // 4 copies of 128 bytes each, and half of a fifth.
        let copied = outcome.copied[0];
        assert_eq!((copied.sections.counters, copied.copies), (16, 512 + 576));
    }
}

/// Memory of the program between the counters and the copies is copied with them only if that takes less time than
/// another copy.
#[test]
fn areas_come_in_the_copy_of_the_sections_if_they_are_near() {
    for (distance, reads) in [(512 << 10, 1), (2 << 20, 2)] {
        let image = device_only(clang(), &["gfx90a"], 4)
            .arguments(["-O1"])
            .counting()
            .arguments([format!("-DDISTANCE={distance}")])
            .source(repository("testdata/copies/tally.hip"))
            .output("tally-far");
        let device = loaded_of(&fs::read(image).expect("a compiled code object"));
        let (counters, _) = device.section(FIRST, "__llvm_prf_cnts");
        let (area, _) = device.find(FIRST, "first_area");
        assert!(counters + distance <= area, "{counters:#x}, {area:#x}");
        count_everywhere(&device);
        let (directory, name) = output();
        let outcome = Session::default().drain(&device, &name);
        assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
        assert_eq!(counts(&merged(directory.path()), TALLY), [1111, 222]);
        assert_eq!(device.reads.borrow().len(), reads, "{distance}");
    }
}

#[test]
fn sums_wrap_around() {
    let device = loaded();
    device.count(FIRST, TALLY, &[5, 0]);
    count_in(&device, FIRST_AREA, 1, [u64::MAX, 3]);
    let (outcome, counts) = drained(&device);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert_eq!(counts, [4, 3]);
}

#[test]
fn loads_and_reloads_add_up_in_files_and_pools() {
    for pattern in ["app.profraw", "app-%m.profraw"] {
        let directory = tempfile::tempdir().unwrap();
        let name = profile_name(directory.path(), pattern);
        let mut session = Session::default();
        let mut device = loaded();
        device.load(SECOND, 0, &tally());
        for _ in 0..3 {
            session.loaded(&device, FIRST).unwrap();
            count_everywhere(&device);
            session.drain(&device, &name);
            count_in(&device, FIRST_AREA, 2, [1000, 0]);
            let outcome = session.unloading(&device, FIRST, &name);
            assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
            device.unload(FIRST);
            device.load(FIRST, 0, &tally());
        }
        let found = counts(&merged(directory.path()), TALLY);
        assert_eq!(found, [3 * 2111, 3 * 222], "{pattern}");
    }
}

#[test]
fn a_reset_zeroes_every_copy() {
    for images_gone in [false, true] {
        let mut device = loaded();
        device.images_gone = images_gone;
        let (directory, name) = output();
        let mut session = Session::default();
        session.loaded(&device, FIRST).unwrap();
        count_everywhere(&device);
        session.drain(&device, &name);
        count_everywhere(&device);
        session.zero(&device).unwrap();
        for area in ["first_area", "second_area"] {
            let (start, size) = device.find(FIRST, area);
            let bytes = device.peek(start, size as usize);
            assert!(bytes.iter().all(|byte| *byte == 0), "{area}: {bytes:?}");
        }
        count_in(&device, SECOND_AREA, 1, [5, 6]);
        session.drain(&device, &name);
        let found = counts(&merged(directory.path()), TALLY);
        assert_eq!(found, [1116, 228], "{images_gone}");
    }
}

#[test]
fn labels_and_windows_have_the_counts_of_their_copies() {
    let device = loaded();
    let (directory, name) = output();
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    let mut turn = |from: &Scope, to: &Scope| {
        session.mark(&device, &name, from.clone(), &Idle::new());
        session.go_on_in(to.clone());
    };
    let label = Scope::Labelled("a".parse().unwrap());
    count_in(&device, FIRST_AREA, 0, [1, 0]);
    turn(&Scope::Unlabelled, &label);
    count_in(&device, FIRST_AREA, 0, [2, 0]);
    count_in(&device, SECOND_AREA, 3, [4, 1]);
    turn(&label, &Scope::LeftOut);
    count_in(&device, FIRST_AREA, 1, [8, 0]);
    turn(&Scope::LeftOut, &Scope::Unlabelled);
    count_in(&device, SECOND_AREA, 0, [16, 0]);
    device.count(FIRST, TALLY, &[32, 0]);
    session.drain(&device, &name);
    let of = |label: &str| {
        counts(
            &merged(&directory.path().join("profraw").join(label)),
            TALLY,
        )
    };
    assert_eq!(of(""), [49, 0]);
    assert_eq!(of("labels/a"), [6, 1]);
}

#[test]
fn idle_loads_are_not_read_again() {
    let device = loaded();
    let (_directory, name) = output();
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    let idle = Idle::from([(device.agents().unwrap()[0].handle, 7)]);
    session.drain_busy(&device, &name, &idle);
    let reads = device.reads.borrow().len();
    session.drain_busy(&device, &name, &idle);
    assert_eq!(device.reads.borrow().len(), reads);
}

/// The counts of the other tables come home, and the registry tells why the profile is partial.
#[test]
fn a_table_of_an_unknown_version_is_named_and_marks_the_profile() {
    let image = changed(&tally(), SECOND_TABLE + VERSION, |word| word + 2);
    let device = loaded_of(&image);
    count_everywhere(&device);
    let (directory, name) = output();
    let mut session = keeping(&name);
    session.loaded(&device, FIRST).unwrap();
    let outcome = session.drain(&device, &name);
    let reason = "the table at byte 48 of __rocov_copies has version 3, expected 1 or 2; update rocov, \
                  which reads versions 1 and 2";
    assert_eq!(
        lines(&outcome),
        [format!("the profile is partial: {reason}")]
    );
    assert!(outcome.loses_counts() && outcome.failures() == 0);
    assert_eq!(counts(&merged(directory.path()), TALLY), [111, 222]);
    session.keep(&name);
    let registry = fs::read(session.registry_file().expect("a registry")).unwrap();
    let document = Document::parse(&registry).unwrap();
    let load = &document.processes[0].loads[0];
    assert_eq!(load.partial, Some(reason.replace(';', ":")));
    assert!(load.profile.is_some());

    // A registry without partial profiles does not have the word.
    let device = loaded();
    let (_directory, name) = output();
    let mut session = keeping(&name);
    session.loaded(&device, FIRST).unwrap();
    session.drain(&device, &name);
    session.keep(&name);
    let registry = fs::read_to_string(session.registry_file().expect("a registry")).unwrap();
    assert!(
        registry.contains("\"profile\"") && !registry.contains("partial"),
        "{registry}"
    );
}

#[test]
fn each_bad_table_is_named_and_costs_only_itself() {
    let first_size = |word: u64| word & 0xffff_ffff;
    for (at, change, expected) in [
        (
            SECOND_TABLE,
            &(|word: u64| word ^ 1) as &dyn Fn(u64) -> u64,
            "__rocov_copies has 0x737063766f636f73 at byte 48, expected 0x737063766f636f72, the start of a table",
        ),
        (
            SECOND_TABLE + VERSION,
            &|word| first_size(word) | 96 << 32,
            "the table at byte 48 of __rocov_copies has 96 bytes, expected 32 plus a multiple of 16, at most 80",
        ),
        (
            SECOND_TABLE + START,
            &|start| start + 0x10_0000,
            "the copies end before they start: ",
        ),
        (
            SECOND_TABLE + STOP,
            &|stop| stop + (1 << 30),
            "bytes, at most 268435456 are allowed",
        ),
        (
            SECOND_TABLE + STOP,
            &|stop| stop + 0x10_0000,
            "are not inside the loaded segment ",
        ),
        (
            SECOND_TABLE + START,
            &|start| start - STRIDE,
            "overlap the copies at ",
        ),
        (
            SECOND_TABLE + START,
            &|start| start + 4 * STRIDE,
            "have 64 bytes, expected at least one copy of 128",
        ),
        (
            SECOND_TABLE + RANGE_START,
            &|start| start - 16,
            "are neither inside the counters section ",
        ),
        (
            SECOND_TABLE + RANGE_START,
            &|start| start + 4,
            "are bytes 12 to 16 of the counters section, expected multiples of 8",
        ),
    ] {
        let device = loaded_of(&changed(&tally(), at, change));
        count_everywhere(&device);
        let (outcome, counts) = drained(&device);
        let lines = lines(&outcome);
        let [line] = lines.as_slice() else {
            panic!("{expected}: {lines:?}")
        };
        assert!(
            line.starts_with("the profile is partial: ")
                && line.contains(expected)
                && line.ends_with("; build it again"),
            "{line}"
        );
        assert_eq!(counts, [111, 222], "{line}");
    }
}

/// The first table of an area counts, whatever a later one of it has.
#[test]
fn a_later_table_of_an_area_is_not_looked_at() {
    let image = changed(&tally(), THIRD_TABLE + RANGE_START, |start| start + 0x4000);
    let device = loaded_of(&image);
    count_everywhere(&device);
    let (outcome, counts) = drained(&device);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert_eq!(counts, [1111, 222]);
}

/// Without an ELF, the tables are where a symbol tells.
#[test]
fn bad_bounds_of_the_tables_leave_the_plain_counters() {
    for (word, change, expected) in [
        (
            0,
            &(|start: u64| start + 0x1000) as &dyn Fn(u64) -> u64,
            "the tables of copies end before they start: ",
        ),
        (1, &|stop| stop + 0x10_0000, "the tables of copies at "),
        (1, &|stop| stop - 8, "expected multiples"),
    ] {
        let mut device = loaded();
        device.images_gone = true;
        count_everywhere(&device);
        let (bounds, _) = device.find(FIRST, "__rocov_copies_bounds");
        let at = bounds + 8 * word;
        let old = u64::from_le_bytes(device.peek(at, 8).try_into().unwrap());
        device.poke(at, &change(old).to_le_bytes());
        let (outcome, counts) = drained(&device);
        let lines = lines(&outcome);
        if expected == "expected multiples" {
            // Only the third table is cut, and the first one has its area.
            let line = "the profile is partial: the table at byte 128 of __rocov_copies has 48 bytes, expected \
                        32 plus a multiple of 16, at most 40; build it again";
            assert_eq!(lines, [line]);
            assert_eq!(counts, [1111, 222]);
        } else {
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains(expected), "{lines:?}");
            assert_eq!(counts, [1, 2], "{lines:?}");
        }
    }
}

#[test]
fn tables_that_the_elf_lacks_are_named() {
    let image = tally();
    let elf = ElfFile64::<LittleEndian>::parse(image.as_slice()).unwrap();
    let index = elf.section_by_name(COPIES_SECTION).unwrap().index().0;
    let mut damaged = image.clone();
    let headers = u64::from_le_bytes(image[40..48].try_into().unwrap()) as usize;
    // The section's type: SHT_NOBITS.
    damaged[headers + 64 * index + 4] = 8;
    let device = loaded_of(&damaged);
    count_everywhere(&device);
    let (outcome, counts) = drained(&device);
    assert_eq!(
        lines(&outcome),
        [
            "the profile is partial: __rocov_copies cannot be read from the ELF: it has no contents; build it again"
        ]
    );
    assert_eq!(counts, [1, 2]);
}

#[test]
fn single_byte_counters_have_no_copies() {
    let device = loaded();
    let (word, _) = device.find(FIRST, "__rocov_raw_version");
    device.poke(word, &(1_u64 << 60 | 10).to_le_bytes());
    count_in(&device, FIRST_AREA, 0, [1, 1]);
    let (_directory, name) = output();
    let outcome = Session::default().drain(&device, &name);
    let lines = lines(&outcome);
    // Each table names its first range; the third is like the first.
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in lines {
        assert!(
            line.ends_with("have 1 byte each, expected 8; build it again"),
            "{line}"
        );
    }
}

/// A profile whose version no reader knows is saved with the sums.
#[test]
fn saved_sections_have_the_counts_of_copies() {
    let device = loaded();
    let (word, _) = device.find(FIRST, "__rocov_raw_version");
    device.poke(word, &99_u64.to_le_bytes());
    count_everywhere(&device);
    let (_directory, name) = output();
    let outcome = Session::default().drain(&device, &name);
    assert!(
        matches!(outcome.losses[0].cause, Cause::Saved { .. }),
        "{:?}",
        outcome.losses
    );
    let saved = SavedSections::decode(&fs::read(&outcome.files[0]).unwrap()).unwrap();
    let counters = saved
        .sections
        .iter()
        .find(|section| section.name == "counters")
        .unwrap();
    let expected = [1111_u64, 222].map(u64::to_le_bytes).concat();
    assert_eq!(counters.bytes, expected);
}

/// A device that cannot copy one area for a while.
struct Failing {
    inner: FakeDevice,
    area: (u64, u64),
    is_failing: std::cell::Cell<bool>,
}

impl Delegate for Failing {
    fn device(&self) -> &dyn Device {
        &self.inner
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let (start, size) = self.area;
        let is_touched = address < start + size && start < address + into.len() as u64;
        if is_touched && self.is_failing.get() {
            return Err(DeviceError::Call {
                call: "hsa_memory_copy",
                status: FAILED,
            });
        }
        self.inner.read(address, into)
    }
}

/// Counts without those of a copy would look like a reset, and later ones would count twice.
#[test]
fn an_area_that_cannot_be_copied_for_a_while_loses_and_doubles_nothing() {
    for pattern in ["app.profraw", "app-%m.profraw"] {
        let directory = tempfile::tempdir().unwrap();
        let name = profile_name(directory.path(), pattern);
        let inner = loaded();
        let device = Failing {
            area: inner.find(FIRST, "second_area"),
            inner,
            is_failing: false.into(),
        };
        let mut session = Session::default();
        session.loaded(&AsDevice(&device), FIRST).unwrap();
        count_everywhere(&device.inner);
        session.drain(&AsDevice(&device), &name);
        device.is_failing.set(true);
        count_in(&device.inner, FIRST_AREA, 0, [1, 0]);
        let outcome = session.drain(&AsDevice(&device), &name);
        assert_eq!(
            lines(&outcome),
            ["counts are lost: hsa_memory_copy failed with status 0x1000; run the program again"]
        );
        assert_eq!(raw_profiles(directory.path()).len(), 1);
        device.is_failing.set(false);
        count_in(&device.inner, SECOND_AREA, 0, [1, 0]);
        session.drain(&AsDevice(&device), &name);
        let found = counts(&merged(directory.path()), TALLY);
        assert_eq!(found, [1113, 222], "{pattern}");
    }
}

/// LLVM's own drain does not know of copies. It gets the other code objects, and finds nothing of these.
#[test]
fn another_drain_gets_the_code_objects_without_copies() {
    let (directory, name) = output();
    let mut device = loaded();
    device.load(SECOND, 0, &vecadd());
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    session.loaded(&device, SECOND).unwrap();
    session.leave_plain_counters();
    assert_eq!(session.loads(), 1);
    let outcome = session.blank_tables(&device);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    let is_blank = |executable| {
        let (table, size) = device.find(executable, "__llvm_profile_sections");
        let bytes = device.peek(table, size as usize);
        bytes.iter().all(|byte| *byte == 0)
    };
    assert_eq!([FIRST, SECOND].map(is_blank), [true, false]);
    count_everywhere(&device);
    device.count(SECOND, VECADD, &[3, 4]);
    let outcome = session.drain(&device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    let functions = merged(directory.path());
    assert_eq!(functions.len(), 1, "{functions:?}");
    assert_eq!(counts(&functions, TALLY), [1111, 222]);
    // Later loads are shared alike.
    for (executable, image, loads) in [(SECOND, vecadd(), 1), (THIRD, tally(), 2)] {
        session.unloading(&device, executable, &name);
        device.unload(executable);
        device.load(executable, 0, &image);
        let outcome = session.loaded(&device, executable).unwrap();
        assert_eq!((outcome.found, session.loads()), (1, loads));
    }
}
