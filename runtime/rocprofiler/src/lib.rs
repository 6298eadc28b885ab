//! librocov as a tool of rocprofiler-sdk, AMD's library for profilers. rocprofiler-sdk reports loads and
//! unloads of code objects, for processes in which librocov's own hooks see neither.
//!
//! This is a library of its own, because the ROCm runtimes look for the symbol
//! [`rocprofiler_configure`]. They load rocprofiler-sdk into every process that has it, and end the process
//! if rocprofiler-sdk is not installed. So nothing links with this library. If rocprofiler-sdk is
//! installed, `ROCP_TOOL_LIBRARIES` names it. It uses the librocov of the process, or the one next to
//! itself.

mod abi;
mod librocov;
mod sdk;

use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Write};
use std::panic::catch_unwind;
use std::ptr::null_mut;

use abi::{ClientId, ConfigureResult, FinalizeClientFn, Phase, Record};

/// Registers this tool. rocprofiler-sdk calls it before the runtimes have loaded any code. The version is
/// 10000 * major + 100 * minor + patch.
///
/// # Safety
/// `client` is valid, as rocprofiler-sdk's `registration.h` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure(
    _version: u32,
    _runtime_version: *const c_char,
    _priority: u32,
    client: *mut ClientId,
) -> *mut ConfigureResult {
    // SAFETY: the client is null or valid, as the caller promises.
    if let Some(client) = unsafe { client.as_mut() } {
        client.name = c"rocov".as_ptr();
    }
    // rocprofiler-sdk keeps it to the end of the process.
    Box::into_raw(Box::new(ConfigureResult {
        size: size_of::<ConfigureResult>(),
        initialize,
        finalize: None,
        tool_data: null_mut(),
    }))
}

/// Asks for reports of code objects. Returns 0, or -1: then rocprofiler-sdk continues without this tool.
unsafe extern "C" fn initialize(
    _finalize: Option<FinalizeClientFn>,
    _tool_data: *mut c_void,
) -> c_int {
    let result = catch_unwind(|| {
        librocov::find()?;
        sdk::trace_code_objects(report)
    });
    match result {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            // A standard error that cannot be written to is no reason to panic.
            let _ = writeln!(
                io::stderr(),
                "rocov: rocprofiler-sdk does not report code objects: {error}"
            );
            -1
        }
        Err(_) => -1,
    }
}

/// Takes the report that a code object was loaded, or is about to be unloaded. Its memory can still be
/// read.
unsafe extern "C" fn report(record: Record, _user_data: *mut c_void, _data: *mut c_void) {
    // librocov has printed every error.
    let _ = catch_unwind(|| match (record.phase(), librocov::find()) {
        (Some(Phase::Loaded), Ok(librocov)) => librocov.code_loaded(),
        (Some(Phase::Unloading), Ok(librocov)) => librocov.code_unloading(),
        _ => {}
    });
}
