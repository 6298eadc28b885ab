//! Counters that rocov has put into machine code: they come home as others do, under the name of the code object that the
//! program had.

use std::fs;

use rocov::device::Device;
use rocov::drain::{Idle, Session};
use rocov::format::blocks::Kind;
use rocov::format::codeobject::Identity;
use rocov::instrument::amdgcn::{AmdgcnOptions, CounterMap, MAP_VERSION, instrument};

use crate::kills::keeping;
use crate::support::artifacts::repository;
use crate::support::compile::device_only;
use crate::support::compilers::Compiler;
use crate::support::fake_device::FakeDevice;
use crate::support::profile::raw_profiles;
use crate::{FIRST, SAXPY, SECOND, VECADD, merged, output};

/// The kernels of vecadd without counters.
fn plain() -> Vec<u8> {
    let compiled = device_only(Compiler::usual().clang, &["gfx90a"], 4)
        .arguments(["-O1"])
        .source(repository("testdata/kernels/vecadd.hip"))
        .output("vecadd-plain");
    fs::read(compiled).expect("a compiled code object")
}

/// The code object with counters, loaded.
fn loaded(instrumented: &[u8]) -> FakeDevice {
    let mut device = FakeDevice::new(1);
    device.load(FIRST, 0, instrumented);
    device
}

/// Gives counter n the value `by * (n + 1)`, and returns all values.
fn count(device: &FakeDevice, map: &CounterMap<'_>, by: u64) -> Vec<u64> {
    let (address, number) = map.counters();
    let values: Vec<u64> = (1..=number).map(|place| by * place).collect();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    device.poke(device.base(FIRST) + address, &bytes);
    values
}

/// The counts of a function that follow from these values of the counters, by the map.
fn expected(map: &CounterMap<'_>, original: &[u8], name: &str, values: &[u64]) -> Vec<u64> {
    use object::{Object, ObjectSymbol};
    let elf = object::File::parse(original).expect("an ELF");
    let symbol = elf.symbols().find(|symbol| symbol.name() == Ok(name));
    let symbol = symbol.expect("the kernel");
    let mut counts = vec![0; (symbol.size() / 4 * 2) as usize];
    let executed = map.executed(values);
    executed
        .count(symbol.address(), &mut counts)
        .expect("a whole map");
    counts
}

