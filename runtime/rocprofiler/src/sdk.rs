//! rocprofiler-sdk, which is in the process when it configures its tools.

use std::ptr::null_mut;

use libloading::os::unix::{Library, RTLD_LAZY};

use crate::abi::{
    CODE_OBJECT, CallbackFn, ConfigureTracingFn, CreateContextFn, LOAD, StartContextFn, Status,
};

/// Its sonames: of 0.4 to 0.6, of 1.0.
const LIBRARIES: [&str; 2] = ["librocprofiler-sdk.so.0", "librocprofiler-sdk.so.1"];

/// Has `callback` called for each code object that is loaded or unloaded from now on.
///
/// # Errors
/// Fails where a function is missing or answers with an error; the text names it.
pub(crate) fn trace_code_objects(callback: CallbackFn) -> Result<(), String> {
    // SAFETY: the types are those of context.h and callback_tracing.h.
    let (create, configure, start) = unsafe {
        (
            function::<CreateContextFn>("rocprofiler_create_context")?,
            function::<ConfigureTracingFn>("rocprofiler_configure_callback_tracing_service")?,
            function::<StartContextFn>("rocprofiler_start_context")?,
        )
    };
    let mut context = 0;
    // SAFETY: the context goes to a variable.
    check("create_context", unsafe { create(&raw mut context) })?;
    // SAFETY: one operation; the callback stays, as this library does.
    let configured = unsafe { configure(context, CODE_OBJECT, &LOAD, 1, callback, null_mut()) };
    check("configure_callback_tracing_service", configured)?;
    // SAFETY: the context was made above.
    check("start_context", unsafe { start(context) })
}

/// A function of rocprofiler-sdk: the first in the process, or in a library of a scope of its own.
///
/// # Safety
/// `T` is the type of a pointer to that function.
unsafe fn function<T: Copy>(name: &str) -> Result<T, String> {
    let loaded = LIBRARIES.iter().filter_map(|library| {
        // SAFETY: NOLOAD runs no initialiser.
        unsafe { Library::open(Some(*library), libc::RTLD_NOLOAD | RTLD_LAZY) }.ok()
    });
    let mut libraries = [Library::this()].into_iter().chain(loaded);
    // SAFETY: as the caller promises.
    let found = libraries.find_map(|it| unsafe { it.get::<T>(name.as_bytes()) }.ok().map(|it| *it));
    found.ok_or_else(|| format!("there is no {name}"))
}

fn check(function: &str, status: Status) -> Result<(), String> {
    match status {
        0 => Ok(()),
        status => Err(format!("rocprofiler_{function} answered {status}")),
    }
}
