//! The code objects of kernels that no loader has put into memory.
//!
//! A program that drives the GPU itself copies the sections of an ELF file into memory, and tells nobody. It may free that
//! memory and use it again. So a trace's counts are kept by file: those at the addresses where its code is, and those of
//! places that are gone. At each launch, the code of the kernel's file is compared with the memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use modelgpu_amdgcn::code_object::{CodeSection, Origin, start_of_code};
use modelgpu_amdgcn::memory::AddressSpace;
use modelgpu_amdgcn::{Executed, Trace};

/// The bit of the addresses that belong to files. No GPU has them.
const PLACED: u64 = 1 << 61;
/// A file has the addresses from a multiple of 2 to the power of this on.
const FILE_BITS: u32 = 32;
/// The size of a word of code in bytes.
const WORD: u64 = 4;

/// Returns whether this is an address of a file.
pub(crate) fn is_placed(address: u64) -> bool {
    address & PLACED != 0
}

/// The code objects of a process.
#[derive(Default)]
pub(crate) struct Placed(Mutex<Table>);

#[derive(Default)]
struct Table {
    files: Vec<PlacedFile>,
    /// The sections of files in memory, by their first addresses. They do not overlap.
    sections: BTreeMap<u64, Section>,
    /// The regions of memory that a loader has filled: their first addresses and lengths.
    loaded: BTreeMap<u64, u64>,
    /// The first bytes of the kernels that are in no file, by their addresses.
    unknown: BTreeMap<u64, Vec<u8>>,
}

/// A file whose code is, or was, in memory.
struct PlacedFile {
    gpu: usize,
    /// The bytes stay until the process ends, as its trace does.
    bytes: &'static [u8],
    code: Vec<CodeSection>,
    /// The counts of places that are gone, by the number of the word.
    earlier: BTreeMap<u64, Executed>,
}

/// A section of a file in memory.
struct Section {
    end: u64,
    place: Place,
}

/// The place of a file: its number, and the address of the ELF's address 0.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    file: usize,
    base: u64,
}

impl Placed {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that GPU number `gpu` runs the kernel that starts at `entry`. Asks for the origin of its code if it has not
    /// seen the code there before: the program may put several files into one region, and write other code over them.
    /// Returns whether the origin is not known, the first time.
    pub(crate) fn see(
        &self,
        gpu: usize,
        trace: &Trace,
        memory: &dyn AddressSpace,
        entry: u64,
        origin: impl FnOnce() -> Origin,
    ) -> bool {
        let Some(region) = memory.region(entry) else {
            return false;
        };
        let mut table = self.lock();
        if table.loaded.contains_key(&region.base) {
            return false;
        }
        if let Some(place) = table.place_at(entry) {
            if table.is_there(place, memory) {
                return false;
            }
            table.retire(trace, place);
        }
        let start = start_of_code(memory, entry);
        if table.unknown.get(&entry) == Some(&start) {
            return false;
        }
        match origin() {
            Origin::Loader => {
                table.loaded.insert(region.base, region.len);
                false
            }
            Origin::Program(code) => {
                let file = table.file(gpu, code.file, code.sections);
                table.put(
                    trace,
                    Place {
                        file,
                        base: code.base,
                    },
                );
                table.unknown.remove(&entry);
                false
            }
            Origin::Unknown => {
                table.unknown.insert(entry, start);
                true
            }
        }
    }

    /// Moves the counts of the code in `size` bytes at `address`, which the program frees, to the code's files.
    pub(crate) fn gone(&self, trace: &Trace, address: u64, size: u64) {
        let mut table = self.lock();
        let gone = address..address.saturating_add(size);
        table.retire_all(trace, &gone);
        table.loaded.retain(|base, _| !gone.contains(base));
        table.unknown.retain(|entry, _| !gone.contains(entry));
    }

    /// The number, the GPU and the bytes of each file.
    pub(crate) fn files(&self) -> Vec<(u64, usize, &'static [u8])> {
        let table = self.lock();
        let files = table.files.iter().enumerate();
        files
            .map(|(number, file)| (number as u64, file.gpu, file.bytes))
            .collect()
    }

    /// Calls `visit` with the place and the counts of each executed instruction in the `words` words from an address of a
    /// file on.
    pub(crate) fn read(
        &self,
        trace: &Trace,
        address: u64,
        words: u64,
        mut visit: impl FnMut(u64, Executed),
    ) {
        let table = self.lock();
        let Some((number, at)) = table.place(address) else {
            return;
        };
        let first = at / WORD;
        let mut sums = BTreeMap::<u64, Executed>::new();
        let earlier = &table.files[number].earlier;
        for (word, executed) in earlier.range(first..first.saturating_add(words)) {
            add(sums.entry(word - first).or_default(), *executed);
        }
        for (start, words, word) in table.parts(number, at, words) {
            trace.read(start, words, |further, executed| {
                add(sums.entry(word + further).or_default(), executed);
            });
        }
        for (word, executed) in sums {
            visit(word, executed);
        }
    }

