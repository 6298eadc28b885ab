//! Loads a code object file into an arena: segments, relocations, symbols and metadata.

use std::collections::BTreeMap;
use std::ops::Range;

use goblin::elf::header::EM_AMDGPU;
use goblin::elf::program_header::{PF_X, PT_LOAD};
use goblin::elf::section_header::SHN_UNDEF;
use goblin::elf::{Elf, Reloc};
use modelgpu_isa::Target;

use super::metadata::{self, KernelMetadata};
use crate::memory::Arena;

/// The loader rejects a larger image as corrupt.
const MAX_IMAGE: u64 = 1 << 30;

/// R_AMDGPU_ABS64: symbol plus addend (LLVM's AMDGPUUsage, "Relocation Records").
const ABS64: u32 = 3;
/// R_AMDGPU_RELATIVE64: load address plus addend.
const RELATIVE64: u32 = 13;

/// The reason why a code object could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is no well-formed ELF file.
    #[error("malformed ELF file")]
    Elf(#[from] goblin::error::Error),
    /// The ELF file is for another machine.
    #[error("e_machine {0} is not EM_AMDGPU (224)")]
    Machine(u16),
    /// The code object is for a processor that is not modelled.
    #[error("e_flags {0:#x} name none of {names}", names = Target::names())]
    Target(u32),
    /// A segment or a relocation lies outside of the file or the image.
    #[error("{what} at {offset:#x} of {size:#x} bytes is outside of the {container}")]
    Outside {
        /// A noun for the segment or relocation.
        what: &'static str,
        /// The offset in the container, in bytes.
        offset: u64,
        /// The size in bytes.
        size: u64,
        /// The container: the file or the image.
        container: &'static str,
    },
    /// The segments span more memory than is plausible.
    #[error("an image of {0:#x} bytes")]
    ImageSize(u64),
    /// A relocation refers to a symbol that nothing defines.
    #[error("undefined device symbol {0}")]
    UndefinedSymbol(String),
    /// A relocation of a type that is not modelled.
    #[error("relocation type {0} is not modelled")]
    Relocation(u32),
    /// The metadata note is missing or malformed.
    #[error("no well-formed AMDGPU metadata note")]
    Metadata,
}

/// A code object in an arena.
#[derive(Clone, Debug)]
pub struct LoadedObject {
    /// The processor that it is for.
    pub target: Target,
    /// The address of its ELF header. This is also the load delta, because its first segment begins
    /// at 0.
    pub base: u64,
    /// Its defined dynamic symbols by name.
    pub symbols: BTreeMap<String, Symbol>,
    /// Its kernels.
    pub kernels: Vec<KernelMetadata>,
    /// The addresses of its code.
    pub code: Vec<Range<u64>>,
}

/// A symbol of a loaded code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Device address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
}

impl LoadedObject {
    /// Loads the ELF file `bytes`.
    pub(crate) fn load(bytes: &[u8], arena: &mut Arena) -> Result<Self, LoadError> {
        let elf = Elf::parse(bytes)?;
        if elf.header.e_machine != EM_AMDGPU {
            return Err(LoadError::Machine(elf.header.e_machine));
        }
        let target = Target::from_elf_flags(elf.header.e_flags)
            .ok_or(LoadError::Target(elf.header.e_flags))?;
        let image = image(&elf, bytes)?;
        let base = arena.allocate(&image);
        for relocation in elf.dynrelas.iter() {
            relocate(&elf, &relocation, base, arena)?;
        }
        let symbols = elf
            .dynsyms
            .iter()
            .filter(|symbol| symbol.st_shndx != SHN_UNDEF as usize)
            .filter_map(|symbol| {
                let name = elf.dynstrtab.get_at(symbol.st_name)?;
                let address = base.wrapping_add(symbol.st_value);
                Some((
                    name.to_owned(),
                    Symbol {
                        address,
                        size: symbol.st_size,
                    },
                ))
            })
            .collect();
        let code = elf
            .program_headers
            .iter()
            .filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0)
            .map(|segment| {
                let start = base + segment.p_vaddr;
                start..start + segment.p_filesz
            })
            .collect();
        Ok(Self {
            target,
            base,
            symbols,
            kernels: kernels(&elf, bytes)?,
            code,
        })
    }
}

/// The loadable segments' bytes at their places.
fn image(elf: &Elf<'_>, bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
    let segments = || {
        elf.program_headers
            .iter()
            .filter(|segment| segment.p_type == PT_LOAD)
    };
    let end = |segment: &goblin::elf::ProgramHeader| {
        segment
            .p_vaddr
            .saturating_add(segment.p_memsz.max(segment.p_filesz))
    };
    let size = segments().map(end).max().unwrap_or(0);
    if size > MAX_IMAGE {
        return Err(LoadError::ImageSize(size));
    }
    let mut image = vec![0; size as usize];
    for segment in segments() {
        let start = segment.p_vaddr as usize;
        let source = slice(bytes, segment.p_offset, segment.p_filesz, "segment")?;
        image[start..start + source.len()].copy_from_slice(source);
    }
    Ok(image)
}

fn slice<'a>(
    bytes: &'a [u8],
    offset: u64,
    size: u64,
    what: &'static str,
) -> Result<&'a [u8], LoadError> {
    offset
        .checked_add(size)
        .and_then(|end| bytes.get(offset as usize..end as usize))
        .ok_or(LoadError::Outside {
            what,
            offset,
            size,
            container: "file",
        })
}

fn relocate(
    elf: &Elf<'_>,
    relocation: &Reloc,
    base: u64,
    arena: &mut Arena,
) -> Result<(), LoadError> {
    let addend = relocation.r_addend.unwrap_or(0);
    let value = match relocation.r_type {
        RELATIVE64 => base.wrapping_add_signed(addend),
        ABS64 => {
            let symbol = elf.dynsyms.get(relocation.r_sym);
            let defined = symbol.filter(|symbol| symbol.st_shndx != SHN_UNDEF as usize);
            let Some(defined) = defined else {
                let name = symbol.and_then(|symbol| elf.dynstrtab.get_at(symbol.st_name));
                let name = name.map_or_else(|| format!("#{}", relocation.r_sym), str::to_owned);
                return Err(LoadError::UndefinedSymbol(name));
            };
            base.wrapping_add(defined.st_value)
                .wrapping_add_signed(addend)
        }
        other => return Err(LoadError::Relocation(other)),
    };
    arena
        .write(base.wrapping_add(relocation.r_offset), &value.to_le_bytes())
        .ok_or(LoadError::Outside {
            what: "relocation",
            offset: relocation.r_offset,
            size: 8,
            container: "image",
        })
}

fn kernels(elf: &Elf<'_>, bytes: &[u8]) -> Result<Vec<KernelMetadata>, LoadError> {
    /// NT_AMDGPU_METADATA.
    const METADATA: u32 = 32;
    elf.iter_note_headers(bytes)
        .into_iter()
        .flatten()
        .flatten()
        .find(|note| note.n_type == METADATA)
        .and_then(|note| metadata::kernels(note.desc))
        .ok_or(LoadError::Metadata)
}
