//! LLVM's own drain for HIP, where the compiler linked it into the program.
//!
//! Both would write every count, into files of different names, and a merge would double them.

use std::collections::HashSet;
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use memchr::memmem;
use object::LittleEndian;
use object::elf::{FileHeader64, SHT_SYMTAB};
use object::read::ReadCache;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use rocov::device::Image;
use rocov::drain::Drainer;

use crate::journal::{self, Note};
use crate::objects::{self, Object};
use crate::{config, log};

/// What tells clang_rt.profile_rocm from the rest of LLVM's runtime: its entry point. A copy of
/// librocov has it too.
const ENTRY: &CStr = c"__llvm_profile_hip_collect_device_data";
/// What every clang_rt.profile_rocm defines and no copy of librocov.
const LLVM_ONLY: &CStr = c"__llvm_profile_offload_unregister_dynamic_module";
/// What every copy of librocov defines.
const COPY: &CStr = c"rocov_control_v1";

/// What the released drain (clang 23) exports so that HIP's callers find it first, and what the HIP
/// runtime itself exports besides.
const INTERCEPTORS: [&CStr; 3] = [
    c"hipModuleLoadData",
    c"hipModuleUnload",
    c"hipGraphLaunch_spt",
];
const HIP_ONLY: &CStr = c"hipInit";

/// How to behave beside LLVM's drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stance {
    /// It is not there.
    Alone,
    /// It drains.
    StandDown,
    /// It is there, and finds nothing: the tables that it goes by are blank.
    TakeOver,
}

/// The search for LLVM's drain, which a library that is loaded later may bring.
#[derive(Debug)]
pub(crate) struct Neighbour {
    stance: Stance,
    searched: HashSet<PathBuf>,
}

impl Neighbour {
    /// Nothing was searched yet. `ROCOV_DRAIN=llvm` decides in LLVM's favour, whatever is found.
    pub(crate) fn new() -> Neighbour {
        let stance = match config::drainer() {
            Some(Drainer::Llvm) => {
                journal::note(Note::Neighbour);
                Stance::StandDown
            }
            Some(Drainer::Rocov) | None => Stance::Alone,
        };
        Neighbour {
            stance,
            searched: HashSet::new(),
        }
    }

    /// What was found so far makes us do.
    pub(crate) fn stance(&self) -> Stance {
        self.stance
    }

    /// Looks through the objects that were loaded since the last time.
    pub(crate) fn look(&mut self) -> Stance {
        if self.stance != Stance::Alone {
            return self.stance;
        }
        let takes_over = config::drainer() == Some(Drainer::Rocov);
        let found = objects::all().into_iter().find(|object| {
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
            log::warn(format_args!(
                "LLVM's own drain for HIP (clang_rt.profile_rocm) is in {} and writes the \
                 device profiles; set ROCOV_DRAIN=rocov to let rocov do it",
                file.display()
            ));
            Stance::StandDown
        };
        self.stance
    }
}

/// LLVM's entry point, unless we drain in its stead. A library that exports it, as LLVM's headers
/// do not ask for, calls the first one in the process when it means its own: ours.
pub(crate) fn exported_entry() -> Option<unsafe extern "C" fn() -> c_int> {
    if config::drainer() == Some(Drainer::Rocov) {
        return None;
    }
    let entry = objects::all().iter().find_map(|object| {
        let entry = object.defines(ENTRY)?;
        let is_llvms = object.defines(LLVM_ONLY).is_some() || object.defines(COPY).is_none();
        is_llvms.then_some(entry)
    })?;
    // SAFETY: LLVM declares a function of this name so.
    Some(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(entry) })
}

/// Returns whether LLVM's drain is in an object. Its functions are hidden, so that they are in the full symbol
/// table of the file alone, and not to be seen in a stripped one; a stand-alone drain may export them.
fn holds_llvms_drain(object: &Object) -> bool {
    let exports = |name| object.defines(name).is_some();
    if exports(ENTRY) && (exports(LLVM_ONLY) || !exports(COPY)) {
        return true;
    }
    // A program that was deleted or replaced is still there as /proc/self/exe, unless it was started by
    // naming the dynamic linker.
    let files = [object.mapped_file(), object.path()];
    files
        .iter()
        .find_map(|file| defines_llvms_drain(file))
        .unwrap_or(false)
}

/// Returns whether an object seems to have the released drain in it, by what even a stripped one exports. Some
/// other tool may export such functions: that is no reason to leave counts to it.
fn exports_interceptors(object: &Object) -> bool {
    let exports = |name| object.defines(name).is_some();
    INTERCEPTORS.into_iter().all(exports) && !exports(HIP_ONLY)
}

/// Returns whether the full symbol table of a file has LLVM's drain. `None` where the file cannot be read: it
/// was deleted, or is the kernel's own.
///
/// Most files are done with after the names of their symbols: looking at all symbols of all libraries
/// of a HIP program takes longer than many such programs.
fn defines_llvms_drain(path: &Path) -> Option<bool> {
    let image: Box<dyn Image> = Box::new(BufReader::new(File::open(path).ok()?));
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    let symbols = sections.symbols(LittleEndian, &cache, SHT_SYMTAB).ok()?;
    let names = sections.section(symbols.string_section()).ok();
    let names = names.and_then(|names| names.data(LittleEndian, &cache).ok());
    // Some linkers have a name be the end of another. A name is there too if it is a reference alone.
    if memmem::find(names.unwrap_or_default(), ENTRY.to_bytes_with_nul()).is_none() {
        return Some(false);
    }
    let [mut entry, mut llvm_only, mut copy] = [false; 3];
    for symbol in symbols
        .iter()
        .filter(|symbol| !symbol.is_undefined(LittleEndian))
    {
        let Ok(name) = symbol.name(LittleEndian, symbols.strings()) else {
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
