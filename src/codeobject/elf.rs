//! Reading an amdgcn ELF: what a drain needs of its headers, without reading all of it.

use object::LittleEndian;
use object::elf::{
    EM_AMDGPU, FileHeader64, NT_GNU_BUILD_ID, NoteType, PF_W, PF_X, PT_LOAD, PT_NOTE,
    ProgramHeader64, SHF_ALLOC, SHT_DYNSYM,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::read::{ReadRef, SectionIndex, StringTable};
use thiserror::Error;

use super::coverage::CoverageError;
use super::descriptor::DescriptorError;
use super::metadata::MetadataError;

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
    /// More program headers than a linker writes, which could all be of the same bytes.
    #[error("the code object has {found} program headers, {MAX_SEGMENTS} are allowed")]
    Segments {
        /// How many there are.
        found: usize,
    },
    /// Parts that share bytes with each other.
    #[error("the {parts} of the code object have {found} bytes, all of it has {len}")]
    Shared {
        /// Which parts.
        parts: &'static str,
        /// Bytes of all of them.
        found: u64,
        /// Bytes of the file.
        len: u64,
    },
    /// There is no memory for it.
    #[error("no memory for the code object: {bytes} bytes are needed")]
    NoMemory {
        /// How much it takes, in bytes.
        bytes: u64,
    },
    /// A segment that is not in the file as a whole, or whose contents are longer than it.
    #[error("a segment of the code object is cut short")]
    Cut,
    /// A segment that reaches too far.
    #[error("the code object takes more than {max:#x} bytes of memory")]
    Oversized {
        /// Most bytes that it may take.
        max: u64,
    },
    /// Neither the metadata nor the ELF's flags name a processor that is known.
    #[error(
        "a code object of no known processor: ELF flags {found:#x}, expected those of a GCN GPU"
    )]
    UnknownProcessor {
        /// `e_flags` as found.
        found: u32,
    },
    /// The metadata of its kernels is damaged, or absent.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A kernel descriptor is not where it should be.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// The coverage mapping is damaged.
    #[error(transparent)]
    Coverage(#[from] CoverageError),
}

/// Most program headers: lld writes a dozen for this machine.
const MAX_SEGMENTS: usize = 256;

/// What comes before the number where a clang says its version.
const CLANG_VERSION: &str = "clang version ";

/// A stretch of the ELF's own addresses, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfRange {
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub size: u64,
}

/// A section of the ELF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name, such as `.text`.
    pub name: String,
    /// Its address; 0 where it is not loaded.
    pub address: u64,
    /// In bytes.
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

/// A symbol of `.dynsym`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'data> {
    pub(super) name: &'data [u8],
    pub(super) address: u64,
    /// In bytes.
    pub(super) size: u64,
    /// Number of the section that it is in, or one of the reserved numbers.
    pub(super) section: usize,
}

/// A parsed code object, over bytes in memory or a cache that reads them as needed.
#[derive(Debug)]
pub struct CodeObject<'data, R: ReadRef<'data>> {
    pub(super) data: R,
    pub(super) header: &'data FileHeader64<LittleEndian>,
    pub(super) sections: SectionTable<'data, FileHeader64<LittleEndian>, R>,
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

