//! Reads the headers of a GPU's ELF, without the rest of the file.

use std::sync::OnceLock;

use object::LittleEndian;
use object::elf::{
    EM_AMDGPU, ET_REL, FileHeader64, NT_GNU_BUILD_ID, NoteType, PF_W, PF_X, PT_LOAD, PT_NOTE,
    ProgramHeader64, SHF_ALLOC, SHT_DYNSYM, SHT_SYMTAB, SectionHeader64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable};
use object::read::{ReadRef, SectionIndex, StringTable};

use crate::format::codeobject::cuda::EM_CUDA;
use crate::format::codeobject::error::{CodeObjectError, MAX_SEGMENTS};
use crate::format::sections::PerSection;

/// The text before the version number in clang's name of itself.
const CLANG_VERSION: &str = "clang version ";

/// A range of the ELF's own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfRange {
    /// The first address.
    pub address: u64,
    /// The length in bytes.
    pub size: u64,
}

/// A section of the ELF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfSection {
    /// Its name, such as `.text`.
    pub name: String,
    /// Its address, or 0 if it is not loaded.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// The profile sections of an ELF that are loaded.
pub type ProfileSections = PerSection<Option<ElfRange>>;

impl PerSection<Option<ElfRange>> {
    /// Returns whether the code object has counters.
    #[must_use]
    pub fn are_instrumented(&self) -> bool {
        self.data.is_some_and(|range| range.size > 0)
    }
}

/// A symbol of `.dynsym`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElfSymbol<'data> {
    pub(super) name: &'data [u8],
    pub(super) address: u64,
    /// The size in bytes.
    pub(super) size: u64,
    /// The number of its section, or a reserved number.
    pub(super) section: usize,
}

/// A parsed code object, over bytes in memory or over a cache that reads them on demand.
#[derive(Debug)]
pub struct CodeObject<'data, R: ReadRef<'data>> {
    pub(super) data: R,
    pub(super) header: &'data FileHeader64<LittleEndian>,
    pub(super) sections: SectionTable<'data, FileHeader64<LittleEndian>, R>,
    /// The name of each section; `None` if it cannot be read. Parsers ask for a dozen sections, and for one more for each
    /// kernel.
    names: OnceLock<Vec<Option<&'data [u8]>>>,
    /// The defined symbols of `.dynsym`, if they were asked for. Parsers ask several times.
    symbols: OnceLock<Vec<ElfSymbol<'data>>>,
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// Parses the headers of a 64-bit little-endian ELF for AMDGPU or CUDA.
    ///
    /// # Errors
    /// Fails if `data` is anything else.
    pub fn parse(data: R) -> Result<Self, CodeObjectError> {
        let header = FileHeader64::<LittleEndian>::parse(data)?;
        header.endian()?;
        let machine = header.e_machine(LittleEndian);
        if machine != EM_AMDGPU && machine.0 != EM_CUDA {
            return Err(CodeObjectError::WrongMachine { found: machine.0 });
        }
        let sections = header.sections(LittleEndian, data)?;
        Ok(CodeObject {
            data,
            header,
            sections,
            names: OnceLock::new(),
            symbols: OnceLock::new(),
        })
    }

    /// Returns whether it is a cubin, the code object of an NVIDIA GPU.
    #[must_use]
    pub fn is_cubin(&self) -> bool {
        self.header.e_machine(LittleEndian).0 == EM_CUDA
    }

