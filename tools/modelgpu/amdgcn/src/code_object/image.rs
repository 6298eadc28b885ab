//! Names for messages, read from a code object that a loader has placed in memory.
//!
//! ROCr allocates all segments of a code object in one region, with the ELF header at the start. So
//! the region that holds a kernel's descriptor begins with an ELF image. Its symbols and notes read
//! as in the file, but by address instead of file offset.

use std::fmt;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::dynamic::Dynamic;
use goblin::elf::program_header::{PT_LOAD, ProgramHeader};
use goblin::elf::sym::Symtab;
use goblin::elf::{Elf, Header};
use goblin::strtab::Strtab;
use modelgpu_isa::Target;

use super::source::{Files, SourceLine, is_file_of, line_of};
use crate::memory::{AddressSpace, View};

/// The most bytes of an image that a message may read.
const MAX_IMAGE: u64 = 1 << 30;

/// The kernel that a packet launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelIdentity {
    /// The kernel's name in the symbol table, without `.kd`. If the name is unknown, the
    /// descriptor's address.
    pub kernel: String,
    /// The code object that holds the kernel.
    pub code_object: CodeObjectName,
}

/// A code object in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeObjectName {
    /// An ELF image.
    Image {
        /// Address of its ELF header.
        base: u64,
        /// The processor of the image; `None` if it is not modelled.
        target: Option<Target>,
        /// The GNU build id, if the image has one.
        build_id: Option<Vec<u8>>,
        /// The names of its kernels, which tell it from other code objects.
        kernels: Vec<String>,
    },
    /// Code without an ELF header before it, such as ROCr's own blit kernels.
    Raw {
        /// The first address of the region.
        base: u64,
    },
    /// The kernel object is not in mapped memory.
    Unmapped,
}

impl fmt::Display for CodeObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmapped => f.write_str("unmapped memory"),
            Self::Raw { base } => write!(f, "the code without ELF header at {base:#x}"),
            Self::Image {
                base,
                target,
                build_id,
                kernels,
            } => {
                write!(f, "code object ")?;
                if let Some(id) = build_id {
                    id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                    write!(f, " ")?;
                }
                write!(f, "at {base:#x}")?;
                if let Some(target) = target {
                    write!(f, " for {target}")?;
                }
                match kernels.len() {
                    0 => Ok(()),
                    1 => write!(f, " with one kernel"),
                    count => write!(f, " with {count} kernels"),
                }
            }
        }
    }
}

impl KernelIdentity {
    /// Names the kernel whose descriptor is at `kernel_object`.
    pub fn find(memory: &dyn AddressSpace, kernel_object: u64) -> Self {
        let anonymous = format!("at {kernel_object:#x}");
        let Some(region) = memory.region(kernel_object) else {
            return Self {
                kernel: anonymous,
                code_object: CodeObjectName::Unmapped,
            };
        };
        let raw = CodeObjectName::Raw { base: region.base };
        let Some(image) = Image::read(memory, region.base) else {
            return Self {
                kernel: anonymous,
                code_object: raw,
            };
        };
        let mut kernels = Vec::new();
        let mut kernel = anonymous;
        for (name, value) in image.symbols() {
            if let Some(name) = name.strip_suffix(".kd") {
                if value == kernel_object - region.base {
                    kernel = name.to_owned();
                }
                kernels.push(name.to_owned());
            }
        }
        let code_object = CodeObjectName::Image {
            base: region.base,
            target: Target::from_elf_flags(image.header.e_flags),
            build_id: image.build_id(),
            kernels,
        };
        Self {
            kernel,
            code_object,
        }
    }

    /// The source line of the instruction at `address`, if `files` finds the code object's file and it has
    /// debug information.
    pub(crate) fn line(
        &self,
        memory: &dyn AddressSpace,
        files: &dyn Files,
        address: u64,
    ) -> Option<SourceLine> {
        let CodeObjectName::Image { base, .. } = &self.code_object else {
            return None;
        };
        let image = Image::read(memory, *base)?;
        let offset = address.checked_sub(*base)?;
        let mut line = None;
        files.visit(&mut |file| {
            let found = is_file_of(file, &image.bytes);
            if found {
                line = line_of(file, offset);
            }
            found
        });
        line
    }

    /// The offset of an address from the ELF header, as a disassembly of the file prints it.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        match &self.code_object {
            CodeObjectName::Image { base, .. } => address.checked_sub(*base),
            _ => None,
        }
    }
}

/// A copy of an image whose program headers have addresses instead of file offsets.
struct Image {
    bytes: Vec<u8>,
    header: Header,
    segments: Vec<ProgramHeader>,
}

const CONTEXT: Ctx = Ctx {
    container: Container::Big,
    le: Endian::Little,
};

impl Image {
    /// Returns `None` if no readable ELF image begins at `base`.
    fn read(memory: &dyn AddressSpace, base: u64) -> Option<Self> {
        let mut view = View::new(memory);
        let region = view.region(base, 1).ok()?;
        let mut copy = |len: u64| view.copy(base, len).ok();
        let header: Header = Elf::parse_header(&copy(64)?).ok()?;
        let table_end = header.e_phoff.checked_add(u64::from(header.e_phnum) * 56)?;
        if table_end > region.len {
            return None;
        }
        let table = copy(table_end)?;
        let offset = usize::try_from(header.e_phoff).ok()?;
        let mut segments =
            ProgramHeader::parse(&table, offset, header.e_phnum.into(), CONTEXT).ok()?;
        for segment in &mut segments {
            segment.p_offset = segment.p_vaddr;
        }
        let end = segments
            .iter()
            .filter(|segment| segment.p_type == PT_LOAD)
            .map(|segment| segment.p_vaddr.saturating_add(segment.p_memsz))
            .max()?;
        let bytes = copy(end.min(region.len).min(MAX_IMAGE))?;
        Some(Self {
            bytes,
            header,
            segments,
        })
    }

    /// Names and values of the dynamic symbols; empty if they cannot be read.
    fn symbols(&self) -> Vec<(String, u64)> {
        self.try_symbols().unwrap_or_default()
    }

    fn try_symbols(&self) -> Option<Vec<(String, u64)>> {
        let dynamic = Dynamic::parse(&self.bytes, &self.segments, CONTEXT).ok()??;
        let info = &dynamic.info;
        // DT_HASH: the number of buckets, then the number of symbols.
        let hash = usize::try_from(info.hash?).ok()?;
        let count = self.bytes.get(hash + 4..hash + 8)?;
        let count = u32::from_le_bytes(count.try_into().ok()?) as usize;
        if count > self.bytes.len() {
            return None;
        }
        let symbols = Symtab::parse(&self.bytes, info.symtab, count, CONTEXT).ok()?;
        let names = Strtab::parse(&self.bytes, info.strtab, info.strsz, 0).ok()?;
        let named = symbols
            .iter()
            .filter_map(|symbol| Some((names.get_at(symbol.st_name)?.to_owned(), symbol.st_value)));
        Some(named.collect())
    }

    fn build_id(&self) -> Option<Vec<u8>> {
        /// NT_GNU_BUILD_ID.
        const BUILD_ID: u32 = 3;
        let mut elf = Elf::lazy_parse(self.header).ok()?;
        elf.program_headers.clone_from(&self.segments);
        elf.iter_note_headers(&self.bytes)?
            .flatten()
            .find(|note| note.n_type == BUILD_ID && note.name == "GNU")
            .map(|note| note.desc.to_vec())
    }
}
