//! The files of code objects in the program's memory.
//!
//! HIP keeps the fat binary of a program mapped, and modules while they are loaded. To look through the memory takes time.
//! So the model does it for the message about a kernel's fault, and, for a trace, at the first launch of a kernel that no
//! loader has put into memory.

use std::fs::File;
use std::os::unix::fs::FileExt;

use modelgpu_amdgcn::code_object::Files;

use crate::sys;

/// The first bytes of an ELF file for AMD GPUs under HSA: class 64, little endian, version 1, ABI 64.
const MAGIC: u64 = u64::from_le_bytes(*b"\x7fELF\x02\x01\x01\x40");
/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;
/// The most bytes of memory to look through.
const LIMIT: u64 = 8 << 30;
/// The machine of AMD GPUs (`EM_AMDGPU`).
const MACHINE: u16 = 224;
/// The size of a section header.
const SECTION_HEADER: u16 = 64;
/// The most bytes of a file.
const LARGEST: u64 = 1 << 30;

/// All readable memory of the program.
pub(crate) struct ProgramMemory;

impl Files for ProgramMemory {
    fn visit(&self, is_it: &mut dyn FnMut(&[u8]) -> bool) {
        // Another thread may unmap the memory meanwhile. Then this file's read fails; a load would crash.
        let Ok(memory) = File::open("/proc/self/mem") else {
            return;
        };
        let mut chunk = vec![0; CHUNK];
        let mut left = LIMIT;
        for (start, end) in sys::readable_mappings() {
            let mut at = start;
            while at < end && left > 0 {
                let size = CHUNK.min((end - at) as usize);
                let Ok(()) = memory.read_exact_at(&mut chunk[..size], at) else {
                    break;
                };
                left = left.saturating_sub(size as u64);
                for offset in elf_headers(&chunk[..size]) {
                    let address = at + offset as u64;
                    if let Some(file) = file_at(&memory, address, end - address)
                        && is_it(&file)
                    {
                        return;
                    }
                }
                at += size as u64;
            }
        }
    }
}

/// The offsets of the starts of ELF files. Allocators and bundles align them to more than 8 bytes.
fn elf_headers(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let words = bytes.chunks_exact(8).enumerate();
    words.filter_map(|(place, word)| (word == MAGIC.to_le_bytes()).then_some(8 * place))
}

/// The ELF file at `address`, which has at most `room` bytes there: its section headers are its end.
fn file_at(memory: &File, address: u64, room: u64) -> Option<Vec<u8>> {
    let mut header = [0; 64];
    memory.read_exact_at(&mut header, address).ok()?;
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default());
    let short = |at: usize| u16::from_le_bytes(header[at..at + 2].try_into().unwrap_or_default());
    // Most of what looks like the first bytes of a file is not one.
    if short(18) != MACHINE || short(58) != SECTION_HEADER {
        return None;
    }
    let sections = u64::from(short(58)) * u64::from(short(60));
    let size = long(40).checked_add(sections)?;
    if size < header.len() as u64 || size > room.min(LARGEST) {
        return None;
    }
    let mut file = vec![0; size as usize];
    memory.read_exact_at(&mut file, address).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_memory_is_found() {
        // The middle of the header of an ELF file: section headers of 64 bytes from byte 64 on.
        let mut file = vec![0u64; 24];
        file[0] = MAGIC;
        file[2] = u64::from(MACHINE) << 16;
        file[5] = 64;
        file[7] = 64 << 16 | 2 << 32;
        let wanted: Vec<u8> = file.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut found = 0;
        ProgramMemory.visit(&mut |bytes| {
            found += usize::from(bytes == wanted);
            false
        });
        // The words and the copy.
        assert_eq!(found, 2);
        drop(file);
    }
}
