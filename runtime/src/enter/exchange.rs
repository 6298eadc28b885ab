//! The exchange of code that the program loads for code that counts, by a library of its own: `librocov_instrument.so`.
//!
//! CUPTI tells of a call before the driver begins with it, and hands over its arguments. The driver goes on with what they
//! are when the callback returns (driver 580).
#![expect(
    unsafe_code,
    reason = "opens a library, and changes the arguments of calls"
)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rocov::device::cuda::exchange::{
    ExchangeAnswer, ExchangeRequest, FUNCTION, InstrumentFn, LIBRARY,
};
use rocov::discover::filter::Filter;

use super::cupti::{CallData, calls};
use super::send;
use crate::elect;
use crate::elect::event::{Event, NewSource};
use crate::guest::{boundary, elf_objects, log, settings};

/// A file with code that a call loads in place of its own. The call needs it until it returns.
pub(super) struct Replacement {
    _file: File,
    _path: CString,
}

/// The place of the code in the arguments of all calls that load some.
const CODE: usize = 1;
/// The place of the number of options, of their names and of their values in the arguments of `cuModuleLoadDataEx`.
const MODULE_OPTIONS: [usize; 3] = [2, 3, 4];
/// Those in the arguments of `cuLibraryLoadData` and `cuLibraryLoadFromFile`.
const LIBRARY_OPTIONS: [usize; 3] = [4, 2, 3];

/// Exchanges the code of the call `id`, which the driver is about to begin, if the user wants it.
///
/// # Safety
/// CUPTI has handed over `data` for the call `id`.
pub(super) unsafe fn exchange(id: u32, data: &CallData) -> Option<Replacement> {
    let instrument = library()?;
    let is_library = matches!(id, calls::LIBRARY_LOAD | calls::LIBRARY_LOAD_FILE);
    let loads = calls::MODULE_LOAD.contains(&id) || is_library;
    let words = data.parameters.cast::<u64>().cast_mut();
    if !loads || words.is_null() {
        return None;
    }
    // SAFETY: each of these calls has so many arguments, of a word each.
    let word = |index: usize| unsafe { *words.add(index) };
    if word(CODE) == 0 {
        return None;
    }
    let options = match id {
        calls::MODULE_LOAD_EX => Some(MODULE_OPTIONS),
        _ => is_library.then_some(LIBRARY_OPTIONS),
    };
    // The number has 4 bytes. Behind them is padding.
    let [count, names, values] = options.map_or([0; 3], |places| places.map(word));
    let is_path = matches!(id, calls::MODULE_LOAD_FILE | calls::LIBRARY_LOAD_FILE);
    let request = ExchangeRequest {
        code: word(CODE) as *const c_void,
        is_path,
        is_for_all: is_library,
        options: count as u32,
        names: names as *const c_int,
        values: values as *const *mut c_void,
    };
    let mut replacement = None;
    boundary::guest("the exchange of CUDA code", || {
        let origin = origin(&request);
        static FILTER: OnceLock<Filter> = OnceLock::new();
        let filter = FILTER.get_or_init(settings::filter);
        if !filter.admits(origin.as_deref()) {
            return;
        }
        let mut answer = ExchangeAnswer::NOTHING;
        // SAFETY: the request is of a call that loads code.
        unsafe { instrument(&raw const request, &raw mut answer) };
        // SAFETY: the library has filled the answer.
        let done = unsafe { take(&answer, is_path, origin.as_deref()) };
        if let Some((code, file)) = done {
            // SAFETY: the arguments are CUPTI's, for this call.
            unsafe { *words.add(CODE) = code };
            replacement = file;
        }
    });
    replacement
}

