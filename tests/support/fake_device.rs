//! A device runtime in memory: it loads real code objects like ROCr, and fails by script.
//!
//! It shares no layout code with the library. The `object` crate's high-level reader gives
//! segments, relocations and symbols; the `__profc_` symbols give the counters.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use object::elf::RelocationType;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationFlags};
use rocov::device::{
    Agent, Device, DeviceError, DeviceRange, ElfImage, Executable, LoadedCodeObject, Symbol,
};

/// The only relocation type of a linked code object: base plus addend ("User Guide for AMDGPU
/// Backend").
const R_AMDGPU_RELATIVE64: RelocationType = RelocationType(13);
/// Status of a failing call (`HSA_STATUS_ERROR`).
pub const FAILED: u32 = 0x1000;

/// The runtime and its memory.
#[derive(Clone, Default)]
pub struct FakeDevice {
    agents: usize,
    /// In the order of the loads.
    loaded: BTreeMap<Executable, Vec<Loaded>>,
    next_base: u64,
    memory: RefCell<BTreeMap<u64, Vec<u8>>>,
    unreadable: BTreeSet<u64>,
    /// True once the program has freed all ELFs.
    pub images_gone: bool,
    /// Copies out of the device so far, as (address, length in bytes).
    pub reads: RefCell<Vec<(u64, usize)>>,
}

#[derive(Clone)]
struct Loaded {
    agent: u64,
    base: u64,
    len: u64,
    image: Vec<u8>,
    symbols: HashMap<String, (u64, u64)>,
    /// Address and size of each section in the section headers.
    sections: HashMap<String, (u64, u64)>,
}

impl FakeDevice {
    /// Creates a runtime with this number of GPUs.
    pub fn new(agents: usize) -> Self {
        Self {
            agents,
            next_base: 0x7f00_0000_0000,
            ..Self::default()
        }
    }

