//! The drained code: code objects on two agents, each found in another way, and the results of an
//! undisturbed drain.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rocov::device::{Device, Executable};
use rocov::drain::Session;
use rocov::store::layout::{PROFRAW, REGISTRIES, SECTIONS};
use rocov::store::{Expansion, ProfileName};

use crate::scripted::Scripted;
use crate::support::compile::code_object;
use crate::support::fake_device::FakeDevice;
use crate::support::profile::functions;

/// Loaded on the first and on the second agent, like HIP: one executable for each.
pub(crate) const PLAIN: [Executable; 2] = [Executable(0x51), Executable(0x52)];
/// One executable with a code object on each agent.
pub(crate) const SPREAD: Executable = Executable(0x53);
/// The loader does not know its symbols: only the ELF has the addresses.
pub(crate) const WITHOUT_SYMBOLS: Executable = Executable(0x54);
/// Its ELF is gone: only the table has the addresses.
pub(crate) const WITHOUT_ELF: Executable = Executable(0x55);
pub(crate) const ALL: [Executable; 5] = [PLAIN[0], PLAIN[1], SPREAD, WITHOUT_SYMBOLS, WITHOUT_ELF];

/// A code object on an agent, by handles.
pub(crate) type Place = (Executable, u64);

/// The files of a directory, by their names.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A kernel of vecadd.hip.
pub(crate) const VECADD: &str = "_Z6vecaddPKfS0_Pfj";

/// A kernel of testdata/kernels.
pub(crate) fn image(kernel: &'static str) -> Vec<u8> {
    static IMAGES: Mutex<BTreeMap<&str, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let read = || fs::read(code_object(kernel, "gfx90a", "-O1", 4)).expect("a code object");
    images.entry(kernel).or_insert_with(read).clone()
}

/// A device with all executables. All counters differ from 0 and from each other.
pub(crate) fn device() -> FakeDevice {
    let mut device = FakeDevice::new(2);
    device.load(PLAIN[0], 0, &image("vecadd"));
    device.load(PLAIN[1], 1, &image("vecadd"));
    device.load(SPREAD, 0, &image("collatz"));
    device.load(SPREAD, 1, &image("collatz"));
    device.load(WITHOUT_SYMBOLS, 1, &image("branches"));
    device.hide_symbols(WITHOUT_SYMBOLS);
    device.load(WITHOUT_ELF, 0, &image("reduce"));
    device.forget_image(WITHOUT_ELF);
    let mut count = 0_u64;
    for (address, size) in device.counters() {
        for at in (address..address + size).step_by(8) {
            count += 1;
            device.poke(at, &count.to_le_bytes());
        }
    }
    device
}

pub(crate) fn name_in(directory: &Path, pattern: &str) -> ProfileName {
    let values = Expansion {
        pid: 4711,
        ..Expansion::default()
    };
    let name = ProfileName::parse(pattern, &values, &directory.join(PROFRAW));
    name.expect("a good pattern").in_data(directory)
}

/// The profiles, registries and saved sections in a data directory, by their paths there.
pub(crate) fn files(directory: &Path) -> Files {
    let mut files = Files::new();
    for folder in [PROFRAW, REGISTRIES, SECTIONS] {
        let entries = fs::read_dir(directory.join(folder)).into_iter().flatten();
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            let name = path
                .strip_prefix(directory)
                .expect("a path in it")
                .to_string_lossy()
                .into_owned();
            files.insert(name, fs::read(&path).expect("a file"));
        }
    }
    files
}

/// The result of each place without faults: the file's name and contents.
#[derive(Debug)]
pub(crate) struct Undisturbed {
    pub(crate) of: BTreeMap<Place, (String, Vec<u8>)>,
}

impl Undisturbed {
    /// Drains each place separately. llvm-profdata must read the right counts in two of the files.
    pub(crate) fn new() -> Self {
        let mut of = BTreeMap::new();
        for executable in ALL {
            let device = RefCell::new(device());
            for other in ALL {
                if other != executable {
                    device.borrow_mut().unload(other);
                }
            }
            let device = Scripted::quiet(&device);
            let directory = tempfile::tempdir().expect("a temporary directory");
            let name = name_in(directory.path(), "app.profraw");
            let outcome = Session::default().drain(&device, &name);
            assert!(outcome.losses.is_empty(), "{:?}", outcome.losses);
            let files = files(directory.path());
            if executable == PLAIN[0] {
                let (name, _) = files.first_key_value().expect("a file");
                let functions = functions(&directory.path().join(name));
                let device = device.device.borrow();
                let (address, _) = device.find(executable, &format!("__profc_{VECADD}"));
                let count =
                    u64::from_le_bytes(device.peek(address, 8).try_into().expect("8 bytes"));
                assert_eq!(functions[VECADD].calls, count);
            }
            for code_object in device.code_objects(executable).expect("loaded") {
                let index = code_object.agent - 0xa000;
                let of_agent = |name: &&String| name.contains(&format!(".{index}.app"));
                let name = files.keys().find(of_agent).expect("a file for the agent");
                let place = (executable, code_object.agent);
                of.insert(place, (name.clone(), files[name].clone()));
            }
        }
        assert_eq!(of.len(), 6);
        Self { of }
    }
}
