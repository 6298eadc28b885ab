//! The device code in an object of the process, registered with HIP or not.

use std::fs::File;

use object::LittleEndian;
use object::elf::{FileHeader64, SHF_ALLOC};
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader};
use rocov::device::ElfImage;

use super::Object;

/// The section into which clang puts device code.
const SECTION: &[u8] = b".hip_fatbin";

/// Returns the bundles of an object; `None` if it has none, or if its file is gone. Reads little more
/// of the file than the section names.
pub(crate) fn bundles_of(object: &Object) -> Option<&'static [u8]> {
    let image: Box<dyn ElfImage> = Box::new(File::open(object.mapped_file()).ok()?);
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    let (_, section) = sections.section_by_name(LittleEndian, SECTION)?;
    let is_loaded = section.sh_flags(LittleEndian).contains(SHF_ALLOC);
    let (address, size) = (section.sh_addr(LittleEndian), section.sh_size(LittleEndian));
    is_loaded.then(|| object.memory(address, size)).flatten()
}
