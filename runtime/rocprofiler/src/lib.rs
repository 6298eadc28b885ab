//! librocov as a tool of rocprofiler-sdk, AMD's library for profilers: it is told there of code objects
//! that are loaded and unloaded, for processes in which librocov's own hooks see neither.
//!
//! A library of its own, as [`rocprofiler_configure`] calls rocprofiler-sdk into every process that has
//! it, and ends those where it is not installed: the ROCm runtimes look for the symbol. So nothing links
//! with this one; `ROCP_TOOL_LIBRARIES` names it, where rocprofiler-sdk is. librocov itself is the one
//! that the process has, or that lies beside this library.

mod abi;
mod librocov;
mod sdk;

use std::ffi::{c_char, c_int, c_void};
use std::panic::catch_unwind;
use std::ptr::null_mut;

use abi::{ClientId, ConfigureResult, FinalizeClientFn, Phase, Record};

/// Called by rocprofiler-sdk for each tool, before the runtimes have loaded any code: the version is
/// 10000 * major + 100 * minor + patch.
///
/// # Safety
/// As rocprofiler-sdk's `registration.h` has it: `client` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure(
    _version: u32,
    _runtime_version: *const c_char,
    _priority: u32,
    client: *mut ClientId,
) -> *mut ConfigureResult {
    // SAFETY: as the caller promises.
    if let Some(client) = unsafe { client.as_mut() } {
        client.name = c"rocov".as_ptr();
    }
    // Kept by rocprofiler-sdk to the end of the process.
    Box::into_raw(Box::new(ConfigureResult {
        size: size_of::<ConfigureResult>(),
        initialize,
        finalize: None,
        tool_data: null_mut(),
    }))
}

/// Asks to be told of code objects. 0, or -1: rocprofiler-sdk then goes on without this tool.
unsafe extern "C" fn initialize(
    _finalize: Option<FinalizeClientFn>,
    _tool_data: *mut c_void,
) -> c_int {
    let result = catch_unwind(|| {
        librocov::find()?;
        sdk::trace_code_objects(told)
    });
    match result {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            eprintln!("rocov: rocprofiler-sdk does not tell of code objects: {error}");
            -1
        }
        Err(_) => -1,
    }
}

/// A code object was loaded, or is about to be unloaded: its memory can still be read.
unsafe extern "C" fn told(record: Record, _user_data: *mut c_void, _data: *mut c_void) {
    // What goes wrong, librocov has said.
    let _ = catch_unwind(|| match (record.phase(), librocov::find()) {
        (Some(Phase::Loaded), Ok(librocov)) => librocov.code_loaded(),
        (Some(Phase::Unloading), Ok(librocov)) => librocov.code_unloading(),
        _ => {}
    });
}
