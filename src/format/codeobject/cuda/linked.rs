//! Writes the ELF of a laid-out cubin: the cubin, and after it the new sections with headers of their own.

use byteorder::{ByteOrder, LittleEndian};
use object::elf::{
    PT_LOAD, SHF_ALLOC, SHF_WRITE, SHT_DYNSYM, SHT_NOBITS, SHT_PROGBITS, SHT_STRTAB, STB_GLOBAL,
    STT_OBJECT,
};

use crate::format::bounds_table::VERSION_SYMBOL;
use crate::format::codeobject::cuda::EM_CUDA;
use crate::format::codeobject::error::CodeObjectError;
use crate::format::codeobject::segments::MAX_BYTES;
use crate::format::sections::Section;
use crate::support::memory::room;

/// The sizes of the ELF's structures in bytes, and the places of their fields (the ELF-64 object file format).
const FILE_HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;
const E_PHOFF: usize = 32;
const E_SHOFF: usize = 40;
const E_PHENTSIZE: usize = 54;
const E_PHNUM: usize = 56;
const E_SHNUM: usize = 60;
const E_SHSTRNDX: usize = 62;

/// The `EI_OSABI` of cubins of ptxas 13 (`ELFOSABI_CUDA`).
const OS_ABI: u8 = 0x41;

/// The alignment of the contents in the file, in bytes.
const PAGE: usize = 0x1000;

/// The name of a new section, and its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionOf {
    name: &'static str,
    /// True if it has an address.
    pub(super) is_loaded: bool,
    has_contents: bool,
}

impl SectionOf {
    pub(super) fn loaded(name: &'static str) -> Self {
        Self {
            name,
            is_loaded: true,
            has_contents: true,
        }
    }

    pub(super) fn unloaded(name: &'static str) -> Self {
        Self {
            name,
            is_loaded: false,
            has_contents: true,
        }
    }

    pub(super) fn data() -> Self {
        Self::loaded(Section::Data.elf_name())
    }

    pub(super) fn names() -> Self {
        Self::loaded(Section::Names.elf_name())
    }

    pub(super) fn counted(section: Section) -> Self {
        Self::zeros(section.elf_name())
    }

    pub(super) fn version() -> Self {
        Self::loaded(".rocov.version")
    }

    pub(super) fn areas() -> Self {
        Self::zeros(".rocov.areas")
    }

    /// A loaded section without contents. None with contents may follow.
    fn zeros(name: &'static str) -> Self {
        Self {
            name,
            is_loaded: true,
            has_contents: false,
        }
    }
}

/// A new section.
#[derive(Debug)]
struct NewSection {
    of: SectionOf,
    address: u64,
    size: u64,
    alignment: u64,
    /// The contents, if the section is not loaded.
    contents: Vec<u8>,
}

/// The new sections of a cubin.
#[derive(Debug)]
pub(super) struct Linked {
    start: u64,
    end: u64,
    /// The contents of loaded sections from `start` on.
    contents: Vec<u8>,
    sections: Vec<NewSection>,
}

impl Linked {
    /// Makes an ELF without sections, whose first one will be at `start`.
    pub(super) fn starting_at(start: u64) -> Self {
        Self {
            start,
            end: start,
            contents: Vec::new(),
            sections: Vec::new(),
        }
    }

    /// The end of the last loaded section.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds a loaded section of `size` zeros. Returns its address.
    pub(super) fn place(
        &mut self,
        of: SectionOf,
        size: u64,
        alignment: u64,
    ) -> Result<u64, CodeObjectError> {
        let address = self
            .end
            .checked_next_multiple_of(alignment)
            .ok_or(OVERSIZED)?;
        let end = address.checked_add(size).ok_or(OVERSIZED)?;
        if of.has_contents {
            if end > MAX_BYTES {
                return Err(OVERSIZED);
            }
            let len = (end - self.start) as usize;
            let more = len.saturating_sub(self.contents.len());
            let room = self.contents.try_reserve(more);
            room.map_err(|_| CodeObjectError::NoMemory { bytes: end })?;
            self.contents.resize(len, 0);
        } else if end > u64::from(u32::MAX / 2) {
            return Err(OVERSIZED);
        }
        self.end = end;
        self.sections.push(NewSection {
            of,
            address,
            size,
            alignment,
            contents: Vec::new(),
        });
        Ok(address)
    }

