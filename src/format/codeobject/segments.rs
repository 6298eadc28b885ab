//! A code object's memory as the loader lays it out, relocated.

use object::LittleEndian;
use object::elf::{PT_LOAD, RelocationType};
use object::read::ReadRef;
use object::read::elf::{ProgramHeader, SectionHeader};

use crate::format::codeobject::{CodeObject, CodeObjectError};
use crate::format::copies_table::{
    COPIES_SECTION, CUDA_STRIDE_UNIT, CopiesTableError, CopiesTables, STRIDE_UNIT,
};
use crate::support::memory::room;

/// `R_AMDGPU_RELATIVE64`: the load address plus the addend ("User Guide for AMDGPU Backend", "Relocation
/// Records"). The other relocations of a linked code object are for symbols of other code objects.
const RELATIVE64: RelocationType = RelocationType(13);

/// The most bytes of memory that a code object may take: the reach of LLVM's code models.
pub(super) const MAX_BYTES: u64 = 2 << 30;

impl<'data, R: ReadRef<'data>> CodeObject<'data, R> {
    /// The memory of the code object if it is loaded at address 0, before any kernel has run. A cubin has none unless it
    /// is [laid out](crate::format::codeobject::cuda::laid_out).
    ///
    /// # Errors
    /// Fails if program headers or relocations are damaged or reach too far, or if there is no memory.
    pub fn memory(&self) -> Result<Vec<u8>, CodeObjectError> {
        let segments = self.segments()?;
        let loaded = || {
            let all = segments.iter();
            all.filter(|segment| segment.p_type(LittleEndian) == PT_LOAD)
        };
        let mut size = 0;
        for segment in loaded() {
            let (start, len) = (segment.p_vaddr(LittleEndian), segment.p_memsz(LittleEndian));
            let end = start.checked_add(len).filter(|end| *end <= MAX_BYTES);
            size = size.max(end.ok_or(CodeObjectError::Oversized { max: MAX_BYTES })?);
        }
        // Check for room first: `vec!` ends the process if there is no memory, and takes none until it is
        // written to.
        room(size).map_err(|_| CodeObjectError::NoMemory { bytes: size })?;
        let mut memory = vec![0; size as usize];
        for segment in loaded() {
            let contents = segment
                .data(LittleEndian, self.data)
                .map_err(|()| CodeObjectError::Cut)?;
            let start = segment.p_vaddr(LittleEndian) as usize;
            let place = memory.get_mut(start..start + contents.len());
            place.ok_or(CodeObjectError::Cut)?.copy_from_slice(contents);
        }
        self.relocate(0, &mut memory)?;
        Ok(memory)
    }

    /// The tables of copies, with ELF addresses. Empty if the code object has no copies.
    #[must_use]
    pub fn copies_tables(&self) -> CopiesTables {
        let Some(section) = self.section_named(COPIES_SECTION.as_bytes()) else {
            return CopiesTables::default();
        };
        let unit = match self.is_cubin() {
            true => CUDA_STRIDE_UNIT,
            false => STRIDE_UNIT,
        };
        let unreadable = |reason| CopiesTables::unreadable(CopiesTableError::Unreadable { reason });
        let mut bytes = match section.data(LittleEndian, self.data) {
            Ok(bytes) if bytes.len() as u64 == section.sh_size(LittleEndian) => bytes.to_vec(),
            Ok(_) => return unreadable("it has no contents".to_owned()),
            Err(error) => return unreadable(error.to_string()),
        };
        match self.relocate(section.sh_addr(LittleEndian), &mut bytes) {
            Ok(()) => CopiesTables {
                unit,
                ..CopiesTables::decode(&bytes)
            },
            Err(error) => unreadable(error.to_string()),
        }
    }

    /// Relocates `memory`, which starts at ELF address `start`, for a load at address 0. Skips relocations of other
    /// memory.
    fn relocate(&self, start: u64, memory: &mut [u8]) -> Result<(), CodeObjectError> {
        self.each_relocated(|address, value| {
            let place = address
                .checked_sub(start)
                .and_then(|offset| usize::try_from(offset).ok())
                .and_then(|start| memory.get_mut(start..start.checked_add(8)?));
            if let Some(place) = place {
                place.copy_from_slice(&value.to_le_bytes());
            }
        })
    }

    /// Calls `relocated` for each word that the loader writes an address to: with its ELF address, and the ELF address
    /// that goes there.
    pub(super) fn each_relocated(
        &self,
        mut relocated: impl FnMut(u64, u64),
    ) -> Result<(), CodeObjectError> {
        for section in self.sections.iter() {
            let Some((relocations, _)) = section.rela(LittleEndian, self.data)? else {
                continue;
            };
            for relocation in relocations {
                if relocation.r_type(LittleEndian, false) == RELATIVE64 {
                    let addend = relocation.r_addend.get(LittleEndian);
                    relocated(
                        relocation.r_offset.get(LittleEndian),
                        addend.cast_unsigned(),
                    );
                }
            }
        }
        Ok(())
    }
}