    /// Loads `image` into `executable` on GPU `agent`, at a new address.
    pub fn load(&mut self, executable: Executable, agent: usize, image: &[u8]) {
        let elf = ElfFile64::<LittleEndian>::parse(image).expect("a device ELF");
        let len = elf
            .segments()
            .map(|segment| segment.address() + segment.size())
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
                "a relocation of an unexpected type"
            );
            let value = base.wrapping_add_signed(relocation.addend());
            memory[offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
        }
        let symbols = elf
            .dynamic_symbols()
            .filter(ObjectSymbol::is_definition)
            .map(|dynamic_symbol| {
                (
                    dynamic_symbol.name().expect("a name").to_owned(),
                    (dynamic_symbol.address(), dynamic_symbol.size()),
                )
            })
            .collect();
        let sections = elf
            .sections()
            .map(|section| {
                (
                    section.name().expect("a name").to_owned(),
                    (section.address(), section.size()),
                )
            })
            .collect();
        self.memory.borrow_mut().insert(base, memory);
        let image = image.to_vec();
        let agent = handle(agent);
        self.loaded.entry(executable).or_default().push(Loaded {
            agent,
            base,
            len,
            image,
            symbols,
            sections,
        });
    }

    /// Destroys `executable` and its memory.
    pub fn unload(&mut self, executable: Executable) {
        let memory = self.memory.get_mut();
        for loaded in self.loaded.remove(&executable).into_iter().flatten() {
            memory.remove(&loaded.base);
        }
    }

    /// Adds to the counters of `function`, like its kernel.
    pub fn count(&self, executable: Executable, function: &str, by: &[u64]) {
        self.add(self.find(executable, &format!("__profc_{function}")), by);
    }

    /// Adds to all counters of a code object: old compilers give them no symbols.
    pub fn count_all(&self, executable: Executable, by: &[u64]) {
        self.add(self.section(executable, "__llvm_prf_cnts"), by);
    }

    /// Device address and size of a section.
    pub fn section(&self, executable: Executable, name: &str) -> (u64, u64) {
        let loaded = self.loaded(executable);
        let (address, size) = loaded.sections[name];
        (loaded.base + address, size)
    }

    /// Device address and size of the counters of each code object, in the order of executables.
    pub fn counters(&self) -> Vec<(u64, u64)> {
        let counters = |loaded: &Loaded| {
            let (address, size) = loaded.sections["__llvm_prf_cnts"];
            (loaded.base + address, size)
        };
        self.loaded.values().flatten().map(counters).collect()
    }

    /// Frees the ELF of an executable.
    pub fn forget_image(&mut self, executable: Executable) {
        self.loaded_mut(executable).image.clear();
    }

    fn add(&self, (address, size): (u64, u64), by: &[u64]) {
        assert_eq!(size, 8 * by.len() as u64, "a counter for each number");
        for (index, more) in by.iter().enumerate() {
            let at = address + 8 * index as u64;
            let old = u64::from_le_bytes(self.peek(at, 8).try_into().expect("8 bytes"));
            self.poke(at, &(old + more).to_le_bytes());
        }
    }

    /// The code objects of an executable; none if it is destroyed.
    fn all_loaded(&self, executable: Executable) -> &[Loaded] {
        self.loaded.get(&executable).map_or(&[], Vec::as_slice)
    }

    fn loaded(&self, executable: Executable) -> &Loaded {
        self.all_loaded(executable).first().expect("loaded")
    }

    /// Device address and size of a symbol.
    pub fn find(&self, executable: Executable, symbol: &str) -> (u64, u64) {
        let loaded = self.loaded(executable);
        let (address, size) = loaded.symbols[symbol];
        (loaded.base + address, size)
    }

    /// The program's copy of the ELF. The loaded memory does not change.
    pub fn image_mut(&mut self, executable: Executable) -> &mut [u8] {
        &mut self.loaded_mut(executable).image
    }

    /// Hides all symbols from the loader, as after a compiler without a device runtime.
    pub fn hide_symbols(&mut self, executable: Executable) {
        self.loaded_mut(executable).symbols.clear();
    }

    /// Renames a symbol for the loader and in the ELF. If the name gets longer, the string table
    /// moves to the end of the file.
    pub fn rename_symbol(&mut self, executable: Executable, from: &str, to: &str) {
        let loaded = self.loaded_mut(executable);
        let symbol = loaded.symbols.remove(from).expect("a symbol");
        loaded.symbols.insert(to.to_owned(), symbol);
        loaded.image = renamed(&loaded.image, from, to);
    }

    fn loaded_mut(&mut self, executable: Executable) -> &mut Loaded {
        let loaded = self.loaded.get_mut(&executable);
        loaded
            .and_then(|object| object.first_mut())
            .expect("loaded")
    }

    /// The load address of a code object.
    pub fn base(&self, executable: Executable) -> u64 {
        self.loaded(executable).base
    }

    /// Names of the symbols that the loader knows.
    pub fn symbols(&self, executable: Executable) -> impl Iterator<Item = &str> {
        let of_executable = self.all_loaded(executable).iter();
        of_executable.flat_map(|object| object.symbols.keys().map(String::as_str))
    }

    /// Reads device memory.
    pub fn peek(&self, address: u64, len: usize) -> Vec<u8> {
        let memory = self.memory.borrow();
        let (base, bytes) = memory.range(..=address).next_back().expect("mapped");
        bytes[(address - base) as usize..][..len].to_vec()
    }

    /// Writes device memory.
    pub fn poke(&self, address: u64, value: &[u8]) {
        let mut memory = self.memory.borrow_mut();
        let (base, bytes) = memory.range_mut(..=address).next_back().expect("mapped");
        bytes[(address - base) as usize..][..value.len()].copy_from_slice(value);
    }

    /// Makes every copy from the code object of `executable` fail.
    pub fn break_reads(&mut self, executable: Executable) {
        let loaded = self.loaded.get(&executable).into_iter().flatten();
        self.unreadable.extend(loaded.map(|object| object.base));
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
            isa: Some("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-".into()),
            uuid: Some(format!("GPU-{index:016x}")),
            // All agents are behind one CPU.
            node: u32::try_from(index + 1).ok(),
        };
        Ok((0..self.agents).map(agent).collect())
    }

    fn executables(&self) -> Result<Vec<Executable>, DeviceError> {
        Ok(self.loaded.keys().copied().collect())
    }

    fn code_objects(&self, executable: Executable) -> Result<Vec<LoadedCodeObject>, DeviceError> {
        Ok(self
            .all_loaded(executable)
            .iter()
            .map(|object| LoadedCodeObject {
                executable,
                agent: object.agent,
                uri: format!(
                    "memory://1#offset={:#x}&size={}",
                    object.base,
                    object.image.len()
                ),
                segment: DeviceRange {
                    start: object.base,
                    len: object.len,
                },
                load_delta: object.base,
                storage: Some(DeviceRange {
                    start: object.base,
                    len: object.image.len() as u64,
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
            .all_loaded(executable)
            .iter()
            .filter(|object| object.agent == agent);
        let mut found =
            of_agent.filter_map(|object| object.symbols.get(name).map(|it2| (object.base, *it2)));
        Ok(found.next().map(|(base, (address, size))| Symbol {
            address: base + address,
            size,
        }))
    }

    fn image(&self, code_object: &LoadedCodeObject) -> Result<Box<dyn ElfImage>, DeviceError> {
        let base = code_object.segment.start;
        let loaded = self
            .all_loaded(code_object.executable)
            .iter()
            .find(|object| object.base == base && !self.images_gone && !object.image.is_empty());
        match loaded {
            Some(loaded) => Ok(Box::new(io::Cursor::new(loaded.image.clone()))),
            None => Err(DeviceError::Image {
                uri: code_object.uri.clone(),
                source: io::Error::other("freed"),
            }),
        }
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

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        // Readable memory is also writable.
        self.read(address, &mut vec![0; from.len()])?;
        self.poke(address, from);
        Ok(())
    }
}

/// `image` with a renamed dynamic symbol. The string table moves to the end, which has room.
fn renamed(image: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut image = image.to_vec();
    let word = |image: &[u8], at: usize| {
        u64::from_le_bytes(image[at..at + 8].try_into().expect("8 bytes")) as usize
    };
    // ELF-64: e_shoff at 40, e_shnum at 60; a section header has 64 bytes, sh_type at 4,
    // sh_offset at 24, sh_size at 32, sh_link at 40.
    let headers = word(&image, 40);
    let half = |at: usize| u16::from_le_bytes([image[at], image[at + 1]]) as usize;
    let count = half(60);
    let dynsym = (0..count)
        .map(|index| headers + 64 * index)
        .find(|at| image[at + 4] == 11)
        .expect("a dynamic symbol table");
    let strings = headers + 64 * image[dynsym + 40] as usize;
    let (offset, size) = (word(&image, strings + 24), word(&image, strings + 32));
    let mut table = image[offset..offset + size].to_vec();
    let old = [from.as_bytes(), b"\0"].concat();
    let at = table
        .windows(old.len())
        .position(|window| window == old)
        .expect("the name");
    let new = table.len() as u32;
    table.extend_from_slice(to.as_bytes());
    table.push(0);
    let end = image.len();
    image.extend_from_slice(&table);
    image[strings + 24..strings + 32].copy_from_slice(&(end as u64).to_le_bytes());
    image[strings + 32..strings + 40].copy_from_slice(&(table.len() as u64).to_le_bytes());
    // A symbol has 24 bytes, st_name first.
    let (symbols, symbols_size) = (word(&image, dynsym + 24), word(&image, dynsym + 32));
    for symbol in (symbols..symbols + symbols_size).step_by(24) {
        if image[symbol..symbol + 4] == (at as u32).to_le_bytes() {
            image[symbol..symbol + 4].copy_from_slice(&new.to_le_bytes());
        }
    }
    image
}
