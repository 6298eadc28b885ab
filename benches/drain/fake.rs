//! A runtime in this process with any number of code objects and a price for each call.
//!
//! The code adds up the prices and does not wait for them: that is exact and quick. Each of several
//! copies under way has a separate price, as if it were the only one.

use std::cell::Cell;
use std::io::Cursor;
use std::time::Duration;

use rocov::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, LoadedCodeObject, Symbol, Take,
};
use rocov_tests::fake_device::FakeDevice;

use crate::numbered;

/// The prices of calls.
#[derive(Clone, Copy, Default)]
pub(crate) struct Prices {
    /// A copy and its wait.
    pub(crate) copy: Duration,
    /// A copy among others under way.
    pub(crate) flowing: Duration,
    /// A query about a symbol.
    pub(crate) query: Duration,
}

const BASE: u64 = 0x7f00_0000_0000;
const FIRST: Executable = Executable(1);
const SECOND: Executable = Executable(2);

/// Code objects that differ only in their number, each in a separate executable.
pub(crate) struct Fake {
    count: usize,
    agents: usize,
    prices: Prices,
    spent: Cell<Duration>,
    image: Vec<u8>,
    /// The memory of a code object at address 0, and the positions of addresses in it.
    memory: Vec<u8>,
    addresses: Vec<usize>,
    /// The position of the counters in it.
    counters: usize,
    /// The first counter's value, and the number of executables that have it, from the first on.
    launched: Cell<(u64, usize)>,
    /// Names, offsets, sizes, in the loader's order; kernels have names that end in `.kd`.
    symbols: Vec<(String, u64, u64)>,
}

impl Fake {
    /// Loads the code object `image` `count` times, on each of `agents` in turn.
    pub(crate) fn new(image: &[u8], count: usize, agents: usize, prices: Prices) -> Self {
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
        // Two loads differ in their addresses only.
        let (mut memory, other) = (memory_of(FIRST), memory_of(SECOND));
        let is_address = |at: &usize| memory[*at..*at + 8] != other[*at..*at + 8];
        let addresses: Vec<usize> = (0..memory.len()).step_by(8).filter(is_address).collect();
        for at in &addresses {
            add(&mut memory[*at..*at + 8], model.base(FIRST).wrapping_neg());
        }
        let names: Vec<String> = model.symbols(FIRST).map(str::to_owned).collect();
        // ROCr lists kernels and variables, but no functions or linker marks.
        let is_listed =
            |name: &&String| !names.contains(&format!("{name}.kd")) && !name.starts_with("__st");
        let symbol = |name: &String| {
            let (address, size) = model.find(FIRST, name);
            (name.clone(), address - model.base(FIRST), size)
        };
        Self {
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

    /// Adds the counts of one more launch to each of the first `executables`.
    pub(crate) fn launch(&self, executables: usize) {
        self.launched.set((self.launched.get().0 + 1, executables));
    }

    /// The price of the calls so far; resets it.
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

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
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
