//! Code that a program has put into memory by itself, section by section, without a loader.
//!
//! There is no ELF header in memory then, but the program has the file that it has taken the sections from. Any bytes of its
//! memory may look like the start of a file, so this module reads no more of a file than it needs, and checks each number.

use std::ops::Range;

use goblin::elf::header::EM_AMDGPU;
use goblin::elf::section_header::{SHF_EXECINSTR, SHT_NOBITS};

use super::descriptor::KernelDescriptor;
use super::image::{CodeObjectName, KernelIdentity};
use super::source::Files;
use crate::memory::{AddressSpace, View};

/// The first bytes of an ELF file with 64-bit fields in little endian.
const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// The size of a section header in bytes.
const SECTION_HEADER: usize = 64;
/// The alignment of instructions.
const WORD: usize = 4;
/// The bytes at a kernel's start that tell it from most others.
const START: u64 = 256;
/// Bytes of memory that are compared at once.
const CHUNK: usize = 4096;

/// Code in memory that came from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedCode {
    /// The file.
    pub file: Vec<u8>,
    /// Its sections with code.
    pub sections: Vec<CodeSection>,
    /// The address of the ELF's address 0.
    pub base: u64,
}

/// A section with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSection {
    /// The address in the ELF.
    pub address: u64,
    /// The place in the file.
    pub file: Range<usize>,
}

/// The origin of the code at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A loader has put it there, as a whole ELF image.
    Loader,
    /// The program has put the sections of a file there.
    Program(PlacedCode),
    /// It is not known.
    Unknown,
}

/// The address of the first instruction of the kernel with this descriptor. `None` if the descriptor is not mapped.
pub fn entry_of(memory: &dyn AddressSpace, kernel_object: u64) -> Option<u64> {
    let descriptor = KernelDescriptor::read(&mut View::new(memory), kernel_object).ok()?;
    Some(kernel_object.wrapping_add_signed(descriptor.entry_offset))
}

/// The first bytes of the code at `entry`, which tell it from most other code.
pub fn start_of_code(memory: &dyn AddressSpace, entry: u64) -> Vec<u8> {
    let left = memory.region(entry).map(|r| r.len - (entry - r.base));
    let copy = left.map(|left| View::new(memory).copy(entry, left.min(START)));
    copy.and_then(Result::ok).unwrap_or_default()
}

impl CodeSection {
    /// The sections with code in an ELF file for AMD GPUs. `None` if it is not one, is damaged or has no code.
    fn all(file: &[u8]) -> Option<Vec<Self>> {
        let is_for_gpus = file.starts_with(MAGIC) && short(file, 18)? == EM_AMDGPU;
        if !is_for_gpus || usize::from(short(file, 58)?) != SECTION_HEADER {
            return None;
        }
        let headers = file.get(usize::try_from(long(file, 40)?).ok()?..)?;
        let headers = headers.get(..SECTION_HEADER * usize::from(short(file, 60)?))?;
        let mut sections = Vec::new();
        for header in headers.chunks_exact(SECTION_HEADER) {
            let [flags, address, start, size] = [8, 16, 24, 32].map(|at| long(header, at));
            let (start, size) = (usize::try_from(start?).ok()?, usize::try_from(size?).ok()?);
            if flags? & u64::from(SHF_EXECINSTR) == 0 || size == 0 {
                continue;
            }
            let end = start.checked_add(size)?;
            if end > file.len() || header.get(4..8)? == SHT_NOBITS.to_le_bytes() {
                return None;
            }
            sections.push(Self {
                address: address?,
                file: start..end,
            });
        }
        (!sections.is_empty()).then_some(sections)
    }

    /// Its addresses in memory if the ELF's address 0 is at `base`.
    pub fn range(&self, base: u64) -> Range<u64> {
        let start = base.wrapping_add(self.address);
        start..start.saturating_add(self.file.len() as u64)
    }

    /// Returns whether memory has it, if the ELF's address 0 is at `base`.
    pub fn is_at(&self, memory: &dyn AddressSpace, base: u64, file: &[u8]) -> bool {
        let mut view = View::new(memory);
        let start = self.range(base).start;
        let mut chunks = file[self.file.clone()].chunks(CHUNK).enumerate();
        chunks.all(|(number, chunk)| {
            let at = start.wrapping_add((number * CHUNK) as u64);
            let there = view.copy(at, chunk.len() as u64);
            there.is_ok_and(|there| there == chunk)
        })
    }
}

impl Origin {
    /// The origin of the code that starts at `entry`. Looks through `files` if no loader has put it there.
    pub fn find(memory: &dyn AddressSpace, files: &dyn Files, entry: u64) -> Self {
        if let CodeObjectName::Image { .. } = KernelIdentity::find(memory, entry).code_object {
            return Self::Loader;
        }
        let start = start_of_code(memory, entry);
        let mut found = Self::Unknown;
        files.visit(&mut |file| {
            let Some((sections, base)) = place_of(memory, entry, &start, file) else {
                return false;
            };
            found = Self::Program(PlacedCode {
                file: file.to_vec(),
                sections,
                base,
            });
            true
        });
        found
    }
}

/// The sections of `file` with code, and the address of its address 0, if the code that starts at `entry` with `start` is
/// the file's. Other sections may have relocations, or may not be there: the program needs no names. So of several files
/// with the same code, it may be any.
fn place_of(
    memory: &dyn AddressSpace,
    entry: u64,
    start: &[u8],
    file: &[u8],
) -> Option<(Vec<CodeSection>, u64)> {
    let first = start.get(..WORD)?;
    let sections = CodeSection::all(file)?;
    let base = sections.iter().find_map(|section| {
        let code = &file[section.file.clone()];
        let words = code.chunks_exact(WORD).enumerate();
        let places = words.filter_map(|(place, word)| (word == first).then_some(place * WORD));
        let mut bases = places.filter_map(|place| {
            let len = start.len().min(code.len() - place);
            let base = entry
                .checked_sub(place as u64)?
                .checked_sub(section.address)?;
            (code[place..place + len] == start[..len]).then_some(base)
        });
        bases.find(|&base| {
            sections
                .iter()
                .all(|section| section.is_at(memory, base, file))
        })
    })?;
    Some((sections, base))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes(field.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}

#[cfg(test)]
#[path = "placed_tests.rs"]
mod tests;
