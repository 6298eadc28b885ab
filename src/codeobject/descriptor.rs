//! Kernel descriptors: where kernels are in their code object (LLVM's AMDGPUUsage, "Kernel
//! Descriptor").

use std::collections::{HashMap, HashSet};

use byteorder::{ByteOrder, LittleEndian};
use object::read::ReadRef;
use thiserror::Error;

use super::elf::{CodeObject, CodeObjectError, Symbol};

/// Size of a kernel descriptor in bytes.
const BYTES: usize = 64;
/// Where in it the distance is from its own address to the first instruction, an i64.
const ENTRY_OFFSET: usize = 16;

/// What is wrong with a kernel descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// No symbol leads to it.
    #[error("no kernel descriptor {symbol}: expected a symbol of that name in .dynsym")]
    Absent {
        /// The symbol that the metadata names.
        symbol: String,
    },
    /// It is not within the section of its symbol.
    #[error(
        "kernel descriptor {symbol} at {address:#x}: expected {BYTES} bytes within its section, \
         which has {len} bytes from {start:#x}"
    )]
    Outside {
        /// Its symbol.
        symbol: String,
        /// ELF address of the symbol.
        address: u64,
        /// ELF address of the section.
        start: u64,
        /// Bytes of the section that are in the file.
        len: usize,
    },
    /// The first instruction is not in code.
    #[error(
        "kernel descriptor {symbol}: entry {entry:#x}, expected an address of an executable segment"
    )]
    Entry {
        /// Its symbol.
        symbol: String,
        /// ELF address of the first instruction, as found.
        entry: u64,
    },
}

/// The kernel descriptors of a code object, by symbol.
pub(super) struct Descriptors<'data, 'elf, R: ReadRef<'data>> {
    code_object: &'elf CodeObject<'data, R>,
    symbols: HashMap<&'data [u8], Symbol<'data>>,
}

/// ELF addresses of a kernel.
pub(super) struct Place {
    pub(super) descriptor: u64,
    pub(super) entry: u64,
}

impl<'data, 'elf, R: ReadRef<'data>> Descriptors<'data, 'elf, R> {
    pub(super) fn of(code_object: &'elf CodeObject<'data, R>) -> Result<Self, CodeObjectError> {
        let symbols = code_object.symbols()?.into_iter();
        let descriptors = symbols.filter(|symbol| symbol.name.ends_with(b".kd"));
        let symbols: HashMap<_, _> = descriptors.map(|symbol| (symbol.name, symbol)).collect();
        // Each of their sections is read as a whole.
        let sections: HashSet<usize> = symbols.values().map(|symbol| symbol.section).collect();
        code_object.check_sections("sections with kernel descriptors", sections.into_iter())?;
        Ok(Descriptors {
            code_object,
            symbols,
        })
    }

    /// Where the kernel is whose descriptor has this symbol.
    pub(super) fn place(&self, name: &str) -> Result<Place, CodeObjectError> {
        let symbol = self.symbols.get(name.as_bytes());
        let Symbol {
            address, section, ..
        } = *symbol.ok_or_else(|| DescriptorError::Absent {
            symbol: name.to_owned(),
        })?;
        // The whole section: it has the other descriptors too, and is read once.
        let (start, data) = self.code_object.section_at(section)?;
        let descriptor = usize::try_from(address.wrapping_sub(start))
            .ok()
            .and_then(|at| data.get(at..)?.get(..BYTES))
            .ok_or_else(|| DescriptorError::Outside {
                symbol: name.to_owned(),
                address,
                start,
                len: data.len(),
            })?;
        let entry = address.wrapping_add(LittleEndian::read_u64(&descriptor[ENTRY_OFFSET..]));
        if !self.code_object.is_code(entry)? {
            let symbol = name.to_owned();
            return Err(DescriptorError::Entry { symbol, entry }.into());
        }
        Ok(Place {
            descriptor: address,
            entry,
        })
    }
}
