//! Reading an amdgcn ELF: its target and its build id.

use object::LittleEndian;
use object::elf::{EM_AMDGPU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, ProgramHeader};
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

/// A parsed code object.
#[derive(Debug)]
pub struct CodeObject<'data> {
    data: &'data [u8],
    header: &'data FileHeader64<LittleEndian>,
}

impl<'data> CodeObject<'data> {
    /// Parses the headers of a 64-bit little-endian ELF for AMDGPU.
    ///
    /// # Errors
    /// Fails where `data` is anything else.
    pub fn parse(data: &'data [u8]) -> Result<CodeObject<'data>, CodeObjectError> {
        let header = FileHeader64::<LittleEndian>::parse(data)?;
        header.endian()?;
        let machine = header.e_machine(LittleEndian);
        if machine != EM_AMDGPU {
            return Err(CodeObjectError::WrongMachine { found: machine.0 });
        }
        Ok(CodeObject { data, header })
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
}