#[test]
fn inserted_counters_come_home_under_the_name_of_the_original() {
    let original = plain();
    let instrumented = instrument(&original, &AmdgcnOptions::default()).expect("a code object");
    let map = CounterMap::find(&instrumented.code)
        .expect("a map")
        .expect("a map");
    assert_eq!(map.original(), original);
    let device = loaded(&instrumented.code);
    let (directory, name) = output();
    let mut session = keeping(&name);
    let seen = session.loaded(&device, FIRST).unwrap();
    assert_eq!((seen.pairs, seen.found), (1, 1));

    let values = count(&device, &map, 3);
    device.reads.borrow_mut().clear();
    let outcome = session.drain(&device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    let (address, number) = map.counters();
    let copy = (device.base(FIRST) + address, 8 * number as usize);
    assert_eq!(*device.reads.borrow(), [copy], "one copy");
    let functions = merged(directory.path());
    for kernel in [VECADD, SAXPY] {
        let record = &functions[&Kind::Trace.record_name(kernel)];
        let found = [&[record.calls], record.blocks.as_slice()].concat();
        assert_eq!(
            found,
            expected(&map, &original, kernel, &values),
            "{kernel}"
        );
        assert!(found.iter().any(|count| *count > 0), "{kernel}");
    }
    let identity = Identity::from_image(&original).expect("an ELF");
    let profiles = raw_profiles(directory.path());
    let file = profiles[0].to_string_lossy().into_owned();
    assert!(file.contains(identity.as_str()), "{file}");
    let kept = directory
        .path()
        .join(format!("objects/gfx90a.{}.elf", identity.as_str()));
    assert_eq!(fs::read(kept).expect("the code object"), original);

    // A reset, and counts after it, which are added.
    session.zero(&device).unwrap();
    let zeros = device.peek(device.base(FIRST) + address, 8 * number as usize);
    assert!(zeros.iter().all(|byte| *byte == 0));
    let more = count(&device, &map, 5);
    session.drain_busy(&device, &name, &Idle::new());
    let functions = merged(directory.path());
    let record = &functions[&Kind::Trace.record_name(SAXPY)];
    let sums: Vec<u64> = values
        .iter()
        .zip(&more)
        .map(|(one, other)| one + other)
        .collect();
    assert_eq!(record.blocks, expected(&map, &original, SAXPY, &sums)[1..]);
}

/// One process may load a code object with and without counters.
#[test]
fn one_code_object_is_known_with_and_without_counters() {
    let original = plain();
    let instrumented = instrument(&original, &AmdgcnOptions::default()).expect("a code object");
    let mut device = loaded(&instrumented.code);
    device.load(SECOND, 0, &original);
    let (directory, name) = output();
    let mut session = Session::default();
    for (executable, counts) in [(SECOND, 0), (FIRST, 1)] {
        assert_eq!(session.loaded(&device, executable).unwrap().found, counts);
    }
    let outcome = session.drain(&device, &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    assert_eq!(raw_profiles(directory.path()).len(), 1);
}

/// The place of the version in the map, and the bytes of the address that comes next.
fn place_of_map(instrumented: &[u8]) -> (usize, usize) {
    let map = CounterMap::find(instrumented).expect("a map");
    let (address, _) = map.expect("a map").counters();
    // ULEB128.
    let groups = address.max(1).ilog2() / 7;
    let word: Vec<u8> = (0..=groups)
        .map(|group| (address >> (7 * group)) as u8 & 0x7f | if group < groups { 0x80 } else { 0 })
        .collect();
    // The version is the first byte of the section, which is after the text.
    let is_there = |at: &usize| {
        let is_version = u64::from(instrumented[*at]) == MAP_VERSION;
        is_version && instrumented[at + 1..].starts_with(&word)
    };
    let at = (0..instrumented.len() - word.len()).rfind(is_there);
    (at.expect("the version in the map"), word.len())
}

/// A map that names other memory than that of the code object is not followed.
#[test]
fn counters_outside_of_the_code_object_are_not_read() {
    let instrumented = instrument(&plain(), &AmdgcnOptions::default()).expect("a code object");
    let mut hostile = instrumented.code.clone();
    let (version, size) = place_of_map(&hostile);
    hostile[version + size] |= 0x40;
    let device = loaded(&hostile);
    let (directory, name) = output();
    let mut session = Session::default();
    session.loaded(&device, FIRST).unwrap();
    device.reads.borrow_mut().clear();
    let outcome = session.drain(&device, &name);
    assert_eq!(outcome.losses.len(), 1);
    let line = outcome.losses[0].to_string();
    assert!(line.contains("is not inside the loaded segment"), "{line}");
    assert!(
        device
            .reads
            .borrow()
            .iter()
            .all(|(start, _)| *start >= device.base(FIRST))
    );
    assert!(raw_profiles(directory.path()).is_empty());
    assert!(session.unloading(&device, FIRST, &name).losses.len() == 1);
}

/// A program may load a code object that it kept from a run with another release.
#[test]
fn a_map_of_another_release_is_a_loss_with_both_versions() {
    const OTHER: u8 = 99;
    let mut instrumented = instrument(&plain(), &AmdgcnOptions::default()).expect("a code object");
    let (version, _) = place_of_map(&instrumented.code);
    instrumented.code[version] = OTHER;
    let device = loaded(&instrumented.code);
    let mut session = Session::default();
    let found = session.loaded(&device, FIRST).unwrap();
    let [loss] = found.losses.as_slice() else {
        panic!("{:?}", found.losses);
    };
    let uri = device.code_objects(FIRST).unwrap()[0].uri.clone();
    assert_eq!(
        loss.to_string(),
        format!(
            "{uri} on gfx90a 0: counts are lost: the map of counters has version {OTHER}, but this release reads version \
             {MAP_VERSION}; instrument it with the release of rocov that drains it"
        )
    );
}
