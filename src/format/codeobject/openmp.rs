//! Code objects of OpenMP: their kernels are target regions, and their coverage mapping has host code too.

use std::collections::HashSet;

use byteorder::{ByteOrder, LittleEndian as Word};
use object::LittleEndian;
use object::elf::{FileHeader64, SectionHeader64};
use object::pod;
use object::read::elf::{FileHeader, SectionHeader};

use crate::format::codeobject::elf::CodeObject;
use crate::format::codeobject::error::CodeObjectError;
use crate::format::decompress::{Method, unpack};
use crate::format::leb128::uleb128;

/// The start of the name of a target region's kernel.
pub const TARGET_REGION: &str = "__omp_offloading_";
/// The size of a function record's header in `__llvm_covfun` (see the coverage mapping).
const FUNCTION_HEADER: usize = 28;
/// The largest size in bytes of all names of an ELF.
const MAX_NAMES: u64 = 64 << 20;

/// The names in the profile of these kernels, in their order. clang names a target region after the source
/// file too, `file.cpp:__omp_offloading_...`, and every other kernel by its symbol.
pub(super) fn profile_names<'data, R: object::read::ReadRef<'data>>(
    code_object: &CodeObject<'data, R>,
    kernels: &[&str],
) -> Result<Vec<String>, CodeObjectError> {
    let own = || kernels.iter().map(|name| (*name).to_owned()).collect();
    if !kernels.iter().any(|name| name.starts_with(TARGET_REGION)) {
        return Ok(own());
    }
    let names = names(code_object.section(b"__llvm_prf_names")?);
    let local = |kernel: &str| {
        let is_of = |name: &&String| {
            let file = name.strip_suffix(kernel);
            file.is_some_and(|file| file.ends_with([':', ';']))
        };
        names.iter().find(is_of).cloned()
    };
    let name = |kernel: &&str| local(kernel).unwrap_or_else(|| (*kernel).to_owned());
    Ok(kernels.iter().map(name).collect())
}

/// The names in `__llvm_prf_names`: lists with their sizes before them, compressed or not. Ends at the first
/// damaged list.
fn names(mut section: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut room = MAX_NAMES;
    while let Some((list, rest)) = next_list(section, &mut room) {
        let list = list
            .split(|byte| *byte == 1)
            .filter(|entry| !entry.is_empty());
        names.extend(list.map(|name| String::from_utf8_lossy(name).into_owned()));
        section = rest;
    }
    names
}

fn next_list<'a>(section: &'a [u8], room: &mut u64) -> Option<(Vec<u8>, &'a [u8])> {
    // Lists are aligned by zeros.
    let start = section.iter().position(|byte| *byte != 0)?;
    let (size, read) = uleb128(&section[start..])?;
    let section = &section[start + read..];
    let (compressed, read) = uleb128(section)?;
    let section = &section[read..];
    let stored = if compressed == 0 { size } else { compressed };
    let (list, rest) = section.split_at_checked(usize::try_from(stored).ok()?)?;
    // Many small lists must not take more memory than one.
    *room = room.checked_sub(size)?;
    let list = match compressed {
        0 => list.to_vec(),
        _ => unpack(Method::Zlib, list, size).ok()?.bytes,
    };
    Some((list, rest))
}

/// A copy of the code object `elf` without the coverage mapping of functions that have no counters; `None`
/// if that changes nothing, or if `elf` is not of OpenMP.
///
/// clang compiles all of an OpenMP source for the device and emits what target regions need. Its coverage
/// mapping has the other functions too, as functions that are not used: the host's code would count as
/// code of the GPU that never ran.
#[must_use]
pub fn without_host_functions(elf: &[u8]) -> Option<Vec<u8>> {
    let header = FileHeader64::<LittleEndian>::parse(elf).ok()?;
    let sections = header.sections(LittleEndian, elf).ok()?;
    let data = |name: &[u8]| {
        let (_, section) = sections.section_by_name(LittleEndian, name)?;
        section.data(LittleEndian, elf).ok()
    };
    let mut names = data(b".dynstr")?.split(|byte| *byte == 0);
    names.find(|name| name.starts_with(TARGET_REGION.as_bytes()))?;
    let records = data(b"__llvm_prf_data").unwrap_or_default();
    let counted: HashSet<u64> = records.chunks_exact(8).map(Word::read_u64).collect();
    let (index, section) = sections.section_by_name(LittleEndian, b"__llvm_covfun")?;
    let functions = section.data(LittleEndian, elf).ok()?;
    let kept = mapped(functions, &counted)?;
    if kept.len() == functions.len() {
        return None;
    }
    let place = usize::try_from(section.sh_offset(LittleEndian)).ok()?;
    let table = usize::try_from(header.e_shoff(LittleEndian)).ok()?;
    let entry = table + index.0 * size_of::<SectionHeader64<LittleEndian>>();
    let mut copy = elf.to_vec();
    let there = copy.get_mut(place..place + functions.len())?;
    there.fill(0);
    there[..kept.len()].copy_from_slice(&kept);
    let entry = copy.get_mut(entry..)?;
    let (entry, _) = pod::from_bytes_mut::<SectionHeader64<LittleEndian>>(entry).ok()?;
    entry.sh_size.set(LittleEndian, kept.len() as u64);
    Some(copy)
}

/// The records of these functions; `None` if one is damaged.
fn mapped(functions: &[u8], counted: &HashSet<u64>) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(functions.len());
    let mut at = 0;
    while functions.len() - at >= FUNCTION_HEADER {
        let record = &functions[at..];
        let size = FUNCTION_HEADER + Word::read_u32(&record[8..]) as usize;
        let record = record.get(..size)?;
        if counted.contains(&Word::read_u64(record)) {
            kept.resize(kept.len().next_multiple_of(8), 0);
            kept.extend(record);
        }
        at = (at + size).next_multiple_of(8).min(functions.len());
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_lists_with_padding() {
        let section = b"\x05\x00a\x01b:c\x00\x00\x01\x00d";
        assert_eq!(names(section), ["a", "b:c", "d"]);
        assert_eq!(names(b"\x09\x00short"), [""; 0]);
    }

    #[test]
    fn records_of_functions_without_counters_go() {
        let record = |name: u64, mapping: &[u8]| {
            let mut record = name.to_le_bytes().to_vec();
            record.extend((mapping.len() as u32).to_le_bytes());
            record.extend([0; 16]);
            record.extend(mapping);
            record
        };
        let mut functions = record(1, b"host");
        functions.extend(record(2, b"device"));
        let kept = mapped(&functions, &HashSet::from([2]));
        assert_eq!(kept, Some(record(2, b"device")));
        assert_eq!(mapped(&functions[..62], &HashSet::new()), None);
    }
}
