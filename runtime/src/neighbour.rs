//! LLVM's own drain for HIP, where the compiler linked it into the program.
//!
//! Both would write every count, into files of different names, and a merge would double them.

use std::collections::HashSet;
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf::{FileHeader64, SHT_DYNSYM, SHT_SYMTAB};
use object::read::ReadCache;
use object::read::elf::{FileHeader, Sym};
use rocov::device::Image;
use rocov::drain::Session;
use rocov::hsa::HsaDevice;

use crate::{config, log, objects};

/// What tells clang_rt.profile_rocm from the rest of LLVM's runtime: its entry point. A copy of
/// librocov has it too.
const ENTRY: &CStr = c"__llvm_profile_hip_collect_device_data";
/// What every clang_rt.profile_rocm defines and no copy of librocov.
const LLVM_ONLY: &CStr = c"__llvm_profile_offload_unregister_dynamic_module";
/// What every copy of librocov defines.
const COPY: &CStr = c"rocov_control_v1";

/// What every object with LLVM's profile runtime has, instrumented or not: the runtime makes sure
/// of it by an empty variable (`InstrProfilingPlatformLinux.c`).
const PROFILE_SECTION: &[u8] = b"__llvm_prf_cnts";

/// How to behave beside LLVM's drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stance {
    /// It is not there.
    #[default]
    Alone,
    /// It is, and drains.
    StandDown,
    /// It is, and finds nothing: what was drained is zeroed on the device.
    TakeOver,
}

/// The search for LLVM's drain, which a library that is loaded later may bring.
#[derive(Debug, Default)]
pub(crate) struct Neighbour {
    stance: Stance,
    searched: HashSet<PathBuf>,
}

impl Neighbour {
    /// What was found so far makes us do.
    pub(crate) fn stance(&self) -> Stance {
        self.stance
    }

    /// Looks through the objects that were loaded since the last time; `ROCOV_FORCE=1` decides in
    /// our favour.
    pub(crate) fn look(&mut self) -> Stance {
        let mut paths = objects::all().into_iter().map(|object| object.path());
        if self.stance == Stance::Alone
            && let Some(path) = paths.find(|path| {
                self.searched.insert(path.clone()) && holds_llvms_drain(path).unwrap_or(false)
            })
        {
            self.stance = if is_forced() {
                log::verbose(format_args!(
                    "taking over from LLVM's own drain for HIP in {}",
                    path.display()
                ));
                Stance::TakeOver
            } else {
                log::warn(format_args!(
                    "LLVM's own drain for HIP (clang_rt.profile_rocm) is in {} and writes the \
                     device profiles; set ROCOV_FORCE=1 to let rocov do it",
                    path.display()
                ));
                Stance::StandDown
            };
        }
        self.stance
    }

    /// Leaves nothing for the other drain.
    pub(crate) fn after_drain(&self, session: &mut Session, device: &HsaDevice) {
        if self.stance == Stance::TakeOver
            && let Err(error) = session.zero(device)
        {
            log::warn(format_args!(
                "cannot zero what was drained, it may count twice: {error}"
            ));
        }
    }
}

fn is_forced() -> bool {
    config::variable("ROCOV_FORCE").is_some_and(|value| value == "1")
}

/// LLVM's entry point, unless we drain in its stead. A library that exports it, as LLVM's headers
/// do not ask for, calls the first one in the process when it means its own: ours.
pub(crate) fn exported_entry() -> Option<unsafe extern "C" fn() -> c_int> {
    if is_forced() {
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

/// Whether LLVM's drain is in the file of an object. Its functions are hidden, so they are in the
/// full symbol table alone, and not to be seen in a stripped file; a stand-alone one may export
/// them. `None` where the file cannot be read: it was deleted, or is the kernel's own.
///
/// Most files are done with after their section names: reading the symbols of all the libraries of
/// a HIP program takes longer than many such programs.
fn holds_llvms_drain(path: &Path) -> Option<bool> {
    let image: Box<dyn Image> = Box::new(BufReader::new(File::open(path).ok()?));
    let cache = ReadCache::new(image);
    let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
    let sections = header.sections(LittleEndian, &cache).ok()?;
    if sections
        .section_by_name(LittleEndian, PROFILE_SECTION)
        .is_none()
    {
        return Some(false);
    }
    let [mut entry, mut llvm_only, mut copy] = [false; 3];
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        let symbols = sections.symbols(LittleEndian, &cache, kind).ok()?;
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
    }
    Some(entry && (llvm_only || !copy))
}
