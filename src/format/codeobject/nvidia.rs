//! Code objects of NVIDIA GPUs: their target, and their data about kernels.
//!
//! The flags are those of LLVM's ELF.h (`EF_CUDA_*`). NVIDIA documents the attributes of `.nv.info` by name only
//! (`cuobjdump -elf`); the numbers are those in cubins of ptxas 12.9.

use byteorder::{ByteOrder, LittleEndian as Le};
use object::LittleEndian;
use object::elf::{SHT_SYMTAB, STT_FUNC};
use object::read::elf::{SectionHeader, Sym};
use object::read::{ReadRef, SectionIndex, StringTable, SymbolIndex};

use crate::format::codeobject::elf::{CodeObject, CodeObjectError};
use crate::format::codeobject::kernel::Kernel;
use crate::format::codeobject::kernel_sources::Functions;

use crate::format::cubin::EM_CUDA;
/// The ABI version from CUDA 13 on, `ELFABIVERSION_CUDA_V2`.
const ABI_VERSION_2: u8 = 8;
/// `EF_CUDA_ACCELERATORS_V1` and `EF_CUDA_ACCELERATORS`: code for one processor only, such as `sm_90a`.
const ACCELERATORS: [u32; 2] = [0x800, 0x8];
/// `STO_CUDA_ENTRY`, in `st_other`: the function is a kernel.
const ENTRY: u8 = 0x10;

/// The attributes of functions, with their forms: `EIFMT_SVAL` has a length and that many bytes, `EIFMT_HVAL` two bytes.
const WITH_BYTES: u8 = 4;
const REGISTERS: u8 = 0x2f;
const FRAME: u8 = 0x11;
const PARAMETERS: u8 = 0x19;

/// The threads of a warp.
const WARP: u32 = 32;

/// The processor, such as `sm_90` or `sm_90a`, from the flags of the ELF.
pub(super) fn target_of(flags: u32, abi_version: u8) -> String {
    let (number, accelerators) = match abi_version >= ABI_VERSION_2 {
        true => (flags >> 8 & 0xff, ACCELERATORS[1]),
        false => (flags & 0xff, ACCELERATORS[0]),
    };
    let suffix = if flags & accelerators == 0 { "" } else { "a" };
    format!("sm_{number}{suffix}")
}

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// Returns whether it is for an NVIDIA GPU.
    #[must_use]
    pub fn is_cuda(&self) -> bool {
        self.machine() == EM_CUDA
    }

    /// The kernels of a code object of an NVIDIA GPU, in the order of its symbols. Registers are in `vgprs`, shared memory
    /// is in `group_size`, and a thread's stack is in `private_size`.
    pub(super) fn cuda_kernels(&self) -> Result<Vec<Kernel>, CodeObjectError> {
        let table = self.sections.symbols(LittleEndian, self.data, SHT_SYMTAB)?;
        let names = match table.string_section() {
            SectionIndex(0) => &[],
            index => self
                .sections
                .section(index)?
                .data(LittleEndian, self.data)?,
        };
        let names = StringTable::new(names, 0, names.len() as u64);
        let mut kernels = Vec::new();
        for (index, symbol) in table.enumerate() {
            if symbol.st_type() != STT_FUNC || symbol.st_other().0 & ENTRY == 0 {
                continue;
            }
            let name = String::from_utf8_lossy(symbol.name(LittleEndian, names)?).into_owned();
            kernels.push(Kernel {
                group_size: self.section_size(&format!(".nv.shared.{name}")) as u32,
                kernarg_size: self.parameters(&name)?,
                vgprs: self.attribute(REGISTERS, index)?,
                private_size: self.attribute(FRAME, index)?,
                wavefront_size: WARP,
                name,
                ..Kernel::default()
            });
        }
        let functions = Functions::named(kernels.iter().map(|kernel| kernel.name.as_str()));
        let counted = functions.counted(self)?;
        let sources = functions.sources(self);
        let sources = sources.unwrap_or_else(|_| vec![None; kernels.len()]);
        for ((kernel, instrumented), source) in kernels.iter_mut().zip(counted).zip(sources) {
            kernel.instrumented = instrumented;
            kernel.source = source;
        }
        Ok(kernels)
    }

    fn section_size(&self, name: &str) -> u64 {
        let section = self.sections.section_by_name(LittleEndian, name.as_bytes());
        section.map_or(0, |(_, section)| section.sh_size(LittleEndian))
    }

    /// The attribute `wanted` of the function with this symbol; 0 if there is none.
    fn attribute(&self, wanted: u8, function: SymbolIndex) -> Result<u32, CodeObjectError> {
        let info = self.section(b".nv.info")?;
        let found = attributes(info).find(|(attribute, value)| {
            *attribute == wanted && value.len() >= 8 && Le::read_u32(value) as usize == function.0
        });
        Ok(found.map_or(0, |(_, value)| Le::read_u32(&value[4..])))
    }

    /// The size of a kernel's parameters in bytes; 0 if it is not known.
    fn parameters(&self, kernel: &str) -> Result<u32, CodeObjectError> {
        let info = self.section(format!(".nv.info.{kernel}").as_bytes())?;
        let found = attributes(info).find(|(attribute, _)| *attribute == PARAMETERS);
        Ok(found.map_or(0, |(_, value)| Le::read_u16(value).into()))
    }
}

/// The attributes in a section of this kind, each with its value: its bytes, or two bytes.
fn attributes(mut info: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (head, rest) = info.split_at_checked(4)?;
        let len = match head[0] {
            WITH_BYTES => usize::from(Le::read_u16(&head[2..])),
            _ => 0,
        };
        let (value, rest) = rest.split_at_checked(len)?;
        info = rest;
        Some((
            head[1],
            if head[0] == WITH_BYTES {
                value
            } else {
                &head[2..]
            },
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_the_processor() {
        // From cubins of ptxas 12.9 (ABI version 7) and 13.0 (8).
        assert_eq!(target_of(0x005a_055a, 7), "sm_90");
        assert_eq!(target_of(0x005a_0d5a, 7), "sm_90a");
        assert_eq!(target_of(0x0600_5a02, 8), "sm_90");
    }

    #[test]
    fn a_damaged_section_ends_the_attributes() {
        let info = [
            4, REGISTERS, 8, 0, 1, 0, 0, 0, 12, 0, 0, 0, 4, FRAME, 9, 0, 1,
        ];
        let found: Vec<_> = attributes(&info).collect();
        assert_eq!(found, [(REGISTERS, &info[4..12])]);
    }
}