    /// The program headers.
    pub(super) fn segments(
        &self,
    ) -> Result<&'data [ProgramHeader64<LittleEndian>], CodeObjectError> {
        let segments = self.header.program_headers(LittleEndian, self.data)?;
        match segments.len() {
            found if found > MAX_SEGMENTS => Err(CodeObjectError::Segments { found }),
            _ => Ok(segments),
        }
    }

    /// The GNU build id, where the linker was told to write one (`--build-id`).
    ///
    /// # Errors
    /// Fails where the program headers or the notes are damaged.
    pub fn build_id(&self) -> Result<Option<&'data [u8]>, CodeObjectError> {
        let ids = self.notes(b"GNU", NT_GNU_BUILD_ID)?;
        Ok(ids.first().copied())
    }

    /// The contents of all notes of this owner and type.
    pub(super) fn notes(
        &self,
        owner: &[u8],
        kind: NoteType,
    ) -> Result<Vec<&'data [u8]>, CodeObjectError> {
        let mut found = Vec::new();
        let segments = self.segments()?;
        self.check_notes(segments)?;
        for segment in segments {
            let Some(mut notes) = segment.notes(LittleEndian, self.data)? else {
                continue;
            };
            while let Some(note) = notes.next()? {
                if note.name() == owner && note.n_type(LittleEndian) == kind {
                    found.push(note.desc());
                }
            }
        }
        Ok(found)
    }

    /// Refuses notes that together are longer than the file: each segment is read by itself.
    fn check_notes(
        &self,
        segments: &[ProgramHeader64<LittleEndian>],
    ) -> Result<(), CodeObjectError> {
        let notes = segments
            .iter()
            .filter(|it| it.p_type(LittleEndian) == PT_NOTE);
        self.check_total("notes", notes.map(|it| it.p_filesz(LittleEndian)))
    }

    /// The same for the sections with these numbers, as far as there are any.
    pub(super) fn check_sections(
        &self,
        parts: &'static str,
        indices: impl Iterator<Item = usize>,
    ) -> Result<(), CodeObjectError> {
        let sections = indices.filter_map(|it| self.sections.section(SectionIndex(it)).ok());
        let ranges = sections.filter_map(|it| it.file_range(LittleEndian));
        self.check_total(parts, ranges.map(|(_, size)| size))
    }

    fn check_total(
        &self,
        parts: &'static str,
        sizes: impl Iterator<Item = u64>,
    ) -> Result<(), CodeObjectError> {
        let found = sizes.fold(0, u64::saturating_add);
        match self.len()? {
            len if found > len => Err(CodeObjectError::Shared { parts, found, len }),
            _ => Ok(()),
        }
    }

    /// Bytes of all this.
    fn len(&self) -> Result<u64, CodeObjectError> {
        self.data.len().map_err(|()| CodeObjectError::Cut)
    }

    /// What stays on the device as it is in the file: address and the first bytes, `most` at most, of
    /// the segments that are not writable, no bytes where the file is too short for them.
    ///
    /// # Errors
    /// Fails where the program headers are damaged.
    pub fn constant_segments(&self, most: u64) -> Result<Vec<(u64, &'data [u8])>, CodeObjectError> {
        let len = self.len()?;
        let mut constant = Vec::new();
        for segment in self.segments()? {
            let is_writable = segment.p_flags(LittleEndian).0 & PF_W.0 != 0;
            if segment.p_type(LittleEndian) == PT_LOAD && !is_writable {
                let (start, size) = segment.file_range(LittleEndian);
                let is_whole = start.checked_add(size).is_some_and(|end| end <= len);
                let bytes = is_whole.then(|| self.data.read_bytes_at(start, size.min(most)));
                let bytes = bytes.and_then(Result::ok).unwrap_or_default();
                constant.push((segment.p_vaddr(LittleEndian), bytes));
            }
        }
        Ok(constant)
    }

    /// All sections by their headers, in their order.
    ///
    /// # Errors
    /// Fails where a name is not to be found.
    pub fn sections(&self) -> Result<Vec<Section>, CodeObjectError> {
        let mut sections = Vec::new();
        for section in self.sections.iter() {
            let name = self.sections.section_name(LittleEndian, section)?;
            sections.push(Section {
                name: String::from_utf8_lossy(name).into_owned(),
                address: section.sh_addr(LittleEndian),
                size: section.sh_size(LittleEndian),
            });
        }
        Ok(sections)
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
        let variable = |symbol: &Symbol| ElfRange {
            address: symbol.address,
            size: symbol.size,
        };
        let symbols = self.symbols()?;
        let named = symbols.iter().filter(|it| it.name.starts_with(prefix));
        Ok(named.map(variable).collect())
    }

    /// The variable of `.dynsym` with this name.
    ///
    /// # Errors
    /// Fails where the symbol table is damaged.
    pub fn variable(&self, name: &[u8]) -> Result<Option<ElfRange>, CodeObjectError> {
        let symbols = self.symbols()?;
        let found = symbols.iter().find(|it| it.name == name);
        Ok(found.map(|symbol| ElfRange {
            address: symbol.address,
            size: symbol.size,
        }))
    }

    /// The defined symbols of `.dynsym`.
    ///
    /// The names are read at once: each for itself, a read of the file for every symbol, is slow, and
    /// names of more than 4096 bytes, as kernels of templates have them, would be refused
    /// (`object`'s `ReadCache`).
    pub(super) fn symbols(&self) -> Result<Vec<Symbol<'data>>, CodeObjectError> {
        let table = self.sections.symbols(LittleEndian, self.data, SHT_DYNSYM)?;
        let names = match table.string_section() {
            SectionIndex(0) => &[],
            index => self
                .sections
                .section(index)?
                .data(LittleEndian, self.data)?,
        };
        let names = StringTable::new(names, 0, names.len() as u64);
        let mut symbols = Vec::new();
        for symbol in table.iter().filter(|it| !it.is_undefined(LittleEndian)) {
            symbols.push(Symbol {
                name: symbol.name(LittleEndian, names)?,
                address: symbol.st_value(LittleEndian),
                size: symbol.st_size(LittleEndian),
                section: symbol.st_shndx(LittleEndian).0.into(),
            });
        }
        Ok(symbols)
    }

    /// The contents of a section; none where there is no such section, or it is not in the file.
    pub(super) fn section(&self, name: &[u8]) -> Result<&'data [u8], CodeObjectError> {
        match self.sections.section_by_name(LittleEndian, name) {
            Some((_, section)) => Ok(section.data(LittleEndian, self.data)?),
            None => Ok(&[]),
        }
    }

    /// The contents of the section with this number, and its address.
    pub(super) fn section_at(&self, index: usize) -> Result<(u64, &'data [u8]), CodeObjectError> {
        let section = self.sections.section(SectionIndex(index))?;
        let data = section.data(LittleEndian, self.data)?;
        Ok((section.sh_addr(LittleEndian), data))
    }

    /// Whether instructions may be at an address.
    pub(super) fn is_code(&self, address: u64) -> Result<bool, CodeObjectError> {
        Ok(self.segments()?.iter().any(|segment| {
            let is_executable = segment.p_flags(LittleEndian).0 & PF_X.0 != 0;
            let offset = address.checked_sub(segment.p_vaddr(LittleEndian));
            segment.p_type(LittleEndian) == PT_LOAD
                && is_executable
                && offset.is_some_and(|it| it < segment.p_memsz(LittleEndian))
        }))
    }

    /// `e_flags` and the ABI version, which says how to read them.
    pub(super) fn flags(&self) -> (u32, u8) {
        let abi = self.header.e_ident().abi_version;
        (self.header.e_flags(LittleEndian).0, abi)
    }

    /// The major version of the clang that compiled this, by what it [says](Self::compiler) of itself.
    /// `None` where the section was stripped.
    #[must_use]
    pub fn clang_version(&self) -> Option<u32> {
        let compiler = self.compiler()?;
        let (_, version) = compiler.split_once(CLANG_VERSION)?;
        version
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    }

    /// What the clang that compiled this says of its version, by its `.comment`: `clang version
    /// 22.1.8` or `AMD clang version 19.0.0git` and so on. The linker, and clangs that made device
    /// libraries, may have added to the section.
    #[must_use]
    pub fn compiler(&self) -> Option<String> {
        let text = self.section(b".comment").ok()?;
        let text = String::from_utf8_lossy(text);
        let mut lines = text.split('\0');
        let line = lines.find(|line| line.contains(CLANG_VERSION))?;
        Some(line.trim().to_owned())
    }
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
