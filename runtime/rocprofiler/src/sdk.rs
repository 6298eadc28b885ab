//! rocprofiler-sdk. It is in the process when it configures its tools.

use std::ptr::null_mut;

use libloading::os::unix::{Library, RTLD_LAZY};

use crate::abi::{
    CODE_OBJECT, CallbackFn, ConfigureTracingFn, CreateContextFn, LOAD, StartContextFn, Status,
};

/// The sonames of 0.4 to 0.6, and of 1.0.
const LIBRARIES: [&str; 2] = ["librocprofiler-sdk.so.0", "librocprofiler-sdk.so.1"];

/// Has rocprofiler-sdk call `callback` for each code object that is loaded or unloaded from now on.
///
/// # Errors
/// Fails if a function is missing or returns an error; the text names it.
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
    // SAFETY: the function writes the context to a variable.
    check("create_context", unsafe { create(&raw mut context) })?;
    // SAFETY: the list has one operation, and the callback stays with this library.
    let configured = unsafe { configure(context, CODE_OBJECT, &LOAD, 1, callback, null_mut()) };
    check("configure_callback_tracing_service", configured)?;
    // SAFETY: the context was made above.
    check("start_context", unsafe { start(context) })
}

/// Returns a function of rocprofiler-sdk: the first in the process, or one in a library of a local scope.
///
/// # Safety
/// `T` is the type of a pointer to that function.
unsafe fn function<T: Copy>(name: &str) -> Result<T, String> {
    let loaded = LIBRARIES.iter().filter_map(|library| {
        // SAFETY: NOLOAD runs no initialiser.
        unsafe { Library::open(Some(*library), libc::RTLD_NOLOAD | RTLD_LAZY) }.ok()
    });
    let mut libraries = [Library::this()].into_iter().chain(loaded);
    let found = libraries.find_map(|library| {
        // SAFETY: the type is right, as the caller promises.
        let symbol = unsafe { library.get::<T>(name.as_bytes()) };
        symbol.ok().map(|symbol| *symbol)
    });
    found.ok_or_else(|| {
        format!("there is no {name} in this process: use rocprofiler-sdk 0.4 or later")
    })
}

fn check(function: &str, status: Status) -> Result<(), String> {
    match status {
        0 => Ok(()),
        status => Err(format!("rocprofiler_{function} returned {status}")),
    }
}
