//! LLVM's own drain for HIP, if the compiler has linked it into the program.
//!
//! Both drains would write every count, into files of different names, and a merge would double them. So each code
//! object is left to one of them.
#![expect(unsafe_code, reason = "makes a function of an address")]

use std::collections::HashSet;
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memchr::memmem;
use object::LittleEndian;
use object::elf::{FileHeader64, SHT_SYMTAB, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::read::{ReadCache, StringTable};
use rocov::device::ElfImage;
use rocov::settings::Drainer;
use rocov::support::diagnostic::diagnostic;
use rocov::support::file_part::FilePart;

use crate::guest::elf_objects::{self, Object};
use crate::guest::journal::{self, Note};
use crate::guest::{log, settings};

/// The entry point of clang_rt.profile_rocm, which tells it from the rest of LLVM's runtime. Copies of
/// librocov have it too.
const ENTRY: &CStr = c"__llvm_profile_hip_collect_device_data";
/// A symbol of every clang_rt.profile_rocm, but of no copy of librocov.
const LLVM_ONLY: &CStr = c"__llvm_profile_offload_unregister_dynamic_module";
/// A symbol of every copy of librocov.
const COPY: &CStr = c"rocov_roles_v1";

/// Functions that the released drain (clang 23) exports, to come before HIP's.
const INTERCEPTORS: [&CStr; 3] = [
    c"hipModuleLoadData",
    c"hipModuleUnload",
    c"hipGraphLaunch_spt",
];
/// The most sections whose headers are read at once.
const SECTIONS: usize = 64;

/// A function that only the HIP runtime exports.
const HIP_ONLY: &CStr = c"hipInit";

/// rocov's behaviour towards LLVM's drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stance {
    /// There is no other drain.
    Alone,
    /// LLVM's drain writes the profiles of code objects without copies of their counters, which it does not know of.
    /// rocov drains the others, and LLVM's drain finds nothing of them, because rocov has blanked their tables.
    StandDown,
    /// rocov drains. LLVM's drain finds nothing, because rocov has blanked its tables.
    TakeOver,
}

/// The search for LLVM's drain, which a library that is loaded later may bring.
#[derive(Debug)]
pub(crate) struct LlvmDrain {
    stance: Stance,
    searched: HashSet<PathBuf>,
    /// The number of objects that were ever loaded, at the last search.
    opened: u64,
}

impl LlvmDrain {
    /// Starts a search. `ROCOV_DRAIN=llvm` decides in LLVM's favour, whatever the search finds.
    pub(crate) fn new() -> Self {
        let stance = match settings::drainer() {
            Some(Drainer::Llvm) => {
                journal::note(Note::Neighbour);
                Stance::StandDown
            }
            Some(Drainer::Rocov) | None => Stance::Alone,
        };
        Self {
            stance,
            searched: HashSet::new(),
            opened: 0,
        }
    }

    /// Returns the present stance.
    pub(crate) fn stance(&self) -> Stance {
        self.stance
    }

    /// Searches the objects that were loaded since the last search, and returns the new stance.
    pub(crate) fn look(&mut self) -> Stance {
        if self.stance != Stance::Alone {
            return self.stance;
        }
        let opened = elf_objects::opened();
        if opened != 0 && opened == self.opened {
            return self.stance;
        }
        self.opened = opened;
        let takes_over = settings::drainer() == Some(Drainer::Rocov);
        let found = elf_objects::all().into_iter().find(|object| {
            self.searched.insert(object.path())
                && (holds_llvms_drain(object) || (takes_over && exports_interceptors(object)))
        });
        let Some(found) = found else {
            return self.stance;
        };
        let file = found.mapped_file();
        self.stance = if takes_over {
            log::verbose(format_args!(
                "taking over from LLVM's own drain for HIP in {}",
                file.display()
            ));
            Stance::TakeOver
        } else {
            journal::note(Note::Neighbour);
            log::warn(diagnostic!(
                "LLVM's own drain for HIP (clang_rt.profile_rocm) is in {} and writes the device profiles",
                file.display();
                "set ROCOV_DRAIN=rocov to have rocov write them"
            ));
            Stance::StandDown
        };
        self.stance
    }
}

/// Returns LLVM's entry point, unless rocov drains in its stead.
///
/// A library may export it, although LLVM's headers do not ask for that. When such a library calls its
/// own, it gets the first one in the process: ours.
pub(crate) fn exported_entry() -> Option<unsafe extern "C" fn() -> c_int> {
    if settings::drainer() == Some(Drainer::Rocov) {
        return None;
    }
    let entry = elf_objects::all().iter().find_map(|object| {
        let entry = object.defines(ENTRY)?;
        let is_llvms = object.defines(LLVM_ONLY).is_some() || object.defines(COPY).is_none();
        is_llvms.then_some(entry)
    })?;
    // SAFETY: LLVM declares the function with this type.
    Some(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(entry) })
}

