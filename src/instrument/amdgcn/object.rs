//! The parts of a linked code object that counters need: its text, functions and kernel descriptors.

use std::collections::{BTreeMap, HashSet};

use byteorder::{ByteOrder, LittleEndian as Bytes};
use modelgpu_isa::{Target, WaveSize};
use object::LittleEndian;
use object::elf::{
    EM_AMDGPU, FileHeader64, PT_LOAD, ProgramHeader64, SHF_EXECINSTR, SHT_DYNSYM, SHT_PROGBITS,
    SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, SectionHeader64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};

use super::code::{Code, NamedCode};
use super::error::Refusal;
use super::map;
use crate::format::codeobject::CodeObjectError;

/// The size in bytes of a kernel descriptor, and the suffix of its symbol ("Kernel Descriptor" in LLVM's AMDGPUUsage, which
/// has the offsets and bits below, too).
const DESCRIPTOR_BYTES: u64 = 64;
const DESCRIPTOR_SUFFIX: &str = ".kd";
const ENTRY: usize = 16;
const RESOURCES_3: usize = 44;
const RESOURCES_1: usize = 48;
const RESOURCES_2: usize = 52;
const PROPERTIES: usize = 56;
const PRELOAD: usize = 58;
/// `ENABLE_WAVEFRONT_SIZE32` among the properties.
const WAVE32: u16 = 1 << 10;
/// The bits of the numbers of vector and scalar registers in the first resources, and of accumulators in the third.
const VECTORS: u32 = 0x3f;
const SCALARS: u32 = 0xf << SCALARS_AT;
const SCALARS_AT: u32 = 6;
const ACCUMULATORS: u32 = 0x3f;
/// The scalar registers that may hold workgroup numbers and the like at a kernel's start, after those of the user.
const SYSTEM_SCALARS: u32 = 6;

/// A kernel descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    /// Its ELF address.
    pub(super) address: u64,
    /// The ELF address of the kernel.
    pub(super) entry: u64,
    resources: [u32; 3],
    properties: u16,
    preload: u16,
}

impl Descriptor {
    fn parse(address: u64, bytes: &[u8]) -> Self {
        let word = |at: usize| Bytes::read_u32(&bytes[at..]);
        Self {
            address,
            entry: address.wrapping_add(Bytes::read_u64(&bytes[ENTRY..])),
            resources: [word(RESOURCES_1), word(RESOURCES_2), word(RESOURCES_3)],
            properties: Bytes::read_u16(&bytes[PROPERTIES..]),
            preload: Bytes::read_u16(&bytes[PRELOAD..]),
        }
    }

    pub(super) fn wave(&self) -> WaveSize {
        match self.properties & WAVE32 {
            0 => WaveSize::W64,
            _ => WaveSize::W32,
        }
    }

    /// Firmware loads arguments into registers, and enters after the code that does it otherwise.
    fn preloads(&self) -> bool {
        self.preload & 0x7f != 0
    }

    /// The scalar registers that are set at the start.
    pub(super) fn initial_scalars(&self) -> u32 {
        (self.resources[1] >> 1 & 31) + SYSTEM_SCALARS
    }

    /// The number of the first accumulator among the vector registers.
    pub(super) fn first_accumulator(&self) -> u32 {
        4 * ((self.resources[2] & ACCUMULATORS) + 1)
    }

    /// The vector registers in all.
    pub(super) fn vectors(&self, target: Target, lanes: u16) -> u32 {
        granule(target, lanes) * ((self.resources[0] & VECTORS) + 1)
    }

    /// Writes the entry and the numbers of registers to the bytes of the descriptor.
    pub(super) fn write(
        &self,
        bytes: &mut [u8],
        entry: u64,
        vectors: u32,
        scalars: u32,
        first_accumulator: Option<u32>,
        granule: u32,
    ) {
        Bytes::write_u64(&mut bytes[ENTRY..], entry.wrapping_sub(self.address));
        let mut first = self.resources[0];
        let granules = vectors.div_ceil(granule) - 1;
        first = first & !VECTORS | granules.max(first & VECTORS);
        if let Some(accumulator) = first_accumulator {
            // VCC and others are six more. The number is in units of 8, and always even.
            let wanted = 2 * ((scalars + 6).div_ceil(16) - 1);
            let known = (first & SCALARS) >> SCALARS_AT;
            first = first & !SCALARS | known.max(wanted) << SCALARS_AT;
            let third = self.resources[2] & !ACCUMULATORS | (accumulator / 4 - 1);
            Bytes::write_u32(&mut bytes[RESOURCES_3..], third);
        }
        Bytes::write_u32(&mut bytes[RESOURCES_1..], first);
    }
}

