//! Device memory that changes between reads, and a runtime with impossible answers. The drain ends
//! soon and in little memory, and each written file is a profile.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rocov::device::{
    Device, DeviceError, DeviceRange, ElfImage, Executable, LoadedCodeObject, Symbol,
};
use rocov::drain::Session;
use rocov::format::codeobject::Identity;
use rocov::format::profraw::{Header, SavedSections};
use rocov::support::diagnostic::Remedy;
use rocov::validate::MAX_SECTION_BYTES;

use crate::kills::keeping;
use crate::support::delegate::{AsDevice, Delegate};
use crate::support::fake_device::FakeDevice;
use crate::support::profile::functions;
use crate::{FIRST, SAXPY, VECADD, copies, loaded, output, vecadd};

/// Far more than the time to drain one code object.
const BOUND: Duration = Duration::from_secs(120);

/// A change to a runtime's answer.
type Lie<T> = Box<dyn Fn(&mut Rng, T) -> T>;

/// A device that changes its answers.
struct Hostile {
    inner: FakeDevice,
    rng: RefCell<Rng>,
    /// Changes the bytes of each copy; gets their address too.
    memory: Lie<(u64, Vec<u8>)>,
    symbol: Lie<Symbol>,
    code_object: Lie<LoadedCodeObject>,
    image: Lie<Vec<u8>>,
    /// True if it promises that the ELF stays.
    has_lasting_image: bool,
    /// The largest copy in bytes.
    largest: RefCell<usize>,
}

impl Hostile {
    fn new(seed: u64, inner: FakeDevice) -> Self {
        Self {
            inner,
            rng: RefCell::new(Rng::with_seed(seed)),
            memory: Box::new(|_, value| value),
            symbol: Box::new(|_, value| value),
            code_object: Box::new(|_, value| value),
            image: Box::new(|_, value| value),
            has_lasting_image: false,
            largest: RefCell::default(),
        }
    }

    /// Drains the device twice and checks the results.
    fn check(&self, seed: u64) {
        let (_directory, name) = output();
        let start = Instant::now();
        let mut session = Session::default();
        let found = session
            .loaded(&AsDevice(self), FIRST)
            .map_or(0, |outcome| outcome.found);
        let mut files = Vec::new();
        for _ in 0..2 {
            let outcome = session.drain(&AsDevice(self), &name);
            let is_said = !outcome.losses.is_empty() || !outcome.files.is_empty() || found == 0;
            assert!(is_said, "seed {seed}: no message about it");
            files.extend(outcome.files);
        }
        assert!(
            start.elapsed() < BOUND,
            "seed {seed}: {:?}",
            start.elapsed()
        );
        // All five sections in one copy, and the gaps between them.
        let bound = 6 * MAX_SECTION_BYTES as usize;
        let largest = *self.largest.borrow();
        assert!(largest <= bound, "seed {seed}: {largest} bytes");
        files.sort();
        files.dedup();
        for file in files {
            let bytes = fs::read(&file).expect("what was written");
            if SavedSections::has_magic(&bytes) {
                SavedSections::decode(&bytes).expect("saved sections");
            } else if Header::version_word(&bytes) == Ok(10) {
                functions(&file);
            }
        }
    }
}

impl Delegate for Hostile {
    fn device(&self) -> &dyn Device {
        &self.inner
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        let code_objects = self.inner.code_objects(executable)?.into_iter();
        let mut rng = self.rng.borrow_mut();
        Ok(code_objects
            .map(|code_object| (self.code_object)(&mut rng, code_object))
            .collect())
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        let symbol = self.inner.symbol(executable, agent, name)?;
        Ok(symbol.map(|symbol| (self.symbol)(&mut self.rng.borrow_mut(), symbol)))
    }

    fn has_lasting_image(&self, _code_object: &LoadedCodeObject) -> bool {
        self.has_lasting_image
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        let mut bytes = Vec::new();
        let mut image = self.inner.image(code_object)?;
        image.read_to_end(&mut bytes).expect("bytes in memory");
        let bytes = (self.image)(&mut self.rng.borrow_mut(), bytes);
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut largest = self.largest.borrow_mut();
        *largest = (*largest).max(into.len());
        self.inner.read(address, into)?;
        let (_, bytes) = (self.memory)(&mut self.rng.borrow_mut(), (address, into.to_vec()));
        into.copy_from_slice(&bytes);
        Ok(())
    }
}

/// Changes the bytes of a copy in `range`, 8 bytes at a time.
fn in_range(
    (start, len): (u64, u64),
    change: impl Fn(&mut Rng, u64) -> u64 + 'static,
) -> Lie<(u64, Vec<u8>)> {
    Box::new(move |rng, (address, mut bytes)| {
        for at in (start..start + len).step_by(8) {
            let place = at.checked_sub(address).map(|number| number as usize);
            let word = place.and_then(|place| bytes.get_mut(place..place.checked_add(8)?));
            if let Some(word) = word {
                let old = u64::from_le_bytes((&*word).try_into().expect("8 bytes"));
                word.copy_from_slice(&change(rng, old).to_le_bytes());
            }
        }
        (address, bytes)
    })
}

