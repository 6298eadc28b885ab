//! A device runtime in memory: loads real code objects as ROCr does, and fails by script.
//!
//! It shares no layout code with the library: segments, relocations and symbols come from the ELF
//! by the `object` crate's high-level reader, counters are found by their `__profc_` symbols.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use object::elf::RelocationType;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationFlags};
use rocov::device::{
    Agent, Device, DeviceError, DeviceRange, Executable, LoadedCodeObject, Symbol,
};

/// The one relocation of a linked code object: base plus addend ("User Guide for AMDGPU Backend").
const R_AMDGPU_RELATIVE64: RelocationType = RelocationType(13);
/// Status of a call that is made to fail (`HSA_STATUS_ERROR`).
pub(crate) const FAILED: u32 = 0x1000;

#[derive(Default)]
pub(crate) struct FakeDevice {
    agents: usize,
    loaded: Vec<Loaded>,
    next_base: u64,
    memory: RefCell<BTreeMap<u64, Vec<u8>>>,
    unreadable: BTreeSet<u64>,
    /// Code objects whose ELF the program has freed.
    pub(crate) images_gone: bool,
    /// Copies out of the device so far, as (address, length in bytes).
    pub(crate) reads: RefCell<Vec<(u64, usize)>>,
}

struct Loaded {
    executable: Executable,
    agent: u64,
    base: u64,
    len: u64,
    image: Vec<u8>,
    symbols: HashMap<String, (u64, u64)>,
    /// Address and size of the counters section by its header.
    counters: Option<(u64, u64)>,
}

impl FakeDevice {
    /// A runtime with this number of GPUs.
    pub(crate) fn new(agents: usize) -> Self {
        FakeDevice {
            agents,
            next_base: 0x7f00_0000_0000,
            ..FakeDevice::default()
        }
    }

    /// Loads `image` into `executable` on GPU `agent`, at an address of its own.
    pub(crate) fn load(&mut self, executable: Executable, agent: usize, image: &[u8]) {
        let elf = ElfFile64::<LittleEndian>::parse(image).expect("a device ELF");
        let len = elf
            .segments()
            .map(|it| it.address() + it.size())
            .max()
            .expect("a segment");
        let base = self.next_base;
        self.next_base += len.next_multiple_of(1 << 20) + (1 << 20);
        let mut memory = vec![0; len as usize];
        for segment in elf.segments() {
            let data = segment.data().expect("segment data");
            let at = segment.address() as usize;
            memory[at..at + data.len()].copy_from_slice(data);
        }
        for (offset, relocation) in elf.dynamic_relocations().expect("relocations") {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                panic!("an ELF has ELF relocations")
            };
            assert_eq!(
                r_type, R_AMDGPU_RELATIVE64,
                "a relocation that nobody expected"
            );
            let value = base.wrapping_add_signed(relocation.addend());
            memory[offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
        }
        let symbols = elf
            .dynamic_symbols()
            .filter(ObjectSymbol::is_definition)
            .map(|it| {
                (
                    it.name().expect("a name").to_owned(),
                    (it.address(), it.size()),
                )
            })
            .collect();
        let counters = elf
            .section_by_name("__llvm_prf_cnts")
            .map(|it| (it.address(), it.size()));
        self.memory.borrow_mut().insert(base, memory);
        let image = image.to_vec();
        let agent = handle(agent);
        self.loaded.push(Loaded {
            executable,
            agent,
            base,
            len,
            image,
            symbols,
            counters,
        });
    }

    /// Destroys `executable`: its memory is gone.
    pub(crate) fn unload(&mut self, executable: Executable) {
        let memory = self.memory.get_mut();
        self.loaded.retain(|it| {
            if it.executable == executable {
                memory.remove(&it.base);
            }
            it.executable != executable
        });
    }

    /// Adds to the counters of `function`, as its kernel would.
    pub(crate) fn count(&self, executable: Executable, function: &str, by: &[u64]) {
        self.add(self.find(executable, &format!("__profc_{function}")), by);
    }

    /// Adds to all counters of a code object: old compilers give the counters no symbol.
    pub(crate) fn count_all(&self, executable: Executable, by: &[u64]) {
        let loaded = self.loaded(executable);
        let (address, size) = loaded.counters.expect("an instrumented code object");
        self.add((loaded.base + address, size), by);
    }

    fn add(&self, (address, size): (u64, u64), by: &[u64]) {
        assert_eq!(size, 8 * by.len() as u64, "a counter for each number");
        for (index, more) in by.iter().enumerate() {
            let at = address + 8 * index as u64;
            let old = u64::from_le_bytes(self.peek(at, 8).try_into().expect("8 bytes"));
            self.poke(at, &(old + more).to_le_bytes());
        }
    }