    /// Returns whether it is the object file of a compiler, which no linker has seen: its sections have no addresses yet.
    #[must_use]
    pub fn is_object_file(&self) -> bool {
        self.header.e_type(LittleEndian) == ET_REL
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

    /// The GNU build id, if the linker wrote one (`--build-id`).
    ///
    /// # Errors
    /// Fails if the program headers or the notes are damaged.
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

    /// Rejects notes that together are longer than the file: each segment is read by itself.
    fn check_notes(
        &self,
        segments: &[ProgramHeader64<LittleEndian>],
    ) -> Result<(), CodeObjectError> {
        let notes = segments
            .iter()
            .filter(|segment| segment.p_type(LittleEndian) == PT_NOTE);
        self.check_total("notes", notes.map(|note| note.p_filesz(LittleEndian)))
    }

    /// Rejects sections with these numbers if together they are longer than the file. Skips numbers without a
    /// section.
    pub(super) fn check_sections(
        &self,
        parts: &'static str,
        indices: impl Iterator<Item = usize>,
    ) -> Result<(), CodeObjectError> {
        let sections = indices.filter_map(|index| self.sections.section(SectionIndex(index)).ok());
        let ranges = sections.filter_map(|section| section.file_range(LittleEndian));
        self.check_total(parts, ranges.map(|(_, size)| size))
    }

    /// Rejects parts with these sizes if together they are longer than the file.
    pub(crate) fn check_total(
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

    /// The size of the file in bytes.
    fn len(&self) -> Result<u64, CodeObjectError> {
        self.data.len().map_err(|()| CodeObjectError::Cut)
    }

    /// The segments that are not writable, which the device has as they are in the file: the address and the
    /// first bytes of each, up to `most`. If the file is too short for a segment, its bytes are empty.
    ///
    /// # Errors
    /// Fails if the program headers are damaged.
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

    /// Returns whether it has a coverage mapping, the places of counters in sources.
    ///
    /// # Errors
    /// Fails if sections or symbols are damaged.
    pub fn is_mapped(&self) -> Result<bool, CodeObjectError> {
        Ok(!self.section(b"__llvm_covfun")?.is_empty())
    }

    /// All sections from the section headers, in their order.
    ///
    /// # Errors
    /// Fails if a section's name cannot be read.
    pub fn sections(&self) -> Result<Vec<ElfSection>, CodeObjectError> {
        let mut sections = Vec::new();
        for section in self.sections.iter() {
            let name = self.sections.section_name(LittleEndian, section)?;
            sections.push(ElfSection {
                name: String::from_utf8_lossy(name).into_owned(),
                address: section.sh_addr(LittleEndian),
                size: section.sh_size(LittleEndian),
            });
        }
        Ok(sections)
    }

    /// The first section of this name.
    pub(super) fn section_named(
        &self,
        name: &[u8],
    ) -> Option<&'data SectionHeader64<LittleEndian>> {
        let names = self.names.get_or_init(|| {
            let sections = self.sections.iter();
            sections
                .map(|section| self.sections.section_name(LittleEndian, section).ok())
                .collect()
        });
        let at = names.iter().position(|known| *known == Some(name))?;
        self.sections.section(SectionIndex(at)).ok()
    }

    /// Returns whether there is a section of this name.
    pub(super) fn has_section(&self, name: &[u8]) -> bool {
        self.section_named(name).is_some()
    }

    /// The profile sections that are loaded onto the device. A cubin has none unless it is
    /// [laid out](crate::format::codeobject::cuda::laid_out).
    #[must_use]
    pub fn profile_sections(&self) -> ProfileSections {
        let range = |name: &[u8]| {
            let section = self.section_named(name)?;
            let loaded = section.sh_flags(LittleEndian).0 & SHF_ALLOC.0 != 0;
            loaded.then(|| ElfRange {
                address: section.sh_addr(LittleEndian),
                size: section.sh_size(LittleEndian),
            })
        };
        PerSection::from_fn(|section| range(section.elf_name().as_bytes()))
    }

    /// The variables of `.dynsym` whose names start with `prefix`.
    ///
    /// # Errors
    /// Fails if the symbol table is damaged.
    pub fn variables(&self, prefix: &[u8]) -> Result<Vec<ElfRange>, CodeObjectError> {
        let variable = |symbol: &ElfSymbol| ElfRange {
            address: symbol.address,
            size: symbol.size,
        };
        let symbols = self.symbols()?;
        let named = symbols
            .iter()
            .filter(|symbol| symbol.name.starts_with(prefix));
        Ok(named.map(variable).collect())
    }

    /// The variable of `.dynsym` with this name.
    ///
    /// # Errors
    /// Fails if the symbol table is damaged.
    pub fn variable(&self, name: &[u8]) -> Result<Option<ElfRange>, CodeObjectError> {
        let symbols = self.symbols()?;
        let found = symbols.iter().find(|symbol| symbol.name == name);
        Ok(found.map(|symbol| ElfRange {
            address: symbol.address,
            size: symbol.size,
        }))
    }

    /// The defined symbols of `.dynsym`.
    ///
    /// Reads all names at once. One read of the file for each symbol would be slow, and `object`'s
    /// `ReadCache` refuses names of more than 4096 bytes, which kernels of templates have.
    pub(super) fn symbols(&self) -> Result<&[ElfSymbol<'data>], CodeObjectError> {
        if let Some(known) = self.symbols.get() {
            return Ok(known);
        }
        let table = self.sections.symbols(LittleEndian, self.data, SHT_DYNSYM)?;
        let names = self.names_of(&table)?;
        let mut symbols = Vec::new();
        for symbol in table
            .iter()
            .filter(|table| !table.is_undefined(LittleEndian))
        {
            symbols.push(ElfSymbol {
                name: symbol.name(LittleEndian, names)?,
                address: symbol.st_value(LittleEndian),
                size: symbol.st_size(LittleEndian),
                section: symbol.st_shndx(LittleEndian).0.into(),
            });
        }
        Ok(self.symbols.get_or_init(|| symbols))
    }

    /// The names of all symbols of `.symtab`, one after the other, each with a zero byte after it.
    pub(super) fn symbol_names(&self) -> Result<&'data [u8], CodeObjectError> {
        let table = self.sections.symbols(LittleEndian, self.data, SHT_SYMTAB)?;
        Ok(match table.string_section() {
            SectionIndex(0) => &[],
            index => self
                .sections
                .section(index)?
                .data(LittleEndian, self.data)?,
        })
    }

