//! Kernel descriptors: the addresses of kernels in their code object (LLVM's AMDGPUUsage, "Kernel
//! Descriptor").

use std::collections::{HashMap, HashSet};

use byteorder::{ByteOrder, LittleEndian};
use object::read::ReadRef;

use crate::format::codeobject::elf::{CodeObject, ElfSymbol};
use crate::format::codeobject::error::{CodeObjectError, DESCRIPTOR_BYTES, DescriptorError};

/// The offset of the i64 distance from the descriptor's address to the first instruction.
const ENTRY_OFFSET: usize = 16;

/// The kernel descriptors of a code object, by symbol.
pub(super) struct Descriptors<'data, 'elf, R: ReadRef<'data>> {
    code_object: &'elf CodeObject<'data, R>,
    symbols: HashMap<&'data [u8], ElfSymbol<'data>>,
}

/// The ELF addresses of a kernel.
pub(super) struct Place {
    pub(super) descriptor: u64,
    pub(super) entry: u64,
}

impl<'data, 'elf, R: ReadRef<'data>> Descriptors<'data, 'elf, R> {
    pub(super) fn new(code_object: &'elf CodeObject<'data, R>) -> Result<Self, CodeObjectError> {
        let symbols = code_object.symbols()?.iter().copied();
        let descriptors = symbols.filter(|symbol| symbol.name.ends_with(b".kd"));
        let symbols: HashMap<_, _> = descriptors.map(|symbol| (symbol.name, symbol)).collect();
        // `place` reads each of these sections as a whole.
        let sections: HashSet<usize> = symbols.values().map(|symbol| symbol.section).collect();
        code_object.check_sections("sections with kernel descriptors", sections.into_iter())?;
        Ok(Descriptors {
            code_object,
            symbols,
        })
    }

    /// The addresses of the kernel whose descriptor has this symbol.
    pub(super) fn place(&self, name: &str) -> Result<Place, CodeObjectError> {
        let symbol = self.symbols.get(name.as_bytes());
        let ElfSymbol {
            address, section, ..
        } = *symbol.ok_or_else(|| DescriptorError::Absent {
            symbol: name.to_owned(),
        })?;
        // Reads the whole section: it also has the other descriptors, and is read once.
        let (start, data) = self.code_object.section_at(section)?;
        let descriptor = usize::try_from(address.wrapping_sub(start))
            .ok()
            .and_then(|at| data.get(at..)?.get(..DESCRIPTOR_BYTES))
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