/// Takes an answer: tells the drainer of the PTX, and notes a loss. Returns the new argument of the call.
///
/// # Safety
/// `librocov_instrument.so` has given the answer.
unsafe fn take(
    answer: &ExchangeAnswer,
    is_path: bool,
    origin: Option<&Path>,
) -> Option<(u64, Option<Replacement>)> {
    let name = || origin.map_or("memory".into(), |path| path.display().to_string());
    if !answer.loss.is_null() {
        // SAFETY: a loss is a text with a zero at its end, which stays.
        let loss = unsafe { CStr::from_ptr(answer.loss) };
        let loss = loss.to_string_lossy().into_owned();
        log::verbose(format_args!(
            "CUDA code of {} runs uncounted: {loss}",
            name()
        ));
        *losses().entry((name(), loss)).or_default() += 1;
        return None;
    }
    if answer.cubin.is_null() {
        return None;
    }
    if !answer.ptx.is_null() {
        send(Event::CudaSource(&NewSource {
            cubin: answer.cubin.cast(),
            cubin_len: answer.cubin_len,
            ptx: answer.ptx.cast(),
            ptx_len: answer.ptx_len,
        }));
    }
    if !answer.is_exchanged {
        return None;
    }
    log::verbose(format_args!(
        "CUDA code of {}: instrumented{}",
        name(),
        if answer.is_cached {
            ", from the cache"
        } else {
            ""
        }
    ));
    if !is_path {
        return Some((answer.cubin as u64, None));
    }
    // SAFETY: the answer has so many bytes, which stay.
    let cubin = unsafe { std::slice::from_raw_parts(answer.cubin.cast::<u8>(), answer.cubin_len) };
    match in_a_file(cubin) {
        Ok((path, file)) => {
            let address = path.as_ptr() as u64;
            Some((
                address,
                Some(Replacement {
                    _file: file,
                    _path: path,
                }),
            ))
        }
        Err(error) => {
            let loss =
                format!("no file in memory can be made: {error}: give the program more memory");
            *losses().entry((name(), loss)).or_default() += 1;
            None
        }
    }
}

/// A file in memory with these bytes, and its path.
fn in_a_file(bytes: &[u8]) -> std::io::Result<(CString, File)> {
    // SAFETY: the name is NUL terminated.
    let number = unsafe { libc::memfd_create(c"rocov".as_ptr(), libc::MFD_CLOEXEC) };
    if number < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else's.
    let mut file = unsafe { File::from_raw_fd(number) };
    file.write_all(bytes)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((CString::new(path)?, file))
}

/// The file that the code of a request comes from.
fn origin(request: &ExchangeRequest) -> Option<PathBuf> {
    if request.is_path {
        use std::os::unix::ffi::OsStrExt;

        // SAFETY: the driver takes a path there.
        let path = unsafe { CStr::from_ptr(request.code.cast()) };
        let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
        return std::path::absolute(path).ok();
    }
    elf_objects::containing(request.code).map(|object| object.mapped_file())
}

/// The function of the library. `None` if the user does not want it, or it is not there.
fn library() -> Option<InstrumentFn> {
    static FOUND: OnceLock<Option<InstrumentFn>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        if !settings::instrument() {
            return None;
        }
        let own = elect::own_object()?;
        let path = own.mapped_file().with_file_name(LIBRARY);
        // SAFETY: its initialisers are those of Rust.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let found = library.and_then(|library| {
            // SAFETY: the function has this type, by its name.
            let function = unsafe { library.get::<InstrumentFn>(FUNCTION) };
            let function = function.map(|function| *function);
            // It stays, because its function is called to the end.
            std::mem::forget(library);
            function
        });
        found
            .inspect_err(|error| {
                log::warn(format_args!(
                    "cannot instrument CUDA code: {error}; install {LIBRARY} of this release beside librocov.so"
                ));
            })
            .ok()
    })
}

/// The number of loads that lost something: by the file of the code, and the reason.
fn losses() -> std::sync::MutexGuard<'static, BTreeMap<(String, String), usize>> {
    static LOSSES: Mutex<BTreeMap<(String, String), usize>> = Mutex::new(BTreeMap::new());
    LOSSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a line for each file and each reason for which code ran uncounted. The process ends.
pub(super) fn report_losses() {
    for ((file, loss), count) in std::mem::take(&mut *losses()) {
        match count {
            1 => log::warn(format_args!(
                "a CUDA module of {file} runs uncounted: {loss}"
            )),
            _ => log::warn(format_args!(
                "{count} CUDA modules of {file} run uncounted: {loss}"
            )),
        }
    }
}