/// The targets whose code can be instrumented. Code of gfx1250 names registers by a mode of the wave, and
/// gfx906 and gfx908 have no file for both kinds of vector registers. The rewriter has no code for RDNA 2 (gfx1030).
const SUPPORTED: [Target; 5] = [
    Target::Gfx90a,
    Target::Gfx942,
    Target::Gfx950,
    Target::Gfx1100,
    Target::Gfx1201,
];

/// The vector registers for which a descriptor has one number.
pub(super) fn granule(target: Target, lanes: u16) -> u32 {
    match (target.generation(), lanes) {
        (modelgpu_isa::Generation::Gfx9, _) | (_, 32) => 8,
        _ => 4,
    }
}

/// A code object for AMD GPUs.
#[derive(Debug)]
pub(super) struct Object<'data> {
    pub(super) bytes: &'data [u8],
    pub(super) target: Target,
    pub(super) header: &'data FileHeader64<LittleEndian>,
    pub(super) segments: &'data [ProgramHeader64<LittleEndian>],
    pub(super) sections: &'data [SectionHeader64<LittleEndian>],
    /// The descriptors of kernels, by their entry.
    pub(super) kernels: BTreeMap<u64, Vec<Descriptor>>,
    /// The name and the size of each function, by its ELF address. A size of 0 is not known.
    names: BTreeMap<u64, (&'data str, u64)>,
}

impl<'data> Object<'data> {
    pub(super) fn parse(bytes: &'data [u8]) -> Result<Self, Refusal> {
        let damaged = |error: object::Error| Refusal::from(CodeObjectError::from(error));
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        if header.e_machine(endian) != EM_AMDGPU {
            return Err(CodeObjectError::WrongMachine {
                found: header.e_machine(endian).0,
            }
            .into());
        }
        let flags = header.e_flags(endian).0;
        let known = Target::from_elf_flags(flags);
        let supported = known.filter(|target| SUPPORTED.contains(target));
        let target = supported.ok_or_else(|| Refusal::Target {
            target: known.map_or_else(
                || format!("EF_AMDGPU_MACH {:#x}", flags & 0xff),
                |target| target.to_string(),
            ),
            supported: Target::list(&SUPPORTED),
        })?;
        let mut object = Self {
            bytes,
            target,
            header,
            segments: header.program_headers(endian, bytes).map_err(damaged)?,
            sections: header.section_headers(endian, bytes).map_err(damaged)?,
            kernels: BTreeMap::new(),
            names: BTreeMap::new(),
        };
        let sections = header.sections(endian, bytes).map_err(damaged)?;
        let is_here = |section: &&str| {
            let found = sections.section_by_name(endian, section.as_bytes());
            found.is_some()
        };
        if let Some(section) = map::SECTIONS.into_iter().find(is_here) {
            return Err(Refusal::Instrumented { section });
        }
        object.read_symbols().map_err(damaged)?;
        Ok(object)
    }

