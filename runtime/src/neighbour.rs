//! LLVM's own drain for HIP, where the compiler linked it into the program.
//!
//! Both would write every count, into files of different names, and a merge would double them.

use std::env;
use std::ffi::c_void;
use std::io::BufReader;

use object::read::{ReadCache, elf::ElfFile64};
use object::{LittleEndian, Object, ObjectSymbol};
use rocov::drain::Session;
use rocov::hsa::HsaDevice;

use crate::{exports, log};

/// What tells clang_rt.profile_rocm from the rest of LLVM's runtime: its entry point.
const ENTRY: &str = "__llvm_profile_hip_collect_device_data";

/// How to behave beside LLVM's drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stance {
    /// It is not there.
    Alone,
    /// It is, and drains.
    StandDown,
    /// It is, and finds nothing: what was drained is zeroed on the device.
    TakeOver,
}

impl Stance {
    /// Leaves nothing for the other drain.
    pub(crate) fn after_drain(self, session: &mut Session, device: &HsaDevice) {
        if self == Stance::TakeOver
            && let Err(error) = session.zero(device)
        {
            log::warn(format_args!(
                "cannot zero what was drained, it may count twice: {error}"
            ));
        }
    }
}

/// Looks for LLVM's drain; `ROCOV_FORCE=1` decides in our favour.
pub(crate) fn stance() -> Stance {
    if !is_present() {
        return Stance::Alone;
    }
    if env::var_os("ROCOV_FORCE").is_some_and(|value| value == "1") {
        log::verbose(format_args!("taking over from LLVM's own drain for HIP"));
        return Stance::TakeOver;
    }
    log::warn(format_args!(
        "LLVM's own drain for HIP (clang_rt.profile_rocm) is in this program and writes the \
         device profiles; set ROCOV_FORCE=1 to let rocov do it"
    ));
    Stance::StandDown
}

/// Whether another definition of the entry point than ours is in the process: among the dynamic
/// symbols, or in the executable's own table, where a static library ends up.
fn is_present() -> bool {
    // SAFETY: the name is NUL terminated.
    let found = unsafe {
        libc::dlsym(
            libc::RTLD_DEFAULT,
            c"__llvm_profile_hip_collect_device_data".as_ptr(),
        )
    };
    let ours = exports::__llvm_profile_hip_collect_device_data as *const c_void;
    (!found.is_null() && !std::ptr::eq(found, ours)) || executable_defines_entry().unwrap_or(false)
}

fn executable_defines_entry() -> Option<bool> {
    let file = std::fs::File::open("/proc/self/exe").ok()?;
    let cache = ReadCache::new(BufReader::new(file));
    let elf = ElfFile64::<LittleEndian, _>::parse(&cache).ok()?;
    let mut symbols = elf.symbols();
    Some(symbols.any(|symbol| symbol.is_definition() && symbol.name() == Ok(ENTRY)))
}
