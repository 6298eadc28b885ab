//! The device code in an object of the process, registered with HIP or not.

use std::fs::File;

use object::LittleEndian;
use object::elf::{FileHeader64, SHF_ALLOC};
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader};
use rocov::device::ElfImage;

use super::Object;

/// The section into which clang puts the device code of HIP.
pub(crate) const HIP: &[u8] = b".hip_fatbin";
/// The section into which clang puts the device code of OpenMP.
pub(crate) const OPENMP: &[u8] = b".llvm.offloading";

/// Returns the device code in a section of an object; `None` if it has none, or if its file is gone. Reads
/// little more of the file than the section names.
pub(crate) fn in_section(object: &Object, name: &[u8]) -> Option<&'static [u8]> {
    let image: Box<dyn ElfImage> = Box::new(File::open(object.mapped_file()).ok()?);
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    let (_, section) = sections.section_by_name(LittleEndian, name)?;
    let is_loaded = section.sh_flags(LittleEndian).contains(SHF_ALLOC);
    let (address, size) = (section.sh_addr(LittleEndian), section.sh_size(LittleEndian));
    is_loaded.then(|| object.memory(address, size)).flatten()
}
