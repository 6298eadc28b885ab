//! The code objects of kernels that no loader has put into memory.
//!
//! A program that drives the GPU itself copies the sections of an ELF file into memory, and tells nobody. It may free that
//! memory and use it again. So a trace's counts are kept by file: those at the addresses where its code is, and those of
//! places that are gone.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use modelgpu_amdgcn::code_object::Origin;
use modelgpu_amdgcn::memory::Region;
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
    /// The regions of memory with kernels, by their first addresses.
    regions: BTreeMap<u64, Seen>,
}

/// A file whose code is, or was, in memory.
struct PlacedFile {
    gpu: usize,
    /// The bytes stay until the process ends, as its trace does.
    bytes: &'static [u8],
    /// The counts of places that are gone, by the number of the word.
    earlier: BTreeMap<u64, Executed>,
}

/// A region with kernels.
struct Seen {
    len: u64,
    /// The number of the file. `None` if a loader has put the code there, or if there is no file.
    file: Option<usize>,
}

impl Placed {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that GPU number `gpu` runs a kernel in `region`. Asks for its origin once. Returns whether that is not known,
    /// the first time.
    pub(crate) fn see(&self, gpu: usize, region: &Region, origin: impl FnOnce() -> Origin) -> bool {
        let mut table = self.lock();
        if table.regions.contains_key(&region.base) {
            return false;
        }
        let origin = origin();
        let is_unknown = origin == Origin::Unknown;
        let file = match origin {
            Origin::Program(code) => Some(table.file(gpu, code.file)),
            Origin::Loader | Origin::Unknown => None,
        };
        let len = region.len;
        table.regions.insert(region.base, Seen { len, file });
        is_unknown
    }

    /// Moves the counts of the code in `size` bytes at `address`, which the program frees, to the code's files.
    pub(crate) fn gone(&self, trace: &Trace, address: u64, size: u64) {
        let mut table = self.lock();
        let table = &mut *table;
        let bases: Vec<u64> = (table.regions)
            .range(address..address.saturating_add(size))
            .map(|(base, _)| *base)
            .collect();
        for base in bases {
            let Some(Seen { len, file }) = table.regions.remove(&base) else {
                continue;
            };
            if let Some(file) = file {
                let earlier = &mut table.files[file].earlier;
                trace.read(base, len / WORD, |word, executed| {
                    add(earlier.entry(word).or_default(), executed);
                });
                trace.clear(base, len / WORD);
            }
        }
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
        for base in table.bases(number) {
            trace.read(base + at, words, |word, executed| {
                add(sums.entry(word).or_default(), executed);
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
        for base in table.bases(number) {
            trace.clear(base + at, words);
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
    fn file(&mut self, gpu: usize, bytes: Vec<u8>) -> usize {
        let mut files = self.files.iter();
        let known = files.position(|file| file.gpu == gpu && file.bytes == bytes);
        known.unwrap_or_else(|| {
            self.files.push(PlacedFile {
                gpu,
                bytes: bytes.leak(),
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

    /// The addresses of the places where a file's code is.
    fn bases(&self, number: usize) -> Vec<u64> {
        let regions = self.regions.iter();
        regions
            .filter(|(_, seen)| seen.file == Some(number))
            .map(|(base, _)| *base)
            .collect()
    }
}

fn add(sum: &mut Executed, more: Executed) {
    sum.waves += more.waves;
    sum.lanes += more.lanes;
}

#[cfg(test)]
#[path = "placed_tests.rs"]
mod tests;
