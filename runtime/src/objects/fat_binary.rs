//! The device code that an object of the process carries, whoever has registered it.

use std::fs::File;

use object::LittleEndian;
use object::elf::{FileHeader64, SHF_ALLOC};
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader};
use rocov::device::Image;

use super::Object;

/// The section that clang puts it into.
const SECTION: &[u8] = b".hip_fatbin";

/// The bundles of an object; `None` if it has none, or its file is not there any more. Little more
/// than the section names of the file is read.
pub(crate) fn of_object(object: &Object) -> Option<&'static [u8]> {
    let image: Box<dyn Image> = Box::new(File::open(object.mapped_file()).ok()?);
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    let (_, section) = sections.section_by_name(LittleEndian, SECTION)?;
    let is_loaded = section.sh_flags(LittleEndian).contains(SHF_ALLOC);
    let (address, size) = (section.sh_addr(LittleEndian), section.sh_size(LittleEndian));
    is_loaded.then(|| object.memory(address, size)).flatten()
}