    fn loaded(&self, executable: Executable) -> &Loaded {
        self.loaded
            .iter()
            .find(|it| it.executable == executable)
            .expect("loaded")
    }

    /// Device address and size of a symbol.
    pub(crate) fn find(&self, executable: Executable, symbol: &str) -> (u64, u64) {
        let loaded = self.loaded(executable);
        let (address, size) = loaded.symbols[symbol];
        (loaded.base + address, size)
    }

    /// Where a code object is loaded.
    pub(crate) fn base(&self, executable: Executable) -> u64 {
        self.loaded(executable).base
    }

    /// Names of the symbols that the loader knows.
    pub(crate) fn symbols(&self, executable: Executable) -> impl Iterator<Item = &str> {
        let of_executable = self
            .loaded
            .iter()
            .filter(move |it| it.executable == executable);
        of_executable.flat_map(|it| it.symbols.keys().map(String::as_str))
    }

    /// Bytes of device memory.
    pub(crate) fn peek(&self, address: u64, len: usize) -> Vec<u8> {
        let memory = self.memory.borrow();
        let (base, bytes) = memory.range(..=address).next_back().expect("mapped");
        bytes[(address - base) as usize..][..len].to_vec()
    }

    /// Changes device memory.
    pub(crate) fn poke(&self, address: u64, value: &[u8]) {
        let mut memory = self.memory.borrow_mut();
        let (base, bytes) = memory.range_mut(..=address).next_back().expect("mapped");
        bytes[(address - base) as usize..][..value.len()].copy_from_slice(value);
    }

    /// Makes every copy from the code object of `executable` fail.
    pub(crate) fn break_reads(&mut self, executable: Executable) {
        let bases = self
            .loaded
            .iter()
            .filter(|it| it.executable == executable)
            .map(|it| it.base);
        self.unreadable.extend(bases);
    }
}

fn handle(agent: usize) -> u64 {
    0xa000 + agent as u64
}

impl Device for FakeDevice {
    fn agents(&self) -> Result<Vec<Agent>, DeviceError> {
        let agent = |index| Agent {
            handle: handle(index),
            index,
            name: "gfx90a".into(),
        };
        Ok((0..self.agents).map(agent).collect())
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        let all: BTreeSet<_> = self.loaded.iter().map(|it| it.executable).collect();
        Ok(all.into_iter().collect())
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        let of_executable = self.loaded.iter().filter(|it| it.executable == executable);
        Ok(of_executable
            .map(|it| LoadedCodeObject {
                executable,
                agent: it.agent,
                uri: format!("memory://1#offset={:#x}&size={}", it.base, it.image.len()),
                segment: DeviceRange {
                    start: it.base,
                    len: it.len,
                },
                load_delta: it.base,
                storage: Some(DeviceRange {
                    start: it.base,
                    len: it.image.len() as u64,
                }),
            })
            .collect())
    }

    fn symbol(
        &self,
        executable: Executable,
        agent: u64,
        name: &str,
    ) -> Result<Option<Symbol>, DeviceError> {
        let of_agent = self
            .loaded
            .iter()
            .filter(|it| it.executable == executable && it.agent == agent);
        let mut found = of_agent.filter_map(|it| it.symbols.get(name).map(|it2| (it.base, *it2)));
        Ok(found.next().map(|(base, (address, size))| Symbol {
            address: base + address,
            size,
        }))
    }

    fn image(&self, storage: DeviceRange) -> Result<Vec<u8>, DeviceError> {
        let loaded = self
            .loaded
            .iter()
            .find(|it| it.base == storage.start && !self.images_gone);
        loaded
            .map(|it| it.image.clone())
            .ok_or_else(|| DeviceError::Storage {
                range: storage,
                source: io::Error::other("freed"),
            })
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.reads.borrow_mut().push((address, into.len()));
        let memory = self.memory.borrow();
        let failed = DeviceError::Call {
            call: "hsa_memory_copy",
            status: FAILED,
        };
        let Some((base, bytes)) = memory.range(..=address).next_back() else {
            return Err(failed);
        };
        if self.unreadable.contains(base) {
            return Err(failed);
        }
        let at = (address - base) as usize;
        let range = at
            .checked_add(into.len())
            .and_then(|end| bytes.get(at..end));
        into.copy_from_slice(range.ok_or(failed)?);
        Ok(())
    }
}