/// Returns whether LLVM's drain is in an object. Its functions are hidden: only the full symbol table of the file has
/// them, and a stripped file shows none. A stand-alone drain may export them.
fn holds_llvms_drain(object: &Object) -> bool {
    let exports = |name| object.defines(name).is_some();
    if exports(ENTRY) && (exports(LLVM_ONLY) || !exports(COPY)) {
        return true;
    }
    // A program that was deleted or replaced can still be read as /proc/self/exe, unless it was started
    // by naming the dynamic linker.
    [object.readable_file(), object.path()]
        .into_iter()
        .filter_map(|file| defines_llvms_drain(object, &file))
        .next()
        .unwrap_or(false)
}

/// Returns whether an object seems to contain the released drain, by symbols that even a stripped object
/// exports. Another tool may export such functions, so rocov does not leave counts to it.
fn exports_interceptors(object: &Object) -> bool {
    let exports = |name| object.defines(name).is_some();
    INTERCEPTORS.into_iter().all(exports) && !exports(HIP_ONLY)
}

/// Returns whether an ELF has no full symbol table, by its headers only: most libraries are stripped, and a HIP program
/// has dozens of them. False in doubt, such as for a file that is no ELF.
fn lacks_full_table(file: &File) -> bool {
    let mut header = [0; size_of::<FileHeader64<LittleEndian>>()];
    let mut sections = [0; SECTIONS * size_of::<SectionHeader64<LittleEndian>>()];
    let is_read = file.read_exact_at(&mut header, 0).is_ok();
    // The offset of the section headers, their size, and their number.
    let (start, size, count) = (
        u64::from_le_bytes(*header[0x28..].first_chunk().expect("8 bytes")),
        usize::from(u16::from_le_bytes([header[0x3a], header[0x3b]])),
        usize::from(u16::from_le_bytes([header[0x3c], header[0x3d]])),
    );
    let is_usual = size == size_of::<SectionHeader64<LittleEndian>>() && count <= SECTIONS;
    // A file with more sections has 0 here.
    if !is_read || !header.starts_with(b"\x7fELF\x02\x01") || !is_usual || count == 0 {
        return false;
    }
    let sections = &mut sections[..count * size];
    let kind = |section: &[u8]| u32::from_le_bytes(*section[4..].first_chunk().expect("4 bytes"));
    file.read_exact_at(sections, start).is_ok()
        && sections
            .chunks_exact(size)
            .all(|section| kind(section) != SHT_SYMTAB.0)
}

/// Returns whether the full symbol table of the file of `object` at `path` has LLVM's drain. `None` if the file
/// cannot be read: it was deleted, or is the kernel's own.
///
/// For most files, this reads only the names of symbols: reading all symbols of all libraries of a HIP
/// program takes longer than many such programs.
fn defines_llvms_drain(object: &Object, path: &Path) -> Option<bool> {
    let file = File::open(path).ok()?;
    if lacks_full_table(&file) {
        return Some(false);
    }
    let image: Box<dyn ElfImage> = Box::new(FilePart::whole(file).ok()?);
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    let symbols = sections.symbols(LittleEndian, &cache, SHT_SYMTAB).ok()?;
    let names = sections.section(symbols.string_section()).ok();
    let names = names.and_then(|names| names.data(LittleEndian, &cache).ok());
    let names = names.unwrap_or_default();
    // Some linkers store a name as the end of another. A mere reference has a name, too.
    let may_define = |name: &CStr| memmem::find(names, name.to_bytes_with_nul()).is_some();
    if !may_define(ENTRY) {
        return Some(false);
    }
    // A copy of librocov without LLVM's drain, such as this library.
    if !may_define(LLVM_ONLY) && object.defines(COPY).is_some() {
        return Some(false);
    }
    let strings = StringTable::new(names, 0, names.len() as u64);
    let [mut entry, mut llvm_only, mut copy] = [false; 3];
    for symbol in symbols
        .iter()
        .filter(|symbol| !symbol.is_undefined(LittleEndian))
    {
        let Ok(name) = symbol.name(LittleEndian, strings) else {
            continue;
        };
        for (wanted, found) in [
            (ENTRY, &mut entry),
            (LLVM_ONLY, &mut llvm_only),
            (COPY, &mut copy),
        ] {
            *found |= name == wanted.to_bytes();
        }
    }
    Some(entry && (llvm_only || !copy))
}
