//! A runtime in this process with any number of code objects, whose calls have a price.
//!
//! The price is added up and not waited for: that is exact, and quick. Copies of which several are
//! under way have a price of their own each, as if nothing else went on meanwhile.

use std::cell::Cell;
use std::io::Cursor;
use std::time::Duration;

use rocov::device::{
    Agent, Device, DeviceError, DeviceRange, Executable, Image, LoadedCodeObject, Symbol, Take,
};

use crate::fake_device::FakeDevice;
use crate::numbered;

/// What calls take.
#[derive(Clone, Copy, Default)]
pub(crate) struct Prices {
    /// A copy, and the wait for it.
    pub(crate) copy: Duration,
    /// A copy among others that are under way.
    pub(crate) flowing: Duration,
    /// A question about a symbol.
    pub(crate) query: Duration,
}

const BASE: u64 = 0x7f00_0000_0000;
const FIRST: Executable = Executable(1);
const SECOND: Executable = Executable(2);

/// Code objects that differ in nothing but their number, each in an executable of its own.
pub(crate) struct Fake {
    count: usize,
    agents: usize,
    prices: Prices,
    spent: Cell<Duration>,
    image: Vec<u8>,
    /// Memory of one at address 0, with the places of the addresses in it.
    memory: Vec<u8>,
    addresses: Vec<usize>,
    /// Where the counters are in it.
    counters: usize,
    /// What the first counter of the first so many executables has counted.
    launched: Cell<(u64, usize)>,
    /// Names, offsets, sizes, in the loader's order; kernels have names that end in `.kd`.
    symbols: Vec<(String, u64, u64)>,
}

impl Fake {
    /// `count` times the code object `image`, in turn on each of `agents`.
    pub(crate) fn new(image: &[u8], count: usize, agents: usize, prices: Prices) -> Fake {
        let mut model = FakeDevice::new(1);
        model.load(FIRST, 0, image);
        model.load(SECOND, 0, image);
        let memory_of = |executable| {
            let base = model.base(executable);
            let loaded = model.code_objects(executable).expect("it is loaded");
            let mut memory = model.peek(base, loaded[0].segment.len as usize);
            memory.resize(memory.len().next_multiple_of(8), 0);
            memory
        };
        // What differs between two loads is an address.
        let (mut memory, other) = (memory_of(FIRST), memory_of(SECOND));
        let is_address = |at: &usize| memory[*at..*at + 8] != other[*at..*at + 8];
        let addresses: Vec<usize> = (0..memory.len()).step_by(8).filter(is_address).collect();
        for at in &addresses {
            add(&mut memory[*at..*at + 8], model.base(FIRST).wrapping_neg());
        }
        let names: Vec<String> = model.symbols(FIRST).map(str::to_owned).collect();
        // ROCr lists kernels and variables, neither functions nor the linker's marks.
        let is_listed =
            |name: &&String| !names.contains(&format!("{name}.kd")) && !name.starts_with("__st");
        let symbol = |name: &String| {
            let (address, size) = model.find(FIRST, name);
            (name.clone(), address - model.base(FIRST), size)
        };
        Fake {
            count,
            agents,
            prices,
            spent: Cell::default(),
            symbols: names.iter().filter(is_listed).map(symbol).collect(),
            image: image.to_vec(),
            counters: (model.section(FIRST, "__llvm_prf_cnts").0 - model.base(FIRST)) as usize,
            launched: Cell::default(),
            memory,
            addresses,
        }
    }

    /// Counts once more in each of the first `executables`: always the same.
    pub(crate) fn launch(&self, executables: usize) {
        self.launched.set((self.launched.get().0 + 1, executables));
    }

    /// What the calls so far have cost.
    pub(crate) fn take_spent(&self) -> Duration {
        self.spent.take()
    }

    fn spend(&self, price: Duration) {
        self.spent.set(self.spent.get() + price);
    }

    fn stride(&self) -> u64 {
        self.memory.len().next_multiple_of(1 << 20) as u64
    }

    fn agent_of(&self, executable: u64) -> u64 {
        executable % self.agents as u64
    }

    fn at(&self, address: u64, into: &mut [u8]) {
        let at = ((address - BASE) % self.stride()) as usize;
        let base = address - at as u64;
        let end = at + into.len();
        into.copy_from_slice(&self.memory[at..end]);
        let first = self.addresses.partition_point(|place| *place < at);
        let inside = self.addresses[first..].iter();
        for place in inside.take_while(|place| *place + 8 <= end) {
            add(&mut into[place - at..][..8], base);
        }
        let (counted, among) = self.launched.get();
        let is_among = ((base - BASE) / self.stride()) < among as u64;
        if is_among && at <= self.counters && self.counters + 8 <= end {
            add(&mut into[self.counters - at..][..8], counted);
        }
    }
}

fn add(word: &mut [u8], more: u64) {
    let old = u64::from_le_bytes((&*word).try_into().expect("8 bytes"));
    word.copy_from_slice(&old.wrapping_add(more).to_le_bytes());
}

impl Device for Fake {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        let agent = |index| Agent {
            handle: index as u64,
            index,
            name: "gfx90a".into(),
            isa: None,
            uuid: None,
            node: None,
        };
        Ok((0..self.agents).map(agent).collect())
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        Ok((0..self.count as u64).map(Executable).collect())
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        let start = BASE + executable.0 * self.stride();
        Ok(vec![LoadedCodeObject {
            executable,
            agent: self.agent_of(executable.0),
            uri: format!("memory://1#offset={start:#x}&size={}", self.image.len()),
            segment: DeviceRange {
                start,
                len: self.memory.len() as u64,
            },
            load_delta: start,
            storage: None,
        }])
    }

    fn symbol(
        &self,
        executable: Executable,
        _agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        self.spend(self.prices.query);
        let found = self.symbols.iter().find(|symbol| symbol.0 == name);
        Ok(found.map(|(_, offset, size)| Symbol {
            address: BASE + executable.0 * self.stride() + offset,
            size: *size,
        }))
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn Image>, DeviceError> {
        let number = code_object.executable.0;
        Ok(Box::new(Cursor::new(numbered(&self.image, number))))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.spend(self.prices.copy);
        self.at(address, into);
        Ok(())
    }

    fn read_each(&self, ranges: &[DeviceRange], take: &mut Take<'_>) {
        for (place, range) in ranges.iter().enumerate() {
            self.spend(self.prices.flowing);
            let mut bytes = vec![0; range.len as usize];
            self.at(range.start, &mut bytes);
            take(place, Ok(&bytes));
        }
    }

    fn write(&self, _address: u64, _from: &[u8]) -> Result<(), DeviceError> {
        unreachable!("a drain writes nothing")
    }
}
