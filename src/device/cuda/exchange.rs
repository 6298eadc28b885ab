//! The interface between librocov and `librocov_instrument.so`, which instruments code that is not.
//!
//! librocov asks when the program loads code, and hands what it gets to the driver instead of the program's own. Both
//! libraries are of one release: [`FUNCTION`] has another name after a change.

use std::ffi::{c_char, c_int, c_void};

/// The file of the library, which is next to librocov.
pub const LIBRARY: &str = "librocov_instrument.so";
/// Its function, an [`InstrumentFn`].
pub const FUNCTION: &str = "rocov_instrument_4";

/// The number of what rocov puts into PTX, which is part of the names of cached results. A change of it needs a new number.
pub const INSTRUMENTATION: u32 = 13;
/// The command that Triton calls instead of ptxas.
pub const STAND_IN: &str = "rocov-ptxas";

/// Answers a request. Called in the callback of a call that loads code, before the driver has begun with it.
pub type InstrumentFn = unsafe extern "C" fn(*const ExchangeRequest, *mut ExchangeAnswer);

/// Code that a program loads, or gives to the driver's linker.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExchangeRequest {
    /// The code as the driver takes it: a wrapper of a fat binary, a fat binary, a cubin, or PTX that ends with a zero. Or
    /// the path of a file with one of these, if `is_path`.
    pub code: *const c_void,
    /// True if `code` is a path.
    pub is_path: bool,
    /// True if the code is for all GPUs of the process (`cuLibraryLoad*`), and not only for that of the current context.
    pub is_for_all: bool,
    /// True if the driver links the code with other code (`cuLinkAdd*`).
    pub is_to_be_linked: bool,
    /// True if the counters shall only record which blocks ran.
    pub is_for_reached: bool,
    /// The number of options for the compiler.
    pub options: u32,
    /// The options (`CUjit_option`), as many as that number.
    pub names: *const c_int,
    /// The values of the options.
    pub values: *const *mut c_void,
}

/// An instrumented cubin, and what it was made from. The memory stays to the end of the process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CountedCubin {
    /// The cubin. Null if the driver has not linked it yet.
    pub cubin: *const c_void,
    /// The size of the cubin in bytes.
    pub cubin_len: usize,
    /// The PTX that it was made from: text in UTF-8.
    pub ptx: *const c_char,
    /// The size of the PTX in bytes.
    pub ptx_len: usize,
}

/// The answer. The code that it names stays to the end of the process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExchangeAnswer {
    /// The code to load instead of the program's: a cubin, a fat binary of cubins for several architectures, or PTX with
    /// a zero at its end if it is to be linked. Null: the code stays as it is.
    pub code: *const c_void,
    /// The size of the code in bytes.
    pub code_len: usize,
    /// The instrumented cubins: those in `code`, or the program's own one if that is instrumented already. The list stays until the
    /// thread's next request.
    pub cubins: *const CountedCubin,
    /// The number of these cubins.
    pub cubins_len: usize,
    /// The reason why the code stays uncounted and the next step, with a zero at its end. Null if none is lost.
    pub loss: *const c_char,
    /// The name of the framework that made the code, with a zero at its end. Null if it is not known, or if nothing is lost.
    pub maker: *const c_char,
    /// True if all cubins were in the cache.
    pub is_cached: bool,
}

impl ExchangeAnswer {
    /// The answer for code that stays as it is without a loss.
    pub const NOTHING: Self = Self {
        code: std::ptr::null(),
        code_len: 0,
        cubins: std::ptr::null(),
        cubins_len: 0,
        loss: std::ptr::null(),
        maker: std::ptr::null(),
        is_cached: false,
    };
}

/// The PTX of several modules, one after the other, as [`modules`](crate::format::ptx::modules) takes it apart.
#[must_use]
pub fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut all = String::new();
    for text in texts {
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(text);
    }
    all
}
