//! Reading an amdgcn ELF: what a drain needs of its headers, without reading all of it.

use object::LittleEndian;
use object::elf::{EM_AMDGPU, FileHeader64, NT_GNU_BUILD_ID, PF_W, PT_LOAD, SHF_ALLOC};
use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use thiserror::Error;

/// Why bytes are not a code object.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodeObjectError {
    /// The ELF is damaged, or none at all.
    #[error("not a code object: {0}")]
    Malformed(#[from] object::Error),
    /// An ELF of another machine.
    #[error("not a code object: ELF machine {found:#x}, expected {:#x} (AMDGPU)", EM_AMDGPU.0)]
    WrongMachine {
        /// `e_machine` as found.
        found: u16,
    },
}

/// A stretch of the ELF's own addresses, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfRange {
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub size: u64,
}

/// The profile sections of a code object by its section headers; absent ones are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileSections {
    /// `__llvm_prf_names`.
    pub names: Option<ElfRange>,
    /// `__llvm_prf_cnts`.
    pub counters: Option<ElfRange>,
    /// `__llvm_prf_data`.
    pub data: Option<ElfRange>,
    /// `__llvm_prf_bits`, MC/DC bitmaps.
    pub bitmap: Option<ElfRange>,
    /// `__llvm_prf_ucnts`, counters of whole waves (LLVM 23).
    pub uniform: Option<ElfRange>,
}

impl ProfileSections {
    /// Whether the code object counts anything.
    #[must_use]
    pub fn are_instrumented(&self) -> bool {
        self.data.is_some_and(|range| range.size > 0)
    }
}

/// A parsed code object, over bytes in memory or a cache that reads them as needed.
#[derive(Debug)]
pub struct CodeObject<'data, R: ReadRef<'data>> {
    data: R,
    header: &'data FileHeader64<LittleEndian>,
    sections: SectionTable<'data, FileHeader64<LittleEndian>, R>,
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// Parses the headers of a 64-bit little-endian ELF for AMDGPU.
    ///
    /// # Errors
    /// Fails where `data` is anything else.
    pub fn parse(data: R) -> Result<Self, CodeObjectError> {
        let header = FileHeader64::<LittleEndian>::parse(data)?;
        header.endian()?;
        let machine = header.e_machine(LittleEndian);
        if machine != EM_AMDGPU {
            return Err(CodeObjectError::WrongMachine { found: machine.0 });
        }
        let sections = header.sections(LittleEndian, data)?;
        Ok(CodeObject {
            data,
            header,
            sections,
        })
    }

    /// The GNU build id, where the linker was told to write one (`--build-id`).
    ///
    /// # Errors
    /// Fails where the program headers or the notes are damaged.
    pub fn build_id(&self) -> Result<Option<&'data [u8]>, CodeObjectError> {
        for segment in self.header.program_headers(LittleEndian, self.data)? {
            let Some(mut notes) = segment.notes(LittleEndian, self.data)? else {
                continue;
            };
            while let Some(note) = notes.next()? {
                if note.name() == b"GNU" && note.n_type(LittleEndian) == NT_GNU_BUILD_ID {
                    return Ok(Some(note.desc()));
                }
            }
        }
        Ok(None)
    }

    /// What stays on the device as it is in the file: address and bytes of the segments that are
    /// not writable, no bytes where the file is too short for them.
    ///
    /// # Errors
    /// Fails where the program headers are damaged.
    pub fn constant_segments(&self) -> Result<Vec<(u64, &'data [u8])>, CodeObjectError> {
        let mut constant = Vec::new();
        for segment in self.header.program_headers(LittleEndian, self.data)? {
            let is_writable = segment.p_flags(LittleEndian).0 & PF_W.0 != 0;
            if segment.p_type(LittleEndian) == PT_LOAD && !is_writable {
                let bytes = segment.data(LittleEndian, self.data).unwrap_or_default();
                constant.push((segment.p_vaddr(LittleEndian), bytes));
            }
        }
        Ok(constant)
    }

    /// The profile sections that are loaded onto the device.
    #[must_use]
    pub fn profile_sections(&self) -> ProfileSections {
        let range = |name: &[u8]| {
            let (_, section) = self.sections.section_by_name(LittleEndian, name)?;
            let loaded = section.sh_flags(LittleEndian).0 & SHF_ALLOC.0 != 0;
            loaded.then(|| ElfRange {
                address: section.sh_addr(LittleEndian),
                size: section.sh_size(LittleEndian),
            })
        };
        ProfileSections {
            names: range(b"__llvm_prf_names"),
            counters: range(b"__llvm_prf_cnts"),
            data: range(b"__llvm_prf_data"),
            bitmap: range(b"__llvm_prf_bits"),
            uniform: range(b"__llvm_prf_ucnts"),
        }
    }

    /// The variables in `.dynsym` whose names start with `prefix`, as the loader knows them.
    ///
    /// # Errors
    /// Fails where the symbol table is damaged.
    pub fn variables(&self, prefix: &[u8]) -> Result<Vec<ElfRange>, CodeObjectError> {
        let symbols = self
            .sections
            .symbols(LittleEndian, self.data, object::elf::SHT_DYNSYM)?;
        let mut found = Vec::new();
        for symbol in symbols.iter() {
            if !symbol.is_undefined(LittleEndian)
                && symbol
                    .name(LittleEndian, symbols.strings())?
                    .starts_with(prefix)
            {
                found.push(ElfRange {
                    address: symbol.st_value(LittleEndian),
                    size: symbol.st_size(LittleEndian),
                });
            }
        }
        Ok(found)
    }

    /// The major version of the clang that compiled this, by its `.comment`: `clang version 22.1.8`
    /// or `AMD clang version 19.0.0git` and so on. `None` where the section was stripped.
    #[must_use]
    pub fn clang_version(&self) -> Option<u32> {
        let (_, section) = self.sections.section_by_name(LittleEndian, b".comment")?;
        let text = section.data(LittleEndian, self.data).ok()?;
        let text = String::from_utf8_lossy(text);
        let (_, version) = text.split_once("clang version ")?;
        version
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    }
}
