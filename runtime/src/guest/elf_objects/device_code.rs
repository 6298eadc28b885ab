//! The device code in an object of the process, registered with its runtime or not.

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
    /// True if an object may have the runtime in it, and then imports no such function.
    may_be_static: bool,
}

/// The device code of HIP.
pub(crate) const HIP: Kind = Kind {
    section: b".hip_fatbin",
    register: c"__hipRegisterFatBinary",
    may_be_static: false,
};
/// The device code of CUDA.
pub(crate) const CUDA: Kind = Kind {
    section: b".nv_fatbin",
    register: c"__cudaRegisterFatBinary",
    may_be_static: true,
};
/// The device code of OpenMP.
pub(crate) const OPENMP: Kind = Kind {
    section: b".llvm.offloading",
    register: c"__tgt_register_lib",
    may_be_static: false,
};

/// Returns whether an object has device code of this kind: it registers such code or, if its tables do not
/// tell, its file has the section. Then this reads little more than the section names of the file.
pub(crate) fn is_in(object: &Object, kind: Kind) -> bool {
    let calls = object.calls(kind.register);
    let calls = calls.filter(|calls| *calls || !kind.may_be_static);
    calls.unwrap_or_else(|| has_section(object, kind).unwrap_or(false))
}

/// Returns whether the file of an object has the section; `None` if the file is gone.
fn has_section(object: &Object, kind: Kind) -> Option<bool> {
    let image: Box<dyn ElfImage> = Box::new(File::open(object.readable_file()).ok()?);
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    let section = sections.section_by_name(LittleEndian, kind.section);
    Some(section.is_some_and(|(_, header)| header.sh_flags(LittleEndian).contains(SHF_ALLOC)))
}
