//! The exported symbols of a loaded object, read from its own tables in memory.
//!
//! `dlsym` takes a handle, which comes from `dlopen`. `dlopen` has side effects: while the process
//! exits, glibc (2.36) runs the constructors of an object again if the object has been finalised and is
//! opened for the first time, even with `RTLD_NOLOAD`.
#![expect(unsafe_code, reason = "reads the symbol tables of objects in memory")]

use std::ffi::{CStr, c_char};
use std::ops::Range;

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// `Elf64_Dyn`.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// The symbol tables of an object.
#[derive(Debug)]
pub(super) struct Symbols {
    load_bias: usize,
    symbols: *const libc::Elf64_Sym,
    strings: *const c_char,
    hashes: GnuHash,
}

/// A `DT_GNU_HASH` table: a header, a Bloom filter, the first symbol of each bucket, and the hash of
/// each symbol. The lowest bit is set in the hash of the last symbol of a bucket.
#[derive(Debug)]
struct GnuHash {
    buckets: *const u32,
    bucket_count: u32,
    chains: *const u32,
    /// The first symbol with a chain entry.
    first: u32,
}

impl Symbols {
    /// Returns the tables of the object with its dynamic section at `dynamic`; `None` if one is missing.
    ///
    /// # Safety
    /// `dynamic` is the address of the dynamic section of an object, which ends with DT_NULL, and `load_bias` and
    /// `segments` are those of this object, which is still loaded and stays so.
    pub(super) unsafe fn new(
        dynamic: usize,
        load_bias: usize,
        segments: &[Range<usize>],
    ) -> Option<Self> {
        let [mut symbols, mut strings, mut hashes] = [0_usize; 3];
        let mut entry = dynamic as *const Dynamic;
        // SAFETY: a dynamic section ends with DT_NULL.
        while let Dynamic { tag, value } = unsafe { &*entry }
            && *tag != DT_NULL
        {
            // glibc has replaced the offsets by addresses, except in the kernel's own object.
            let value = *value as usize;
            let address = match segments.iter().any(|segment| segment.contains(&value)) {
                true => value,
                false => load_bias.wrapping_add(value),
            };
            match *tag {
                DT_SYMTAB => symbols = address,
                DT_STRTAB => strings = address,
                DT_GNU_HASH => hashes = address,
                _ => {}
            }
            // SAFETY: this was not the last one.
            entry = unsafe { entry.add(1) };
        }
        let all = symbols != 0 && strings != 0 && hashes != 0;
        all.then(|| Self {
            load_bias,
            symbols: symbols as *const libc::Elf64_Sym,
            strings: strings as *const c_char,
            // SAFETY: the object's own table.
            hashes: unsafe { GnuHash::at(hashes as *const u32) },
        })
    }

    /// Returns the address of the object's definition of `name`.
    pub(super) fn find(&self, name: &CStr) -> Option<usize> {
        let hash = gnu_hash(name);
        let mut index = self.hashes.first_of(hash)?;
        loop {
            // SAFETY: a symbol in a bucket.
            let (found, (symbol, symbols_name)) =
                unsafe { (self.hashes.hash(index), self.symbol(index)) };
            if found | 1 == hash | 1 && symbol.st_shndx != 0 && symbols_name == name {
                return Some(self.load_bias.wrapping_add(symbol.st_value as usize));
            }
            if found & 1 == 1 {
                return None;
            }
            index += 1;
        }
    }

    /// Returns whether the object takes `name` from another object; `None` if the tables do not tell. A
    /// `DT_GNU_HASH` table has no entries for such symbols: they come before its first.
    pub(super) fn imports(&self, name: &CStr) -> Option<bool> {
        if self.hashes.is_empty() {
            // Linkers write 1 or the number of symbols as the first symbol then.
            return None;
        }
        // Most names differ in their first letters, and a HIP program has thousands of long ones.
        // SAFETY: the object has these symbols before the first with a hash, and their names are NUL terminated.
        let is_it = |index: u32| unsafe {
            let symbol = &*self.symbols.add(index as usize);
            libc::strcmp(self.strings.add(symbol.st_name as usize), name.as_ptr()) == 0
        };
        Some((0..self.hashes.first).any(is_it))
    }

    /// Returns a symbol and its name.
    ///
    /// # Safety
    /// The object has a symbol of this number.
    unsafe fn symbol(&self, index: u32) -> (&libc::Elf64_Sym, &CStr) {
        // SAFETY: the object's own tables, in which names are NUL terminated.
        unsafe {
            let symbol = &*self.symbols.add(index as usize);
            let name = self.strings.add(symbol.st_name as usize);
            (symbol, CStr::from_ptr(name))
        }
    }
}

impl GnuHash {
    /// Returns the parts of a table.
    ///
    /// # Safety
    /// `table` is a `DT_GNU_HASH` table.
    unsafe fn at(table: *const u32) -> Self {
        // SAFETY: the table starts with four words; the filter has words of 64 bits.
        unsafe {
            let [bucket_count, first, filter_words] = [*table, *table.add(1), *table.add(2)];
            let buckets = table.add(4 + 2 * filter_words as usize);
            Self {
                buckets,
                bucket_count,
                chains: buckets.add(bucket_count as usize),
                first,
            }
        }
    }

    /// Returns whether no symbol has an entry.
    fn is_empty(&self) -> bool {
        // SAFETY: the table has this number of buckets.
        (0..self.bucket_count).all(|bucket| unsafe { *self.buckets.add(bucket as usize) } == 0)
    }

    /// Returns the first symbol in the bucket of `hash`.
    fn first_of(&self, hash: u32) -> Option<u32> {
        let bucket = hash.checked_rem(self.bucket_count)?;
        // SAFETY: the index is below the number of buckets.
        let index = unsafe { *self.buckets.add(bucket as usize) };
        // An empty bucket holds 0, which is never an exported symbol.
        (index >= self.first && index != 0).then_some(index)
    }

    /// Returns the hash of a symbol.
    ///
    /// # Safety
    /// `symbol` is in some bucket.
    unsafe fn hash(&self, symbol: u32) -> u32 {
        // SAFETY: a symbol in a bucket has an entry.
        unsafe { *self.chains.add((symbol - self.first) as usize) }
    }
}

fn gnu_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381_u32, |hash, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_the_format() {
        // Values from the ELF documents of the GNU toolchain.
        for (name, hash) in [
            (c"", 0x0000_1505),
            (c"printf", 0x156b_2bb8),
            (c"exit", 0x7c96_7e3f),
            (c"syscall", 0xbac2_12a0),
        ] {
            assert_eq!(gnu_hash(name), hash, "{name:?}");
        }
    }
}