    /// Forgets the counts of the `words` words from an address of a file on.
    pub(crate) fn forget(&self, trace: &Trace, address: u64, words: u64) {
        let mut table = self.lock();
        let Some((number, at)) = table.place(address) else {
            return;
        };
        for (start, words, _) in table.parts(number, at, words) {
            trace.clear(start, words);
        }
        let first = at / WORD;
        let gone = first..first.saturating_add(words);
        table.files[number]
            .earlier
            .retain(|word, _| !gone.contains(word));
    }
}

impl Table {
    /// The number of a file that a GPU runs.
    fn file(&mut self, gpu: usize, bytes: Vec<u8>, code: Vec<CodeSection>) -> usize {
        let mut files = self.files.iter();
        let known = files.position(|file| file.gpu == gpu && file.bytes == bytes);
        known.unwrap_or_else(|| {
            self.files.push(PlacedFile {
                gpu,
                bytes: bytes.leak(),
                code,
                earlier: BTreeMap::new(),
            });
            self.files.len() - 1
        })
    }

    /// The file of an address, and the place in its ELF.
    fn place(&self, address: u64) -> Option<(usize, u64)> {
        let address = address & !PLACED;
        let number = (address >> FILE_BITS) as usize;
        let at = address & ((1 << FILE_BITS) - 1);
        (number < self.files.len()).then_some((number, at))
    }

    /// The parts of memory with the code of a file from `at` on, in `words` words: the address, the number of words, and
    /// that of the words before it. Other files may be beside it.
    fn parts(&self, file: usize, at: u64, words: u64) -> Vec<(u64, u64, u64)> {
        let sections = self.sections.iter();
        let parts = sections.filter_map(|(&start, section)| {
            let first = section.place.base.saturating_add(at);
            let last = first.saturating_add(words.saturating_mul(WORD));
            let (from, to) = (first.max(start), last.min(section.end));
            (section.place.file == file && from < to)
                .then(|| (from, (to - from).div_ceil(WORD), (from - first) / WORD))
        });
        parts.collect()
    }

    /// The place of the file with the code at an address.
    fn place_at(&self, address: u64) -> Option<Place> {
        let (_, section) = self.sections.range(..=address).next_back()?;
        (address < section.end).then_some(section.place)
    }

    /// Returns whether the code of a file is still at its place.
    fn is_there(&self, place: Place, memory: &dyn AddressSpace) -> bool {
        let PlacedFile { bytes, code, .. } = &self.files[place.file];
        code.iter()
            .all(|section| section.is_at(memory, place.base, bytes))
    }

    /// Puts the code of a file at a place, where nothing of it has run.
    fn put(&mut self, trace: &Trace, place: Place) {
        let code = self.files[place.file].code.iter();
        let ranges: Vec<Range<u64>> = code.map(|section| section.range(place.base)).collect();
        for range in ranges {
            self.retire_all(trace, &range);
            // Those of code that is in no file.
            trace.clear(range.start, (range.end - range.start).div_ceil(WORD));
            let end = range.end;
            self.sections.insert(range.start, Section { end, place });
        }
    }

    /// Forgets the places of the files with code in `range`, but not the counts.
    fn retire_all(&mut self, trace: &Trace, range: &Range<u64>) {
        let before = self.sections.range(..range.end).rev();
        let inside = before.take_while(|(_, section)| section.end > range.start);
        let places: Vec<Place> = inside.map(|(_, section)| section.place).collect();
        for place in places {
            self.retire(trace, place);
        }
    }

    /// Forgets the place of a file, and moves the counts of its code to the file.
    fn retire(&mut self, trace: &Trace, place: Place) {
        let earlier = &mut self.files[place.file].earlier;
        self.sections.retain(|start, section| {
            if section.place != place {
                return true;
            }
            let words = (section.end - start).div_ceil(WORD);
            let first = start.wrapping_sub(place.base) / WORD;
            trace.read(*start, words, |word, executed| {
                add(earlier.entry(first + word).or_default(), executed);
            });
            trace.clear(*start, words);
            false
        });
    }
}

fn add(sum: &mut Executed, more: Executed) {
    sum.waves += more.waves;
    sum.lanes += more.lanes;
}

#[cfg(test)]
#[path = "placed_tests.rs"]
mod tests;