    /// The names of the symbols of a table, read at once.
    pub(super) fn names_of(
        &self,
        table: &SymbolTable<'data, FileHeader64<LittleEndian>, R>,
    ) -> Result<StringTable<'data>, CodeObjectError> {
        let names = match table.string_section() {
            SectionIndex(0) => &[],
            index => self
                .sections
                .section(index)?
                .data(LittleEndian, self.data)?,
        };
        Ok(StringTable::new(names, 0, names.len() as u64))
    }

    /// The contents of a section. Empty if the file has no such section or no contents for it.
    ///
    /// # Errors
    /// Fails if sections are damaged.
    pub fn section(&self, name: &[u8]) -> Result<&'data [u8], CodeObjectError> {
        match self.section_named(name) {
            Some(section) => Ok(section.data(LittleEndian, self.data)?),
            None => Ok(&[]),
        }
    }

    /// The contents of the section with this number, and its address.
    pub(super) fn section_at(&self, index: usize) -> Result<(u64, &'data [u8]), CodeObjectError> {
        let section = self.sections.section(SectionIndex(index))?;
        let data = section.data(LittleEndian, self.data)?;
        Ok((section.sh_addr(LittleEndian), data))
    }

    /// Returns whether an address is in an executable segment.
    pub(super) fn is_code(&self, address: u64) -> Result<bool, CodeObjectError> {
        Ok(self.segments()?.iter().any(|segment| {
            let is_executable = segment.p_flags(LittleEndian).0 & PF_X.0 != 0;
            let offset = address.checked_sub(segment.p_vaddr(LittleEndian));
            segment.p_type(LittleEndian) == PT_LOAD
                && is_executable
                && offset.is_some_and(|offset| offset < segment.p_memsz(LittleEndian))
        }))
    }

    /// The `e_flags` field, and the ABI version that determines how to read it.
    pub(super) fn flags(&self) -> (u32, u8) {
        let abi = self.header.e_ident().abi_version;
        (self.header.e_flags(LittleEndian).0, abi)
    }

    /// The major version of the clang that compiled this, from its [compiler string](Self::compiler). `None`
    /// if the section was stripped.
    #[must_use]
    pub fn clang_version(&self) -> Option<u32> {
        major_version(&self.compiler()?)
    }

    /// The version string of the clang that compiled this, from `.comment`: `clang version 22.1.8` or `AMD
    /// clang version 19.0.0git`, for example. The first string of the latest version counts: the clangs of
    /// device libraries add others, in any order, and no clang reads a library of a later one.
    #[must_use]
    pub fn compiler(&self) -> Option<String> {
        let text = self.section(b".comment").ok()?;
        let line = latest_clang(&String::from_utf8_lossy(text))?
            .trim()
            .to_owned();
        Some(line)
    }
}

/// The first line of the latest clang in a `.comment` section.
fn latest_clang(comment: &str) -> Option<&str> {
    let lines = comment.split('\0');
    let versions = lines.filter_map(|line| Some((major_version(line)?, line)));
    // `min_by_key` takes the first of equal versions.
    let latest = versions.min_by_key(|(major, _)| std::cmp::Reverse(*major));
    latest.map(|(_, line)| line)
}

/// The major version in clang's name of itself.
fn major_version(line: &str) -> Option<u32> {
    let (_, version) = line.split_once(CLANG_VERSION)?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
