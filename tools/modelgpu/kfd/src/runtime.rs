//! Checks whether the HSA runtime in this process supports the modelled targets.

use std::ffi::{CStr, c_int, c_void};
use std::slice;

use modelgpu_amdgcn::Target;

use crate::log;

/// Prints a warning for each target that the loaded runtime does not support. ROCr 5.2.3, for example,
/// leaves out a gfx942 with "unrecognized id". A machine without another GPU then has none.
pub(crate) fn warn_of_unknown_targets(targets: &[Target]) {
    for target in Target::ALL.iter().filter(|target| targets.contains(target)) {
        let mut search = Search {
            name: target.name().as_bytes(),
            runtime: None,
            found: false,
        };
        // SAFETY: the callback matches the signature and `search` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        if let (Some(path), false) = (&search.runtime, search.found) {
            let step = match target {
                Target::Gfx1250 => {
                    "it needs a release after 7.2.4; amdgcn-run executes its kernels"
                }
                _ => {
                    "gfx942 and gfx1100 need ROCr 6, gfx950 and gfx1201 ROCr 7: tools/stacks unpacks one beside the \
                     installed and runs a program on it"
                }
            };
            log::message(&format!(
                "{path} does not know {target}: it will leave those GPUs out ({step})"
            ));
        }
    }
}

struct Search<'a> {
    name: &'a [u8],
    /// Path of the HSA runtime, if it is loaded.
    runtime: Option<String>,
    found: bool,
}

/// Searches the runtime's read-only data for the target's name: every runtime has a table of target
/// names.
unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the dynamic linker passes a valid description, and the caller passes `search`.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
    if info.dlpi_name.is_null() || info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: a C string that lives as long as the library is loaded.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
    if !path.contains("libhsa-runtime64.so") {
        return 0;
    }
    // SAFETY: the linker gives the number of headers.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let readable = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0
    };
    for header in headers.iter().filter(readable) {
        if header.p_flags & libc::PF_W != 0 {
            continue;
        }
        let start = (info.dlpi_addr + header.p_vaddr) as *const u8;
        // SAFETY: a mapped, readable segment that nobody writes to.
        let bytes = unsafe { slice::from_raw_parts(start, header.p_memsz as usize) };
        search.found |= contains(bytes, search.name);
    }
    search.runtime = Some(path.into_owned());
    1
}

fn contains(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}