    /// Adds a section that is not loaded.
    pub(super) fn attach(&mut self, of: SectionOf, contents: Vec<u8>) {
        self.sections.push(NewSection {
            of,
            address: 0,
            size: contents.len() as u64,
            alignment: 8,
            contents,
        });
    }

    /// Writes `bytes` at `address`, which is inside a section with contents.
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - self.start) as usize;
        self.contents[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The memory from address 0 up to `end`.
    pub(super) fn memory(&self, end: u64) -> Vec<u8> {
        let mut memory = vec![0; self.start as usize];
        memory.extend_from_slice(&self.contents);
        memory.resize(end as usize, 0);
        memory
    }

    /// The ELF: `cubin` with these sections after it, a program header for the loaded ones, and a dynamic symbol for
    /// the version word at address `version`.
    pub(super) fn elf(&self, cubin: &[u8], version: u64) -> Result<Vec<u8>, CodeObjectError> {
        let unloaded: u64 = self
            .sections
            .iter()
            .map(|section| section.contents.len() as u64 + 8)
            .sum();
        let all = (cubin.len() + self.contents.len() + 4 * PAGE) as u64;
        let mut elf = room_for(
            all.saturating_add(unloaded)
                .saturating_add(cubin.len() as u64),
        )?;
        elf.extend_from_slice(cubin);
        elf.resize(elf.len().next_multiple_of(PAGE), 0);
        let loaded_at = elf.len();
        elf.extend_from_slice(&self.contents);

        let mut headers = Headers::parse(cubin)?;
        for section in &self.sections {
            let offset = if section.of.is_loaded {
                loaded_at + section.address.saturating_sub(self.start) as usize
            } else {
                elf.resize(elf.len().next_multiple_of(8), 0);
                elf.extend_from_slice(&section.contents);
                elf.len() - section.contents.len()
            };
            headers.add(section, offset);
        }
        headers.add_symbols(&mut elf, version);
        headers.finish(&mut elf);
        let (offset, size) = (loaded_at as u64, self.contents.len() as u64);
        load(&mut elf, offset, self.start, size, self.end - self.start);
        Ok(elf)
    }
}

/// Gives `elf` one program header: the memory at `address` is `size` bytes of the file and zeros up to `all`.
fn load(elf: &mut Vec<u8>, offset: u64, address: u64, size: u64, all: u64) {
    elf.resize(elf.len().next_multiple_of(8), 0);
    let at = elf.len() as u64;
    let mut header = [0; PROGRAM_HEADER];
    LittleEndian::write_u32(&mut header, PT_LOAD.0);
    LittleEndian::write_u32(&mut header[4..], object::elf::PF_R.0 | object::elf::PF_W.0);
    for (field, value) in [
        (8, offset),
        (16, address),
        (24, address),
        (32, size),
        (40, all),
        (48, PAGE as u64),
    ] {
        LittleEndian::write_u64(&mut header[field..], value);
    }
    elf.extend_from_slice(&header);
    LittleEndian::write_u64(&mut elf[E_PHOFF..], at);
    LittleEndian::write_u16(&mut elf[E_PHENTSIZE..], PROGRAM_HEADER as u16);
    LittleEndian::write_u16(&mut elf[E_PHNUM..], 1);
}

/// Section headers and the names of sections: those of the cubin, and new ones.
struct Headers {
    headers: Vec<u8>,
    names: Vec<u8>,
    /// The number of the section with the names.
    names_section: usize,
}