/// An impossible or extreme address or size.
fn edge(rng: &mut Rng, old: u64) -> u64 {
    let edges = [
        0,
        1,
        old,
        old + 8,
        old / 2,
        1 << 40,
        1 << 63,
        u64::MAX - 7,
        u64::MAX,
    ];
    rng.choice(edges).expect("some")
}

#[test]
fn counters_that_keep_changing_are_counters_all_the_same() {
    for seed in 0..10 {
        let inner = loaded();
        let counters = inner.section(FIRST, "__llvm_prf_cnts");
        let mut device = Hostile::new(seed, inner);
        device.memory = in_range(counters, |rng, _| rng.u64(..1 << 40));
        device.check(seed);
    }
}

#[test]
fn a_table_that_changes_between_reads_leads_nowhere() {
    for seed in 0..60 {
        let mut inner = loaded();
        inner.images_gone = seed % 2 == 0;
        let table = inner.find(FIRST, "__llvm_profile_sections");
        let mut device = Hostile::new(seed, inner);
        device.memory = in_range(table, |rng, old| match rng.bool() {
            true => old,
            false => edge(rng, old),
        });
        device.check(seed);
    }
}

/// Without an ELF, the tables of copies and their bounds are in memory that kernels can write.
#[test]
fn tables_of_copies_that_change_between_reads_lead_nowhere() {
    for seed in 0..100 {
        let mut inner = copies::loaded();
        inner.images_gone = true;
        let place = match seed % 2 {
            0 => inner.section(FIRST, "__rocov_copies"),
            _ => inner.find(FIRST, "__rocov_copies_bounds"),
        };
        let mut device = Hostile::new(seed, inner);
        device.memory = in_range(place, |rng, old| match rng.u8(..4) {
            0 => edge(rng, old),
            _ => old,
        });
        device.check(seed);
    }
}

#[test]
fn records_that_change_between_reads_cost_themselves() {
    for seed in 0..20 {
        let inner = loaded();
        let records = inner.section(FIRST, "__llvm_prf_data");
        let mut device = Hostile::new(seed, inner);
        device.memory = in_range(records, |rng, old| match rng.u8(..4) {
            0 => edge(rng, old),
            _ => old,
        });
        device.check(seed);
    }
}

#[test]
fn a_runtime_whose_sizes_are_near_two_to_the_64_is_not_believed() {
    for seed in 0..100 {
        let mut inner = loaded();
        inner.images_gone = seed % 2 == 0;
        let mut device = Hostile::new(seed, inner);
        device.symbol = Box::new(|rng, symbol| Symbol {
            address: edge(rng, symbol.address),
            size: edge(rng, symbol.size),
        });
        device.code_object = Box::new(|rng, code_object| LoadedCodeObject {
            segment: DeviceRange {
                start: edge(rng, code_object.segment.start),
                len: edge(rng, code_object.segment.len),
            },
            load_delta: edge(rng, code_object.load_delta),
            storage: None,
            ..code_object
        });
        device.check(seed);
    }
}

/// Each drain copies each counter once, so later changes do not mix in.
#[test]
fn what_is_written_is_what_was_read() {
    let inner = loaded();
    let counters = inner.section(FIRST, "__llvm_prf_cnts");
    let mut device = Hostile::new(0, inner);
    // Each copy gets one number for all counters, and the next copy another.
    let copies = Cell::new(0);
    device.memory = Box::new(move |_, (address, mut bytes)| {
        copies.set(copies.get() + 1);
        let place = (counters.0 - address) as usize;
        if let Some(counters) = bytes.get_mut(place..place + counters.1 as usize) {
            let count = 100_u64 + copies.get();
            counters.copy_from_slice(&count.to_le_bytes().repeat(counters.len() / 8));
        }
        (address, bytes)
    });
    let (_directory, name) = output();
    let outcome = Session::default().drain(&AsDevice(&device), &name);
    assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
    let functions = functions(&outcome.files[0]);
    let [one, other] = [VECADD, SAXPY].map(|name| &functions[name]);
    assert!(one.calls > 100, "{functions:?}");
    assert_eq!((one.calls, &one.blocks), (other.calls, &other.blocks));
    assert_eq!(one.blocks, [one.calls]);
}

/// The place of a loaded ELF may hold another one when a drain keeps it.
#[test]
fn a_device_elf_that_was_replaced_is_not_kept() {
    let mut device = Hostile::new(0, loaded());
    device.has_lasting_image = true;
    let reads = Cell::new(0);
    device.image = Box::new(move |_, mut bytes| {
        reads.set(reads.get() + 1);
        if reads.get() > 1 {
            bytes.push(0);
        }
        bytes
    });
    let (directory, name) = output();
    let mut session = keeping(&name);
    let outcome = session.loaded(&AsDevice(&device), FIRST).expect("a load");
    assert!(outcome.not_kept.is_empty(), "{:?}", outcome.not_kept);
    let outcome = session.drain(&AsDevice(&device), &name);
    let [error] = outcome.not_kept.as_slice() else {
        panic!("{:?}", outcome.not_kept)
    };
    let line = error.diagnostic().to_string();
    let identity = Identity::from_image(vecadd().as_slice()).expect("a device ELF");
    let expected = format!(
        "the device ELF of code object {identity} is not kept: another file has its name; pass the file that ran to \
        `rocov report --object`"
    );
    assert_eq!(line, expected);
    assert!(!directory.path().join("objects").exists());
}