    /// Reads the symbols of kernels and functions from both tables.
    fn read_symbols(&mut self) -> Result<(), object::Error> {
        let endian = LittleEndian;
        let sections = self.header.sections(endian, self.bytes)?;
        let mut known = HashSet::new();
        let mut functions = Vec::new();
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            let table = sections.symbols(endian, self.bytes, kind)?;
            for symbol in table.iter() {
                let (address, size) = (symbol.st_value(endian), symbol.st_size(endian));
                let name = symbol.name(endian, table.strings())?;
                let Ok(name) = str::from_utf8(name) else {
                    continue;
                };
                if symbol.is_undefined(endian) || name.is_empty() || !known.insert((name, address))
                {
                    continue;
                }
                if let Some(kernel) = name.strip_suffix(DESCRIPTOR_SUFFIX)
                    && let Some(bytes) = self.at(address, DESCRIPTOR_BYTES)
                {
                    let descriptor = Descriptor::parse(address, bytes);
                    self.kernels
                        .entry(descriptor.entry)
                        .or_default()
                        .push(descriptor);
                    functions.push((descriptor.entry, kernel, 0));
                } else if matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC) {
                    functions.push((address, name, size));
                }
            }
        }
        for (address, name, size) in functions {
            let known = self.names.entry(address).or_insert((name, size));
            if known.1 == 0 {
                *known = (name, size);
            }
        }
        Ok(())
    }

    /// The ends of the loaded bytes: the ELF address, and the offset in the file.
    pub(super) fn ends(&self) -> Result<(u64, u64), Refusal> {
        let endian = LittleEndian;
        let (mut top, mut end) = (0_u64, 0_u64);
        for segment in self.segments {
            if segment.p_type(endian) == PT_LOAD {
                let ends =
                    |start: u64, size: u64| start.checked_add(size).filter(|end| *end < 1 << 40);
                let address = ends(segment.p_vaddr(endian), segment.p_memsz(endian));
                let offset = ends(segment.p_offset(endian), segment.p_filesz(endian));
                let (Some(address), Some(offset)) = (address, offset) else {
                    return Err(Refusal::Damaged("its segments reach too far".to_owned()));
                };
                (top, end) = (top.max(address), end.max(offset));
            }
        }
        Ok((top, end))
    }

    /// The offset in the file of bytes at an ELF address.
    pub(super) fn offset(&self, address: u64, size: u64) -> Option<usize> {
        let endian = LittleEndian;
        let loaded = self
            .segments
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD);
        let mut offsets = loaded.filter_map(|segment| {
            let from = address.checked_sub(segment.p_vaddr(endian))?;
            let is_inside = from.checked_add(size)? <= segment.p_filesz(endian);
            let offset = segment.p_offset(endian).checked_add(from)?;
            let offset = usize::try_from(offset).ok().filter(|_| is_inside)?;
            let end = offset.checked_add(size as usize)?;
            (end <= self.bytes.len()).then_some(offset)
        });
        offsets.next()
    }

    /// The bytes at an ELF address.
    fn at(&self, address: u64, size: u64) -> Option<&'data [u8]> {
        let offset = self.offset(address, size)?;
        self.bytes.get(offset..offset + size as usize)
    }

    /// The code of functions, by rising address.
    pub(super) fn codes(&self) -> Vec<NamedCode<'data>> {
        let endian = LittleEndian;
        let texts: Vec<(u64, u64)> = self
            .sections
            .iter()
            .filter(|section| {
                section.sh_type(endian) == SHT_PROGBITS
                    && section.sh_flags(endian).contains(SHF_EXECINSTR)
            })
            .map(|section| {
                let start = section.sh_addr(endian);
                (start, start.saturating_add(section.sh_size(endian)))
            })
            .collect();
        // Functions have no property for the size of waves; those that call them have the same.
        let wave = self.kernels.values().flatten().next();
        let usual = wave.map_or(WaveSize::W64, Descriptor::wave);
        let starts: Vec<u64> = self.names.keys().copied().collect();
        let mut codes = Vec::new();
        for (number, (start, (name, size))) in self.names.iter().enumerate() {
            let text = texts
                .iter()
                .find(|(first, end)| (*first..*end).contains(start));
            let Some((_, end)) = text else { continue };
            let next = starts.get(number + 1).copied().unwrap_or(u64::MAX);
            let size = match size {
                0 => next.min(*end) - start,
                size => (*size).min(end - start),
            };
            let Some(bytes) = self.at(*start, size) else {
                continue;
            };
            let kernels = self.kernels.get(start).map_or(&[][..], Vec::as_slice);
            let code = Code {
                bytes,
                address: *start,
                target: self.target,
                wave: kernels.first().map_or(usual, Descriptor::wave),
            };
            codes.push(NamedCode {
                name,
                code,
                descriptors: kernels.iter().map(|kernel| kernel.address).collect(),
                has_preloaded_entry: kernels.iter().any(Descriptor::preloads),
            });
        }
        codes
    }
}