impl Headers {
    /// The headers of `cubin`, which was parsed before.
    fn parse(cubin: &[u8]) -> Result<Self, CodeObjectError> {
        let cut = || CodeObjectError::Cut;
        let word = |at: usize| LittleEndian::read_u64(&cubin[at..]) as usize;
        if cubin.len() < FILE_HEADER {
            return Err(cut());
        }
        let count = usize::from(LittleEndian::read_u16(&cubin[E_SHNUM..]));
        let names_section = usize::from(LittleEndian::read_u16(&cubin[E_SHSTRNDX..]));
        let start = word(E_SHOFF);
        let end = start.checked_add(count * SECTION_HEADER).ok_or_else(cut)?;
        let mut headers = cubin.get(start..end).ok_or_else(cut)?.to_vec();
        let names = headers
            .get(names_section * SECTION_HEADER..)
            .filter(|header| header.len() >= SECTION_HEADER);
        let names = names.ok_or_else(cut)?;
        let offset = LittleEndian::read_u64(&names[24..]) as usize;
        let size = LittleEndian::read_u64(&names[32..]) as usize;
        let names = offset
            .checked_add(size)
            .and_then(|end| cubin.get(offset..end));
        let names = names.ok_or_else(cut)?.to_vec();
        // The names of new sections come after these. No section of the cubin may get one of them.
        let name = |header: &[u8]| LittleEndian::read_u32(header) as usize;
        if headers
            .chunks_exact(SECTION_HEADER)
            .any(|header| name(header) >= names.len().max(1))
        {
            return Err(cut());
        }
        // The first header stands for no section.
        if let Some(none) = headers.get_mut(..SECTION_HEADER) {
            none.fill(0);
        }
        Ok(Self {
            names,
            headers,
            names_section,
        })
    }

    fn add(&mut self, section: &NewSection, offset: usize) {
        let kind = match section.of.has_contents {
            true => SHT_PROGBITS.0,
            false => SHT_NOBITS.0,
        };
        let flags = match section.of.is_loaded {
            true => SHF_ALLOC.0 | SHF_WRITE.0,
            false => 0,
        };
        self.push(
            section.of.name,
            kind,
            flags,
            section.address,
            offset,
            section.size,
            [0, 0],
            section.alignment,
            0,
        );
    }

    /// Adds `.dynsym` with the version word, in the section before the last of `add`, and its strings.
    fn add_symbols(&mut self, elf: &mut Vec<u8>, version: u64) {
        let section = self.index_of(".rocov.version");
        elf.resize(elf.len().next_multiple_of(8), 0);
        let symbols = elf.len();
        let mut symbol = [0; SYMBOL];
        LittleEndian::write_u32(&mut symbol, 1);
        symbol[4] = STB_GLOBAL.0 << 4 | STT_OBJECT.0;
        LittleEndian::write_u16(&mut symbol[6..], section as u16);
        LittleEndian::write_u64(&mut symbol[8..], version);
        LittleEndian::write_u64(&mut symbol[16..], 8);
        elf.extend_from_slice(&[0; SYMBOL]);
        elf.extend_from_slice(&symbol);
        let strings = elf.len();
        elf.push(0);
        elf.extend_from_slice(VERSION_SYMBOL.as_bytes());
        elf.push(0);
        let strings_section = self.headers.len() / SECTION_HEADER + 1;
        let size = elf.len() - strings;
        self.push(
            ".dynsym",
            SHT_DYNSYM.0,
            0,
            0,
            symbols,
            2 * SYMBOL as u64,
            [strings_section as u32, 1],
            8,
            SYMBOL as u64,
        );
        self.push(
            ".dynstr",
            SHT_STRTAB.0,
            0,
            0,
            strings,
            size as u64,
            [0, 0],
            1,
            0,
        );
    }

