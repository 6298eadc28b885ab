//! The device code in an object of the process, registered with HIP or not.

use std::ffi::CStr;
use std::fs::File;

use object::LittleEndian;
use object::elf::{FileHeader64, SHF_ALLOC};
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader};
use rocov::device::ElfImage;

use super::Object;

/// A language's device code in an object.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The section into which clang puts it.
    section: &'static [u8],
    /// The function by which the object registers it with the language's runtime.
    pub(crate) register: &'static CStr,
}

/// The device code of HIP.
pub(crate) const HIP: Kind = Kind {
    section: b".hip_fatbin",
    register: c"__hipRegisterFatBinary",
};
/// The device code of OpenMP.
pub(crate) const OPENMP: Kind = Kind {
    section: b".llvm.offloading",
    register: c"__tgt_register_lib",
};

/// Returns the device code in an object; `None` if it has none, or if its file is gone. Reads the file of an
/// object only if the object may register such code, and little more than the section names.
pub(crate) fn in_object(object: &Object, kind: Kind) -> Option<&'static [u8]> {
    if !object.may_call(kind.register) {
        return None;
    }
    let image: Box<dyn ElfImage> = Box::new(File::open(object.mapped_file()).ok()?);
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    let (_, section) = sections.section_by_name(LittleEndian, kind.section)?;
    let is_loaded = section.sh_flags(LittleEndian).contains(SHF_ALLOC);
    let (address, size) = (section.sh_addr(LittleEndian), section.sh_size(LittleEndian));
    is_loaded.then(|| object.memory(address, size)).flatten()
}
