//! Code that a program has put into memory by itself, section by section, without a loader.
//!
//! There is no ELF header in memory then, but the program has the file that it has taken the sections from.

use goblin::elf::header::EM_AMDGPU;
use goblin::elf::section_header::SHF_EXECINSTR;
use goblin::elf::{Elf, SectionHeader};

use super::image::{CodeObjectName, KernelIdentity};
use super::source::Files;
use crate::memory::{AddressSpace, View};

/// The most bytes of an image.
const MAX_IMAGE: u64 = 1 << 30;

/// Code in memory that came from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedCode {
    /// The file.
    pub file: Vec<u8>,
    /// The address of the ELF's address 0.
    pub base: u64,
    /// Bytes of memory from there on.
    pub size: u64,
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

impl Origin {
    /// The origin of the code at `address`. Looks through `files` if no loader has put it there.
    pub fn find(memory: &dyn AddressSpace, files: &dyn Files, address: u64) -> Self {
        if let CodeObjectName::Image { .. } = KernelIdentity::find(memory, address).code_object {
            return Self::Loader;
        }
        let region = memory.region(address);
        let Some(region) = region.filter(|region| region.len <= MAX_IMAGE) else {
            return Self::Unknown;
        };
        let Ok(image) = View::new(memory).copy(region.base, region.len) else {
            return Self::Unknown;
        };
        let mut found = Self::Unknown;
        files.visit(&mut |file| {
            let is_it = has_code_of(&image, file);
            if is_it {
                found = Self::Program(PlacedCode {
                    file: file.to_vec(),
                    base: region.base,
                    size: region.len,
                });
            }
            is_it
        });
        found
    }
}

/// Returns whether `image` has the code of `file` at its address. Other sections may have relocations, or may not be there:
/// the program needs no names. So of several files with the same code, it may be any.
fn has_code_of(image: &[u8], file: &[u8]) -> bool {
    let Ok(elf) = Elf::parse(file) else {
        return false;
    };
    let is_code = |section: &&SectionHeader| {
        section.sh_flags & u64::from(SHF_EXECINSTR) != 0 && section.sh_size > 0
    };
    let has = |section: &SectionHeader| {
        let bytes = section.file_range().and_then(|range| file.get(range));
        bytes.is_some() && bytes == image.get(section.vm_range())
    };
    let mut code = elf.section_headers.iter().filter(is_code).peekable();
    elf.header.e_machine == EM_AMDGPU && code.peek().is_some() && code.all(has)
}