    /// The number of the new section with this name.
    fn index_of(&self, name: &str) -> usize {
        let named = |header: &[u8]| {
            let at = LittleEndian::read_u32(header) as usize;
            self.names
                .get(at..)
                .is_some_and(|found| found.starts_with(name.as_bytes()))
        };
        self.headers
            .chunks_exact(SECTION_HEADER)
            .rposition(named)
            .unwrap_or(0)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a section header")]
    fn push(
        &mut self,
        name: &str,
        kind: u32,
        flags: u64,
        address: u64,
        offset: usize,
        size: u64,
        [link, info]: [u32; 2],
        alignment: u64,
        entry: u64,
    ) {
        let mut header = [0; SECTION_HEADER];
        LittleEndian::write_u32(&mut header, self.names.len() as u32);
        LittleEndian::write_u32(&mut header[4..], kind);
        for (field, value) in [
            (8, flags),
            (16, address),
            (24, offset as u64),
            (32, size),
            (48, alignment),
            (56, entry),
        ] {
            LittleEndian::write_u64(&mut header[field..], value);
        }
        LittleEndian::write_u32(&mut header[40..], link);
        LittleEndian::write_u32(&mut header[44..], info);
        self.headers.extend_from_slice(&header);
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
    }

    /// Writes the names and the headers to the end of `elf`.
    fn finish(mut self, elf: &mut Vec<u8>) {
        let names = elf.len();
        elf.extend_from_slice(&self.names);
        elf.resize(elf.len().next_multiple_of(8), 0);
        let own = &mut self.headers[self.names_section * SECTION_HEADER..];
        LittleEndian::write_u64(&mut own[24..], names as u64);
        LittleEndian::write_u64(&mut own[32..], self.names.len() as u64);
        let at = elf.len() as u64;
        LittleEndian::write_u64(&mut elf[E_SHOFF..], at);
        LittleEndian::write_u16(
            &mut elf[E_SHNUM..],
            (self.headers.len() / SECTION_HEADER) as u16,
        );
        elf.extend_from_slice(&self.headers);
    }
}

/// The error for more memory than a code object may take.
pub(super) const OVERSIZED: CodeObjectError = CodeObjectError::Oversized { max: MAX_BYTES };

/// A cubin without code, for the architecture with this number: a header, and the names of sections.
pub(super) fn empty(architecture: u32) -> Vec<u8> {
    const ABI_VERSION: u8 = 8;
    const NAMES: &[u8] = b"\0.shstrtab\0";
    let headers = (FILE_HEADER + NAMES.len()).next_multiple_of(8);
    let mut cubin = vec![0; headers + 2 * SECTION_HEADER];
    cubin[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, OS_ABI, ABI_VERSION]);
    LittleEndian::write_u16(&mut cubin[16..], object::elf::ET_EXEC.0);
    LittleEndian::write_u16(&mut cubin[18..], EM_CUDA);
    LittleEndian::write_u32(&mut cubin[20..], 1);
    LittleEndian::write_u64(&mut cubin[E_SHOFF..], headers as u64);
    // The flags have the architecture in their second byte.
    LittleEndian::write_u32(&mut cubin[48..], architecture << 8);
    LittleEndian::write_u16(&mut cubin[52..], FILE_HEADER as u16);
    LittleEndian::write_u16(&mut cubin[58..], SECTION_HEADER as u16);
    LittleEndian::write_u16(&mut cubin[E_SHNUM..], 2);
    LittleEndian::write_u16(&mut cubin[E_SHSTRNDX..], 1);
    cubin[FILE_HEADER..FILE_HEADER + NAMES.len()].copy_from_slice(NAMES);
    let names = &mut cubin[headers + SECTION_HEADER..];
    LittleEndian::write_u32(names, 1);
    LittleEndian::write_u32(&mut names[4..], SHT_STRTAB.0);
    LittleEndian::write_u64(&mut names[24..], FILE_HEADER as u64);
    LittleEndian::write_u64(&mut names[32..], NAMES.len() as u64);
    LittleEndian::write_u64(&mut names[48..], 1);
    cubin
}

/// Returns room for `bytes` bytes.
fn room_for(bytes: u64) -> Result<Vec<u8>, CodeObjectError> {
    if bytes > MAX_BYTES {
        return Err(OVERSIZED);
    }
    room(bytes).map_err(|_| CodeObjectError::NoMemory { bytes })
}
